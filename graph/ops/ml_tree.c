/* SPDX-License-Identifier: Apache-2.0 */
/* ai.onnx.ml's TreeEnsembleClassifier and TreeEnsembleRegressor, which list nodes by tree and number, become
 * TreeEnsemble, which lists them by index.
 *
 * A leaf has one weight there and may have several here, one for each class. Trees with such leaves are
 * repeated, each copy with the next weight of every leaf; sums over all trees stay what they were. */
#include "graph/ops/ml_parts.h"

#include <stdlib.h>
#include <string.h>

#define TREE_ATTRS                                                                                          \
    {"aggregate_function", GRT_ATTR_STRING, false}, {"base_values", GRT_ATTR_FLOATS, false},                \
        {"base_values_as_tensor", GRT_ATTR_TENSOR, false}, {"nodes_falsenodeids", GRT_ATTR_INTS, true},     \
        {"nodes_featureids", GRT_ATTR_INTS, true}, {"nodes_hitrates", GRT_ATTR_FLOATS, false},              \
        {"nodes_hitrates_as_tensor", GRT_ATTR_TENSOR, false},                                               \
        {"nodes_missing_value_tracks_true", GRT_ATTR_INTS, false}, {"nodes_modes", GRT_ATTR_STRINGS, true}, \
        {"nodes_nodeids", GRT_ATTR_INTS, true}, {"nodes_treeids", GRT_ATTR_INTS, true},                     \
        {"nodes_truenodeids", GRT_ATTR_INTS, true}, {"nodes_values", GRT_ATTR_FLOATS, false},               \
        {"nodes_values_as_tensor", GRT_ATTR_TENSOR, false},                                                 \
    {                                                                                                       \
        "post_transform", GRT_ATTR_STRING, false                                                            \
    }

static const op_attr classifier_attrs[] = {
    TREE_ATTRS,
    {"class_ids", GRT_ATTR_INTS, true},
    {"class_nodeids", GRT_ATTR_INTS, true},
    {"class_treeids", GRT_ATTR_INTS, true},
    {"class_weights", GRT_ATTR_FLOATS, false},
    {"class_weights_as_tensor", GRT_ATTR_TENSOR, false},
    {"classlabels_int64s", GRT_ATTR_INTS, false},
    {"classlabels_strings", GRT_ATTR_STRINGS, false},
    {0},
};
static const op_attr regressor_attrs[] = {
    TREE_ATTRS,
    {"n_targets", GRT_ATTR_INT, false},
    {"target_ids", GRT_ATTR_INTS, true},
    {"target_nodeids", GRT_ATTR_INTS, true},
    {"target_treeids", GRT_ATTR_INTS, true},
    {"target_weights", GRT_ATTR_FLOATS, false},
    {"target_weights_as_tensor", GRT_ATTR_TENSOR, false},
    {0},
};

/* ---- reading ---- */

/* Numbers that are a list of floats or a tensor. */
typedef struct numbers {
    const float *floats;
    const grt_tensor *tensor;
    int64_t n;
} numbers;

static numbers numbers_of(const grt_op_desc *desc, const char *floats, const char *tensor)
{
    size_t n;
    numbers found = {.floats = grt_attr_floats(desc, floats, &n), .tensor = grt_attr_tensor(desc, tensor)};
    found.n = found.tensor ? grt_tensor_elements(found.tensor) : (int64_t)n;
    if (found.tensor && found.tensor->dtype != GRT_DTYPE_FLOAT && found.tensor->dtype != GRT_DTYPE_DOUBLE)
        found.n = -1;
    return found;
}

static double number_at(const numbers *from, int64_t i)
{
    return from->tensor ? grt_tensor_double(from->tensor, i) : (double)from->floats[i];
}

/* A node of a tree, or a weight of one of its leaves, by tree and number. */
typedef struct place {
    int64_t tree, node, index;
} place;

static int ml_tree_by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

typedef struct ensemble {
    const int64_t *trees, *ids, *features, *on_true, *on_false, *missing; /* per node */
    const grt_string *modes;
    numbers splits, weights, base;
    const int64_t *targets;     /* per weight */
    place *nodes, *leaf_places; /* sorted */
    int64_t n, n_weights, n_targets;
} ensemble;

static const int64_t *ints_of(const grt_op_desc *desc, const char *name, int64_t n, bool *ok)
{
    size_t found;
    const int64_t *v = grt_attr_ints(desc, name, &found);
    *ok = *ok && (!v || (int64_t)found == n);
    return v;
}

static bool sort_places(ensemble *e, ir_node *node, const int64_t *weight_trees, const int64_t *weight_nodes)
{
    grt_arena *arena = node->graph->module->arena;
    e->nodes = GRT_ARENA_ARRAY(arena, place, e->n + 1);
    e->leaf_places = GRT_ARENA_ARRAY(arena, place, e->n_weights + 1);
    if (!e->nodes || !e->leaf_places)
        return false;
    for (int64_t i = 0; i < e->n; i++)
        e->nodes[i] = (place){e->trees[i], e->ids[i], i};
    for (int64_t i = 0; i < e->n_weights; i++)
        e->leaf_places[i] = (place){weight_trees[i], weight_nodes[i], i};
    qsort(e->nodes, (size_t)e->n, sizeof *e->nodes, ml_tree_by_place);
    qsort(e->leaf_places, (size_t)e->n_weights, sizeof *e->leaf_places, ml_tree_by_place);
    return true;
}

static grt_status read_ensemble(ir_node *node, bool classifier, ensemble *e)
{
    const grt_op_desc *desc = &node->desc;
    size_t n, n_modes, n_weights;
    bool ok = true;
    *e = (ensemble){.trees = grt_attr_ints(desc, "nodes_treeids", &n)};
    e->n = (int64_t)n;
    e->ids = ints_of(desc, "nodes_nodeids", e->n, &ok);
    e->features = ints_of(desc, "nodes_featureids", e->n, &ok);
    e->on_true = ints_of(desc, "nodes_truenodeids", e->n, &ok);
    e->on_false = ints_of(desc, "nodes_falsenodeids", e->n, &ok);
    e->missing = ints_of(desc, "nodes_missing_value_tracks_true", e->n, &ok);
    e->modes = grt_attr_strings(desc, "nodes_modes", &n_modes);
    e->splits = numbers_of(desc, "nodes_values", "nodes_values_as_tensor");
    e->base = numbers_of(desc, "base_values", "base_values_as_tensor");
    e->targets = grt_attr_ints(desc, classifier ? "class_ids" : "target_ids", &n_weights);
    e->n_weights = (int64_t)n_weights;
    const int64_t *weight_trees =
                      ints_of(desc, classifier ? "class_treeids" : "target_treeids", e->n_weights, &ok),
                  *weight_nodes =
                      ints_of(desc, classifier ? "class_nodeids" : "target_nodeids", e->n_weights, &ok);
    e->weights = classifier ? numbers_of(desc, "class_weights", "class_weights_as_tensor")
                            : numbers_of(desc, "target_weights", "target_weights_as_tensor");
    e->n_targets = classifier ? ml_labels_of(desc).n : grt_attr_int(desc, "n_targets", 1);
    if (!ok || (int64_t)n_modes != e->n || e->splits.n != e->n || e->weights.n != e->n_weights || !e->n ||
        !e->n_weights)
        return grt_fail_op(
            desc, GRT_STATUS_INVALID_MODEL,
            "the lists of %lld nodes and %lld weights of leaves differ in length, or are empty",
            (long long)e->n, (long long)e->n_weights);
    for (int64_t i = 0; i < e->n_weights; i++)
        if (e->targets[i] < 0 || e->targets[i] >= e->n_targets)
            return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                               "weight %lld is for target %lld; there are %lld", (long long)i,
                               (long long)e->targets[i], (long long)e->n_targets);
    return sort_places(e, node, weight_trees, weight_nodes) ? GRT_OK : grt_fail_memory(0);
}

/* ---- writing ---- */

enum { LEAF = -1, UNKNOWN_MODE = -2 };

static int ml_tree_mode_of(const grt_string *mode)
{
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
    if (mode->size == 4 && !memcmp(mode->data, "LEAF", 4))
        return LEAF;
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
        if (strlen(modes[i]) == mode->size && !memcmp(modes[i], mode->data, mode->size))
            return i;
    return UNKNOWN_MODE;
}

/* The lists of a TreeEnsemble while they are made. */
typedef struct writer {
    const ensemble *e;
    int64_t *feature, *child[2], *is_leaf[2], *missing, *roots, *leaf_target;
    uint8_t *mode;
    double *split, *leaf_weight;
    int64_t n_nodes, n_leaves, n_roots;
    int64_t *number; /* of a tree's inner node, by its position in `nodes` */
} writer;

/* The first of n sorted places that is not before this node of this tree; n if all are. */
static int64_t first_place(const place *places, int64_t n, int64_t tree, int64_t node)
{
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const place *p = &places[middle];
        if (p->tree < tree || (p->tree == tree && p->node < node))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t find_node(const ensemble *e, int64_t tree, int64_t node)
{
    const int64_t at = first_place(e->nodes, e->n, tree, node);
    return at < e->n && e->nodes[at].tree == tree && e->nodes[at].node == node ? at : -1;
}

/* Weights of a leaf: *out_first and how many. */
static int64_t ml_tree_weights_of(const ensemble *e, const place *leaf, int64_t *out_first)
{
    const int64_t first = first_place(e->leaf_places, e->n_weights, leaf->tree, leaf->node);
    int64_t n = 0;
    *out_first = first;
    while (first + n < e->n_weights && e->leaf_places[first + n].tree == leaf->tree &&
           e->leaf_places[first + n].node == leaf->node)
        n++;
    return n;
}

/* A leaf with the weight of this copy of the tree, or with none. */
static int64_t add_leaf(writer *w, const place *leaf, int64_t copy)
{
    int64_t first;
    const bool has = ml_tree_weights_of(w->e, leaf, &first) > copy;
    const int64_t index = has ? w->e->leaf_places[first + copy].index : 0;
    w->leaf_target[w->n_leaves] = has ? w->e->targets[index] : 0;
    w->leaf_weight[w->n_leaves] = has ? number_at(&w->e->weights, index) : 0;
    return w->n_leaves++;
}

static bool add_child(writer *w, int64_t from, int side, const place *parent, int64_t node, int64_t copy)
{
    const int64_t at = find_node(w->e, parent->tree, node);
    if (at < 0)
        return false;
    const bool leaf = ml_tree_mode_of(&w->e->modes[w->e->nodes[at].index]) == LEAF;
    w->is_leaf[side][from] = leaf;
    w->child[side][from] = leaf ? add_leaf(w, &w->e->nodes[at], copy) : w->number[at];
    return true;
}

/* A tree that is a leaf: both ways lead to it. */
static void add_stump(writer *w, const place *leaf, int64_t copy)
{
    const int64_t at = w->n_nodes++;
    for (int side = 0; side < 2; side++) {
        w->is_leaf[side][at] = 1;
        w->child[side][at] = add_leaf(w, leaf, copy);
    }
    w->roots[w->n_roots++] = at;
}

/* nodes[from..to) are one tree; its root is the first node in the order of the file. */
static bool add_tree(writer *w, int64_t from, int64_t to, int64_t copy)
{
    const ensemble *e = w->e;
    int64_t root = from;
    for (int64_t i = from; i < to; i++) {
        root = e->nodes[i].index < e->nodes[root].index ? i : root;
        if (ml_tree_mode_of(&e->modes[e->nodes[i].index]) != LEAF)
            w->number[i] = w->n_nodes++;
    }
    if (ml_tree_mode_of(&e->modes[e->nodes[root].index]) == LEAF) {
        add_stump(w, &e->nodes[root], copy);
        return true;
    }
    w->roots[w->n_roots++] = w->number[root];
    for (int64_t i = from; i < to; i++) {
        const int64_t index = e->nodes[i].index, at = w->number[i];
        const int mode = ml_tree_mode_of(&e->modes[index]);
        if (mode == LEAF)
            continue;
        if (mode == UNKNOWN_MODE || !add_child(w, at, 0, &e->nodes[i], e->on_false[index], copy) ||
            !add_child(w, at, 1, &e->nodes[i], e->on_true[index], copy))
            return false;
        w->mode[at] = (uint8_t)mode;
        w->feature[at] = e->features[index];
        w->split[at] = number_at(&e->splits, index);
        w->missing[at] = e->missing ? e->missing[index] : 0;
    }
    return true;
}

/* The most weights that a leaf among nodes[from..to) has; at least 1. */
static int64_t copies_of(const ensemble *e, int64_t from, int64_t to)
{
    int64_t most = 1, first;
    for (int64_t i = from; i < to; i++) {
        const int64_t n = ml_tree_weights_of(e, &e->nodes[i], &first);
        most = n > most ? n : most;
    }
    return most;
}

/* True if each leaf has a weight for each target. Then copies add none of their own, and the least and the
 * greatest of a target are those of its weights. */
static bool leaves_are_full(const ensemble *e, int64_t n_targets)
{
    int64_t first;
    for (int64_t i = 0; i < e->n; i++) {
        if (ml_tree_mode_of(&e->modes[e->nodes[i].index]) != LEAF)
            continue;
        if (ml_tree_weights_of(e, &e->nodes[i], &first) != n_targets)
            return false;
        for (int64_t k = 1; k < n_targets; k++)
            for (int64_t before = 0; before < k; before++)
                if (e->targets[e->leaf_places[first + k].index] ==
                    e->targets[e->leaf_places[first + before].index])
                    return false;
    }
    return true;
}

static int64_t tree_end(const ensemble *e, int64_t from)
{
    int64_t to = from;
    while (to < e->n && e->nodes[to].tree == e->nodes[from].tree)
        to++;
    return to;
}

static bool ml_tree_allocate(writer *w, grt_arena *arena, int64_t n)
{
    for (int side = 0; side < 2; side++) {
        w->child[side] = GRT_ARENA_ARRAY(arena, int64_t, n);
        w->is_leaf[side] = GRT_ARENA_ARRAY(arena, int64_t, n);
    }
    w->feature = GRT_ARENA_ARRAY(arena, int64_t, n);
    w->missing = GRT_ARENA_ARRAY(arena, int64_t, n);
    w->roots = GRT_ARENA_ARRAY(arena, int64_t, n);
    w->mode = GRT_ARENA_ARRAY(arena, uint8_t, n);
    w->split = GRT_ARENA_ARRAY(arena, double, n);
    w->leaf_target = GRT_ARENA_ARRAY(arena, int64_t, 2 * n);
    w->leaf_weight = GRT_ARENA_ARRAY(arena, double, 2 * n);
    w->number = GRT_ARENA_ARRAY(arena, int64_t, w->e->n + 1);
    return w->child[0] && w->child[1] && w->is_leaf[0] && w->is_leaf[1] && w->feature && w->missing &&
           w->roots && w->mode && w->split && w->leaf_target && w->leaf_weight && w->number;
}

static void set_tensor(ir_node *node, const char *name, grt_dtype dtype, int64_t n, const double *data)
{
    grt_arena *arena = node->graph->module->arena;
    grt_tensor t = {.dtype = dtype, .rank = 1, .dims = {n}, .data = (void *)data};
    if (dtype == GRT_DTYPE_FLOAT) {
        float *narrow = GRT_ARENA_ARRAY(arena, float, n + 1);
        for (int64_t i = 0; narrow && i < n; i++)
            narrow[i] = (float)data[i];
        t.data = narrow;
    }
    grt_attr attr = {.name = name, .kind = GRT_ATTR_TENSOR};
    attr.t = grt_arena_memdup(arena, &t, sizeof t);
    ir_attr_set(node, attr);
}

static ir_value *ml_tree_write(ir_node *node, const writer *w, ir_value *x, int64_t n_targets,
                               int64_t aggregate)
{
    const grt_dtype dtype = x->type.dtype == GRT_DTYPE_DOUBLE ? GRT_DTYPE_DOUBLE : GRT_DTYPE_FLOAT;
    grt_arena *arena = node->graph->module->arena;
    x = ml_cast(node, x, dtype);
    ir_node *trees =
        x ? ir_node_create(node->graph, node, "ai.onnx.ml", "TreeEnsemble", node->desc.name, 1, &x, 1) : NULL;
    if (!trees)
        return NULL;
    grt_tensor modes = {.dtype = GRT_DTYPE_UINT8, .rank = 1, .dims = {w->n_nodes}, .data = w->mode};
    grt_attr attr = {.name = "nodes_modes", .kind = GRT_ATTR_TENSOR};
    attr.t = grt_arena_memdup(arena, &modes, sizeof modes);
    ir_attr_set(trees, attr);
    const size_t n = (size_t)w->n_nodes;
    ir_attr_set_int(trees, "aggregate_function", aggregate);
    ir_attr_set_int(trees, "n_targets", n_targets);
    ir_attr_set_ints(trees, "nodes_featureids", w->feature, n);
    ir_attr_set_ints(trees, "nodes_falsenodeids", w->child[0], n);
    ir_attr_set_ints(trees, "nodes_truenodeids", w->child[1], n);
    ir_attr_set_ints(trees, "nodes_falseleafs", w->is_leaf[0], n);
    ir_attr_set_ints(trees, "nodes_trueleafs", w->is_leaf[1], n);
    ir_attr_set_ints(trees, "nodes_missing_value_tracks_true", w->missing, n);
    ir_attr_set_ints(trees, "tree_roots", w->roots, (size_t)w->n_roots);
    ir_attr_set_ints(trees, "leaf_targetids", w->leaf_target, (size_t)w->n_leaves);
    set_tensor(trees, "nodes_splits", dtype, w->n_nodes, w->split);
    set_tensor(trees, "leaf_weights", dtype, w->n_leaves, w->leaf_weight);
    ir_value *y = trees->out[0];
    if (dtype == GRT_DTYPE_FLOAT)
        return y;
    y = ml_node(node, "Cast", 1, &y);
    if (y)
        ir_attr_set_int(y->producer, "to", GRT_DTYPE_FLOAT);
    return y;
}

static int64_t aggregate_of(const grt_op_desc *desc)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *name = grt_attr_string(desc, "aggregate_function", "SUM");
    for (int64_t i = 0; i < 4; i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}

/* Attributes that speak of scores. */
static grt_status check_scores(const grt_op_desc *desc, const ensemble *e, int64_t n_scores)
{
    if (e->base.n < 0)
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                           "base_values_as_tensor must be float32 or float64");
    if (e->base.n && e->base.n != n_scores)
        return grt_fail_op(
            desc, GRT_STATUS_INVALID_MODEL,
            "base_values has %lld numbers; there are %lld scores, so it must have as many, or none",
            (long long)e->base.n, (long long)n_scores);
    return ml_check_transform(desc);
}

/* Scores [N, n_targets], base values included. */
static grt_status scores_of(ir_node *node, const ensemble *e, int64_t n_targets, ir_value **out)
{
    enum { AVERAGE, SUM, MOST_NODES = 1 << 26 };
    int64_t aggregate = aggregate_of(&node->desc), total = 0, trees = 0, most = 1;
    for (int64_t from = 0, to; from < e->n; from = to, trees++) {
        to = tree_end(e, from);
        const int64_t copies = copies_of(e, from, to);
        most = copies > most ? copies : most;
        if (copies > MOST_NODES / (to - from) || (total += copies * (to - from)) > MOST_NODES)
            return grt_fail_op(
                &node->desc, GRT_STATUS_UNSUPPORTED,
                "its trees have more than %d nodes, each counted as often as its leaves have weights",
                MOST_NODES);
    }
    if (aggregate > SUM && (n_targets > 64 || !leaves_are_full(e, n_targets)))
        return grt_fail_op(&node->desc, GRT_STATUS_UNSUPPORTED,
                           "aggregate_function is %s, and not every leaf has a weight for each target",
                           grt_attr_string(&node->desc, "aggregate_function", ""));
    if (aggregate < 0)
        return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                           "attribute aggregate_function is '%s'; it must be AVERAGE, SUM, MIN or MAX",
                           grt_attr_string(&node->desc, "aggregate_function", ""));
    writer w = {.e = e};
    if (!ml_tree_allocate(&w, node->graph->module->arena, total + trees * most))
        return grt_fail_memory(0);
    for (int64_t from = 0, to; from < e->n; from = to) {
        to = tree_end(e, from);
        const int64_t copies = copies_of(e, from, to);
        for (int64_t copy = 0; copy < copies; copy++)
            if (!add_tree(&w, from, to, copy))
                return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                                   "tree %lld has a node of unknown mode, or one without a child",
                                   (long long)e->nodes[from].tree);
    }
    if (aggregate == AVERAGE) /* over trees, not their copies */
        for (int64_t i = 0; i < w.n_leaves; i++)
            w.leaf_weight[i] /= (double)trees;
    ir_value *y = ml_tree_write(node, &w, ir_in(node, 0), n_targets, aggregate == AVERAGE ? SUM : aggregate);
    if (y && e->base.n) {
        ir_value *base = ml_floats(node->graph, GRT_DTYPE_FLOAT, 1, &e->base.n, NULL);
        for (int64_t i = 0; base && i < e->base.n; i++)
            ((float *)base->type.data->data)[i] = (float)number_at(&e->base, i);
        y = ml_node(node, "Add", 2, (ir_value *[]){y, base});
    }
    *out = y;
    return y ? GRT_OK : grt_fail_memory(0);
}

/* ---- rows ---- */

static grt_status ml_tree_infer_regressor(infer *inf)
{
    return ml_infer_targets(inf, GRT_DTYPE_FLOAT);
}

static grt_status ml_tree_expand_regressor(ir_node *node, bool *out_done)
{
    ensemble e;
    ir_value *y;
    GRT_TRY(read_ensemble(node, false, &e));
    GRT_TRY(check_scores(&node->desc, &e, e.n_targets));
    GRT_TRY(scores_of(node, &e, e.n_targets, &y));
    y = ml_transform(node, y, grt_attr_string(&node->desc, "post_transform", "NONE"));
    if (!y)
        return grt_fail_memory(0);
    ml_become(node, 0, y);
    ir_node_remove(node);
    *out_done = true;
    return GRT_OK;
}

static grt_status ml_tree_infer_classifier(infer *inf)
{
    return ml_infer_classifier(inf, ml_labels_of(inf->desc).n);
}

/* Two classes whose weights are all for one of them have a single score. It is a probability if no weight is
 * negative, else a distance. */
static grt_status ml_tree_expand_classifier(ir_node *node, bool *out_done)
{
    ensemble e;
    ir_value *y;
    bool one_class = true, positive = true;
    GRT_TRY(read_ensemble(node, true, &e));
    for (int64_t i = 0; i < e.n_weights; i++) {
        one_class = one_class && e.targets[i] == e.targets[0];
        positive = positive && number_at(&e.weights, i) >= 0;
    }
    const bool single = e.n_targets == 2 && one_class;
    const int64_t n_scores = single ? 1 : e.n_targets;
    GRT_TRY(check_scores(&node->desc, &e, n_scores));
    int64_t *zeros = single ? GRT_ARENA_ARRAY(node->graph->module->arena, int64_t, e.n_weights) : NULL;
    if (single && !zeros)
        return grt_fail_memory(0);
    e.targets = single ? zeros : e.targets;
    GRT_TRY(scores_of(node, &e, n_scores, &y));
    *out_done = true;
    return ml_classify(node, y, n_scores, single && positive ? 0.5 : 0, !positive);
}

#define TREES(op, outputs, attributes, rule, expansion)                                         \
    {                                                                                           \
        .domain = "ai.onnx.ml", .name = op, .since = 3, .min_in = 1, .max_in = 1, .min_out = 1, \
        .max_out = outputs, .attrs = attributes, .infer = rule, .expand = expansion             \
    }
static const op_row rows[] = {
    TREES("TreeEnsembleClassifier", 2, classifier_attrs, ml_tree_infer_classifier, ml_tree_expand_classifier),
    TREES("TreeEnsembleRegressor", 1, regressor_attrs, ml_tree_infer_regressor, ml_tree_expand_regressor),
};
OP_TABLE(ml_tree, rows);
