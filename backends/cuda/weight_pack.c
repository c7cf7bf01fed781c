/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/weight_pack.h"

#include "src/base/checked.h"
#include "src/base/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

bool cuda_weight_form_of(const grt_weights *w, cuda_weight_form *out)
{
    if (w->k > INT32_MAX / 64 || w->n > INT32_MAX / 64 || w->block > INT32_MAX / 64)
        return false;
    *out = (cuda_weight_form){.padded_block = round_up(w->block, CUDA_WEIGHT_STEP)};
    const int64_t rows =
        (w->blocks - 1) * out->padded_block + round_up(w->k - (w->blocks - 1) * w->block, CUDA_WEIGHT_STEP);
    out->tiles_k = (rows - 1) / CUDA_WEIGHT_ROWS + 1;
    out->tiles_n = (w->n - 1) / CUDA_WEIGHT_COLUMNS + 1;
    out->tile_bytes = (size_t)(CUDA_WEIGHT_ROWS * CUDA_WEIGHT_COLUMNS * w->bits / 8);
    return rows < INT32_MAX / 2;
}

/* A number's byte is the sum of what its row of k and its column say; of 4 bits, the column says which half.
 * Within a tile, lane 4 g + t has columns g and g + 8, and of each step the rows 2 t, 2 t + 1, 2 t + 8 and
 * 2 t + 9: a register of the operand has two of them. */
static size_t place_of_row(const grt_weights *w, const cuda_weight_form *form, int64_t row)
{
    const int64_t padded = row / w->block * form->padded_block + row % w->block, step = padded % 64 / 16,
                  t = padded % 8 / 2, pair = padded % 16 / 8, second = padded % 2;
    return (size_t)(padded / 64) * form->tile_bytes +
           (size_t)(w->bits == 8 ? step / 2 * 512 + t * 16 + step % 2 * 8 + pair * 4 + second
                                 : t * 16 + step * 4 + pair + second * 2);
}

static size_t place_of_column(const grt_weights *w, const cuda_weight_form *form, int64_t column)
{
    return (size_t)(column / 16 * form->tiles_k) * form->tile_bytes +
           (size_t)(column % 8 * 64 + (w->bits == 8 ? column % 16 / 8 * 2 : 0));
}

static int shift_of_column(const grt_weights *w, int64_t column)
{
    return w->bits == 8 ? 0 : (int)(column % 16 / 8 * 4);
}

static size_t *places_of_rows(const grt_weights *w, const cuda_weight_form *form)
{
    size_t *places = malloc((size_t)w->k * sizeof *places);
    for (int64_t row = 0; places && row < w->k; row++)
        places[row] = place_of_row(w, form, row);
    return places;
}

static void describe(const grt_weights *w, const cuda_weight_form *form, grt_packing *out)
{
    snprintf(out->format, sizeof out->format, "weights %s first, in turns, blocks of %lld",
             w->transposed ? "n" : "k", (long long)w->block);
    out->bytes = (size_t)(form->tiles_n * form->tiles_k) * form->tile_bytes;
}

bool cuda_weight_is_packed(const grt_weights *w, const grt_packing *packing)
{
    cuda_weight_form form;
    grt_packing own;
    if (!cuda_weight_form_of(w, &form))
        return false;
    describe(w, &form, &own);
    return packing->bytes == own.bytes && !strcmp(packing->format, own.format);
}

grt_status cuda_weight_pack(const grt_weights *w, const void *data, grt_packing *out_packing, void **out_data)
{
    cuda_weight_form form;
    if (!cuda_weight_form_of(w, &form))
        return GRT_OK;
    describe(w, &form, out_packing);
    uint8_t *out = calloc(1, out_packing->bytes);
    size_t *rows = places_of_rows(w, &form);
    if (!out || !rows) {
        free(out);
        free(rows);
        return grt_fail_memory(out_packing->bytes);
    }
    for (int64_t column = 0; column < w->n; column++) {
        uint8_t *to = out + place_of_column(w, &form, column);
        const int shift = shift_of_column(w, column);
        const int64_t first = w->transposed ? column * w->k : column, next = w->transposed ? 1 : w->n;
        for (int64_t row = 0; row < w->k; row++)
            to[rows[row]] =
                (uint8_t)(to[rows[row]] | grt_weights_number(w, data, first + row * next) << shift);
    }
    free(rows);
    *out_data = out;
    return GRT_OK;
}

static grt_status unpack_numbers(const grt_weights *w, const cuda_weight_form *form, const uint8_t *data,
                                 uint8_t *to)
{
    const int mask = w->bits == 4 ? 15 : 255, flip = grt_weights_flip(w);
    size_t *rows = places_of_rows(w, form);
    if (!rows)
        return grt_fail_memory((size_t)w->k * sizeof *rows);
    for (int64_t column = 0; column < w->n; column++) {
        const uint8_t *from = data + place_of_column(w, form, column);
        const int shift = shift_of_column(w, column);
        for (int64_t row = 0; row < w->k; row++) {
            const int64_t i = w->transposed ? column * w->k + row : row * w->n + column;
            const int x = (from[rows[row]] >> shift & mask) ^ flip;
            if (w->bits == 8)
                to[i] = (uint8_t)x;
            else
                to[i / 2] = (uint8_t)(to[i / 2] | x << (i % 2 * 4));
        }
    }
    free(rows);
    return GRT_OK;
}

grt_status cuda_weight_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data,
                              bool *out_known)
{
    char first = 0;
    long long block = 0;
    cuda_weight_form form;
    *out_known = packed->rank == 2 &&
                 sscanf(packing->format, "weights %c first, in turns, blocks of %lld", &first, &block) == 2 &&
                 block > 0 && (first == 'n' || first == 'k');
    if (!*out_known)
        return GRT_OK;
    grt_weights w = {.transposed = first == 'n',
                     .is_signed = grt_dtype_in(packed->dtype, GRT_BIT(INT8) | GRT_BIT(INT4)),
                     .bits = (int)grt_dtype_bits(packed->dtype),
                     .k = packed->dims[first == 'n'],
                     .n = packed->dims[first != 'n'],
                     .block = block};
    w.blocks = (w.k - 1) / w.block + 1;
    *out_known = (w.bits == 4 || w.bits == 8) && w.k > 0 && w.n > 0 && cuda_weight_is_packed(&w, packing);
    if (!*out_known || !cuda_weight_form_of(&w, &form))
        return GRT_OK;
    memset(out_data, 0, grt_tensor_bytes(packed));
    return unpack_numbers(&w, &form, packed->data, out_data);
}

static size_t scale_place(const grt_weights *w, int64_t block, int64_t column)
{
    return (size_t)((column / 16 * w->blocks + block) * 16 + column % 8 * 2 + column % 16 / 8);
}

void cuda_weight_pack_scales(const grt_weights *w, const void *scales, size_t size, void *out)
{
    for (int64_t column = 0; column < w->n; column++)
        for (int64_t b = 0; b < w->blocks; b++)
            memcpy((char *)out + scale_place(w, b, column) * size,
                   (const char *)scales + (size_t)grt_weights_scale(w, b, column) * size, size);
}

void cuda_weight_pack_zeros(const grt_weights *w, const void *zeros, uint8_t *out)
{
    for (int64_t column = 0; column < w->n; column++)
        for (int64_t b = 0; b < w->blocks; b++)
            out[scale_place(w, b, column)] = grt_weights_number(w, zeros, grt_weights_scale(w, b, column));
}
