/* SPDX-License-Identifier: Apache-2.0 */
/* Pow: floats to the power of floats of the same type run through the loops of pointwise.def, with cheap
 * forms for the usual constant exponents; all other pairs of types go element by element through float64 or
 * int64. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/pointwise_walk.h"
#include "src/base/float.h"
#include "src/base/int64.h"

#include <math.h>
#include <string.h>

typedef struct types {
    grt_dtype base, exponent;
} types;

static const float no_params[PW_MAX_PARAMS];

/* x^2, x^3 and x need no logarithm. False if the exponent is none of these. */
static bool cheap_power(int64_t n, float *out, const float *x, float exponent)
{
    if (exponent == 2.0f)
        for (int64_t i = 0; i < n; i++)
            out[i] = x[i] * x[i];
    else if (exponent == 3.0f)
        for (int64_t i = 0; i < n; i++)
            out[i] = x[i] * x[i] * x[i];
    else if (exponent == 1.0f)
        memmove(out, x, (size_t)n * sizeof *x);
    else
        return false;
    return true;
}

void cpu_pw_power_f32(int64_t n, void *out, const void *const *in, const uint8_t *scalar, const float *p)
{
    if (scalar[1] && !scalar[0] && cheap_power(n, out, in[0], *(const float *)in[1]))
        return;
    cpu_pw_f32()->typed[PW_Pow](n, out, in, scalar, p);
}

static void block_f32(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                      void *scratch)
{
    (void)user, (void)scratch;
    cpu_pw_power_f32(n, out, in, scalar, no_params);
}

static void block_f64(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                      void *scratch)
{
    (void)user, (void)scratch;
    cpu_pw_table(GRT_DTYPE_DOUBLE)[PW_Pow](n, out, in, scalar, no_params);
}

static void pow_store(grt_dtype dtype, void *out, int64_t i, double x)
{
    switch (dtype) {
    case GRT_DTYPE_DOUBLE:
        ((double *)out)[i] = x;
        break;
    case GRT_DTYPE_FLOAT:
        ((float *)out)[i] = (float)x;
        break;
    case GRT_DTYPE_FLOAT16:
        ((uint16_t *)out)[i] = grt_float_to_half((float)x);
        break;
    case GRT_DTYPE_BFLOAT16:
        ((uint16_t *)out)[i] = grt_float_to_bfloat16((float)x);
        break;
    case GRT_DTYPE_INT32:
        ((int32_t *)out)[i] = (int32_t)grt_int64_of(x);
        break;
    default:
        ((int64_t *)out)[i] = grt_int64_of(x);
    }
}

static void block_mixed(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    const types *t = user;
    grt_tensor base = {.dtype = t->base, .data = (void *)in[0]},
               exponent = {.dtype = t->exponent, .data = (void *)in[1]};
    bool ints = grt_dtype_in(t->base, GRT_SET_INTS) && grt_dtype_in(t->exponent, GRT_SET_INTS);
    (void)scratch;
    for (int64_t i = 0; i < n; i++) {
        int64_t a = scalar[0] ? 0 : i, b = scalar[1] ? 0 : i;
        if (!ints) {
            pow_store(t->base, out, i, pow(grt_tensor_double(&base, a), grt_tensor_double(&exponent, b)));
            continue;
        }
        int64_t y = grt_int64_power(grt_tensor_int(&base, a), grt_tensor_int(&exponent, b));
        if (t->base == GRT_DTYPE_INT32)
            ((int32_t *)out)[i] = (int32_t)y;
        else
            ((int64_t *)out)[i] = y;
    }
}

static grt_status pow_reshape(grt_reshape *r)
{
    pw_walk *walk;
    GRT_TRY(cpu_pw_walk_create(r->out[0]->rank, r->out[0]->dims, 2, r->in, r->threads, 0, &walk));
    r->shape = walk;
    r->workspace_bytes = cpu_pw_walk_workspace(walk);
    return GRT_OK;
}

static grt_status pow_run(const grt_run *r)
{
    types t = {r->in[0]->dtype, r->in[1]->dtype};
    pw_block block = t.base == t.exponent && t.base == GRT_DTYPE_FLOAT    ? block_f32
                     : t.base == t.exponent && t.base == GRT_DTYPE_DOUBLE ? block_f64
                                                                          : block_mixed;
    cpu_pw_walk_run(r->shape, (const void *[]){r->in[0]->data, r->in[1]->data}, r->out[0]->data,
                    grt_dtype_size(t.base), r->workspace, block, &t);
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "Pow",
     .types = {GRT_SET_FLOATS | GRT_BIT(INT32) | GRT_BIT(INT64), GRT_SET_NUMBERS},
     .flags = GRT_KERNEL_IN_PLACE(0),
     .reshape = pow_reshape,
     .release_shape = cpu_pw_walk_release,
     .run = pow_run},
};
CPU_KERNELS(pow, rows);
