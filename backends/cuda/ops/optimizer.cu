/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training: Adagrad, Adam, Momentum. */
#include "backends/cuda/each.cuh"
#include "backends/shared/optimizer.h"

namespace
{

grt_status cuda_run_step(const grt_run *r)
{
    const grt_optimizer o = *(const grt_optimizer *)r->state;
    const int32_t tensors = grt_optimizer_tensors(&o), n = (r->n_in - 2) / tensors;
    const cuda_any rate = cuda_any_in(r, 0), time = cuda_any_in(r, 1);
    for (int32_t k = 0; k < n; k++) {
        const cuda_any x = cuda_any_in(r, 2 + k), g = cuda_any_in(r, 2 + n + k),
                       a = cuda_any_in(r, 2 + 2 * n + k);
        const cuda_any b = tensors == 4 ? cuda_any_in(r, 2 + 3 * n + k) : cuda_any_of(NULL);
        const cuda_any new_x = cuda_any_out(r, k), new_a = cuda_any_out(r, n + k),
                       new_b = tensors == 4 ? cuda_any_out(r, 2 * n + k) : b;
        GRT_TRY(cuda_each(r, grt_tensor_elements(r->in[2 + k]), [=] __device__(int64_t i) {
            double first = a.get(i), second = b ? b.get(i) : 0;
            const grt_optimizer_now now = grt_optimizer_prepare(&o, rate.get(0), time.get(0));
            const double value = grt_optimizer_step(&o, now, x.get(i), g.get(i), &first, &second);
            if (new_x)
                new_x.put(i, value);
            if (new_a)
                new_a.put(i, first);
            if (new_b)
                new_b.put(i, second);
        }));
    }
    return GRT_OK;
}

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE))
#define STEP(name)                                                                                           \
    {                                                                                                        \
        .domain = "ai.onnx.preview.training", .op = name, .types = {FLOATS, GRT_BIT(INT64), FLOATS, FLOATS}, \
        .create = grt_optimizer_create, .destroy = free, .reshape = grt_optimizer_reshape,                   \
        .run = cuda_run_step                                                                                 \
    }
const grt_kernel_row rows[] = {
    STEP("Adagrad"),
    STEP("Adam"),
    STEP("Momentum"),
};

} // namespace
CUDA_KERNELS(optimizer, rows);
