/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as CUDA's products have them, and back. */
#include "backends/cuda/weight_pack.h"
#include "tests/unit/suite.h"

#include "src/base/tensor.h"

#include <stdlib.h>
#include <string.h>

static grt_weights weights_of(grt_dtype dtype, int64_t k, int64_t n, int64_t block, bool transposed)
{
    grt_weights w = {.transposed = transposed,
                     .is_signed = grt_dtype_in(dtype, GRT_BIT(INT8) | GRT_BIT(INT4)),
                     .by_block = block > 0,
                     .bits = (int)grt_dtype_bits(dtype),
                     .k = k,
                     .n = n,
                     .block = block > 0 ? block : k};
    w.blocks = (k - 1) / w.block + 1;
    w.scales = block > 0 ? w.blocks * n : n;
    return w;
}

static void check_way_back(grt_dtype dtype, int64_t k, int64_t n, int64_t block, bool transposed)
{
    const grt_weights w = weights_of(dtype, k, n, block, transposed);
    grt_tensor t = {.dtype = dtype, .rank = 2, .dims = {transposed ? n : k, transposed ? k : n}};
    const size_t bytes = grt_tensor_bytes(&t);
    uint8_t *from = malloc(bytes), *back = malloc(bytes);
    grt_packing packing = {0};
    void *packed = NULL;
    bool known = false;
    for (size_t i = 0; i < bytes; i++)
        from[i] = (uint8_t)(i * 37 + i / 251);
    if (w.bits == 4 && k * n % 2)
        from[bytes - 1] &= 15;
    ck_assert_int_eq(cuda_weight_pack(&w, from, &packing, &packed), GRT_OK);
    ck_assert(cuda_weight_is_packed(&w, &packing));
    t.data = packed;
    ck_assert_int_eq(cuda_weight_unpack(&t, &packing, back, &known), GRT_OK);
    ck_assert(known);
    ck_assert_mem_eq(from, back, bytes);
    free(from);
    free(back);
    free(packed);
}

START_TEST(numbers_come_back)
{
    check_way_back(GRT_DTYPE_UINT4, 64, 16, 32, true);
    check_way_back(GRT_DTYPE_INT4, 333, 35, 20, false);
    check_way_back(GRT_DTYPE_INT8, 100, 17, 0, true);
    check_way_back(GRT_DTYPE_UINT8, 130, 50, 12, false);
    check_way_back(GRT_DTYPE_FLOAT8E4M3FN, 65, 16, 48, false);
}
END_TEST

/* Lane 4 g + t holds, of each step of 16 rows, rows 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of columns g and g + 8.
 */
START_TEST(lanes_find_their_numbers)
{
    enum { K = 64, N = 16 };
    const grt_weights w = weights_of(GRT_DTYPE_UINT8, K, N, 0, false);
    uint8_t from[K * N];
    grt_packing packing = {0};
    void *packed = NULL;
    for (int row = 0; row < K; row++)
        for (int column = 0; column < N; column++)
            from[row * N + column] = (uint8_t)(row * 3 + column * 5);
    ck_assert_int_eq(cuda_weight_pack(&w, from, &packing, &packed), GRT_OK);
    for (int lane = 0; lane < 32; lane++)
        for (int step = 0; step < 4; step++)
            for (int i = 0; i < 8; i++) {
                const int row = step * 16 + lane % 4 * 2 + i / 4 * 8 + i % 2,
                          column = lane / 4 + i / 2 % 2 * 8;
                ck_assert_int_eq(((uint8_t *)packed)[step / 2 * 512 + lane * 16 + step % 2 * 8 + i],
                                 (uint8_t)(row * 3 + column * 5));
            }
    free(packed);
}
END_TEST

/* Padding to whole tiles is all that is added. */
START_TEST(packed_weights_are_no_larger)
{
    const grt_weights w = weights_of(GRT_DTYPE_UINT4, 3072, 64, 32, true);
    cuda_weight_form form;
    ck_assert(cuda_weight_form_of(&w, &form));
    ck_assert_uint_eq((size_t)(form.tiles_k * form.tiles_n) * form.tile_bytes, 3072 * 64 / 2);
}
END_TEST

START_TEST(other_formats_are_unknown)
{
    const uint8_t data[64] = {0};
    grt_tensor t = {.dtype = GRT_DTYPE_UINT8, .rank = 2, .dims = {8, 8}, .data = (void *)(uintptr_t)data};
    const char *const formats[] = {"channels last", "weights n first, in turns, blocks of 0",
                                   "weights n first, in turns, blocks of 8"};
    uint8_t out[64];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        grt_packing packing = {.bytes = 64};
        bool known = true;
        strcpy(packing.format, formats[i]);
        ck_assert_int_eq(cuda_weight_unpack(&t, &packing, out, &known), GRT_OK);
        ck_assert(!known);
    }
}
END_TEST

UNIT_SUITE(test_weight_pack, NULL, NULL, numbers_come_back, lanes_find_their_numbers,
           packed_weights_are_no_larger, other_formats_are_unknown)
