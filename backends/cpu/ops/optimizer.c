/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad, Adam, Momentum: see backends/shared/optimizer.h. */
#include "backends/cpu/cpu.h"
#include "src/base/element.h"
#include "backends/shared/optimizer.h"

#include <stdlib.h>

static void optimizer_put(grt_tensor *out, int64_t i, double value)
{
    if (out)
        grt_element_put(out, i, value);
}

static grt_status step_run(const grt_run *run)
{
    const grt_optimizer *o = run->state;
    const int32_t tensors = grt_optimizer_tensors(o), n = (run->n_in - 2) / tensors;
    const grt_optimizer_now now =
        grt_optimizer_prepare(o, grt_element_get(run->in[0], 0), (double)grt_tensor_int(run->in[1], 0));
    for (int32_t t = 0; t < n; t++) {
        const grt_tensor *x = run->in[2 + t], *g = run->in[2 + n + t], *s = run->in[2 + 2 * n + t];
        const grt_tensor *s2 = tensors == 4 ? run->in[2 + 3 * n + t] : NULL;
        int64_t elements = grt_tensor_elements(x);
#pragma omp parallel for num_threads(run->threads) if (elements > CPU_GRAIN)
        for (int64_t i = 0; i < elements; i++) {
            double first = grt_element_get(s, i), second = s2 ? grt_element_get(s2, i) : 0;
            optimizer_put(
                run->out[t], i,
                grt_optimizer_step(o, now, grt_element_get(x, i), grt_element_get(g, i), &first, &second));
            optimizer_put(run->out[n + t], i, first);
            if (s2)
                optimizer_put(run->out[2 * n + t], i, second);
        }
    }
    return GRT_OK;
}

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE))
#define ROW(name)                                                                                            \
    {                                                                                                        \
        .domain = "ai.onnx.preview.training", .op = name, .types = {FLOATS, GRT_BIT(INT64), FLOATS, FLOATS}, \
        .create = grt_optimizer_create, .destroy = free, .reshape = grt_optimizer_reshape, .run = step_run   \
    }
static const grt_kernel_row rows[] = {ROW("Adagrad"), ROW("Adam"), ROW("Momentum")};
CPU_KERNELS(optimizer, rows);
