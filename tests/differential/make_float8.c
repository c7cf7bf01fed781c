/* SPDX-License-Identifier: Apache-2.0 */
/* Products of activations that QuantizeLinear rounds to float8, by constant weights of float8. Activations
 * are numbers of their type already, so that rounding changes nothing. */
#include "tests/differential/makers.h"
#include "src/base/element.h"

#include <string.h>

static double value_of_code(grt_dtype dtype, uint8_t code)
{
    return (double)grt_float8_to_float(code, grt_float8_format_of(dtype));
}

/* Of size 1 and less: tensor cores keep 14 bits of the largest term of a sum. */
static uint8_t draw_code(grt_dtype dtype)
{
    uint8_t code;
    do
        code = (uint8_t)draw(0, 255);
    while (!(value_of_code(dtype, code) <= 1 && value_of_code(dtype, code) >= -1));
    return code;
}

static grt_tensor make_tensor(grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor t = {.dtype = dtype, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    t.data = guarded(grt_tensor_bytes(&t));
    memset(t.data, 0, grt_tensor_bytes(&t));
    return t;
}

static grt_tensor make_scales(int32_t rank, int64_t n)
{
    grt_tensor t = make_tensor(GRT_DTYPE_FLOAT, rank, &n);
    for (int64_t i = 0; i < grt_tensor_elements(&t); i++)
        element_set(&t, i, 0.25 + 0.5 * draw_real());
    return t;
}

static void add_activations(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    coded *c = &n->coded[n->n_in];
    grt_tensor *x = add_input(n, GRT_DTYPE_FLOAT, rank, dims);
    c->rounded = true;
    c->scale = make_scales(0, 1);
    c->zero = make_tensor(dtype, 0, dims);
    for (int64_t i = 0; i < grt_tensor_elements(x); i++)
        element_set(x, i, value_of_code(dtype, draw_code(dtype)) * element_get(&c->scale, 0));
}

/* axis: of the columns. */
static void add_weights(node *n, grt_dtype dtype, int64_t rows, int64_t columns, int64_t axis)
{
    const int64_t dims[] = {rows, columns};
    coded *c = &n->coded[n->n_in];
    grt_tensor *w = add_input(n, GRT_DTYPE_FLOAT, 2, dims);
    const bool each = draw(0, 1);
    n->constant[n->n_in - 1] = true;
    c->axis = axis;
    c->codes = make_tensor(dtype, 2, dims);
    c->scale = make_scales(each, dims[axis]);
    for (int64_t i = 0; i < rows * columns; i++) {
        const uint8_t code = ((uint8_t *)c->codes.data)[i] = draw_code(dtype);
        const int64_t at = !each ? 0 : axis ? i % columns : i / columns;
        element_set(w, i, value_of_code(dtype, code) * element_get(&c->scale, at));
    }
}

/* A multiple of 16, as the library wants it, or seldom not. */
static int64_t draw_width(int64_t most)
{
    return draw(0, 7) ? 16 * draw(1, most / 16) : draw(1, most);
}

void make_float8(node *n)
{
    n->op = draw_op();
    n->out = GRT_DTYPE_FLOAT;
    const bool gemm = !strcmp(n->op, "Gemm"), trans = gemm && draw(0, 1), of_x = draw(0, 2) == 0,
               of_w = draw(0, 3) == 0;
    const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT8E4M3FN, GRT_DTYPE_FLOAT8E5M2};
    const bool tall = draw(0, 5) == 0; /* so that every multiprocessor has several tiles */
    const int64_t k = draw_width(tall ? 96 : 512), c = draw_width(512),
                  m = tall         ? draw(1000, 9000)
                      : draw(0, 2) ? draw_dim()
                                   : draw(1, 300);
    const int64_t dims[] = {draw(1, 3), m, k};
    n->precision = PICK("fp16", "tf32"); /* what is widened, as on the CPU, loses too much in bfloat16 */
    const int32_t lead = gemm ? 0 : (int32_t)draw(0, 1);
    add_activations(n, dtypes[of_x], 2 + lead, dims + 1 - lead);
    add_weights(n, dtypes[of_w], trans ? c : k, trans ? k : c, trans ? 0 : 1);
    if (gemm && draw(0, 1)) {
        add_input(n, GRT_DTYPE_FLOAT, 1, (int64_t[]){c});
        n->constant[2] = true;
    }
    if (gemm)
        set_int(n, "transB", trans);
    if (draw(0, 3) == 0)
        n->then = "Relu";
}
