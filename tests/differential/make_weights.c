/* SPDX-License-Identifier: Apache-2.0 */
/* Products and rows of constant weights of 2, 4 and 8 bits behind DequantizeLinear, in every form of scales
 * and zero points. What they are compared with reads the numbers that DequantizeLinear's definition gives. */
#include "tests/differential/makers.h"
#include "src/base/element.h"

#include <string.h>

typedef struct form {
    grt_dtype dtype;
    int bits;
    bool is_float, is_signed;
} form;

static form draw_form(void)
{
    static const form forms[] = {
        {GRT_DTYPE_UINT4, 4, false, false},        {GRT_DTYPE_INT4, 4, false, true},
        {GRT_DTYPE_UINT8, 8, false, false},        {GRT_DTYPE_INT8, 8, false, true},
        {GRT_DTYPE_UINT2, 2, false, false},        {GRT_DTYPE_INT2, 2, false, true},
        {GRT_DTYPE_FLOAT8E4M3FN, 8, true, true},   {GRT_DTYPE_FLOAT8E5M2, 8, true, true},
        {GRT_DTYPE_FLOAT8E4M3FNUZ, 8, true, true}, {GRT_DTYPE_FLOAT8E5M2FNUZ, 8, true, true},
        {GRT_DTYPE_FLOAT4E2M1, 4, true, true}};
    return forms[draw(0, (int64_t)(sizeof forms / sizeof *forms) - 1)];
}

static double value_of_code(const form *f, uint8_t code)
{
    if (f->dtype == GRT_DTYPE_FLOAT4E2M1)
        return (double)grt_float4_to_float(code);
    if (f->is_float)
        return (double)grt_float8_to_float(code, grt_float8_format_of(f->dtype));
    const int half = 1 << (f->bits - 1);
    return f->is_signed && code >= half ? code - 2 * half : code;
}

static uint8_t code_at(const form *f, const grt_tensor *t, int64_t i)
{
    return f->bits == 8 ? ((const uint8_t *)t->data)[i] : grt_packed_get(t->data, i, f->bits);
}

/* Of integers any code; of floats those of size 4 and less, which are all codes of a sign but its largest. */
static uint8_t draw_code(const form *f)
{
    const int codes = 1 << f->bits;
    uint8_t code;
    do
        code = (uint8_t)draw(0, codes - 1);
    while (f->is_float && !(value_of_code(f, code) <= 4 && value_of_code(f, code) >= -4));
    return code;
}

/* all_equal: zero points of symmetric weights; floats have zeros only. */
static grt_tensor make_codes(const form *f, int32_t rank, const int64_t *dims, bool are_zeros, bool all_equal)
{
    grt_tensor t = {.dtype = f->dtype, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    uint8_t *data = t.data = guarded(grt_tensor_bytes(&t));
    const uint8_t first = are_zeros && f->is_float ? 0 : draw_code(f);
    memset(data, 0, grt_tensor_bytes(&t));
    for (int64_t i = 0; i < grt_tensor_elements(&t); i++) {
        const uint8_t code = all_equal || (are_zeros && f->is_float) ? first : draw_code(f);
        data[i * f->bits / 8] |= (uint8_t)(code << (i * f->bits % 8));
    }
    return t;
}

static double scale_at(const grt_tensor *t, int64_t i)
{
    return t->dtype == GRT_DTYPE_FLOAT8E8M0 ? (double)grt_float8e8m0_to_float(((const uint8_t *)t->data)[i])
                                            : element_get(t, i);
}

/* So that numbers are about 1, or less in float16, where weights are rounded. */
static grt_tensor make_scales(const form *f, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    const int downs = (f->is_float ? 1 : f->bits - 1) + (dtype == GRT_DTYPE_FLOAT16 ? 2 : 0);
    grt_tensor t = {.dtype = dtype, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    t.data = guarded(grt_tensor_bytes(&t));
    for (int64_t i = 0; i < grt_tensor_elements(&t); i++)
        if (dtype == GRT_DTYPE_FLOAT8E8M0)
            ((uint8_t *)t.data)[i] = (uint8_t)(127 - downs + draw(-1, 1));
        else
            element_set(&t, i, (0.25 + draw_real()) / (1 << downs));
    return t;
}

/* Which scale element (r, c) of a matrix has. */
static int64_t scale_index(const coded *c, int64_t row, int64_t column)
{
    const int64_t at = c->axis ? column : row;
    if (!c->block)
        return grt_tensor_elements(&c->scale) > 1 ? at : 0;
    return c->axis ? row * c->scale.dims[1] + column / c->block : row / c->block * c->scale.dims[1] + column;
}

/* The input's tensor: what DequantizeLinear, and the Transpose behind it, make. */
static void put_numbers(const form *f, const coded *c, grt_tensor *out)
{
    const int64_t rows = c->codes.dims[0], columns = c->codes.dims[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t s = scale_index(c, i, j);
            const double zero = c->zero.data ? value_of_code(f, code_at(f, &c->zero, s)) : 0,
                         number = value_of_code(f, code_at(f, &c->codes, i * columns + j));
            element_set(out, c->turned ? j * rows + i : i * columns + j,
                        (number - zero) * scale_at(&c->scale, s));
        }
}

/* A constant matrix of the dims as the next input. */
static void add_weights(node *n, grt_dtype dtype, int64_t rows, int64_t columns, bool may_turn)
{
    const form f = draw_form();
    coded *c = &n->coded[n->n_in];
    c->turned = may_turn && draw(0, 1);
    const int64_t dims[] = {c->turned ? columns : rows, c->turned ? rows : columns};
    const grt_dtype scales = draw(0, 3) == 0 ? GRT_DTYPE_FLOAT8E8M0 : dtype;
    const int64_t kind = draw(0, 4);
    int64_t of_scales[2] = {dims[0], dims[1]};
    c->axis = draw(0, 1);
    if (kind > 1) {
        c->block = kind == 2 ? 16 : kind == 3 ? 32 : draw(2, 50);
        of_scales[c->axis] = (dims[c->axis] + c->block - 1) / c->block;
    } else {
        of_scales[0] = dims[c->axis];
    }
    const int32_t rank = kind > 1 ? 2 : (int32_t)kind;
    c->codes = make_codes(&f, 2, dims, false, false);
    c->scale = make_scales(&f, scales, rank, of_scales);
    if (draw(0, 1))
        c->zero = make_codes(&f, rank, of_scales, true, draw(0, 1));
    add_input(n, dtype, 2, (int64_t[]){rows, columns});
    n->constant[n->n_in - 1] = true;
    put_numbers(&f, c, &n->in[n->n_in - 1]);
}

static void draw_gather(node *n, int64_t rows, int64_t columns)
{
    add_weights(n, n->out, rows, columns, false);
    grt_tensor *indices = add_input(n, GRT_DTYPE_INT64, 1, (int64_t[]){draw(1, 12)});
    for (int64_t i = 0; i < grt_tensor_elements(indices); i++)
        element_set(indices, i, (double)draw(-rows, rows - 1));
    if (draw(0, 4) == 0)
        n->constant[n->n_in - 1] = true;
}

void make_weights(node *n)
{
    n->op = draw_op();
    n->out = draw(0, 3) ? GRT_DTYPE_FLOAT : GRT_DTYPE_FLOAT16;
    const int64_t m = draw(0, 2) ? draw(1, 6) : draw(7, 70), c = draw(1, 90),
                  k = n->out == GRT_DTYPE_FLOAT ? draw(1, 150)
                      : draw(0, 1)              ? draw(1, 40)
                                                : 8 * draw(1, 24); /* whole pieces of 16 bytes */
    if (!strcmp(n->op, "Gather")) {
        draw_gather(n, k, c);
        return;
    }
    add_input(n, n->out, 2, (int64_t[]){m, k});
    const bool gemm = !strcmp(n->op, "Gemm"), trans = gemm && draw(0, 1);
    add_weights(n, n->out, trans ? c : k, trans ? k : c, true);
    if (gemm && draw(0, 1)) {
        add_input(n, n->out, 1, (int64_t[]){c});
        n->constant[2] = draw(0, 1);
    }
    if (gemm)
        set_int(n, "transB", trans);
}
