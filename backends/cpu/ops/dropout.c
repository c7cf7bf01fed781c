/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. In inference the input is copied; in training mode the mask comes from the Mersenne Twister of
 * ONNX's reference, so equal seeds give equal masks. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/shared/twister.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct twister {
    uint32_t words[TWISTER_WORDS];
    int next; /* of the numbers that the words give */
} twister;

static double twister_number(twister *t)
{
    if (t->next == TWISTER_NUMBERS) {
        for (int i = 0; i < TWISTER_WORDS; i++)
            t->words[i] = grt_twister_next(t->words, i);
        t->next = 0;
    }
    return grt_twister_uniform(t->words, t->next++);
}

typedef struct state {
    bool seeded;
    uint32_t seed;
} state;

static grt_status dropout_create(const grt_kernel_node *node, void **out_state)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->seeded = grt_attr_find(node->desc, "seed") != NULL;
    s->seed = (uint32_t)grt_attr_int(node->desc, "seed", 0);
    *out_state = s;
    return GRT_OK;
}

static uint32_t seed_of(const state *s)
{
    struct timespec now;
    if (s->seeded)
        return s->seed;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 16;
}

static double dropout_scalar_of(const grt_tensor *t)
{
    double x;
    cpu_convert(t->dtype, t->data, GRT_DTYPE_DOUBLE, &x, 0, 1, (cpu_convert_options){0});
    return x;
}

static void dropout_drop(const grt_run *r, int64_t n, double ratio, uint8_t *mask)
{
    const grt_tensor *in = r->in[0];
    cpu_convert_options options = {true, GRT_ROUND_NEAREST};
    double scale = 1.0 / (1.0 - ratio), block[CONVERT_BLOCK];
    twister t = {.next = TWISTER_NUMBERS};
    grt_twister_seed(t.words, seed_of(r->state));
    for (int64_t begin = 0; begin < n; begin += CONVERT_BLOCK) {
        int64_t count = n - begin < CONVERT_BLOCK ? n - begin : CONVERT_BLOCK;
        size_t size = grt_dtype_size(in->dtype), at = (size_t)begin * size;
        cpu_convert(in->dtype, (const char *)in->data + at, GRT_DTYPE_DOUBLE, block, 0, count, options);
        for (int64_t i = 0; i < count; i++) {
            bool keep = twister_number(&t) >= ratio;
            block[i] = keep ? block[i] * scale : 0.0;
            if (mask)
                mask[begin + i] = keep;
        }
        cpu_convert(GRT_DTYPE_DOUBLE, block, in->dtype, (char *)r->out[0]->data + at, 0, count, options);
    }
}

static grt_status dropout_run(const grt_run *r)
{
    int64_t n = grt_tensor_elements(r->in[0]);
    uint8_t *mask = r->n_out > 1 && r->out[1] ? r->out[1]->data : NULL;
    bool training = r->n_in > 2 && r->in[2] && *(const uint8_t *)r->in[2]->data;
    double ratio = !training ? 0.0 : r->n_in > 1 && r->in[1] ? dropout_scalar_of(r->in[1]) : 0.5;
    if (ratio != 0.0) {
        if (!(ratio > 0.0 && ratio < 1.0))
            return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the ratio is %g; it must be in [0, 1)",
                               ratio);
        dropout_drop(r, n, ratio, mask);
        return GRT_OK;
    }
    if (n && r->out[0]->data != r->in[0]->data)
        memcpy(r->out[0]->data, r->in[0]->data, grt_tensor_bytes(r->in[0]));
    if (n && mask)
        memset(mask, 1, (size_t)n);
    return GRT_OK;
}

#define TYPES (GRT_SET_FLOATS | (GRT_SET_FLOAT8 & ~GRT_BIT(FLOAT8E8M0)))
static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Dropout",
     .types = {TYPES, TYPES, GRT_BIT(BOOL)},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .create = dropout_create,
     .destroy = free,
     .run = dropout_run},
};
CPU_KERNELS(dropout, rows);
