/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: weights of 2, 4 or 8 bits in blocks, as int4 language models have them. MatMulNBits is a
 * product with DequantizeLinear's result, GatherBlockQuantized takes rows first and dequantises those. */
#include "graph/ops/contrib_nbits.h"

#include "src/base/checked.h"

#include <string.h>

static const op_attr matmul_attrs[] = {{"K", GRT_ATTR_INT, true},
                                       {"N", GRT_ATTR_INT, true},
                                       {"accuracy_level", GRT_ATTR_INT, false},
                                       {"bits", GRT_ATTR_INT, false},
                                       {"block_size", GRT_ATTR_INT, true},
                                       {"weight_prepacked", GRT_ATTR_INT, false},
                                       {0}};
static const op_attr gather_attrs[] = {{"bits", GRT_ATTR_INT, false},
                                       {"block_size", GRT_ATTR_INT, false},
                                       {"gather_axis", GRT_ATTR_INT, false},
                                       {"quantize_axis", GRT_ATTR_INT, false},
                                       {0}};

static grt_status check_bits(const ir_node *node, int64_t *out_bits)
{
    *out_bits = grt_attr_int(&node->desc, "bits", 4);
    return *out_bits == 2 || *out_bits == 4 || *out_bits == 8
               ? GRT_OK
               : foreign_unsupported(node, "attribute bits is %lld; supported are 2, 4 and 8",
                                     (long long)*out_bits);
}

ir_value *nbits_unpack(ir_node *node, ir_value *packed, int64_t bits, int32_t lead)
{
    static const uint8_t shifts[] = {0, 2, 4, 6, 0, 4};
    int64_t dims[GRT_MAX_RANK];
    const int64_t count = 8 / bits, last[] = {-1};
    if (bits == 8)
        return packed;
    const grt_tensor shift = {.dtype = GRT_DTYPE_UINT8,
                              .rank = 1,
                              .dims = {count},
                              .data = (void *)(uintptr_t)(shifts + (bits == 4 ? 4 : 0))};
    const grt_tensor *kept = grt_arena_memdup(node->graph->module->arena, &shift, sizeof shift);
    ir_value *by = kept ? ir_constant(node->graph, NULL, kept) : NULL;
    ir_value *moved = put2(node, "BitShift", put_unsqueeze(node, packed, last, 1), by);
    if (moved)
        ir_attr_set_string(moved->producer, "direction", "RIGHT");
    ir_value *low =
        put2(node, "BitwiseAnd", moved, put_scalar(node, GRT_DTYPE_UINT8, (double)((1 << bits) - 1)));
    for (int32_t i = 0; i <= lead; i++)
        dims[i] = i < lead ? 0 : -1;
    return put_reshape(node, low, dims, lead + 1);
}

typedef struct nbits {
    int64_t k, n, bits, block, blocks;
} nbits;

static grt_status read_nbits(const ir_node *node, nbits *out)
{
    size_t packed;
    *out = (nbits){.k = grt_attr_int(&node->desc, "K", 0),
                   .n = grt_attr_int(&node->desc, "N", 0),
                   .block = grt_attr_int(&node->desc, "block_size", 0)};
    GRT_TRY(check_bits(node, &out->bits));
    if (out->k < 1 || out->n < 1 || out->block < 16 || out->block > 1 << 30 ||
        (out->block & (out->block - 1)) != 0)
        return foreign_invalid(
            node,
            "K is %lld, N %lld and block_size %lld; K and N must be positive, block_size a "
            "power of 2, at least 16",
            (long long)out->k, (long long)out->n, (long long)out->block);
    out->blocks = out->k / out->block + (out->k % out->block != 0);
    if (!grt_mul_size((size_t)out->n, (size_t)out->blocks, &packed) ||
        !grt_mul_size(packed, (size_t)out->block, &packed) || packed > INT64_MAX / 8)
        return foreign_invalid(node, "K is %lld and N %lld: too large", (long long)out->k, (long long)out->n);
    if (grt_attr_int(&node->desc, "weight_prepacked", 0))
        return foreign_unsupported(node, "the weights are packed for one kind of GPU (weight_prepacked)");
    return ir_in(node, 4) ? foreign_unsupported(node, "input 4 (g_idx) is not supported") : GRT_OK;
}

/* The bytes of a constant as [rows, columns] of `dtype`, if they are that many. */
static ir_value *same_bytes(ir_node *node, const ir_value *constant, grt_dtype dtype, int64_t rows,
                            int64_t columns)
{
    const grt_tensor *data = constant->type.data;
    grt_tensor view = {.dtype = dtype, .rank = 2, .dims = {rows, columns}};
    if (!data || data->dtype != GRT_DTYPE_UINT8 || grt_tensor_bytes(data) != grt_tensor_bytes(&view))
        return NULL;
    view.data = data->data;
    const grt_tensor *kept = grt_arena_memdup(node->graph->module->arena, &view, sizeof view);
    return kept ? ir_constant(node->graph, NULL, kept) : NULL;
}

/* The numbers as [N, blocks * block]: a constant's bytes are uint4 as they are. */
static ir_value *take_weights(ir_node *node, const nbits *w)
{
    const int64_t flat[] = {w->n, w->blocks * w->block};
    ir_value *packed = ir_in(node, 1);
    const grt_dtype dtype = w->bits == 4 ? GRT_DTYPE_UINT4 : w->bits == 2 ? GRT_DTYPE_UINT2 : GRT_DTYPE_UINT8;
    ir_value *view = same_bytes(node, packed, dtype, flat[0], flat[1]);
    const int64_t rows[] = {w->n, -1};
    return view ? view
                : put_reshape(node, nbits_unpack(node, put_reshape(node, packed, rows, 2), w->bits, 1), flat,
                              2);
}

/* Packed zero points as [N, blocks] of uint8. */
static ir_value *take_zero_points(ir_node *node, const nbits *w)
{
    const int64_t rows[] = {w->n, -1};
    ir_value *zero = ir_in(node, 3);
    if (!zero)
        return NULL;
    ir_value *bytes = nbits_unpack(node, put_reshape(node, zero, rows, 2), w->bits, 1);
    return put_part(node, bytes, 1, 0, w->blocks);
}

/* (q - zero) * scale where the zero point is a float of its own. */
static ir_value *dequantize_floats(ir_node *node, const nbits *w, ir_value *q, ir_value *scale)
{
    const int64_t apart[] = {w->n, w->blocks, -1}, each[] = {w->n, w->blocks, 1},
                  flat[] = {w->n, w->blocks * w->block};
    const grt_dtype dtype = ir_in(node, 2)->type.dtype;
    ir_value *x = put_reshape(node, put_cast(node, q, dtype), apart, 3);
    x = put2(node, "Sub", x, put_reshape(node, put_cast(node, ir_in(node, 3), dtype), each, 3));
    return put_reshape(node, put2(node, "Mul", x, put_reshape(node, scale, each, 3)), flat, 2);
}

static ir_value *dequantize(ir_node *node, const nbits *w)
{
    const int64_t per_block[] = {w->n, w->blocks};
    ir_value *q = take_weights(node, w), *scale = put_reshape(node, ir_in(node, 2), per_block, 2);
    if (ir_in(node, 3) && ir_in(node, 3)->type.dtype != GRT_DTYPE_UINT8)
        return dequantize_floats(node, w, q, scale);
    ir_value *zero = take_zero_points(node, w);
    if (!zero) { /* the middle */
        ir_value *middle = put_scalar(node, GRT_DTYPE_UINT8, (double)(1 << (w->bits - 1)));
        zero = put2(node, "Expand", middle, put_ints(node, per_block, 2));
    }
    if (q && q->type.dtype && q->type.dtype != GRT_DTYPE_UINT8)
        zero = put_cast(node, zero, q->type.dtype);
    ir_value *x = put3(node, "DequantizeLinear", q, scale, zero);
    return with_int(with_int(x, "axis", 1), "block_size", w->block);
}

/* (a, b, scales, zero_points, g_idx, bias) */
static grt_status rewrite_matmul(ir_node *node)
{
    static const int64_t swap[] = {1, 0};
    nbits w;
    GRT_TRY(read_nbits(node, &w));
    GRT_TRY(foreign_need(node, 1, "B"));
    GRT_TRY(foreign_need(node, 2, "scales"));
    if (!ir_in(node, 2)->type.dtype || (ir_in(node, 3) && !ir_in(node, 3)->type.dtype))
        return foreign_unsupported(node,
                                   "the dtypes of the scales and zero points must be known to the compiler");
    ir_value *rows = dequantize(node, &w);
    if (w.blocks * w.block != w.k)
        rows = put_part(node, rows, 1, 0, w.k);
    ir_value *y = put2(node, "MatMul", ir_in(node, 0), put_transpose(node, rows, swap, 2));
    if (grt_attr_int(&node->desc, "accuracy_level", 0)) /* read by the pass that makes graphrt::WMatMul */
        with_int(y, "accuracy_level", grt_attr_int(&node->desc, "accuracy_level", 0));
    return foreign_done1(node, put_add(node, y, ir_in(node, 5)));
}

static const op_attr bnb4_attrs[] = {{"K", GRT_ATTR_INT, true},
                                     {"N", GRT_ATTR_INT, true},
                                     {"block_size", GRT_ATTR_INT, true},
                                     {"quant_type", GRT_ATTR_INT, true},
                                     {"training_mode", GRT_ATTR_INT, false},
                                     {"transB", GRT_ATTR_INT, false},
                                     {0}};

/* The numbers that 4 bits stand for, in bitsandbytes' two formats: FP4 and NF4. */
static const float bnb4_tables[2][16] = {
    {0.0f, 0.0052083333f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f, -0.0052083333f,
     -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
     0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
     0.7229568362236023f, 1.0f}};

/* int32 [n]: the indices packed in bytes, the first in the high bits. */
static ir_value *bnb4_indices(ir_node *node, int64_t n)
{
    static const int64_t flat[] = {-1};
    ir_value *bytes = put_cast(node, put_reshape(node, ir_in(node, 1), flat, 1), GRT_DTYPE_INT32);
    ir_value *sixteen = put_scalar(node, GRT_DTYPE_INT32, 16);
    ir_value *both[] = {put_unsqueeze(node, put2(node, "Div", bytes, sixteen), flat, 1),
                        put_unsqueeze(node, put2(node, "Mod", bytes, sixteen), flat, 1)};
    return put_part(node, put_reshape(node, put_concat(node, 1, 2, both), flat, 1), 0, 0, n);
}

/* (a, b, absmax): numbers of a table times their block's largest; blocks run over rows' ends. */
static grt_status rewrite_bnb4(ir_node *node)
{
    static const int64_t flat[] = {-1}, swap[] = {1, 0};
    const int64_t k = grt_attr_int(&node->desc, "K", 0), n = grt_attr_int(&node->desc, "N", 0),
                  block = grt_attr_int(&node->desc, "block_size", 0),
                  type = grt_attr_int(&node->desc, "quant_type", 0);
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX / k || block < 16 || type < 0 || type > 1)
        return foreign_invalid(node, "K is %lld, N %lld, block_size %lld and quant_type %lld", (long long)k,
                               (long long)n, (long long)block, (long long)type);
    GRT_TRY(foreign_need(node, 2, "absmax"));
    const grt_dtype dtype = ir_in(node, 2)->type.dtype;
    if (!dtype)
        return foreign_unsupported(node, "the dtype of input 2 (absmax) must be known to the compiler");
    const grt_tensor table = {
        .dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {16}, .data = (void *)(uintptr_t)bnb4_tables[type]};
    const grt_tensor *kept = grt_arena_memdup(node->graph->module->arena, &table, sizeof table);
    ir_value *numbers = kept ? ir_constant(node->graph, NULL, kept) : NULL;
    ir_value *blocks = put2(node, "Div", put_range(node, put_int(node, n * k)), put_int(node, block));
    ir_value *most = put2(node, "Gather", put_reshape(node, ir_in(node, 2), flat, 1), blocks);
    ir_value *w = put2(node, "Gather", numbers, bnb4_indices(node, n * k));
    w = put2(node, "Mul", dtype == GRT_DTYPE_FLOAT ? w : put_cast(node, w, dtype), most);
    const bool transposed = grt_attr_int(&node->desc, "transB", 1) != 0;
    w = put_reshape(node, w, (int64_t[]){n, k}, 2);
    return foreign_done1(
        node, put2(node, "MatMul", ir_in(node, 0), transposed ? put_transpose(node, w, swap, 2) : w));
}

typedef struct table {
    int64_t bits, block;
    int32_t rank, gather_axis, quantize_axis;
    bool is_signed;
} table;

/* Constants of 4 bits as bytes of two numbers: what is gathered are whole rows. */
static ir_value *as_bytes(ir_node *node, ir_value *x)
{
    grt_tensor view;
    if (x->type.dtype == GRT_DTYPE_UINT8)
        return x;
    if (!x->type.data)
        return NULL;
    view = *x->type.data;
    if (view.rank < 1 || view.dims[view.rank - 1] % 2)
        return NULL;
    view.dtype = GRT_DTYPE_UINT8;
    view.dims[view.rank - 1] /= 2;
    const grt_tensor *kept = grt_arena_memdup(node->graph->module->arena, &view, sizeof view);
    return kept ? ir_constant(node->graph, NULL, kept) : NULL;
}

static grt_status read_table(const ir_node *node, table *out)
{
    GRT_TRY(foreign_need_rank(node, 0, "data"));
    GRT_TRY(foreign_need_rank(node, 1, "indices"));
    GRT_TRY(foreign_need(node, 2, "scales"));
    const ir_value *data = ir_in(node, 0);
    const grt_dtype dtype = data->type.dtype;
    *out = (table){.block = grt_attr_int(&node->desc, "block_size", 128), .rank = data->type.rank};
    GRT_TRY(check_bits(node, &out->bits));
    if (!grt_dtype_in(dtype, GRT_BIT(UINT8) | GRT_BIT(UINT4) | GRT_BIT(INT4)))
        return foreign_unsupported(node, "data is %s; supported are uint8, uint4 and int4",
                                   grt_dtype_name(dtype));
    if (dtype != GRT_DTYPE_UINT8)
        out->bits = 4;
    out->is_signed = dtype == GRT_DTYPE_INT4;
    out->gather_axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "gather_axis", 0), out->rank);
    out->quantize_axis = (int32_t)grt_axis(grt_attr_int(&node->desc, "quantize_axis", 1), out->rank);
    if (out->gather_axis < 0 || out->quantize_axis < 0 || out->block < 16)
        return foreign_invalid(node, "gather_axis, quantize_axis or block_size is out of range");
    if (out->gather_axis == out->quantize_axis || (out->bits < 8 && out->gather_axis == out->rank - 1))
        return foreign_unsupported(
            node, "gather_axis %d must be neither quantize_axis nor the last, which is packed",
            out->gather_axis);
    return GRT_OK;
}

/* Rows of the packed numbers, one a byte; signed ones moved up, so that all are unsigned. */
static ir_value *gather_numbers(ir_node *node, const table *t, ir_value *bytes, int32_t lead)
{
    ir_value *rows = with_int(put2(node, "Gather", bytes, ir_in(node, 1)), "axis", t->gather_axis);
    rows = nbits_unpack(node, rows, t->bits, lead);
    return t->is_signed ? put2(node, "BitwiseXor", rows, put_scalar(node, GRT_DTYPE_UINT8, 8)) : rows;
}

/* (data, indices, scales, zero_points) */
static grt_status rewrite_gather(ir_node *node)
{
    table t;
    GRT_TRY(read_table(node, &t));
    const int32_t moved = foreign_rank(node, 1) - 1, lead = t.rank + moved - 1;
    ir_value *data = as_bytes(node, ir_in(node, 0));
    ir_value *scales = with_int(put2(node, "Gather", ir_in(node, 2), ir_in(node, 1)), "axis", t.gather_axis);
    ir_value *zero = ir_in(node, 3);
    if (lead < 0 || lead >= GRT_MAX_RANK)
        return foreign_invalid(node, "the result would have rank %d", lead + 1);
    if (zero) {
        ir_value *bytes = as_bytes(node, zero);
        if (!bytes)
            return foreign_unsupported(node,
                                       "zero points of 4 bits must be constant, in rows of even length");
        zero = gather_numbers(node, &t, bytes, lead);
        if (t.quantize_axis == t.rank - 1) /* rows are filled up to whole bytes */
            zero =
                put_slice(node, zero, lead, put_ints(node, (int64_t[]){0}, 1), put_dim(node, scales, lead));
    } else if (t.bits != 4 || t.is_signed || ir_in(node, 0)->type.dtype == GRT_DTYPE_UINT8) {
        ir_value *middle = put_scalar(node, GRT_DTYPE_UINT8, (double)(1 << (t.bits - 1)));
        zero = put2(node, "Expand", middle, put1(node, "Shape", scales));
    }
    if (!data)
        return foreign_unsupported(node, "data of 4 bits must be constant, in rows of even length");
    ir_value *x = put3(node, "DequantizeLinear", gather_numbers(node, &t, data, lead), scales, zero);
    with_int(x, "axis", t.quantize_axis > t.gather_axis ? t.quantize_axis + moved : t.quantize_axis);
    return foreign_done1(node, with_int(x, "block_size", t.block));
}

static const op_row rows[] = {
    FOREIGN(MS, "MatMulNBits", 3, 6, 1, 1, matmul_attrs, rewrite_matmul),
    FOREIGN(MS, "MatMulBnb4", 3, 3, 1, 1, bnb4_attrs, rewrite_bnb4),
    FOREIGN(MS, "GatherBlockQuantized", 3, 4, 1, 1, gather_attrs, rewrite_gather),
};
OP_TABLE(contrib_nbits, rows);
