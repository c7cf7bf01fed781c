/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of gemm_tile.cuh's kernel, for one type. */
#ifndef GRT_BACKENDS_CUDA_GEMM_LAUNCH_CUH
#define GRT_BACKENDS_CUDA_GEMM_LAUNCH_CUH

#include "backends/cuda/gemm_forms.h"
#include "backends/cuda/gemm_plan.h"
#include "backends/cuda/gemm_tile.cuh"
#include "backends/cuda/tensor_map.h"

namespace
{

enum { GEMM_MOST_SHARED = 227 << 10 /* bytes that a block may have */ };

CUtensorMapDataType gemm_map_type(const cuda_gemm *p)
{
    return p->dtype == GRT_DTYPE_FLOAT16    ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
           : p->dtype == GRT_DTYPE_BFLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
           : p->strict                      ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                            : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; /* the engine rounds */
}

/* Boxes of 128 bytes by `rows`. */
cudaError_t gemm_map_boxes(const cuda_gemm *p, const void *data, int rank, const cuuint64_t *dims,
                           const cuuint64_t *strides, const cuuint32_t *box, CUtensorMap *out)
{
    const cuuint32_t steps[] = {1, 1, 1};
    return cuda_tensor_map_error(((cuda_tensor_map_encoder)p->encode_tiled)(
        out, gemm_map_type(p), rank, (void *)(uintptr_t)data, dims, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

template <class T>
cudaError_t gemm_map_windows(const cuda_gemm *p, const void *data, int pixels, CUtensorMap *out)
{
    const cuuint64_t pixel = (cuuint64_t)p->channels * sizeof(T),
                     dims[] = {(cuuint64_t)p->channels, (cuuint64_t)p->in[1], (cuuint64_t)p->in[0],
                               (cuuint64_t)p->images},
                     strides[] = {pixel, pixel * dims[1], pixel * dims[1] * dims[2]};
    const int lower[] = {-p->begin[1], -p->begin[0]},
              upper[] = {-p->begin[1] + (p->out[1] - 1) * p->stride[1] + 1 - p->in[1],
                         -p->begin[0] + (p->out[0] - 1) * p->stride[0] + 1 - p->in[0]};
    const cuuint32_t steps[] = {1, (cuuint32_t)p->stride[1], (cuuint32_t)p->stride[0], 1};
    return cuda_tensor_map_error(((cuda_image_map_encoder)p->encode_im2col)(
        out, gemm_map_type(p), 4, (void *)(uintptr_t)data, dims, strides, lower, upper, gemm_depth<T>,
        (cuuint32_t)pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

template <class T> cudaError_t gemm_map_x(const cuda_gemm *p, const void *x, int rows, CUtensorMap *out)
{
    const cuuint64_t dims[] = {(cuuint64_t)p->channels, (cuuint64_t)p->rows},
                     strides[] = {dims[0] * sizeof(T)};
    const cuuint32_t box[] = {gemm_depth<T>, (cuuint32_t)rows};
    return p->is_windows ? gemm_map_windows<T>(p, x, rows, out)
                         : gemm_map_boxes(p, x, 2, dims, strides, box, out);
}

template <class T> cudaError_t gemm_map_w(const cuda_gemm *p, const void *w, int columns, CUtensorMap *out)
{
    const cuuint64_t n = (cuuint64_t)p->columns, channels = (cuuint64_t)p->channels,
                     taps = p->is_windows ? (cuuint64_t)p->kernel[0] * (cuuint64_t)p->kernel[1] : 1;
    if (p->across) {
        const cuuint64_t dims[] = {n, channels}, strides[] = {n * sizeof(T)};
        const cuuint32_t box[] = {64, gemm_depth<T>};
        return gemm_map_boxes(p, w, 2, dims, strides, box, out);
    }
    const cuuint64_t dims[] = {channels, taps, n},
                     strides[] = {channels * sizeof(T), channels * taps * sizeof(T)};
    const cuuint32_t box[] = {gemm_depth<T>, 1, (cuuint32_t)columns};
    return gemm_map_boxes(p, w, 3, dims, strides, box, out);
}

/* A bound as kernels have it: twice if it has 16 bits. */
template <class T> uint32_t gemm_bound(float x)
{
    const T v = (T)x; /* on the host */
    uint32_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    return sizeof v == 2 ? bits << 16 | bits : bits;
}

template <class T>
gemm_work gemm_work_of(const cuda_gemm *p, const cuda_gemm_args *args, int rows, int columns)
{
    gemm_work work = {};
    work.rows = (int)p->rows;
    work.columns = (int)p->columns;
    work.across = (work.columns + columns - 1) / columns;
    work.tiles = (work.rows + rows - 1) / rows * work.across;
    work.per_tap = (int)((p->channels + gemm_depth<T> - 1) / gemm_depth<T>);
    work.steps = work.per_tap * (p->is_windows ? p->kernel[0] * p->kernel[1] : 1);
    work.taps_right = p->is_windows ? p->kernel[1] : 1;
    work.splits = p->splits;
    work.line = p->is_windows ? p->out[1] : 1;
    work.lines = p->is_windows ? p->out[0] : 1;
    for (int i = 0; i < 2; i++) {
        work.stride[i] = p->stride[i];
        work.begin[i] = p->begin[i];
        work.dilation[i] = p->dilation[i];
    }
    work.by_across = divider::by(work.across);
    work.by_line = divider::by(work.line);
    work.by_lines = divider::by(work.lines);
    work.is_windows = p->is_windows;
    work.is_constant = p->is_constant;
    work.is_early = !p->is_long;
    work.low = gemm_bound<T>(p->act.kind == GRT_ACT_RELU   ? 0.0f
                             : p->act.kind == GRT_ACT_CLIP ? p->act.a
                                                           : -INFINITY);
    work.high = gemm_bound<T>(p->act.kind == GRT_ACT_CLIP ? p->act.b : INFINITY);
    work.act = p->act;
    work.bias = args->bias;
    work.residual = args->residual;
    work.y = args->y;
    work.x = args->x;
    work.w = args->w;
    work.channels = (int)p->channels;
    work.in[0] = p->in[0];
    work.in[1] = p->in[1];
    work.weave = p->weave;
    work.by_woven_line = divider::by(p->weave.is_on ? p->weave.line : 1);
    work.by_woven_channels = divider::by(p->weave.is_on ? p->weave.channels : 1);
    work.by_woven_block = divider::by(p->weave.is_on ? p->weave.block[1] : 1);
    return work;
}

template <class T, class F, bool ACROSS, gemm_end END, bool SPLIT>
grt_status gemm_launch_kernel(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    const gemm_work work = gemm_work_of<T>(p, args, F::ROWS, F::COLUMNS);
    const size_t bytes = sizeof(gemm_room<T, F>);
    static_assert(sizeof(gemm_room<T, F>) <= GEMM_MOST_SHARED, "");
    const auto kernel = gemm_kernel<T, F, ACROSS, END, SPLIT>;
    gemm_maps maps;
    const int room = p->multiprocessors * F::BLOCKS, blocks = SPLIT               ? work.tiles * work.splits
                                                              : work.tiles < room ? work.tiles
                                                                                  : room;
    CUDA_TRY(gemm_map_x<T>(p, args->x, F::ROWS, &maps.x));
    CUDA_TRY(gemm_map_w<T>(p, args->w, F::COLUMNS, &maps.w));
    CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = overlap_config(!p->is_long, blocks, F::THREADS, bytes, stream, attributes);
    if (SPLIT) {
        cudaLaunchAttribute *cluster = &attributes[config.numAttrs++];
        cluster->id = cudaLaunchAttributeClusterDimension;
        cluster->val.clusterDim.x = (unsigned)p->splits;
        cluster->val.clusterDim.y = cluster->val.clusterDim.z = 1;
    }
    CUDA_TRY(cudaLaunchKernelEx(&config, kernel, work, maps));
    return GRT_OK;
}

template <class T, class F, bool CAN_SPLIT>
grt_status gemm_launch_woven(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    if constexpr (CAN_SPLIT)
        if (p->splits > 1)
            return gemm_launch_kernel<T, F, false, GEMM_WOVEN, true>(p, args, stream);
    return gemm_launch_kernel<T, F, false, GEMM_WOVEN, false>(p, args, stream);
}

template <class T, class F, bool CAN_SPLIT, bool ACROSS>
grt_status gemm_launch_form(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    if constexpr (!ACROSS) /* see cuda_gemm_set_weave */
        if (p->weave.is_on)
            return gemm_launch_woven<T, F, CAN_SPLIT>(p, args, stream);
    if constexpr (CAN_SPLIT)
        if (p->splits > 1)
            return gemm_launch_kernel<T, F, ACROSS, GEMM_CURVED, true>(p, args, stream);
    if (gemm_is_bounds(p->act.kind))
        return gemm_launch_kernel<T, F, ACROSS, GEMM_BOUNDS, false>(p, args, stream);
    if constexpr (ACROSS || sizeof(T) == 4)
        if (gemm_is_gelu(p->act.kind))
            return gemm_launch_kernel<T, F, ACROSS, GEMM_GELU, false>(p, args, stream);
    return gemm_launch_kernel<T, F, ACROSS, GEMM_CURVED, false>(p, args, stream);
}

template <class T> grt_status gemm_launch(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    switch (p->form) {
#define GEMM_CASE(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS)               \
    case NUMBER: {                                                               \
        using form = gemm_form<GROUPS, COLUMNS, STAGES, BLOCKS>;                 \
        if constexpr (COLUMNS >= 64 && sizeof(T) == 2)                           \
            if (p->across)                                                       \
                return gemm_launch_form<T, form, SPLITS, true>(p, args, stream); \
        return gemm_launch_form<T, form, SPLITS, false>(p, args, stream);        \
    }
        GEMM_FORMS(GEMM_CASE)
#undef GEMM_CASE
    default:
        return GRT_OK;
    }
}

} // namespace

#endif
