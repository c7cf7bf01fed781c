/* SPDX-License-Identifier: Apache-2.0 */
/* Where: elements of one of two tensors, chosen by a third. Only the size of an element matters. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_walk.h"

#include <stdlib.h>
#include <string.h>

typedef struct chunk16 {
    uint64_t a, b;
} chunk16;

#define RUN(C, X, Y)                                     \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) \
    {                                                    \
        o[i] = (C) ? (X) : (Y);                          \
    }

/* Scalar operands have loops of their own, so that all loops vectorise. */
#define CHOOSE(T)                                                                         \
    static void choose_##T(const void *user, int64_t n, void *out, const void *const *in, \
                           const uint8_t *scalar, void *scratch)                          \
    {                                                                                     \
        const uint8_t *c = in[0];                                                         \
        const T *x = in[1], *y = in[2];                                                   \
        T *o = out, x0 = x[0], y0 = y[0];                                                 \
        (void)user, (void)scratch;                                                        \
        if (scalar[0]) {                                                                  \
            bool first = *c;                                                              \
            const T *taken = first ? x : y;                                               \
            T t0 = *taken;                                                                \
            if (scalar[first ? 1 : 2])                                                    \
                for (int64_t i = 0; i < n; i++)                                           \
                    o[i] = t0;                                                            \
            else                                                                          \
                memmove(o, taken, (size_t)n * sizeof(T));                                 \
        } else if (scalar[1] && scalar[2])                                                \
            RUN(c[i], x0, y0)                                                             \
        else if (scalar[1])                                                               \
            RUN(c[i], x0, y[i])                                                           \
        else if (scalar[2])                                                               \
            RUN(c[i], x[i], y0)                                                           \
        else                                                                              \
            RUN(c[i], x[i], y[i])                                                         \
    }
CHOOSE(uint8_t)
CHOOSE(uint16_t)
CHOOSE(uint32_t)
CHOOSE(uint64_t)
CHOOSE(chunk16)

static grt_status where_reshape(grt_reshape *r)
{
    pw_walk *walk;
    GRT_TRY(cpu_pw_walk_create(r->out[0]->rank, r->out[0]->dims, 3, r->in, r->threads, 0, &walk));
    r->shape = walk;
    r->workspace_bytes = cpu_pw_walk_workspace(walk);
    return GRT_OK;
}

static grt_status where_run(const grt_run *r)
{
    size_t size = grt_dtype_size(r->out[0]->dtype);
    pw_block block = size == 1   ? choose_uint8_t
                     : size == 2 ? choose_uint16_t
                     : size == 4 ? choose_uint32_t
                     : size == 8 ? choose_uint64_t
                                 : choose_chunk16;
    cpu_pw_walk_run(r->shape, (const void *[]){r->in[0]->data, r->in[1]->data, r->in[2]->data},
                    r->out[0]->data, size, r->workspace, block, NULL);
    return GRT_OK;
}

#define ANY (GRT_SET_PLAIN | GRT_BIT(STRING))
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Where",
     .types = {GRT_BIT(BOOL), ANY, ANY},
     .flags = GRT_KERNEL_IN_PLACE(1) | GRT_KERNEL_IN_PLACE(2),
     .reshape = where_reshape,
     .release_shape = cpu_pw_walk_release,
     .run = where_run},
};
CPU_KERNELS(where, rows);
