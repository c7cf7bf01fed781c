/* SPDX-License-Identifier: Apache-2.0 */
/* ArrayFeatureExtractor, Binarizer. */
#include "backends/cuda/each.cuh"

namespace
{

#define ML_NUMBERS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(INT32) | GRT_BIT(INT64))

template <typename T> grt_status extract(const grt_run *r, int64_t n, int64_t width)
{
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data;
    const int64_t *columns = (const int64_t *)r->in[1]->data;
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "Y", &watch));
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        int64_t column = columns[i % n];
        if (!cuda_check(watch, column, i % n, 0, width - 1))
            column = column < 0 ? 0 : width - 1;
        out[i] = in[i / n * width + column];
    });
}

grt_status reshape_extractor(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    if (in->rank == 0 || (in->dims[in->rank - 1] == 0 && grt_tensor_elements(r->in[1]) > 0))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the input has no features to take from");
    return GRT_OK;
}

grt_status run_extractor(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->in[1]), width = r->in[0]->dims[r->in[0]->rank - 1];
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), extract, r, n, width);
}

grt_status create_binarizer(const grt_kernel_node *node, void **out_state)
{
    float *threshold;
    GRT_TRY(cuda_state(&threshold));
    *threshold = grt_attr_float(node->desc, "threshold", 0);
    *out_state = threshold;
    return GRT_OK;
}

grt_status run_binarizer(const grt_run *r)
{
    const double threshold = (double)*(const float *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->in[0]),
                     [=] __device__(int64_t i) { out.put(i, in.get(i) > threshold); });
}

const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml",
     .op = "ArrayFeatureExtractor",
     .types = {ML_NUMBERS, GRT_BIT(INT64)},
     .reshape = reshape_extractor,
     .run = run_extractor},
    {.domain = "ai.onnx.ml",
     .op = "Binarizer",
     .types = {ML_NUMBERS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = create_binarizer,
     .destroy = free,
     .run = run_binarizer},
};

} // namespace
CUDA_KERNELS(ml, rows);
