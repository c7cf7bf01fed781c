/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Networks on the device. The kernel that was generated for these layers (networks_source.h) runs
 * once it is there (backends/code.h); else a thread computes all layers of one network and row. */
#include "backends/cuda/activate.cuh"
#include "backends/cuda/code.h"
#include "backends/cuda/generated.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/networks_source.h"
#include "backends/cuda/overlap.cuh"
#include "backends/cuda/walk.h"

#include <stdlib.h>

namespace
{

enum { BLOCK = 128 };

struct shape {
    cuda_networks_form form;
    cuda_networks_grid grid;
    grt_code *code; /* NULL: there is none */
    int64_t rows, count, lane;
    bool overlaps;
};

struct layer {
    const void *weights, *bias; /* bias NULL: none */
    int32_t in, out;
    grt_act act;
};

struct layers {
    layer of[GRT_NETWORKS_LAYERS];
    int32_t n;
    int64_t lane; /* from a weight to the next one of the same network */
};

template <class T>
__device__ void cuda_compute_layer(const layer &l, int64_t n, int64_t lane, const float *x, float *y)
{
    for (int32_t o = 0; o < l.out; o++) {
        float sum = l.bias ? cuda_widen(((const T *)l.bias)[o * lane + n]) : 0;
        for (int32_t i = 0; i < l.in; i++)
            sum += x[i] * cuda_widen(((const T *)l.weights)[((int64_t)i * l.out + o) * lane + n]);
        y[o] = cuda_activate<float>(l.act, sum);
    }
}

template <class T>
__global__ void plain_kernel(const __grid_constant__ layers all, const T *x, T *y, int64_t rows,
                             int64_t count)
{
    CUDA_EACH(i, rows * count)
    {
        float h[2][GRT_NETWORKS_WIDTH];
        const int32_t in = all.of[0].in, out = all.of[all.n - 1].out;
        for (int32_t k = 0; k < in; k++)
            h[0][k] = cuda_widen(x[i * in + k]);
        for (int32_t l = 0; l < all.n; l++)
            cuda_compute_layer<T>(all.of[l], i % count, all.lane, h[l % 2], h[1 - l % 2]);
        for (int32_t k = 0; k < out; k++)
            y[i * out + k] = cuda_narrow<T, float>(h[all.n % 2][k]);
    }
}

void cuda_networks_add_key(const void *form, grt_text *key)
{
    cuda_networks_key((const cuda_networks_form *)form, key);
}

void cuda_networks_add_source(const void *form, grt_text *source)
{
    cuda_networks_source((const cuda_networks_form *)form, source);
}

grt_status cuda_networks_find_generated(grt_reshape *r, shape *sh)
{
    const cuda_generated wanted = {"Networks", cuda_networks_add_key, cuda_networks_add_source,
                                   &sh->form,  CUDA_NETWORKS_KERNEL,  sh->grid.shared};
    return cuda_generated_take(r, &wanted, &sh->code);
}

void cuda_networks_release_shape(void *object)
{
    shape *sh = (shape *)object;
    grt_code_give(sh->code);
    free(sh);
}

grt_status cuda_networks_reshape(grt_reshape *r)
{
    shape *sh;
    GRT_TRY(cuda_state(&sh));
    const grt_tensor *x = r->in[0];
    sh->rows = x->dims[0];
    sh->count = x->dims[1];
    sh->lane = r->in[grt_networks_weights(0)]->dims[2];
    const cudaDeviceProp *prop = &((const cuda_device *)r->device)->prop;
    sh->overlaps = prop->major >= 9;
    const cuda_networks_limits limits = {prop->sharedMemPerBlockOptin, prop->sharedMemPerMultiprocessor,
                                         prop->multiProcessorCount};
    cuda_networks_form_of((const grt_networks *)r->state, x->dtype, sh->rows, sh->count, &limits, &sh->form);
    cuda_networks_grid_of(&sh->form, sh->rows, &limits, &sh->grid);
    const int64_t most = (int64_t)1 << 31;
    const bool fits = sh->rows > 0 && sh->count > 0 && sh->rows < 65535 * (int64_t)sh->grid.rows &&
                      sh->lane * GRT_NETWORKS_WIDTH * GRT_NETWORKS_WIDTH < most;
    const grt_status status = fits ? cuda_networks_find_generated(r, sh) : GRT_OK;
    if (status != GRT_OK) {
        free(sh);
        return status;
    }
    r->shape = sh;
    return GRT_OK;
}

grt_status cuda_networks_launch_generated(const grt_run *r, const shape *sh, cudaKernel_t generated)
{
    cuda_networks_args args = {};
    args.x = r->in[0]->data;
    args.y = r->out[0]->data;
    args.count = (uint32_t)sh->count;
    args.rows = (uint32_t)sh->rows;
    args.lane = (uint32_t)sh->lane;
    for (int32_t l = 0; l < sh->form.networks->n_layers; l++) {
        args.weights[l] = grt_run_data(r, grt_networks_weights(l));
        args.bias[l] = grt_run_data(r, grt_networks_bias(l));
    }
    void *list[] = {&args};
    const int32_t rows = sh->grid.rows, networks = sh->grid.networks;
    const dim3 grid((uint32_t)((sh->count + networks - 1) / networks),
                    (uint32_t)((sh->rows + rows - 1) / rows)),
        block(CUDA_NETWORKS_LANES, (uint32_t)sh->grid.warps);
    CUDA_TRY(overlap_launch_code(sh->overlaps, generated, grid, block, sh->grid.shared,
                                 (cudaStream_t)r->stream, list));
    return GRT_OK;
}

template <class T> void launch_plain(const grt_run *r, const shape *sh)
{
    const grt_networks *n = sh->form.networks;
    layers all = {};
    all.n = n->n_layers;
    all.lane = sh->lane;
    for (int32_t l = 0; l < n->n_layers; l++)
        all.of[l] = {grt_run_data(r, grt_networks_weights(l)), grt_run_data(r, grt_networks_bias(l)),
                     n->width[l], n->width[l + 1], n->act[l]};
    plain_kernel<T><<<cuda_blocks(sh->rows * sh->count, BLOCK), BLOCK, 0, (cudaStream_t)r->stream>>>(
        all, (const T *)r->in[0]->data, (T *)r->out[0]->data, sh->rows, sh->count);
}

grt_status cuda_networks_run(const grt_run *r)
{
    const shape *sh = (const shape *)r->shape;
    if (sh->rows == 0 || sh->count == 0)
        return GRT_OK;
    const cudaKernel_t generated = cuda_code_kernel(sh->code);
    if (generated && cuda_aligned(r->in[0]->data, (size_t)cuda_networks_alignment(&sh->form)))
        return cuda_networks_launch_generated(r, sh, generated);
    switch (sh->form.dtype) {
    case GRT_DTYPE_FLOAT16:
        launch_plain<__half>(r, sh);
        break;
    case GRT_DTYPE_BFLOAT16:
        launch_plain<__nv_bfloat16>(r, sh);
        break;
    default:
        launch_plain<float>(r, sh);
    }
    CUDA_LAUNCHED();
    return GRT_OK;
}

#define TYPES (GRT_BIT(FLOAT) | GRT_BIT(FLOAT16) | GRT_BIT(BFLOAT16))

const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Networks",
     .types = {TYPES, TYPES, TYPES, TYPES},
     .flags = GRT_KERNEL_CHOOSES,
     .supports = grt_networks_supports,
     .create = grt_networks_create,
     .destroy = free,
     .reshape = cuda_networks_reshape,
     .release_shape = cuda_networks_release_shape,
     .run = cuda_networks_run},
};

} // namespace

CUDA_KERNELS(networks, rows);
