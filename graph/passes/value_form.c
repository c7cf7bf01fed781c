/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/value_form.h"
#include "graph/passes/cse.h"

#include "graph/passes/batch.h"

#include <string.h>
#include <xxhash.h>

static uint64_t value_form_mix(uint64_t seed, const void *data, size_t size)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

static uint64_t mix_int(uint64_t seed, int64_t value)
{
    return value_form_mix(seed, &value, sizeof value);
}

static uint64_t mix_type(uint64_t seed, const ir_type *type)
{
    seed = mix_int(mix_int(mix_int(seed, type->kind), type->dtype), type->rank);
    return type->rank > 0 ? value_form_mix(seed, type->dims, (size_t)type->rank * sizeof *type->dims) : seed;
}

static form *value_form_add(forms *f, ir_value *value, form_kind kind, uint64_t hash)
{
    value->mark = f->n++;
    form *made = form_of(f, value);
    *made = (form){.kind = kind, .hash = mix_int(hash, kind), .group = -1};
    return made;
}

static void study_opaque(forms *f, ir_value *value)
{
    const ir_type *type = &value->type;
    const bool constant =
        type->data && !value->producer && !value->is_input && grt_dtype_in(type->dtype, GRT_SET_PLAIN);
    if (constant)
        value_form_add(f, value, FORM_CONSTANT, mix_type(0, type));
    else
        value_form_add(f, value, FORM_OPAQUE, value_form_mix(0, &value, sizeof value));
}

/* A value that is cut into many is what branches begin with; one that is cut into a few is a step of a
 * branch.
 */
static void value_form_add_range(forms *f, ir_value *value, int64_t axis, int64_t start, int64_t width)
{
    const ir_node *node = value->producer;
    ir_value *whole = ir_in(node, 0);
    const form *of_whole = form_of(f, whole);
    const bool few = whole->n_uses < FORM_LEAST && node->n_out < FORM_LEAST;
    const bool part = few && (of_whole->kind == FORM_NODE || of_whole->kind == FORM_PART);
    const uint64_t hash = part ? mix_int(of_whole->hash, start) : value_form_mix(0, &whole, sizeof whole);
    form *made = value_form_add(f, value, part ? FORM_PART : FORM_RANGE,
                                mix_int(mix_int(mix_type(hash, &value->type), axis), width));
    made->whole = whole;
    made->axis = (int32_t)axis;
    made->start = start;
    made->width = width;
}

/* The axis of a node that takes ranges along one of known size. */
static bool range_axis(const ir_node *node, int64_t given, int64_t *out_axis, int64_t *out_size)
{
    const ir_value *whole = ir_in(node, 0);
    if (!whole || whole->type.kind != GRT_KIND_TENSOR || whole->type.rank < 1 || !node->out[0] ||
        !grt_dtype_in(whole->type.dtype, GRT_SET_PLAIN))
        return false;
    *out_axis = grt_axis(given, whole->type.rank);
    return *out_axis >= 0 &&
           grt_dim_is_const(node->graph->module->dims, whole->type.dims[*out_axis], out_size);
}

/* The only element of a constant; `absent` if there is no such input. */
static bool one_int(const ir_node *node, int32_t i, int64_t absent, int64_t *out)
{
    const int64_t *values;
    int64_t n;
    *out = absent;
    if (!ir_in(node, i))
        return true;
    if (!ir_const_ints(ir_in(node, i), &values, &n) || n != 1)
        return false;
    *out = values[0];
    return true;
}

/* The size of a result along an axis, if it is known and not 0. */
static bool width_of(const ir_value *value, int64_t axis, int64_t *out_width)
{
    return value && value->type.rank > axis &&
           grt_dim_is_const(value->graph->module->dims, value->type.dims[axis], out_width) && *out_width > 0;
}

static bool study_slice(forms *f, const ir_node *node)
{
    int64_t given, start, step, axis, size, width;
    if (!rewrite_is(node, "Slice") || !ir_in(node, 1) || !one_int(node, 1, 0, &start) ||
        !one_int(node, 3, 0, &given) || !one_int(node, 4, 1, &step) || step != 1 ||
        !range_axis(node, given, &axis, &size) || !width_of(node->out[0], axis, &width))
        return false;
    start = start < 0 ? start + size : start;
    value_form_add_range(f, node->out[0], axis, start < 0 ? 0 : start, width);
    return true;
}

static bool study_gather(forms *f, const ir_node *node)
{
    int64_t start, axis, size;
    if (!rewrite_is(node, "Gather") || !ir_in(node, 1) || !one_int(node, 1, 0, &start) ||
        !range_axis(node, grt_attr_int(&node->desc, "axis", 0), &axis, &size) || start < -size ||
        start >= size || ir_in(node, 1)->type.rank > 1)
        return false;
    value_form_add_range(f, node->out[0], axis, start < 0 ? start + size : start, ir_in(node, 1)->type.rank);
    return true;
}

static bool study_split(forms *f, const ir_node *node)
{
    int64_t axis, size, width, start = 0;
    if (!rewrite_is(node, "Split") || !range_axis(node, grt_attr_int(&node->desc, "axis", 0), &axis, &size))
        return false;
    for (int32_t i = 0; i < node->n_out; i++)
        if (!width_of(node->out[i], axis, &width))
            return false;
    for (int32_t i = 0; i < node->n_out; i++, start += width)
        if (width_of(node->out[i], axis, &width))
            value_form_add_range(f, node->out[i], axis, start, width);
    return true;
}

static uint64_t value_form_hash_node(const forms *f, const ir_node *node)
{
    uint64_t h = value_form_mix(mix_int(0, node->n_in), node->desc.op, strlen(node->desc.op));
    h = cse_hash_attrs(mix_type(h, &node->out[0]->type), node);
    for (int32_t i = 0; i < node->n_in; i++) {
        const ir_value *value = ir_in(node, i);
        const batch_input may_be = batch_input_of(node, i);
        if (value && may_be == BATCH_ANY)
            h = mix_int(h, (int64_t)form_of(f, value)->hash);
        else if (may_be != BATCH_IGNORED)
            h = value_form_mix(h, &value, sizeof value);
    }
    return h;
}

static void study(forms *f, const ir_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (ir_in(node, i) && !ir_in(node, i)->mark)
            study_opaque(f, ir_in(node, i));
    if (study_slice(f, node) || study_gather(f, node) || study_split(f, node))
        return;
    if (batch_knows(node)) {
        value_form_add(f, node->out[0], FORM_NODE, value_form_hash_node(f, node));
        return;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            study_opaque(f, node->out[i]);
}

bool forms_study(forms *f, ir_graph *graph, grt_arena *scratch)
{
    int64_t values = 1;
    IR_FOR_EACH_NODE (node, graph) {
        values += node->n_in + node->n_out;
        for (int32_t i = 0; i < node->n_in; i++)
            if (ir_in(node, i))
                ir_in(node, i)->mark = 0;
        for (int32_t i = 0; i < node->n_out; i++)
            if (node->out[i])
                node->out[i]->mark = 0;
    }
    f->n = 1; /* mark 0: not seen */
    f->table = values <= INT32_MAX ? GRT_ARENA_ARRAY(scratch, form, values) : NULL;
    if (!f->table)
        return false;
    IR_FOR_EACH_NODE (node, graph)
        study(f, node);
    return true;
}
