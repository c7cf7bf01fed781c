/* SPDX-License-Identifier: Apache-2.0 */
/* Equal parts of a value that are all moved alike are moved at once: one Transpose puts the parts one behind
 * the other, and a Split gives each a range of its result, which costs nothing. So queries, keys and values
 * that are cut out of the channels of an image, heads within them, take one kernel instead of a Slice and a
 * Transpose each. Composed as index maps, parts are known by where they lie and not by the nodes that cut
 * them. */
#include "graph/ir/constant.h"
#include "graph/ir/view.h"
#include "graph/passes/permutation.h"
#include "graph/passes/rewrite.h"
#include "src/base/grow.h"

#include <stdlib.h>

enum { MOST_PARTS = 64, MOST_DIMS = 8, MOST_STEPS = 24 };

/* A value that is a part of another. */
typedef struct part {
    ir_value *value;
    index_map map;
    int64_t next; /* of the same source; -1: none */
    bool done;
} part;

typedef struct part_list {
    pass_context *context;
    part *parts;
    int64_t n, capacity;
} part_list;

static bool takes_range(const ir_node *node)
{
    return rewrite_is(node, "Slice") || (rewrite_is(node, "Gather") && ir_in(node, 1)->type.data);
}

static bool equal_parts_is_move(const ir_node *node)
{
    return rewrite_has(node, OP_VIEW | OP_PARTS) || rewrite_is(node, "Transpose") || takes_range(node);
}

/* True if something other than a move reads the value. */
static bool equal_parts_ends_chain(const ir_value *value)
{
    for (const ir_use *use = value->uses; use; use = use->next)
        if (!use->node || use->index != 0 || !equal_parts_is_move(use->node))
            return true;
    return false;
}

/* Kernels that only this value wants, on the way from its source. */
static int32_t own_kernels(const ir_value *value, const ir_value *source)
{
    int32_t n = 0;
    for (int32_t i = 0; value != source && value->producer && value->producer->n_out == 1 && i < MOST_STEPS;
         i++) {
        n += !ir_is_view(value->producer);
        value = ir_in(value->producer, 0);
        if (value->n_uses > 1)
            break;
    }
    return n;
}

static grt_status equal_parts_add(part_list *list, ir_value *value)
{
    part found = {.value = value};
    if (!index_map_of(value, &found.map, NULL) || found.map.source == value ||
        found.map.source->graph != value->graph || found.map.source->type.data)
        return GRT_OK;
    if (!GRT_GROW(list->parts, list->n, list->capacity))
        return grt_fail_memory(2 * (size_t)list->capacity * sizeof *list->parts);
    found.map.n = index_parts_join(value->graph->module->dims, found.map.parts, found.map.n);
    found.next = found.map.source->mark - 1;
    list->parts[list->n++] = found;
    found.map.source->mark = list->n;
    return GRT_OK;
}

static bool moved_alike(const part *a, const part *b)
{
    if (a->map.n != b->map.n)
        return false;
    for (int32_t i = 0; i < a->map.n; i++)
        if (a->map.parts[i].size != b->map.parts[i].size || a->map.parts[i].stride != b->map.parts[i].stride)
            return false;
    return true;
}

/* How many parts of its size the source has; 0 if that is not known or they do not begin where kernels may
 * read.
 */
static int64_t count_equal_parts(grt_dims *dims, const part *first)
{
    grt_dim all = grt_dim_const(dims, 1), one = all, ratio;
    const ir_type *source = &first->map.source->type;
    int64_t n, elements;
    for (int32_t i = 0; i < source->rank; i++)
        all = grt_dim_mul(dims, all, source->dims[i]);
    for (int32_t i = 0; i < first->map.n; i++)
        one = grt_dim_mul(dims, one, first->map.parts[i].size);
    if (!index_map_divide(dims, all, one, &ratio) || !grt_dim_is_const(dims, ratio, &n) || n < 2 ||
        n > MOST_PARTS || !grt_dim_is_const(dims, one, &elements) ||
        elements * (int64_t)grt_dtype_size(source->dtype) % GRT_VALUE_ALIGNMENT)
        return 0;
    return n;
}

/* A family: the values that are part 0, 1, ... of the source, each of which some value is. */
typedef struct parts_family {
    int64_t n;
    grt_dim step; /* from one part to the next */
    int32_t kernels;
} parts_family;

/* The place of a part in the family whose parts are `step` apart; -1 if it has none. */
static int64_t place_in_family(grt_dims *dims, const part *p, grt_dim step, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (p->map.offset == grt_dim_mulc(dims, step, k))
            return k;
    return -1;
}

/* The smallest step that the list allows: the offset of the part that comes next after `first`. */
static bool find_step(const part_list *list, grt_dims *dims, const part *first, grt_dim *out_step)
{
    int64_t least = 0;
    for (int64_t i = first->map.source->mark - 1; i >= 0; i = list->parts[i].next) {
        int64_t offset;
        if (moved_alike(first, &list->parts[i]) &&
            grt_dim_is_const(dims, list->parts[i].map.offset, &offset) && offset > 0 &&
            (!least || offset < least))
            least = offset;
    }
    *out_step = grt_dim_const(dims, least);
    return least > 0;
}

static bool find_parts_family(const part_list *list, grt_dims *dims, const part *first, parts_family *family)
{
    bool has[MOST_PARTS] = {false};
    int64_t missing = family->n = count_equal_parts(dims, first);
    if (!missing || !find_step(list, dims, first, &family->step))
        return false;
    family->kernels = 0;
    for (int64_t i = first->map.source->mark - 1; i >= 0; i = list->parts[i].next) {
        const part *p = &list->parts[i];
        const int64_t k =
            !p->done && moved_alike(first, p) ? place_in_family(dims, p, family->step, family->n) : -1;
        if (k < 0)
            continue;
        missing -= !has[k];
        has[k] = true;
        family->kernels += own_kernels(p->value, p->map.source);
    }
    return !missing;
}

/* The map of all parts, one behind the other. */
static bool whole_map(grt_dims *dims, const part *first, const parts_family *family, index_map *out)
{
    *out = first->map;
    if (out->n + 1 > MOST_DIMS || first->value->type.rank + 1 > GRT_MAX_RANK)
        return false;
    for (int32_t i = out->n++; i > 0; i--)
        out->parts[i] = out->parts[i - 1];
    out->parts[0] = (index_part){grt_dim_const(dims, family->n), family->step, 0};
    return true;
}

static ir_node *make_parts_split(ir_node *before, ir_value *whole, int64_t n)
{
    int64_t sizes[MOST_PARTS];
    for (int64_t i = 0; i < n; i++)
        sizes[i] = 1;
    ir_value *lengths = ir_constant_ints(before->graph, before->desc.name, sizes, n);
    ir_node *split = lengths ? ir_node_create(before->graph, before, "", "Split", before->desc.name, 2,
                                              (ir_value *[]){whole, lengths}, (int32_t)n)
                             : NULL;
    if (!split)
        return NULL;
    ir_attr_set_int(split, "axis", 0);
    return op_infer_node(split) == GRT_OK && ir_is_view(split) ? split : NULL;
}

static ir_node *make_parts(ir_node *before, const part *first, const parts_family *family)
{
    grt_dims *dims = before->graph->module->dims;
    const ir_type *type = &first->value->type;
    index_map map;
    permutation p;
    grt_dim to[GRT_MAX_RANK];
    if (!whole_map(dims, first, family, &map) || !permutation_of(dims, &map, &p) ||
        family->kernels < (p.n > 1 ? 2 : 1))
        return NULL;
    to[0] = grt_dim_const(dims, family->n);
    for (int32_t i = 0; i < type->rank; i++)
        to[i + 1] = type->dims[i];
    ir_value *whole = permutation_apply(before, map.source, &p, type->rank + 1, to);
    return whole ? make_parts_split(before, whole, family->n) : NULL;
}

static void equal_parts_look(part_list *list, const part *first)
{
    grt_dims *dims = first->value->graph->module->dims;
    ir_value *source = first->map.source;
    ir_node *before = source->producer ? source->producer->next : first->value->graph->first;
    parts_family family;
    if (!grt_dim_equals(dims, first->map.offset, 0) || !before ||
        !find_parts_family(list, dims, first, &family))
        return;
    ir_node *split = make_parts(before, first, &family); /* without users it is dead */
    for (int64_t i = source->mark - 1; split && i >= 0; i = list->parts[i].next) {
        part *p = &list->parts[i];
        const int64_t k =
            !p->done && moved_alike(first, p) ? place_in_family(dims, p, family.step, family.n) : -1;
        ir_value *x =
            k < 0 ? NULL
                  : rewrite_reshaped(split->next, split->out[k], p->value->type.rank, p->value->type.dims);
        p->done |= x && rewrite_replace(p->value, x);
        list->context->changed += x && p->done;
    }
}

static grt_status equal_parts_visit(pass_context *context, ir_graph *graph)
{
    part_list list = {.context = context};
    grt_status status = GRT_OK;
    ir_clear_marks(graph);
    IR_FOR_EACH_NODE (node, graph)
        for (int32_t i = 0; i < node->n_out && status == GRT_OK && equal_parts_is_move(node); i++)
            if (node->out[i] && equal_parts_ends_chain(node->out[i]))
                status = equal_parts_add(&list, node->out[i]);
    for (int64_t i = 0; i < list.n && status == GRT_OK; i++)
        if (!list.parts[i].done)
            equal_parts_look(&list, &list.parts[i]);
    free(list.parts);
    return status;
}

grt_status pass_equal_parts(pass_context *context)
{
    return rewrite_each_graph(context, equal_parts_visit);
}
