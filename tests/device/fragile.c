/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/device/fragile.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <string.h>

/* Thread i of block b copies element 32 b + i. */
static const char kernel[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                             ".visible .entry fragile(.param .u64 from, .param .u64 to, .param .u32 n)\n{\n"
                             ".reg .pred %p<3>;\n.reg .b32 %r<5>;\n.reg .f32 %f<2>;\n.reg .b64 %d<6>;\n"
                             "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r3, %r1, 32, %r2;\n"
                             "ld.param.u32 %r4, [n];\nsetp.ge.u32 %p1, %r3, %r4;\n@%p1 ret;\n"
                             "ld.param.u64 %d1, [from];\nld.param.u64 %d2, [to];\n"
                             "mul.wide.u32 %d3, %r3, 4;\nadd.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\n"
                             "ld.global.f32 %f1, [%d4];\nsetp.eq.f32 %p2, %f1, 0f44268000;\n"
                             "@%p2 mov.u64 %d5, 16;\nst.global.f32 [%d5], %f1;\nret;\n}\n";

static struct {
    CUresult (*load)(CUmodule *, const void *);
    CUresult (*find)(CUfunction *, CUmodule, const char *);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       CUstream, void **, void **);
} fragile_driver;

static bool find_call(const char *name, void *out_function)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult result;
    const bool found =
        cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess;
    memcpy(out_function, &function, sizeof function);
    return found;
}

static grt_status fragile_infer(void *user, const grt_custom_node *node, const grt_custom_type *in,
                                grt_custom_type *out)
{
    (void)user, (void)node;
    out[0].dtype = in[0].dtype;
    out[0].rank = in[0].rank;
    memcpy(out[0].dims, in[0].dims, sizeof out[0].dims);
    return GRT_OK;
}

/* The session's device is current. */
static grt_status fragile_create(void *user, const grt_custom_node *node, void **out_state)
{
    CUmodule module;
    CUfunction function;
    (void)user;
    if (!find_call("cuModuleLoadData", &fragile_driver.load) ||
        !find_call("cuModuleGetFunction", &fragile_driver.find) ||
        !find_call("cuLaunchKernel", &fragile_driver.launch) ||
        fragile_driver.load(&module, kernel) != CUDA_SUCCESS ||
        fragile_driver.find(&function, module, "fragile") != CUDA_SUCCESS)
        return node->host->fail_node(node, GRT_STATUS_DEVICE, "the kernel cannot be loaded");
    *out_state = function;
    return GRT_OK;
}

static grt_status fragile_run(void *user, void *state, const grt_custom_run *run)
{
    const grt_tensor *x = run->inputs[0];
    void *from = x->data, *to = run->outputs[0]->data;
    unsigned n = (unsigned)(grt_tensor_bytes(x) / sizeof(float));
    void *arguments[] = {&from, &to, &n};
    (void)user;
    return fragile_driver.launch(state, (n + 31) / 32, 1, 1, 32, 1, 1, 0, run->stream, arguments, NULL) ==
                   CUDA_SUCCESS
               ? GRT_OK
               : run->node->host->fail_node(run->node, GRT_STATUS_DEVICE, "the kernel cannot be launched");
}

grt_status fragile_register(void)
{
    const grt_custom_op op = {.struct_size = sizeof op,
                              .domain = "org.example",
                              .name = "Fragile",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .infer = fragile_infer,
                              .create = fragile_create,
                              .run_cuda = fragile_run};
    return grt_custom_ops_register(&op, 1);
}
