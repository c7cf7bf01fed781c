/* SPDX-License-Identifier: Apache-2.0 */
/* What an executor may rely on, checked once when a plan is read: then no step needs to look again. */
#include "src/plan/format.h"

#include "graph/ir/op.h"
#include "src/base/checked.h"

#include <math.h>
#include <string.h>

typedef struct checker {
    const char *path;
    const grt_plan *plan;
    int32_t body; /* being checked; -1: none */
    bool *owned;  /* per body: a step has it */
    grt_arena *arena;
} checker;

/* "FILE: section META: body 0 'main': <last message>" */
static grt_status check_failed(const checker *c)
{
    if (c->body < 0)
        return grt_fail_context(GRT_STATUS_INVALID_PLAN, "%s: section META", c->path);
    return grt_fail_context(GRT_STATUS_INVALID_PLAN, "%s: section META: body %d '%s'", c->path, (int)c->body,
                            c->plan->bodies[c->body].name);
}

static grt_status check_bad(const checker *c, const char *format, ...) GRT_PRINTF(2, 3);
static grt_status check_bad(const checker *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)grt_fail_v(GRT_STATUS_INVALID_PLAN, format, args);
    va_end(args);
    return check_failed(c);
}

static const char *step_name(const grt_plan_step *step)
{
    return step->desc.name[0] ? step->desc.name : step->desc.op;
}

static grt_status check_dims(const checker *c)
{
    for (int32_t i = 0; i < c->plan->n_dims; i++) {
        const grt_dim_expr *e = &c->plan->dims[i];
        if (e->op == GRT_DIM_CONST)
            continue;
        if (e->op == GRT_DIM_SYMBOL) {
            if (e->value < 0 || e->value >= c->plan->n_symbols)
                return check_bad(c, "dim %d: symbol %lld, but there are %d", (int)i, (long long)e->value,
                                 (int)c->plan->n_symbols);
            continue;
        }
        if ((uint32_t)e->op > GRT_DIM_BROADCAST)
            return check_bad(c, "dim %d: operation %d is unknown", (int)i, (int)e->op);
        if (e->a < 0 || e->a >= i || e->b < 0 || e->b >= i)
            return check_bad(c, "dim %d: operands %d and %d must come before it", (int)i, (int)e->a,
                             (int)e->b);
    }
    return GRT_OK;
}

static bool is_packed(const grt_plan *plan, int32_t weight)
{
    const grt_packing packing = grt_plan_packing(plan, weight);
    return grt_is_packed(&packing);
}

/* A weight as a value's content (exact) or as an input's default (where dims are constants). */
static grt_status check_weight(const checker *c, const grt_plan_value *v)
{
    const grt_plan *plan = c->plan;
    if (v->weight >= plan->n_weights)
        return check_bad(c, "value '%s': weight %d, but there are %d", v->name, (int)v->weight,
                         (int)plan->n_weights);
    const grt_tensor *w = &plan->weights[v->weight];
    bool fits = v->kind == GRT_KIND_TENSOR && w->dtype == v->dtype;
    if (v->role == GRT_VALUE_CONST || v->rank >= 0)
        fits = fits && w->rank == v->rank;
    for (int32_t i = 0; fits && i < v->rank; i++) {
        const grt_dim_expr *e = &plan->dims[v->dims[i]];
        fits = e->op == GRT_DIM_CONST ? e->value == w->dims[i] : v->role != GRT_VALUE_CONST;
    }
    fits = fits && (v->role == GRT_VALUE_CONST || !is_packed(plan, v->weight));
    char buffer[GRT_TYPE_TEXT_SIZE];
    if (!fits)
        return check_bad(c, "value '%s': its type does not fit weight %d, %s", v->name, (int)v->weight,
                         grt_tensor_text(w, buffer));
    return GRT_OK;
}

static grt_status check_value(const checker *c, const grt_plan_value *v)
{
    if ((uint32_t)v->role > GRT_VALUE_CAPTURE)
        return check_bad(c, "value '%s': role %d is unknown", v->name, (int)v->role);
    if ((uint32_t)v->kind > GRT_KIND_MAP || (uint32_t)v->element_kind > GRT_KIND_MAP)
        return check_bad(c, "value '%s': kind %d of %d is unknown", v->name, (int)v->kind,
                         (int)v->element_kind);
    if (v->keys && v->keys != GRT_DTYPE_INT64 && v->keys != GRT_DTYPE_STRING)
        return check_bad(c, "value '%s': keys of dtype %d", v->name, (int)v->keys);
    bool may_be_none = v->role == GRT_VALUE_STEP || v->role == GRT_VALUE_CAPTURE;
    if ((uint32_t)v->dtype >= GRT_DTYPE_COUNT || (v->dtype == GRT_DTYPE_NONE && !may_be_none))
        return check_bad(c, "value '%s': dtype %d is unknown", v->name, (int)v->dtype);
    if (v->rank < -1 || v->rank > GRT_MAX_RANK)
        return check_bad(c, "value '%s': rank %d", v->name, (int)v->rank);
    if (v->is_static && (v->rank < 0 || v->kind != GRT_KIND_TENSOR || v->dtype == GRT_DTYPE_NONE))
        return check_bad(c, "value '%s' is planned before the run, but is no tensor of known rank and dtype",
                         v->name);
    for (int32_t i = 0; i < v->rank; i++)
        if (v->dims[i] < 0 || v->dims[i] >= c->plan->n_dims)
            return check_bad(c, "value '%s': dim %d is expression %d, but there are %d", v->name, (int)i,
                             (int)v->dims[i], (int)c->plan->n_dims);
    if (v->role == GRT_VALUE_CONST && v->weight < 0)
        return check_bad(c, "value '%s' is constant, but has no weight", v->name);
    if (v->role == GRT_VALUE_CONST || (v->role == GRT_VALUE_INPUT && v->weight >= 0))
        return check_weight(c, v);
    return GRT_OK;
}

static bool in_body(const grt_plan_body *body, int32_t value)
{
    return value >= 0 && value < body->n_values;
}

/* Values that exist when the body starts: constants, inputs, captures; the latter two must be listed exactly
 * once. */
static grt_status check_entry(const checker *c, const grt_plan_body *body, bool *defined)
{
    for (int32_t i = 0; i < body->n_inputs; i++) {
        int32_t v = body->inputs[i];
        if (!in_body(body, v) || body->values[v].role != GRT_VALUE_INPUT || defined[v])
            return check_bad(c, "input %d: value %d of %d is no input, or listed twice", (int)i, (int)v,
                             (int)body->n_values);
        defined[v] = true;
    }
    for (int32_t i = 0; i < body->n_captures; i++) {
        int32_t v = body->captures_inner[i];
        if (!in_body(body, v) || body->values[v].role != GRT_VALUE_CAPTURE || defined[v])
            return check_bad(c, "capture %d: value %d of %d is no capture, or listed twice", (int)i, (int)v,
                             (int)body->n_values);
        defined[v] = true;
    }
    for (int32_t v = 0; v < body->n_values; v++) {
        grt_plan_value_role role = body->values[v].role;
        if (role == GRT_VALUE_CONST)
            defined[v] = true;
        else if (role != GRT_VALUE_STEP && !defined[v])
            return check_bad(c, "value '%s' is an input or capture, but not listed as such",
                             body->values[v].name);
    }
    return GRT_OK;
}

static grt_status check_attributes(const checker *c, const grt_plan_step *step, const op_row *row)
{
    for (size_t i = 0; i < step->desc.n_attrs; i++) {
        const grt_attr *a = &step->desc.attrs[i];
        if ((uint32_t)a->kind > GRT_ATTR_TYPE)
            return check_bad(c, "step '%s': attribute '%s': kind %d is unknown", step_name(step), a->name,
                             (int)a->kind);
        if (a->kind == GRT_ATTR_GRAPH && (a->body < 0 || a->body >= c->plan->n_bodies))
            return check_bad(c, "step '%s': attribute '%s': body %lld, but there are %d", step_name(step),
                             a->name, (long long)a->body, (int)c->plan->n_bodies);
        if (a->kind == GRT_ATTR_TYPE &&
            ((uint32_t)a->type.kind > GRT_KIND_OPTIONAL || (uint32_t)a->type.dtype >= GRT_DTYPE_COUNT))
            return check_bad(c, "step '%s': attribute '%s': type is unknown", step_name(step), a->name);
    }
    for (const op_attr *known = row ? row->attrs : NULL; known && known->name; known++) {
        const grt_attr *a = grt_attr_find(&step->desc, known->name);
        if (!a && known->required && known->kind != GRT_ATTR_GRAPH)
            return check_bad(c, "step '%s': %s needs attribute '%s'", step_name(step), step->desc.op,
                             known->name);
        if (a && a->kind != known->kind)
            return check_bad(c, "step '%s': attribute '%s' is of kind %d, expected %d", step_name(step),
                             known->name, (int)a->kind, (int)known->kind);
    }
    return row && op_check_ranges(row, &step->desc) != GRT_OK ? check_failed(c) : GRT_OK;
}

/* Operands in range and made before; results made once. */
static grt_status check_operands(const checker *c, const grt_plan_step *step, const grt_plan_body *body,
                                 bool *defined)
{
    for (int32_t i = 0; i < step->n_in; i++) {
        int32_t v = step->in[i];
        if (v == -1)
            continue;
        if (!in_body(body, v))
            return check_bad(c, "step '%s': input %d is value %d, but there are %d", step_name(step), (int)i,
                             (int)v, (int)body->n_values);
        if (!defined[v])
            return check_bad(c, "step '%s': input %d, '%s', is used before it is made", step_name(step),
                             (int)i, body->values[v].name);
        if (step->kind != GRT_STEP_KERNEL && body->values[v].role == GRT_VALUE_CONST &&
            is_packed(c->plan, body->values[v].weight))
            return check_bad(c,
                             "step '%s': input %d, '%s', is packed, but only kernels read packed constants",
                             step_name(step), (int)i, body->values[v].name);
        if (step->is_static && !body->values[v].is_static)
            return check_bad(c, "step '%s' is planned before the run, but its input '%s' is not",
                             step_name(step), body->values[v].name);
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        int32_t v = step->out[i];
        if (v == -1)
            continue;
        if (!in_body(body, v))
            return check_bad(c, "step '%s': output %d is value %d, but there are %d", step_name(step), (int)i,
                             (int)v, (int)body->n_values);
        if (defined[v] || body->values[v].role != GRT_VALUE_STEP)
            return check_bad(c, "step '%s': output %d, '%s', is made twice", step_name(step), (int)i,
                             body->values[v].name);
        if (step->is_static != body->values[v].is_static)
            return check_bad(c, "step '%s' is planned %s, but its output '%s' is not", step_name(step),
                             step->is_static ? "before the run" : "when it runs", body->values[v].name);
        defined[v] = true;
    }
    return GRT_OK;
}

static bool present(const grt_plan_step *step, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++)
        if (step->in[i] < 0)
            return false;
    return true;
}

/* The first inputs, so many, that the step cannot do without. */
static int32_t needed_inputs(const grt_plan_step *step, const op_row *row)
{
    if (row->max_in == OP_VARIADIC && !(row->flags & OP_GAPS))
        return step->n_in;
    return row->flags & OP_SHAPED && row->min_in > 1 ? 1 : row->min_in;
}

/* Number of operands of a kernel as its op's row has it; ops of our own without a row are their backend's
 * affair. */
static grt_status check_kernel(const checker *c, const grt_plan_step *step, const op_row *row)
{
    if (step->n_bodies)
        return check_bad(c, "step '%s': a kernel has no bodies", step_name(step));
    if (!row)
        return GRT_OK;
    if (!op_count_fits(step->n_in, row->min_in, row->max_in) ||
        !op_count_fits(step->n_out, row->min_out, row->max_out))
        return check_bad(c, "step '%s': %s has %d inputs and %d outputs, expected %d to %d and %d to %d",
                         step_name(step), step->desc.op, (int)step->n_in, (int)step->n_out, row->min_in,
                         row->max_in, row->min_out, row->max_out);
    const int32_t needed = needed_inputs(step, row);
    if (!present(step, 0, needed))
        return check_bad(c, "step '%s': %s must have its first %d inputs", step_name(step), step->desc.op,
                         needed);
    for (int32_t i = 0; i < row->min_out; i++)
        if (step->out[i] < 0)
            return check_bad(c, "step '%s': %s must have its first %d outputs", step_name(step),
                             step->desc.op, row->min_out);
    return GRT_OK;
}

/* Bytes of a value whose dims are constants; SIZE_MAX if they are not. */
static size_t constant_bytes(const checker *c, const grt_plan_value *v)
{
    grt_tensor t = {.dtype = v->dtype, .rank = v->rank};
    if (v->kind != GRT_KIND_TENSOR || !grt_dtype_in(v->dtype, GRT_SET_PLAIN) || v->rank < 0)
        return SIZE_MAX;
    for (int32_t i = 0; i < v->rank; i++) {
        const grt_dim_expr *e = &c->plan->dims[v->dims[i]];
        t.dims[i] = e->op == GRT_DIM_CONST ? e->value : -1;
    }
    return grt_tensor_bytes(&t);
}

/* Ranges of one value: their sizes are known, they cover it, and kernels may read where they begin. */
static grt_status check_ranges(const checker *c, const grt_plan_step *step)
{
    const grt_plan_value *values = c->plan->bodies[c->body].values;
    const size_t whole = constant_bytes(c, &values[step->in[0]]);
    size_t at = 0;
    for (int32_t i = 0; i < step->n_out; i++) {
        const size_t bytes = constant_bytes(c, &values[step->out[i]]);
        if (at % GRT_VALUE_ALIGNMENT || bytes == SIZE_MAX || !grt_add_size(at, bytes, &at))
            return check_bad(c, "step '%s': output %d is no range that a view can take", step_name(step),
                             (int)i);
    }
    if (at != whole)
        return check_bad(c, "step '%s': the parts have %zu bytes, what they are parts of has %zu",
                         step_name(step), at, whole);
    return GRT_OK;
}

static grt_status check_view(const checker *c, const grt_plan_step *step, const op_row *row)
{
    if (!row || !(row->flags & (OP_VIEW | OP_PARTS)))
        return check_bad(c, "step '%s': %s is no op that can be a view", step_name(step), step->desc.op);
    if (step->n_bodies || step->n_in < 1 || step->n_out < 1 || step->in[0] < 0)
        return check_bad(c, "step '%s': a view has an input and an output", step_name(step));
    const grt_plan_value *values = c->plan->bodies[c->body].values;
    for (int32_t i = 0; i < step->n_out; i++) {
        if (step->out[i] < 0)
            return check_bad(c, "step '%s': a view has all its outputs", step_name(step));
        if (values[step->in[0]].dtype != values[step->out[i]].dtype)
            return check_bad(c, "step '%s': a view keeps its dtype", step_name(step));
    }
    return step->n_out > 1 ? check_ranges(c, step) : GRT_OK;
}

static grt_status check_arity(const checker *c, const grt_plan_step *step, const op_row *row)
{
    const grt_plan_body *body = c->plan->bodies;
    const grt_plan_body *first = step->n_bodies > 0 ? &body[step->bodies[0]] : NULL;
    bool good = false;
    switch (step->kind) {
    case GRT_STEP_KERNEL:
        return check_kernel(c, step, row);
    case GRT_STEP_VIEW:
        return check_view(c, step, row);
    case GRT_STEP_IF:
        good = step->n_bodies == 2 && step->n_in == 1 && present(step, 0, 1);
        for (int32_t i = 0; good && i < 2; i++)
            good = body[step->bodies[i]].n_inputs == 0 && body[step->bodies[i]].n_outputs == step->n_out;
        break;
    case GRT_STEP_LOOP: /* iteration, condition and carried in; condition, carried and scanned out */
        good = step->n_bodies == 1 && step->n_in >= 2 && present(step, 2, step->n_in) &&
               first->n_inputs == step->n_in && first->n_outputs == step->n_out + 1 &&
               step->n_out >= step->n_in - 2;
        break;
    case GRT_STEP_SCAN: {
        int64_t scanned = grt_attr_int(&step->desc, "num_scan_inputs", 0);
        good = step->n_bodies == 1 && present(step, 0, step->n_in) && scanned >= 1 && scanned <= step->n_in &&
               first->n_inputs == step->n_in && first->n_outputs == step->n_out &&
               step->n_out >= step->n_in - scanned;
        break;
    }
    case GRT_STEP_SEQUENCE_MAP:
        good = step->n_bodies == 1 && step->n_in >= 1 && present(step, 0, step->n_in) &&
               first->n_inputs == step->n_in && first->n_outputs == step->n_out;
        break;
    default:
        return check_bad(c, "step '%s': kind %d is unknown", step_name(step), (int)step->kind);
    }
    if (!good)
        return check_bad(c, "step '%s': inputs, outputs and bodies of %s do not fit together",
                         step_name(step), step->desc.op);
    return GRT_OK;
}

/* Take over the bodies of a step: each has one owner. */
static grt_status own_bodies(checker *c, const grt_plan_step *step, const bool *defined)
{
    const grt_plan_body *outer = &c->plan->bodies[c->body];
    for (int32_t i = 0; i < step->n_bodies; i++) {
        int32_t b = step->bodies[i];
        if (b <= 0 || b >= c->plan->n_bodies)
            return check_bad(c, "step '%s': body %d, but there are %d", step_name(step), (int)b,
                             (int)c->plan->n_bodies);
        const grt_plan_body *inner = &c->plan->bodies[b];
        if (inner->parent != c->body || c->owned[b])
            return check_bad(c, "step '%s': body %d belongs to body %d, or has two owners", step_name(step),
                             (int)b, (int)inner->parent);
        c->owned[b] = true;
        for (int32_t k = 0; k < inner->n_captures; k++) {
            int32_t v = inner->captures_outer[k];
            if (!in_body(outer, v) || !defined[v])
                return check_bad(c, "step '%s': body %d captures value %d, which is not made before",
                                 step_name(step), (int)b, (int)v);
        }
    }
    return GRT_OK;
}

static grt_status check_body(checker *c, const grt_plan_body *body)
{
    bool *defined = grt_arena_calloc(c->arena, (size_t)body->n_values + 1, sizeof *defined);
    if (!defined)
        return grt_fail_memory((size_t)body->n_values);
    for (int32_t i = 0; i < body->n_values; i++)
        GRT_TRY(check_value(c, &body->values[i]));
    GRT_TRY(check_entry(c, body, defined));
    for (int32_t i = 0; i < body->n_steps; i++) {
        const grt_plan_step *step = &body->steps[i];
        const op_row *row = op_find(step->desc.domain, step->desc.op);
        GRT_TRY(own_bodies(c, step, defined));
        GRT_TRY(check_operands(c, step, body, defined));
        GRT_TRY(check_attributes(c, step, row));
        GRT_TRY(check_arity(c, step, row));
        if (!isfinite(step->flops))
            return check_bad(c, "step '%s': flops are not finite", step_name(step));
    }
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (!in_body(body, body->outputs[i]) || !defined[body->outputs[i]])
            return check_bad(c, "output %d: value %d is made by no step", (int)i, (int)body->outputs[i]);
    return GRT_OK;
}

/* Parents lead to the main body: one owner each does not exclude a ring. */
static grt_status check_nesting(const checker *c)
{
    for (int32_t b = 1; b < c->plan->n_bodies; b++) {
        int32_t up = b, levels = 0;
        while (up > 0 && levels++ < PLAN_MAX_NESTING)
            up = c->plan->bodies[up].parent;
        if (up != 0)
            return check_bad(c, "body %d '%s' is more than %d levels below the main body, or not below it",
                             (int)b, c->plan->bodies[b].name, PLAN_MAX_NESTING);
    }
    return GRT_OK;
}

static grt_status check_bodies(checker *c)
{
    const grt_plan *plan = c->plan;
    if (plan->n_bodies < 1 || plan->bodies[0].parent != -1)
        return check_bad(c, "there is no main body");
    if (plan->bodies[0].n_captures)
        return check_bad(c, "the main body captures values");
    if (plan->opset < 0 || plan->source_nodes < 0 || plan->parameters < 0 || !isfinite(plan->flops) ||
        plan->flops < 0)
        return check_bad(c, "figures are negative or not finite");
    for (c->body = 0; c->body < plan->n_bodies; c->body++)
        GRT_TRY(check_body(c, &plan->bodies[c->body]));
    c->body = -1;
    for (int32_t b = 1; b < plan->n_bodies; b++)
        if (!c->owned[b])
            return check_bad(c, "body %d '%s' belongs to no step", (int)b, plan->bodies[b].name);
    return check_nesting(c);
}

grt_status plan_check(const char *path, const grt_plan *plan)
{
    checker c = {.path = path, .plan = plan, .body = -1, .arena = grt_arena_create()};
    if (!c.arena)
        return grt_fail_memory(sizeof(void *));
    c.owned = GRT_ARENA_ARRAY(c.arena, bool, plan->n_bodies + 1);
    grt_status status = c.owned ? check_dims(&c) : grt_fail_memory((size_t)plan->n_bodies);
    if (status == GRT_OK)
        status = check_bodies(&c);
    grt_arena_release(c.arena);
    return status;
}
