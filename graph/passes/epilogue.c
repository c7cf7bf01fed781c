/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogues: a convolution or matrix product takes over what follows it, as graphrt::Conv or graphrt::MatMul
 * (graph/ops/fused.c):
 *
 *   y = act(scale * product + bias + residual)
 *
 * So does a product by weights of few bits, graphrt::WMatMul, whose inputs have other places. Each step is
 * made, the target is asked, and the step is taken back if there is no kernel for the result. */
#include "graph/passes/epilogue.h"
#include "graph/passes/rewrite.h"
#include "graph/ir/constant.h"
#include "graph/ops/pointwise.h"
#include "src/base/activation.h"

#include <math.h>
#include <string.h>

enum { BIAS = 2, RESIDUAL = 3, BEHIND_WEIGHTS = 2 /* of graphrt::WMatMul both come so much later */ };

typedef struct fusion {
    pass_context *context;
    ir_node *node;
    bool is_conv;
} fusion;

static const char *ours(const fusion *f)
{
    return f->is_conv ? "Conv" : "MatMul";
}

/* A product by weights that are 4 or 8 bits. */
static bool has_weights(const ir_node *node)
{
    return node && grt_op_is(&node->desc, "graphrt", "WMatMul");
}

static bool epilogue_is_ours(const ir_node *node)
{
    return has_weights(node) || (node && (grt_op_is(&node->desc, "graphrt", "Conv") ||
                                          grt_op_is(&node->desc, "graphrt", "MatMul")));
}

static bool is_head(const ir_node *node)
{
    return rewrite_has(node, OP_TAKES_EPILOGUE);
}

static bool is_conv(const ir_node *node)
{
    return rewrite_is(node, "Conv") || grt_op_is(&node->desc, "graphrt", "Conv");
}

/* From an earlier run, without an activation: a residual that moves kept away may be next to it by now. */
static bool goes_on(const ir_node *node)
{
    return epilogue_is_ours(node) && !*grt_attr_string(&node->desc, "activation", "");
}

static bool supported(const fusion *f)
{
    return rewrite_supported(f->context, f->node, NULL);
}

/* ---- inputs ---- */

static void put_input(ir_node *node, int32_t index, ir_value *value)
{
    while (node->n_in <= index)
        ir_node_add_input(node, NULL);
    ir_node_set_input(node, index, value);
}

/* Takes an input back. */
static void drop_input(ir_node *node, int32_t index)
{
    ir_node_set_input(node, index, NULL);
    int32_t n = node->n_in;
    while (n > 2 && !node->in[n - 1].value)
        n--;
    ir_node_drop_inputs(node, n);
}

/* The follower's work is done by the fused node, which moves to where the follower was: only there are all
 * its inputs known. */
static bool take_over(fusion *f, ir_node *follower)
{
    ir_node_move_before(f->node, follower);
    ir_node_absorb_name(f->node, follower);
    if (!rewrite_take_over_node(follower, f->node->out[0]))
        return false; /* cannot be: the result has no other use */
    f->context->changed++;
    return true;
}

/* ---- the head ---- */

static float epilogue_scale_of(const ir_node *node)
{
    return grt_attr_float(&node->desc, "scale", 1);
}

static void multiply_scale(ir_node *node, double factor)
{
    float scale = (float)((double)epilogue_scale_of(node) * factor);
    if (scale == 1)
        ir_attr_remove(node, "scale");
    else
        ir_attr_set_float(node, "scale", scale);
}

static bool epilogue_is_row(const ir_type *type, const ir_type *out)
{
    return type->rank == 1 && out->rank >= 1 && type->dims[0] == out->dims[out->rank - 1];
}

/* Gemm's constant C, times beta, as a vector over the columns. NULL if it is no such thing. */
static ir_value *constant_bias(const ir_node *gemm, const ir_value *c, float beta)
{
    const grt_tensor *t = c->type.data;
    const ir_module *module = gemm->graph->module;
    const ir_type *out = &gemm->out[0]->type;
    int64_t n;
    if (!t || t->dtype != GRT_DTYPE_FLOAT || out->rank != 2 ||
        !grt_dim_is_const(module->dims, out->dims[1], &n) || n < 1)
        return NULL;
    int64_t elements = grt_tensor_elements(t);
    bool row = elements == 1 || (elements == n && t->rank >= 1 && t->dims[t->rank - 1] == n);
    if (!row)
        return NULL;
    grt_tensor *bias = ir_constant_create(gemm->graph->module, t->dtype, 1, &n);
    if (!bias)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        ((float *)bias->data)[i] = beta * ((const float *)t->data)[elements == 1 ? 0 : i];
    return ir_constant(gemm->graph, NULL, bias);
}

/* Where Gemm's C goes: *out_bias or *out_residual, or nowhere. False if it has no place. */
static bool place_c(const ir_node *gemm, ir_value **out_bias, ir_value **out_residual)
{
    ir_value *c = ir_in(gemm, 2);
    float beta = grt_attr_float(&gemm->desc, "beta", 1);
    *out_bias = *out_residual = NULL;
    if (!c || beta == 0)
        return true;
    const ir_type *out = &gemm->out[0]->type;
    if (beta == 1 && epilogue_is_row(&c->type, out)) {
        *out_bias = c;
        return true;
    }
    *out_bias = constant_bias(gemm, c, beta);
    if (!*out_bias && beta == 1 && rewrite_same_shape(&c->type, out))
        *out_residual = c;
    return *out_bias || *out_residual;
}

/* Everything that a node is, to go back to. */
typedef struct snapshot {
    grt_op_desc desc;
    const op_row *row;
    int32_t opset, n_in;
    ir_value *in[RESIDUAL + BEHIND_WEIGHTS + 1];
} snapshot;

static snapshot epilogue_take(const ir_node *node)
{
    snapshot s = {.desc = node->desc, .row = node->row, .opset = node->opset, .n_in = node->n_in};
    for (int32_t i = 0; i < node->n_in && i <= RESIDUAL + BEHIND_WEIGHTS; i++)
        s.in[i] = node->in[i].value;
    return s;
}

static void epilogue_restore(ir_node *node, const snapshot *s)
{
    ir_node_drop_inputs(node, 0);
    for (int32_t i = 0; i < s->n_in && i <= RESIDUAL + BEHIND_WEIGHTS; i++)
        ir_node_add_input(node, s->in[i]);
    node->desc = s->desc;
    node->row = s->row;
    node->opset = s->opset;
}

static bool begin_gemm(ir_node *node)
{
    ir_value *bias, *residual;
    if (!place_c(node, &bias, &residual))
        return false;
    float alpha = grt_attr_float(&node->desc, "alpha", 1);
    ir_attr_remove(node, "alpha");
    ir_attr_remove(node, "beta");
    ir_node_drop_inputs(node, 2);
    multiply_scale(node, (double)alpha);
    if (bias)
        put_input(node, BIAS, bias);
    if (residual)
        put_input(node, RESIDUAL, residual);
    return true;
}

/* Make the head a node of ours. */
static bool epilogue_begin(fusion *f)
{
    ir_node *node = f->node;
    const ir_value *a = ir_in(node, 0), *b = ir_in(node, 1);
    if (!a || !b || a->type.rank < 2 || b->type.rank < 2 || node->n_in > 3)
        return false;
    snapshot before = epilogue_take(node);
    if (rewrite_is(node, "Gemm") && !begin_gemm(node)) {
        epilogue_restore(node, &before);
        return false;
    }
    ir_node_become(node, "graphrt", ours(f));
    if (supported(f))
        return true;
    epilogue_restore(node, &before);
    return false;
}

/* ---- what comes before a product ---- */

static bool swaps_last_two(const ir_node *node)
{
    size_t n;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    int32_t rank = ir_in(node, 0) ? ir_in(node, 0)->type.rank : -1;
    if (rank < 2 || (perm && n != (size_t)rank) || (!perm && rank != 2))
        return false;
    for (int32_t i = 0; perm && i < rank; i++)
        if (perm[i] != (i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2))
            return false;
    return true;
}

static bool absorb_transpose(fusion *f, int32_t index, const char *attr)
{
    ir_node *transpose = rewrite_producer(ir_in(f->node, index), "Transpose");
    if (!transpose || !swaps_last_two(transpose))
        return false;
    snapshot before = epilogue_take(f->node);
    ir_attr_set_int(f->node, attr, !grt_attr_int(&f->node->desc, attr, 0));
    ir_node_set_input(f->node, index, ir_in(transpose, 0));
    if (supported(f)) {
        if (!transpose->out[0]->n_uses) /* or it would use the scale behind it */
            ir_node_remove(transpose);
        return true;
    }
    epilogue_restore(f->node, &before);
    return false;
}

/* `x`, whose elements are the rows that a product reads, under the dims that the rows have behind it. */
static ir_value *rows_with_dims(ir_node *product, ir_value *x, const ir_type *to, grt_dim width)
{
    grt_dim dims[GRT_MAX_RANK];
    for (int32_t i = 0; i < to->rank - 1; i++)
        dims[i] = to->dims[i];
    dims[to->rank - 1] = width;
    return rewrite_reshaped(product, x, to->rank, dims);
}

/* The result gets the dims of `split`, a view behind it, as its rows `x` get them in front of the product:
 * a matrix does not mind how many dims its rows have. */
static bool split_in_front(fusion *f, ir_node *split, ir_value *x)
{
    ir_node *node = f->node;
    ir_value *out = node->out[0];
    const ir_type *to = &split->out[0]->type, *read = &ir_in(node, 0)->type;
    const grt_dim last = out->type.dims[out->type.rank - 1];
    int64_t columns;
    if (to->dims[to->rank - 1] != last || !grt_dim_is_const(node->graph->module->dims, last, &columns) ||
        columns < 1)
        return false;
    ir_value *rows = rows_with_dims(node, x, to, read->dims[read->rank - 1]);
    if (!rows)
        return false;
    snapshot before = epilogue_take(node);
    ir_type narrow = out->type;
    ir_node_set_input(node, 0, rows);
    out->type = *to;
    /* a bias or a batch of its own may fit the dims of before only */
    if (supported(f) && op_infer_node(node) == GRT_OK && rewrite_same_shape(&out->type, to) &&
        rewrite_take_over_node(split, out)) {
        f->context->changed++;
        return true;
    }
    out->type = narrow;
    epilogue_restore(node, &before);
    if (rows != x)
        ir_node_remove(rows->producer);
    return false;
}

/* The view that alone reads the rows of the product's result; NULL: there is none. */
static ir_node *split_behind(const ir_node *node)
{
    ir_node *split = rewrite_only_user(node->out[0]);
    return !ir_in(node, RESIDUAL) && !grt_attr_int(&node->desc, "transA", 0) && rewrite_has(split, OP_VIEW) &&
                   ir_in(split, 0) == node->out[0] && split->graph == node->graph &&
                   split->out[0]->type.rank >= 2
               ? split
               : NULL;
}

/* Rows that are joined for a product with a matrix and split again after it: the product does not mind more
 * dims. Rows that were no rows before get their dims in front of it, so that it can take a residual. */
static bool absorb_reshapes(fusion *f)
{
    const ir_node *node = f->node, *join = ir_in(node, 0) ? ir_in(node, 0)->producer : NULL;
    ir_node *split = split_behind(node);
    return join && rewrite_has(join, OP_VIEW) && split && node->out[0]->type.rank == 2 &&
           join->out[0]->type.rank == 2 && split->out[0]->type.rank >= 3 &&
           split_in_front(f, split, ir_in(join, 0));
}

/* x * c for a scalar constant c that leaves the shape alone: x and c, else NULL. */
static ir_value *epilogue_scaled(const ir_node *node, double *out_factor)
{
    bool mul = rewrite_is(node, "Mul");
    double v;
    if (!mul && !rewrite_is(node, "Div"))
        return NULL;
    int32_t at = ir_const_float(ir_in(node, 1), &v) ? 1 : mul && ir_const_float(ir_in(node, 0), &v) ? 0 : -1;
    ir_value *x = at < 0 ? NULL : ir_in(node, 1 - at);
    *out_factor = at < 0 ? 1 : mul ? v : 1 / v;
    if (!x || !isfinite(*out_factor) || *out_factor == 0 ||
        !rewrite_same_shape(&x->type, &node->out[0]->type))
        return NULL;
    return x;
}

static bool absorb_scale(fusion *f, int32_t index)
{
    ir_value *product = ir_in(f->node, index);
    double factor;
    if (!product || !product->producer || product->n_uses != 1)
        return false;
    ir_node *mul = product->producer;
    ir_value *x = epilogue_scaled(mul, &factor);
    if (!x || mul->graph != f->node->graph)
        return false;
    snapshot before = epilogue_take(f->node);
    ir_node_set_input(f->node, index, x);
    multiply_scale(f->node, factor);
    if (supported(f)) {
        f->context->changed++;
        return true;
    }
    epilogue_restore(f->node, &before);
    return false;
}

static void absorb_inputs(fusion *f)
{
    absorb_reshapes(f);
    for (int round = 0; round < 2;
         round++) { /* a scale may be behind a transpose, or a transpose behind a scale */
        absorb_transpose(f, 0, "transA");
        absorb_transpose(f, 1, "transB");
        absorb_scale(f, 0);
        absorb_scale(f, 1);
    }
}

/* Transposes that came in front of a product since it took the one behind them: both are gone. */
static void undo_transposes(fusion *f)
{
    static const char *const attrs[] = {"transA", "transB"};
    for (int32_t i = 0; i < 2; i++)
        if (grt_attr_int(&f->node->desc, attrs[i], 0) && absorb_transpose(f, i, attrs[i]))
            f->context->changed++;
}

/* ---- what comes after ---- */

static bool follow_scale(fusion *f, ir_node *user)
{
    double factor;
    if (f->is_conv || has_weights(f->node) || f->node->n_in > 2 ||
        epilogue_scaled(user, &factor) != f->node->out[0])
        return false;
    snapshot before = epilogue_take(f->node);
    multiply_scale(f->node, factor);
    if (supported(f))
        return take_over(f, user);
    epilogue_restore(f->node, &before);
    return false;
}

/* A constant of one dim that is not 1, the last: the same as a vector. */
static ir_value *as_row(ir_value *value, const ir_type *out)
{
    const grt_tensor *t = value->type.data;
    if (epilogue_is_row(&value->type, out))
        return value;
    int64_t n = t && t->rank > 1 ? grt_tensor_elements(t) : -1;
    if (n < 1 || n != t->dims[t->rank - 1])
        return NULL;
    grt_tensor flat = {.dtype = t->dtype, .rank = 1, .dims = {n}, .data = t->data};
    const grt_tensor *kept = grt_arena_memdup(value->graph->module->arena, &flat, sizeof flat);
    ir_value *row = kept ? ir_constant(value->graph, NULL, kept) : NULL;
    return row && epilogue_is_row(&row->type, out) ? row : NULL;
}

/* One row for each matrix of a batch. */
static ir_value *as_rows(ir_value *value, const ir_type *out)
{
    const ir_type *type = &value->type;
    if (type->rank != out->rank || out->rank < 3)
        return NULL;
    for (int32_t i = 0; i < out->rank; i++)
        if (i == out->rank - 2 ? !grt_dim_equals(value->graph->module->dims, type->dims[i], 1)
                               : type->dims[i] != out->dims[i])
            return NULL;
    return value;
}

/* True if a later head has better reason to take this Add. */
static bool leaves_to_other(const ir_node *node, const ir_value *other)
{
    const ir_node *producer = other->producer;
    return (is_head(producer) || epilogue_is_ours(producer)) && producer->graph == node->graph &&
           producer->mark > node->mark && other->n_uses == 1;
}

static bool try_input(fusion *f, ir_node *user, int32_t index, ir_value *value)
{
    index += has_weights(f->node) ? BEHIND_WEIGHTS : 0;
    if (!value || ir_in(f->node, index))
        return false;
    put_input(f->node, index, value);
    /* Asked at the place where the input is known. */
    if (supported(f))
        return take_over(f, user);
    drop_input(f->node, index);
    return false;
}

static bool follow_add(fusion *f, ir_node *user)
{
    ir_value *out = f->node->out[0];
    if (!rewrite_is(user, "Add") || !rewrite_same_shape(&out->type, &user->out[0]->type))
        return false;
    ir_value *other = ir_in(user, ir_in(user, 0) == out ? 1 : 0);
    if (!other || other == out || other->type.dtype != out->type.dtype)
        return false;
    if (!f->is_conv &&
        (try_input(f, user, BIAS, as_row(other, &out->type)) ||
         (other->type.data && !has_weights(f->node) && try_input(f, user, BIAS, as_rows(other, &out->type)))))
        return true;
    if (has_weights(f->node) && out->type.dtype == GRT_DTYPE_FLOAT)
        return false; /* it may yet be narrowed, but for its residual */
    return rewrite_same_shape(&other->type, &out->type) && !leaves_to_other(f->node, other) &&
           try_input(f, user, RESIDUAL, other);
}

/* Rows whose dims are those of a residual behind the product only, as of windows that were put back, get them
 * in front of it. */
static bool follow_split(fusion *f)
{
    ir_node *node = f->node, *split = split_behind(node);
    const ir_node *add = split ? rewrite_only_user(split->out[0]) : NULL;
    if (f->is_conv || has_weights(node) || node->out[0]->type.rank < 2 || ir_in(node, 1)->type.rank != 2 ||
        !rewrite_is(add, "Add"))
        return false;
    const ir_value *other = ir_in(add, ir_in(add, 0) == split->out[0] ? 1 : 0);
    return other && other != split->out[0] && rewrite_same_shape(&other->type, &split->out[0]->type) &&
           split_in_front(f, split, ir_in(node, 0));
}

/* The bounds of a Clip, if they are constants. */
static bool clip_bounds(const ir_node *node, float *low, float *high)
{
    double v;
    *low = -INFINITY;
    *high = INFINITY;
    if (ir_in(node, 1)) {
        if (!ir_const_float(ir_in(node, 1), &v))
            return false;
        *low = (float)v;
    }
    if (ir_in(node, 2)) {
        if (!ir_const_float(ir_in(node, 2), &v))
            return false;
        *high = (float)v;
    }
    return *low <= *high;
}

const char *epilogue_activation_of(const ir_node *user, float *alpha, float *beta)
{
    float params[PW_MAX_PARAMS] = {0};
    const int32_t function = grt_pointwise_function_of(&user->desc);
    const char *name = function < 0 ? NULL : grt_act_name_of(function);
    if (!name || function == PW_Clip)
        return name && clip_bounds(user, alpha, beta) ? name : NULL;
    grt_pointwise_params(&user->desc, function, params);
    *alpha = params[0];
    *beta = params[1];
    return name;
}

/* SiLU of one product times another value, as in gated layers: one pointwise group does both, and no product
 * of a library has SiLU inside. */
static bool is_gate(const ir_node *node)
{
    const ir_node *mul = rewrite_is(node, "Swish") ? rewrite_only_user(node->out[0]) : NULL;
    return rewrite_is(mul, "Mul") && ir_in(mul, 0) != ir_in(mul, 1) && !ir_in(mul, 0)->type.data &&
           !ir_in(mul, 1)->type.data && rewrite_same_shape(&ir_in(mul, 0)->type, &ir_in(mul, 1)->type);
}

void epilogue_set_activation(ir_node *node, const char *name, float alpha, float beta)
{
    ir_attr_set_string(node, "activation", name);
    ir_attr_set_float(node, "alpha", alpha);
    ir_attr_set_float(node, "beta", beta);
}

static bool follow_activation(fusion *f, ir_node *user)
{
    float alpha = 0, beta = 0;
    const char *name = epilogue_activation_of(user, &alpha, &beta);
    if (!name || ir_in(user, 0) != f->node->out[0] || (!f->is_conv && is_gate(user)))
        return false;
    snapshot before = epilogue_take(f->node);
    epilogue_set_activation(f->node, name, alpha, beta);
    if (supported(f))
        return take_over(f, user);
    epilogue_restore(f->node, &before);
    return false;
}

static bool is_move(const ir_node *node, const ir_value *x)
{
    return (rewrite_has(node, OP_VIEW) || rewrite_is(node, "Transpose")) && ir_in(node, 0) == x;
}

/* An activation behind moves of the result: it treats all elements alike, so it may as well come before. */
static bool follow_moved_activation(fusion *f)
{
    ir_value *value = f->node->out[0];
    ir_node *user = rewrite_only_user(value);
    while (user && is_move(user, value)) {
        value = user->out[0];
        user = rewrite_only_user(value);
    }
    float alpha = 0, beta = 0;
    const char *name = user && value != f->node->out[0] ? epilogue_activation_of(user, &alpha, &beta) : NULL;
    if (!name || ir_in(user, 0) != value || user->graph != f->node->graph || is_gate(user))
        return false;
    snapshot before = epilogue_take(f->node);
    epilogue_set_activation(f->node, name, alpha, beta);
    if (supported(f) && rewrite_take_over_node(user, value)) {
        rewrite_forget_names(f->node->out[0], value);
        f->context->changed++;
        return true;
    }
    epilogue_restore(f->node, &before);
    return false;
}

static void absorb_followers(fusion *f)
{
    for (ir_node *user; (user = rewrite_only_user(f->node->out[0]));) {
        if (follow_activation(f, user) || follow_moved_activation(f))
            return;
        /* rows may be split again behind the bias, in front of a residual */
        if (!follow_scale(f, user) && !follow_add(f, user) && (f->is_conv || !absorb_reshapes(f)) &&
            !follow_split(f))
            return;
    }
}

static grt_status epilogue_visit(pass_context *context, ir_graph *graph)
{
    rewrite_number_nodes(graph);
    /* Heads move down to their last follower, never past `next`'s own place in a way that matters: followers
     * are removed, and the list is walked from the node that stood behind the head. */
    for (ir_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        fusion f = {context, node, is_conv(node)};
        const bool again = goes_on(node);
        if (epilogue_is_ours(node) && !f.is_conv)
            undo_transposes(&f);
        if (!again && !(is_head(node) && epilogue_begin(&f)))
            continue;
        if (!again && !f.is_conv)
            absorb_inputs(&f);
        ir_node *before = node->prev;
        absorb_followers(&f);
        next = before ? before->next : graph->first;
        if (next == node)
            next = node->next;
    }
    return GRT_OK;
}

grt_status pass_epilogue(pass_context *context)
{
    return rewrite_each_graph(context, epilogue_visit);
}
