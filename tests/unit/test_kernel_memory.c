/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels keep of constants is counted in their account, within its limit, and given back: nothing of
 * the constants' size is left to the heap uncounted. */
#include "backends/backend.h"
#include "tests/unit/suite.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN = 8, KIB = 1 << 10, TABLES = 128 * KIB };

/* A node of which some inputs are constants, of 256 KiB and more together. */
typedef struct kept_case {
    const char *domain, *op;
    int32_t n_in;
    uint32_t constants; /* inputs, as bits */
    size_t least_kib;   /* that the kernel keeps */
    grt_tensor in[MOST_IN], out;
} kept_case;

#define T(type, n, ...)                                               \
    {                                                                 \
        .dtype = GRT_DTYPE_##type, .rank = n, .dims = { __VA_ARGS__ } \
    }
static const kept_case kept_cases[] = {
    {"", "MatMul", 2, 2, 1024, {T(FLOAT, 2, 4, 512), T(FLOAT, 2, 512, 512)}, T(FLOAT, 2, 4, 512)},
    {"", "MatMul", 2, 2, 1024, {T(FLOAT16, 2, 4, 512), T(FLOAT16, 2, 512, 512)}, T(FLOAT16, 2, 4, 512)},
    {"", "MatMul", 2, 2, 512, {T(BFLOAT16, 2, 4, 512), T(BFLOAT16, 2, 512, 512)}, T(BFLOAT16, 2, 4, 512)},
    {"",
     "Conv",
     2,
     2,
     2304,
     {T(FLOAT, 4, 1, 256, 32, 32), T(FLOAT, 4, 256, 256, 3, 3)},
     T(FLOAT, 4, 1, 256, 30, 30)},
    {"",
     "Conv",
     2,
     2,
     1024,
     {T(FLOAT, 4, 1, 512, 8, 8), T(FLOAT, 4, 512, 512, 1, 1)},
     T(FLOAT, 4, 1, 512, 8, 8)},
    {"",
     "Conv",
     2,
     2,
     1024,
     {T(FLOAT16, 4, 1, 512, 8, 8), T(FLOAT16, 4, 512, 512, 1, 1)},
     T(FLOAT16, 4, 1, 512, 8, 8)},
    {"graphrt",
     "QConv",
     5,
     24,
     256,
     {T(UINT8, 4, 1, 512, 8, 8), T(FLOAT, 1, 1), {0}, T(INT8, 4, 512, 512, 1, 1), T(FLOAT, 1, 1)},
     T(FLOAT, 4, 1, 512, 8, 8)},
    {"graphrt",
     "QConv",
     5,
     24,
     576,
     {T(UINT8, 4, 1, 256, 8, 8), T(FLOAT, 1, 1), {0}, T(INT8, 4, 256, 256, 3, 3), T(FLOAT, 1, 1)},
     T(FLOAT, 4, 1, 256, 6, 6)},
    {"graphrt",
     "QMatMul",
     5,
     24,
     256,
     {T(UINT8, 2, 4, 512), T(FLOAT, 1, 1), {0}, T(INT8, 2, 512, 512), T(FLOAT, 1, 1)},
     T(FLOAT, 2, 4, 512)},
    {"",
     "LSTM",
     3,
     6,
     2048,
     {T(FLOAT, 3, 4, 1, 256), T(FLOAT, 3, 1, 1024, 256), T(FLOAT, 3, 1, 1024, 256)},
     T(FLOAT, 4, 4, 1, 1, 256)},
    {"",
     "GRU",
     3,
     6,
     1536,
     {T(FLOAT, 3, 4, 1, 256), T(FLOAT, 3, 1, 768, 256), T(FLOAT, 3, 1, 768, 256)},
     T(FLOAT, 4, 4, 1, 1, 256)},
};
enum { N_CASES = sizeof kept_cases / sizeof *kept_cases };

static size_t heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static grt_status create(const kept_case *c, const grt_tensor *in, uint64_t limit, uint64_t *out_kept)
{
    const grt_op_desc desc = {.domain = c->domain, .op = c->op, .name = "the node"};
    grt_account *account = grt_account_create(limit);
    const grt_kernel_node node = {.desc = &desc,
                                  .n_in = c->n_in,
                                  .n_out = 1,
                                  .in = in,
                                  .out = &c->out,
                                  .threads = 1,
                                  .account = account};
    void *state = NULL;
    const grt_kernel_row *row = grt_backend_cpu.find_kernel(&node, NULL);
    ck_assert_ptr_nonnull(row);
    const size_t before = heap_bytes();
    const grt_status status = row->create(&node, &state);
    const size_t after = heap_bytes();
    *out_kept = grt_account_get(account, GRT_ACCOUNT_KERNELS);
    if (status == GRT_OK && !limit)
        ck_assert_msg(after <= before + TABLES, "%s: the heap grew by %zu bytes, %zu are counted", c->op,
                      after - before, (size_t)*out_kept);
    if (status == GRT_OK)
        row->destroy(state);
    ck_assert_uint_eq(grt_account_get(account, GRT_ACCOUNT_KERNELS), 0);
    grt_account_release(account);
    return status;
}

START_TEST(kept_is_counted)
{
    const kept_case *c = &kept_cases[_i];
    grt_tensor in[MOST_IN];
    uint64_t kept, again;
    memcpy(in, c->in, sizeof in);
    for (int32_t i = 0; i < c->n_in; i++)
        if (c->constants >> i & 1u)
            ck_assert_ptr_nonnull(in[i].data = calloc(1, grt_tensor_bytes(&in[i])));
    ck_assert_int_eq(create(c, in, UINT64_MAX / 2, &kept), GRT_OK); /* libraries begin */
    ck_assert_int_eq(create(c, in, 0, &kept), GRT_OK);
    ck_assert_uint_ge(kept, c->least_kib * KIB);
    ck_assert_int_eq(create(c, in, kept, &again), GRT_OK);
    ck_assert_uint_eq(again, kept);
    ck_assert_int_eq(create(c, in, kept - 1, &again), GRT_STATUS_OUT_OF_MEMORY);
    ck_assert_msg(strstr(grt_last_error(), "node 'the node': the session's memory_limit is"), "%s",
                  grt_last_error());
    for (int32_t i = 0; i < c->n_in; i++)
        free(in[i].data);
}
END_TEST

/* Where the system has huge pages, large blocks can have them; what is counted is whole small pages. */
START_TEST(large_blocks_begin_at_a_huge_page)
{
    enum { HUGE_PAGE = 2 << 20, BYTES = 9 << 20 | 40 };
    grt_account *account = grt_account_create(0);
    for (int i = 0; i < 3; i++) {
        char *data = NULL;
        ck_assert_int_eq(grt_account_alloc(account, GRT_ACCOUNT_KERNELS, BYTES, (void **)&data), GRT_OK);
#ifndef __SANITIZE_ADDRESS__
        ck_assert_uint_eq((uintptr_t)data % HUGE_PAGE, 64); /* behind the header */
        ck_assert_uint_eq(grt_account_get(account, GRT_ACCOUNT_KERNELS), (9 << 20) + 4096);
#endif
        memset(data, 1, BYTES);
        grt_account_free(data);
        ck_assert_uint_eq(grt_account_get(account, GRT_ACCOUNT_KERNELS), 0);
    }
    grt_account_release(account);
}
END_TEST

Suite *suite_test_kernel_memory(void);
Suite *suite_test_kernel_memory(void)
{
    Suite *s = suite_create("test_kernel_memory");
    TCase *t = tcase_create("test_kernel_memory");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, kept_is_counted, 0, N_CASES);
    tcase_add_test(t, large_blocks_begin_at_a_huge_page);
    suite_add_tcase(s, t);
    return s;
}
