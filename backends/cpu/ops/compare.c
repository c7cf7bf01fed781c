/* SPDX-License-Identifier: Apache-2.0 */
/* Equal on strings; IsNaN and IsInf on 8-bit floats. */
#include "backends/cpu/convert.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void block_equal(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    const grt_string *x = in[0], *y = in[1];
    uint8_t *o = out;
    (void)user, (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        grt_string a = x[scalar[0] ? 0 : i], b = y[scalar[1] ? 0 : i];
        o[i] = a.size == b.size && (a.size == 0 || !memcmp(a.data, b.data, a.size));
    }
}

static grt_status reshape_equal(grt_reshape *r)
{
    pw_walk *walk;
    GRT_TRY(cpu_pw_walk_create(r->out[0]->rank, r->out[0]->dims, 2, r->in, r->threads, 0, &walk));
    r->shape = walk;
    r->workspace_bytes = cpu_pw_walk_workspace(walk);
    return GRT_OK;
}

static grt_status run_equal(const grt_run *r)
{
    cpu_pw_walk_run(r->shape, (const void *[]){r->in[0]->data, r->in[1]->data}, r->out[0]->data, 1,
                    r->workspace, block_equal, NULL);
    return GRT_OK;
}

/* Which values a test is looking for. */
typedef struct wanted {
    bool nan, positive, negative;
} wanted;

static grt_status create_test(const grt_kernel_node *node, void **out_state)
{
    wanted *w = calloc(1, sizeof *w);
    if (!w)
        return grt_fail_memory(sizeof *w);
    w->nan = !strcmp(node->desc->op, "IsNaN");
    w->positive = !w->nan && grt_attr_int(node->desc, "detect_positive", 1);
    w->negative = !w->nan && grt_attr_int(node->desc, "detect_negative", 1);
    *out_state = w;
    return GRT_OK;
}

static grt_status run_test(const grt_run *r)
{
    const wanted *w = r->state;
    bool is[256]; /* by code */
    uint8_t codes[256], *out = r->out[0]->data;
    const uint8_t *in = r->in[0]->data;
    float values[256];
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    cpu_widen(r->in[0]->dtype, codes, 0, 256, values);
    for (int i = 0; i < 256; i++)
        is[i] = w->nan ? isnan(values[i]) : isinf(values[i]) && (values[i] > 0 ? w->positive : w->negative);
    int64_t n = grt_tensor_elements(r->in[0]);
    for (int64_t i = 0; i < n; i++)
        out[i] = is[in[i]];
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Equal",
     .types = {GRT_BIT(STRING), GRT_BIT(STRING)},
     .reshape = reshape_equal,
     .release_shape = cpu_pw_walk_release,
     .run = run_equal},
    {.domain = "",
     .op = "IsNaN",
     .types = {GRT_SET_FLOAT8},
     .create = create_test,
     .destroy = free,
     .run = run_test},
    {.domain = "",
     .op = "IsInf",
     .types = {GRT_SET_FLOAT8},
     .create = create_test,
     .destroy = free,
     .run = run_test},
};
CPU_KERNELS(compare, rows);
