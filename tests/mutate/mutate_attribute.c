/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: absent, unexpected, of another type, with critical numbers. */
#include "tests/differential/draw.h"
#include "tests/mutate/content.h"
#include "tests/mutate/mutation.h"

#include <string.h>

static const char *const texts[] = {
    "",     "x",      "NOTSET", "SAME_UPPER", "VALID", "reverse", "bidirectional",
    "none", "linear", "%s%n",   "ij,jk->ik",  "...",   "Relu",    "\xff\xfe"};

static Onnx__NodeProto *draw_node(mutation *m, bool with_attributes)
{
    for (int i = 0; i < 8 && m->n_nodes; i++) {
        Onnx__NodeProto *node = m->nodes[mutation_pick(m->n_nodes)];
        if (node->n_attribute || !with_attributes)
            return node;
    }
    return NULL;
}

static void tell(mutation *m, const Onnx__NodeProto *node, const Onnx__AttributeProto *a, const char *change)
{
    mutation_tell(m, "%s: attribute %s %s", node->op_type ? node->op_type : "", a->name ? a->name : "",
                  change);
}

static ProtobufCBinaryData draw_text(void)
{
    const char *s = texts[mutation_pick(sizeof texts / sizeof *texts)];
    return (ProtobufCBinaryData){.len = strlen(s), .data = (uint8_t *)(uintptr_t)s};
}

bool mutate_attribute_drop(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m, true);
    if (!node)
        return false;
    const size_t at = mutation_pick(node->n_attribute);
    tell(m, node, node->attribute[at], "dropped");
    MUTATION_REMOVE(node->attribute, node->n_attribute, at);
    return true;
}

static Onnx__AttributeProto *copy_of(mutation *m, const Onnx__AttributeProto *a)
{
    return (Onnx__AttributeProto *)pool_copy(m->arena, &a->base);
}

/* Values of a scalar or of one element; false for types without numbers. */
static bool change_number(mutation *m, Onnx__AttributeProto *a)
{
    switch (a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        a->i = telling_int();
        mutation_tell(m, " = %lld", (long long)a->i);
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        a->f = telling_float();
        mutation_tell(m, " = %g", (double)a->f);
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        a->s = draw_text();
        mutation_tell(m, " = '%s'", (const char *)a->s.data);
        return true;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        if (a->n_ints) {
            a->ints = grt_arena_memdup(m->arena, a->ints, a->n_ints * sizeof *a->ints);
            const size_t at = mutation_pick(a->n_ints);
            a->ints[at] = telling_int();
            mutation_tell(m, "[%zu] = %lld", at, (long long)a->ints[at]);
        }
        return a->n_ints > 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        if (a->n_floats) {
            a->floats = grt_arena_memdup(m->arena, a->floats, a->n_floats * sizeof *a->floats);
            a->floats[mutation_pick(a->n_floats)] = telling_float();
        }
        return a->n_floats > 0;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        if (a->n_strings) {
            a->strings = grt_arena_memdup(m->arena, a->strings, a->n_strings * sizeof *a->strings);
            a->strings[mutation_pick(a->n_strings)] = draw_text();
        }
        return a->n_strings > 0;
    default:
        return false;
    }
}

bool mutate_attribute_number(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m, true);
    if (!node)
        return false;
    Onnx__AttributeProto *a = node->attribute[mutation_pick(node->n_attribute)];
    const size_t length = strlen(m->what);
    tell(m, node, a, "changed");
    if (change_number(m, a))
        return true;
    m->what[length] = 0;
    return false;
}

/* One that models of this op have, at times with another value: what is left out is seldom tried otherwise.
 */
bool mutate_attribute_add(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m, false);
    if (!node || !node->op_type)
        return false;
    const size_t first = mutation_pick(m->pool->n_nodes);
    for (size_t i = 0; i < m->pool->n_nodes; i++) {
        const Onnx__NodeProto *from = m->pool->nodes[(first + i) % m->pool->n_nodes];
        if (!from->n_attribute || !from->op_type || strcmp(from->op_type, node->op_type))
            continue;
        Onnx__AttributeProto *a = copy_of(m, from->attribute[mutation_pick(from->n_attribute)]);
        for (size_t k = node->n_attribute; k-- > 0;)
            if (a->name && node->attribute[k]->name && !strcmp(a->name, node->attribute[k]->name))
                MUTATION_REMOVE(node->attribute, node->n_attribute, k);
        tell(m, node, a, "added");
        if (draw(0, 2))
            change_number(m, a);
        MUTATION_APPEND(m, node->attribute, node->n_attribute, a);
        return true;
    }
    return false;
}

/* The name stays; the type is any, and has a value of it or none. */
bool mutate_attribute_retype(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m, true);
    if (!node)
        return false;
    Onnx__AttributeProto *a = node->attribute[mutation_pick(node->n_attribute)];
    tell(m, node, a, "retyped");
    a->has_type = true;
    a->type = (Onnx__AttributeProto__AttributeType)draw(0, 14);
    mutation_tell(m, " to %d", (int)a->type);
    if (draw(0, 1)) {
        a->has_i = a->has_f = a->has_s = true;
        a->s = draw_text();
        MUTATION_APPEND(m, a->ints, a->n_ints, telling_int());
        MUTATION_APPEND(m, a->floats, a->n_floats, telling_float());
        MUTATION_APPEND(m, a->strings, a->n_strings, draw_text());
        change_number(m, a);
    }
    return true;
}

/* Too short, too long. */
bool mutate_attribute_list(mutation *m)
{
    Onnx__NodeProto *node = draw_node(m, true);
    if (!node)
        return false;
    Onnx__AttributeProto *a = node->attribute[mutation_pick(node->n_attribute)];
    const bool longer = draw(0, 1);
    if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS && longer)
        MUTATION_APPEND(m, a->ints, a->n_ints, draw(0, 1) ? draw(-1, 4) : telling_int());
    else if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS && longer)
        MUTATION_APPEND(m, a->floats, a->n_floats, telling_float());
    else if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS && longer)
        MUTATION_APPEND(m, a->strings, a->n_strings, draw_text());
    else if (a->n_ints)
        a->n_ints = mutation_pick(a->n_ints);
    else if (a->n_floats)
        a->n_floats = mutation_pick(a->n_floats);
    else if (a->n_strings)
        a->n_strings = mutation_pick(a->n_strings);
    else
        return false;
    tell(m, node, a, longer ? "longer" : "shorter");
    return true;
}
