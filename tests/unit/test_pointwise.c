/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of pointwise ops: how they broadcast, and what ops of several make of integers, NaN and absent
 * bounds. */
#include "backends/cpu/pointwise_walk.h"
#include "src/base/checked.h"
#include "tests/unit/evaluate.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- broadcasting ---- */

/* A shape that broadcasts to `dims`: leading dims left out, others turned to 1, by the bits of `choice`. */
static grt_tensor broadcastable(const int64_t *dims, int32_t rank, unsigned choice, grt_dtype dtype,
                                void *data)
{
    int32_t skip = (int32_t)(choice % 3) < rank ? (int32_t)(choice % 3) : 0;
    grt_tensor t = {.dtype = dtype, .rank = rank - skip, .data = data};
    choice /= 3;
    for (int32_t i = 0; i < t.rank; i++)
        t.dims[i] = choice >> i & 1 ? 1 : dims[skip + i];
    return t;
}

static int64_t source_index(const grt_tensor *t, const grt_tensor *out, int64_t at)
{
    int64_t index = 0, stride = 1;
    for (int32_t i = 1; i <= out->rank; i++) {
        int64_t k = at % out->dims[out->rank - i];
        at /= out->dims[out->rank - i];
        if (i <= t->rank) {
            index += (t->dims[t->rank - i] == 1 ? 0 : k) * stride;
            stride *= t->dims[t->rank - i];
        }
    }
    return index;
}

static const struct {
    int32_t rank;
    int64_t dims[11];
} shapes[] = {
    {0, {0}},
    {1, {1}},
    {1, {5000}},
    {2, {70, 33}},
    {2, {64, 3}},
    {3, {7, 1, 40}},
    {4, {2, 8, 5, 5}},
    {4, {3, 1, 4, 64}},
    {3, {4, 0, 5}},
    {10, {2, 1, 2, 3, 1, 2, 2, 1, 3, 2}},
    {11, {1, 1, 2, 1, 2, 2, 1, 3, 1, 1, 37}},
    {2, {300, 200}},
    {4, {3, 6, 7, 24}}, /* images with channels last */
    {4, {2, 40, 3, 160}},
    {3, {2, 11, 512}},
};

START_TEST(operands_broadcast_like_numpy)
{
    static float a[70000], b[70000];
    static int32_t ia[70000], ib[70000];
    for (int i = 0; i < 70000; i++) {
        ia[i] = i * 37 % 1001 - 500;
        ib[i] = i * 53 % 997 - 480;
        a[i] = (float)ia[i] / 8;
        b[i] = (float)ib[i] / 16;
    }
    for (unsigned choice = 0; choice < 72; choice++) {
        bool whole = choice & 1;
        grt_dtype dtype = whole ? GRT_DTYPE_INT32 : GRT_DTYPE_FLOAT;
        grt_tensor in[2] = {broadcastable(shapes[_i].dims, shapes[_i].rank, choice * 7 % 24, dtype,
                                          whole ? (void *)ia : (void *)a),
                            broadcastable(shapes[_i].dims, shapes[_i].rank, choice * 11 % 27, dtype,
                                          whole ? (void *)ib : (void *)b)};
        grt_value out;
        evaluate_ok("Sub", in, 2, &out);
        int64_t n = grt_tensor_elements(&out.t);
        for (int64_t i = 0; i < n; i++) {
            int64_t ka = source_index(&in[0], &out.t, i), kb = source_index(&in[1], &out.t, i);
            if (whole)
                ck_assert_int_eq(((int32_t *)out.t.data)[i], ia[ka] - ib[kb]);
            else
                ck_assert(((float *)out.t.data)[i] == a[ka] - b[kb]);
        }
        grt_value_clear(&out);
    }
}
END_TEST

static void count_block(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                        void *scratch)
{
    int *const *blocks = user;
    (void)n, (void)out, (void)in, (void)scalar, (void)scratch;
    ++**blocks;
}

/* Calls of a block for dims [n, rows, row], where one operand is of [n, 1, row]. */
static int blocks_of(int64_t n, int64_t rows, int64_t row)
{
    static float x[1 << 14], y[1 << 14];
    const int64_t dims[] = {n, rows, row};
    const grt_tensor a = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {n, rows, row}, .data = x},
                     b = {.dtype = GRT_DTYPE_FLOAT, .rank = 3, .dims = {n, 1, row}, .data = x};
    int blocks = 0, *counted = &blocks;
    pw_walk *walk;
    ck_assert_int_eq(cpu_pw_walk_create(3, dims, 2, (const grt_tensor *const[]){&a, &b}, 1, 0, &walk),
                     GRT_OK);
    const size_t bytes = grt_align_up(cpu_pw_walk_workspace(walk), 64);
    void *workspace = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(workspace);
    cpu_pw_walk_run(walk, (const void *const[]){x, x}, y, sizeof *y, workspace, count_block, &counted);
    free(workspace);
    cpu_pw_walk_release(walk);
    return blocks;
}

/* A call for each row, or for each few of short ones, would take longer than what it computes. */
START_TEST(blocks_are_long)
{
    ck_assert_int_eq(blocks_of(2, 128, 64), 2 * 128 * 64 / PW_BLOCK);
    ck_assert_int_eq(blocks_of(1024, 4, 2), 1024 * 4 * 2 / PW_BLOCK);
    ck_assert_int_eq(blocks_of(256, 4, 16), 256 * 4 * 16 / PW_BLOCK);
}
END_TEST

/* ---- integers ---- */

START_TEST(integers_wrap_and_divide_like_onnx)
{
    const int8_t a[] = {-128, 127, -7, 7, 100, 0}, b[] = {-1, 2, 3, -3, 3, 0};
    static const struct {
        const char *op;
        int8_t expected[6];
    } cases[] = {
        {"Add", {127, -127, -4, 4, 103, 0}},  {"Sub", {-127, 125, -10, 10, 97, 0}},
        {"Mul", {-128, -2, -21, -21, 44, 0}}, {"Div", {-128, 63, -2, -2, 33, 0}},
        {"Mod", {0, 1, 2, -2, 1, 0}},         {"Max", {-1, 127, 3, 7, 100, 0}},
    };
    grt_tensor in[2] = {vector_of(GRT_DTYPE_INT8, 6, a), vector_of(GRT_DTYPE_INT8, 6, b)};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        grt_value out;
        evaluate_ok(cases[c].op, in, 2, &out);
        for (int i = 0; i < 6; i++)
            ck_assert_msg(((int8_t *)out.t.data)[i] == cases[c].expected[i], "%s(%d, %d) is %d, expected %d",
                          cases[c].op, a[i], b[i], ((int8_t *)out.t.data)[i], cases[c].expected[i]);
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(large_unsigned_integers_are_exact)
{
    const uint64_t a[] = {UINT64_MAX, UINT64_C(1) << 63, 5}, b[] = {1, (UINT64_C(1) << 63) + 1, 7};
    grt_tensor in[2] = {vector_of(GRT_DTYPE_UINT64, 3, a), vector_of(GRT_DTYPE_UINT64, 3, b)};
    grt_value out;
    evaluate_ok("Less", in, 2, &out);
    const uint8_t *less = out.t.data;
    ck_assert(!less[0] && less[1] && less[2]);
    grt_value_clear(&out);
    evaluate_ok("Max", in, 2, &out);
    ck_assert(((uint64_t *)out.t.data)[0] == UINT64_MAX && ((uint64_t *)out.t.data)[1] == b[1]);
    grt_value_clear(&out);
}
END_TEST

/* Remainders of all magnitudes, as many blocks with small quotients as with some that are not. */
START_TEST(remainders_of_floats_are_exact)
{
    enum { N = 4096 };
    static float a[N], b[N];
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, -3.0f};
    uint32_t seed = 5;
    for (int i = 0; i < N; i++) {
        const int spread = i / 512 % 2 ? 120 : 12;
        seed = seed * 1664525u + 1013904223u;
        a[i] = ldexpf((float)(int32_t)seed, (int)(seed >> 8) % spread - 40);
        seed = seed * 1664525u + 1013904223u;
        b[i] = ldexpf((float)(int32_t)seed, (int)(seed >> 8) % spread - 40);
        if (i >= N - 64) {
            a[i] = odd[i % 8];
            b[i] = odd[i / 8 % 8];
        }
    }
    const grt_attr fmod = {.name = "fmod", .kind = GRT_ATTR_INT, .i = 1};
    for (int one = 0; one < 2; one++) {
        grt_tensor in[2] = {vector_of(GRT_DTYPE_FLOAT, N, a), vector_of(GRT_DTYPE_FLOAT, one ? 1 : N, b)};
        grt_value out;
        ck_assert_int_eq(evaluate("", "Mod", &fmod, 1, in, 2, &out), GRT_OK);
        for (int i = 0; i < N; i++) {
            const float found = ((const float *)out.t.data)[i], expected = fmodf(a[i], b[one ? 0 : i]);
            ck_assert_msg((isnan(found) && isnan(expected)) || !memcmp(&found, &expected, sizeof found),
                          "fmod(%a, %a) is %a, expected %a", (double)a[i], (double)b[one ? 0 : i],
                          (double)found, (double)expected);
        }
        grt_value_clear(&out);
    }
}
END_TEST

START_TEST(any_number_of_operands_is_folded)
{
    const float x[] = {1, -4, NAN, 9}, y[] = {3, 2, 1, -8}, z = 0.5f;
    grt_tensor in[3] = {vector_of(GRT_DTYPE_FLOAT, 4, x),
                        vector_of(GRT_DTYPE_FLOAT, 4, y),
                        {.dtype = GRT_DTYPE_FLOAT, .data = (void *)&z}};
    grt_value out;
    evaluate_ok("Max", in, 3, &out);
    const float *m = out.t.data;
    ck_assert(m[0] == 3 && m[1] == 2 && isnan(m[2]) && m[3] == 9);
    grt_value_clear(&out);
    evaluate_ok("Mean", in, 3, &out);
    ck_assert(((float *)out.t.data)[0] == 1.5f && ((float *)out.t.data)[1] == -0.5f);
    grt_value_clear(&out);
    evaluate_ok("Sum", in, 1, &out);
    ck_assert(((float *)out.t.data)[3] == 9);
    grt_value_clear(&out);
}
END_TEST

START_TEST(clip_takes_either_bound)
{
    const int32_t x[] = {-5, 0, 5}, low = -1, high = 3;
    grt_tensor in[3] = {vector_of(GRT_DTYPE_INT32, 3, x),
                        {.dtype = GRT_DTYPE_INT32, .data = (void *)&low},
                        {.dtype = GRT_DTYPE_INT32, .data = (void *)&high}};
    grt_value out;
    evaluate_ok("Clip", in, 3, &out);
    ck_assert_mem_eq(out.t.data, ((int32_t[]){-1, 0, 3}), 12);
    grt_value_clear(&out);
    evaluate_ok("Clip", in, 1, &out);
    ck_assert_mem_eq(out.t.data, x, 12);
    grt_value_clear(&out);
    in[1] = (grt_tensor){0};
    evaluate_ok("Clip", in, 3, &out);
    ck_assert_mem_eq(out.t.data, ((int32_t[]){-5, 0, 3}), 12);
    grt_value_clear(&out);
}
END_TEST

Suite *suite_test_pointwise(void)
{
    Suite *suite = suite_create("pointwise");
    TCase *tc = tcase_create("pointwise");
    tcase_add_loop_test(tc, operands_broadcast_like_numpy, 0, (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tc, blocks_are_long);
    tcase_add_test(tc, integers_wrap_and_divide_like_onnx);
    tcase_add_test(tc, large_unsigned_integers_are_exact);
    tcase_add_test(tc, remainders_of_floats_are_exact);
    tcase_add_test(tc, any_number_of_operands_is_folded);
    tcase_add_test(tc, clip_takes_either_bound);
    suite_add_tcase(suite, tc);
    return suite;
}
