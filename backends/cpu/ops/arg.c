/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax: where the greatest element of an axis is. NaN counts as greatest and as least, as
 * in NumPy. */
#include "backends/cpu/move.h"

#include "src/base/float.h"

#include <string.h>

typedef struct arg_state {
    int64_t axis;
    bool least, last;
} arg_state;

static grt_status create_arg(const grt_kernel_node *node, void **out_state)
{
    GRT_TRY(cpu_state(sizeof(arg_state), out_state));
    arg_state *state = *out_state;
    bool hardmax = grt_op_is(node->desc, "", "Hardmax");
    state->axis = grt_attr_int(node->desc, "axis", hardmax ? -1 : 0);
    state->least = grt_op_is(node->desc, "", "ArgMin");
    state->last = grt_attr_int(node->desc, "select_last_index", 0) != 0;
    return GRT_OK;
}

/* Best of n elements that lie `step` apart. A NaN stays the best; with select_last_index a later NaN replaces
 * it. */
#define DEFINE_BEST(name, T, LOAD)                                                                       \
    static int64_t best_##name(const void *data, int64_t n, int64_t step, bool least, bool last)         \
    {                                                                                                    \
        const T *v = data;                                                                               \
        int64_t at = 0;                                                                                  \
        for (int64_t i = 1; i < n; i++) {                                                                \
            bool odd = LOAD(v[at * step]) != LOAD(v[at * step]),                                         \
                 new_odd = LOAD(v[i * step]) != LOAD(v[i * step]);                                       \
            bool better =                                                                                \
                least ? LOAD(v[i * step]) < LOAD(v[at * step]) : LOAD(v[i * step]) > LOAD(v[at * step]); \
            bool same = last && (LOAD(v[i * step]) == LOAD(v[at * step]) || (odd && new_odd));           \
            if (same || (!odd && (better || new_odd)))                                                   \
                at = i;                                                                                  \
        }                                                                                                \
        return at;                                                                                       \
    }
DEFINE_BEST(float, float, )
DEFINE_BEST(double, double, )
DEFINE_BEST(half, uint16_t, grt_half_to_float)
DEFINE_BEST(bfloat16, uint16_t, grt_bfloat16_to_float)
DEFINE_BEST(i8, int8_t, )
DEFINE_BEST(u8, uint8_t, )
DEFINE_BEST(i16, int16_t, )
DEFINE_BEST(u16, uint16_t, )
DEFINE_BEST(i32, int32_t, )
DEFINE_BEST(u32, uint32_t, )
DEFINE_BEST(i64, int64_t, )
DEFINE_BEST(u64, uint64_t, )

/* The usual case, a contiguous run of float32, in two passes that the compiler can vectorise: the best value,
 * then its place. */
static int64_t best_in_run(const float *v, int64_t n, bool least, bool last)
{
    float best = v[0];
    int odd = 0;
    if (least) {
#pragma omp simd reduction(min : best) reduction(| : odd)
        for (int64_t i = 0; i < n; i++) {
            best = v[i] < best ? v[i] : best;
            odd |= v[i] != v[i];
        }
    } else {
#pragma omp simd reduction(max : best) reduction(| : odd)
        for (int64_t i = 0; i < n; i++) {
            best = v[i] > best ? v[i] : best;
            odd |= v[i] != v[i];
        }
    }
    if (odd)
        return best_float(v, n, 1, least, last);
    const int64_t first = last ? n - 1 : 0, step = last ? -1 : 1;
    for (int64_t i = 0, at = first; i < n; i++, at += step)
        if (v[at] == best)
            return at;
    /* A reduction may begin with the greatest finite number instead of infinity: then the best is not in v
     * only if all of v are the same infinity. */
    return first;
}

static int64_t (*const best_of[GRT_DTYPE_COUNT])(const void *data, int64_t n, int64_t step, bool least,
                                                 bool last) = {
    [GRT_DTYPE_FLOAT] = best_float, [GRT_DTYPE_DOUBLE] = best_double,     [GRT_DTYPE_FLOAT16] = best_half,
    [GRT_DTYPE_INT8] = best_i8,     [GRT_DTYPE_BFLOAT16] = best_bfloat16, [GRT_DTYPE_UINT8] = best_u8,
    [GRT_DTYPE_INT16] = best_i16,   [GRT_DTYPE_UINT16] = best_u16,        [GRT_DTYPE_INT32] = best_i32,
    [GRT_DTYPE_UINT32] = best_u32,  [GRT_DTYPE_INT64] = best_i64,         [GRT_DTYPE_UINT64] = best_u64,
};

static grt_status run_arg(const grt_run *run)
{
    const arg_state *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = in->rank ? (int32_t)grt_axis(s->axis, in->rank) : 0;
    int64_t n = in->rank ? in->dims[axis] : 1, outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = in->rank ? grt_dims_product(in->dims, axis + 1, in->rank) : 1;
    size_t size = grt_dtype_size(in->dtype);
    int64_t *out = run->out[0]->data;
    if (n == 0 && outer * inner > 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %d has size 0: there is no index to name", axis);
#pragma omp parallel for num_threads(run->threads) schedule(static) if (outer * n * inner > CPU_GRAIN)
    for (int64_t k = 0; k < outer * inner; k++)
        out[k] = in->dtype == GRT_DTYPE_FLOAT && inner == 1
                     ? best_in_run((const float *)in->data + k * n, n, s->least, s->last)
                     : best_of[in->dtype](cpu_at_const(in->data, k / inner * n * inner + k % inner, size), n,
                                          inner, s->least, s->last);
    return GRT_OK;
}

/* The number 1. */
static void arg_one_of(grt_dtype dtype, void *out)
{
    const float f = 1;
    const double d = 1;
    const uint16_t half = grt_float_to_half(1), brain = grt_float_to_bfloat16(1);
    memcpy(out,
           dtype == GRT_DTYPE_FLOAT     ? (const void *)&f
           : dtype == GRT_DTYPE_DOUBLE  ? (const void *)&d
           : dtype == GRT_DTYPE_FLOAT16 ? (const void *)&half
                                        : (const void *)&brain,
           grt_dtype_size(dtype));
}

static grt_status run_hardmax(const grt_run *run)
{
    const arg_state *s = run->state;
    const grt_tensor *in = run->in[0];
    int32_t axis = (int32_t)grt_axis(s->axis, in->rank);
    int64_t n = in->dims[axis], outer = grt_dims_product(in->dims, 0, axis);
    int64_t inner = grt_dims_product(in->dims, axis + 1, in->rank);
    size_t size = grt_dtype_size(in->dtype);
    char one[8];
    arg_one_of(in->dtype, one);
    if (n == 0)
        return GRT_OK;
    if (outer * inner > 0)
        memset(run->out[0]->data, 0, grt_tensor_bytes(run->out[0]));
    for (int64_t k = 0; k < outer * inner; k++) {
        int64_t base = k / inner * n * inner + k % inner;
        int64_t at = best_of[in->dtype](cpu_at_const(in->data, base, size), n, inner, false, false);
        memcpy(cpu_at(run->out[0]->data, base + at * inner, size), one, size);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.op = "ArgMax",
     .domain = "",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .run = run_arg},
    {.op = "ArgMin",
     .domain = "",
     .types = {GRT_SET_NUMBERS},
     .create = create_arg,
     .destroy = free,
     .run = run_arg},
    {.op = "Hardmax",
     .domain = "",
     .types = {GRT_SET_FLOATS},
     .create = create_arg,
     .destroy = free,
     .run = run_hardmax},
};
CPU_KERNELS(arg, rows);
