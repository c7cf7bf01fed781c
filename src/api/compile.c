/* SPDX-License-Identifier: Apache-2.0 */
/* grt_compile and grt_check_model: the compiler with a backend as its target. */
#include "backends/registry.h"
#include "graph/compile.h"
#include "src/base/output.h"
#include "src/base/structs.h"
#include "src/target/choose.h"
#include "src/target/measure.h"
#include "src/target/pack.h"
#include "src/target/target.h"
#include "src/base/file_map.h"

#include <string.h>
#include <sys/stat.h>

grt_status grt_compile(const char *onnx_path, const grt_compile_options *options, const char *plan_path)
{
    if (!onnx_path || !plan_path)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_compile: %s is NULL",
                        onnx_path ? "plan_path" : "onnx_path");
    if (grt_same_file(onnx_path, plan_path))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the plan would take the place of the model",
                        plan_path);
    grt_compile_options known;
    GRT_TRY(compile_options_take(&known, options));
    if (known.trust)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_compile: trust is for opening: see grt_model_open_with");
    const grt_backend *backend = grt_backend_find(known.target ? known.target : "cpu");
    if (!backend)
        return GRT_STATUS_DEVICE;
    GRT_TRY(grt_output_check(plan_path));
    grt_target target = grt_target_of(backend);
    const grt_cancel cancel = compile_cancel(&known);
    compile_source source = {.path = onnx_path};
    compile_source_take(&source, &known);
    grt_plan *plan;
    grt_status status = grt_compile_plan(&source, &known, &target, &plan);
    if (status != GRT_OK)
        return compile_fail_file(status, onnx_path);
    status = grt_plan_measure(plan, backend);
    if (status == GRT_OK)
        status = grt_plan_pack(plan, backend, &cancel);
    if (status == GRT_OK)
        status = grt_plan_choose(plan, backend, &known);
    if (status == GRT_OK)
        status = grt_plan_write(plan, plan_path, known.external_weights, &cancel);
    grt_plan_release(plan);
    return status;
}

typedef struct checking {
    void (*each)(void *user, const grt_finding *finding);
    void *user;
    size_t count;
} checking;

static void forward_finding(void *user, const grt_finding *finding)
{
    checking *c = user;
    grt_text message = {0};
    c->count += finding->status != GRT_OK;
    if (!c->each)
        return;
    grt_finding shown = *finding;
    grt_text_add_printable(&message, finding->message);
    shown.message = message.failed ? "out of memory" : grt_text_get(&message);
    c->each(c->user, &shown);
    grt_text_release(&message);
}

grt_status grt_check_model(const char *onnx_path, const char *device,
                           void (*each)(void *user, const grt_finding *finding), void *user,
                           size_t *out_count)
{
    const grt_compile_options options = {.struct_size = sizeof options, .target = device};
    return grt_check_model_with(onnx_path, &options, each, user, out_count);
}

grt_status grt_check_model_with(const char *onnx_path, const grt_compile_options *options,
                                void (*each)(void *user, const grt_finding *finding), void *user,
                                size_t *out_count)
{
    if (!onnx_path || !out_count)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_check_model: onnx_path or out_count is NULL");
    grt_compile_options known;
    GRT_TRY(compile_options_take(&known, options));
    const grt_backend *backend = grt_backend_find(known.target ? known.target : "cpu");
    if (!backend)
        return GRT_STATUS_DEVICE;
    grt_target target = grt_target_of(backend);
    checking c = {each, user, 0};
    known.warning = forward_finding;
    known.user = &c;
    compile_source source = {.path = onnx_path};
    compile_source_take(&source, &known);
    GRT_TRY(grt_compile_check(&source, &target, forward_finding, &c));
    *out_count = c.count;
    return GRT_OK;
}
