/* SPDX-License-Identifier: Apache-2.0 */
/* Repetition: Expand, Tile. */
#include "graph/ops/moves.h"

static grt_status infer_expand(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *shape;
    int64_t n;
    if (data->rank < 0 || !infer_elems(inf, 1, &shape, &n)) {
        int32_t rank;
        if (data->rank >= 0 && moves_length(inf, 1, &rank))
            infer_set_fresh(inf, 0, data->dtype, rank > data->rank ? rank : data->rank);
        else
            infer_set_unknown(inf, 0, data->dtype);
        return GRT_OK;
    }
    GRT_TRY(moves_check_rank(inf, n));
    int32_t rank = n > data->rank ? (int32_t)n : data->rank;
    grt_dim *dims = infer_dims(inf, rank);
    for (int32_t k = 0; dims && k < rank; k++) {
        int64_t from_data = k - (rank - data->rank), from_shape = k - (rank - n), x, y;
        grt_dim a = from_data < 0 ? grt_dim_const(inf->dims, 1) : data->dims[from_data];
        grt_dim b = from_shape < 0 ? grt_dim_const(inf->dims, 1) : shape[from_shape];
        bool known_b = infer_const(inf, b, &y);
        if (known_b && y < 0)
            return infer_fail(inf, "shape[%lld] is %lld; expected a size", (long long)from_shape,
                              (long long)y);
        if (known_b && infer_const(inf, a, &x) && x != y && x != 1 && y != 1)
            return infer_fail(inf,
                              "dim %lld of the input is %lld and cannot be expanded to shape[%lld] = %lld",
                              (long long)from_data, (long long)x, (long long)from_shape, (long long)y);
        dims[k] = grt_dim_make(inf->dims, GRT_DIM_BROADCAST, a, b);
    }
    infer_set(inf, 0, data->dtype, rank, dims);
    const grt_dim *elems;
    int64_t n_elems, count = 1;
    if (dims && rank <= 1 && moves_elems(inf, 0, &elems, &n_elems) && n_elems == 1 &&
        (rank == 0 || infer_const(inf, dims[0], &count)) && count <= MOVES_MAX_ELEMS) {
        grt_dim *repeated = infer_dims(inf, (int32_t)count);
        for (int64_t k = 0; repeated && k < count; k++)
            repeated[k] = elems[0];
        moves_set_elems(inf, 0, repeated, count);
    }
    return GRT_OK;
}

static grt_status infer_tile(infer *inf)
{
    const ir_type *data = inf->in[0];
    const grt_dim *repeats;
    int64_t n, v;
    if (data->rank < 0) {
        moves_set_fresh_by(inf, data->dtype, 1);
        return GRT_OK;
    }
    if (!infer_elems(inf, 1, &repeats, &n)) {
        infer_set_fresh(inf, 0, data->dtype, data->rank);
        return GRT_OK;
    }
    if (n != data->rank)
        return infer_fail(inf, "repeats has %lld entries; the input's rank is %d", (long long)n, data->rank);
    grt_dim *dims = infer_dims(inf, data->rank);
    for (int32_t k = 0; dims && k < data->rank; k++) {
        if (infer_const(inf, repeats[k], &v) && v < 0)
            return infer_fail(inf, "repeats[%d] is %lld; expected a count", k, (long long)v);
        dims[k] = grt_dim_mul(inf->dims, data->dims[k], repeats[k]);
    }
    infer_set(inf, 0, data->dtype, data->rank, dims);
    return GRT_OK;
}

/* Tile-1 repeats one axis: (data, tiles, axis). repeats becomes a list of ones with `tiles` put in at `axis`.
 */
static grt_status upgrade_tile(ir_node *node, int32_t opset)
{
    if (opset >= 6 || node->n_in != 3)
        return GRT_OK;
    ir_graph *graph = node->graph;
    const char *name = node->desc.name;
    static const int64_t one[] = {1};
    int64_t dims[] = {1};
    const grt_tensor value = {.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {1}, .data = (void *)one};
    ir_value *length_one = ir_constant_ints(graph, "one", dims, 1);
    ir_value *data = ir_in(node, 0), *tiles = ir_in(node, 1), *axis = ir_in(node, 2);
    ir_value *shape = ir_node_out(ir_node_create(graph, node, "", "Shape", name, 1, &data, 1));
    ir_value *rank = ir_node_out(ir_node_create(graph, node, "", "Shape", name, 1, &shape, 1));
    ir_node *fill = ir_node_create(graph, node, "", "ConstantOfShape", name, 1, &rank, 1);
    ir_value *tiles_list = ir_node_out(
        ir_node_create(graph, node, "", "Reshape", name, 2, (ir_value *[]){tiles, length_one}, 1));
    ir_value *axis_list =
        ir_node_out(ir_node_create(graph, node, "", "Reshape", name, 2, (ir_value *[]){axis, length_one}, 1));
    if (!fill || !tiles_list || !axis_list)
        return grt_fail_memory(0);
    grt_tensor *kept = grt_arena_memdup(graph->module->arena, &value, sizeof value);
    ir_attr_set(fill, (grt_attr){.name = "value", .kind = GRT_ATTR_TENSOR, .t = kept});
    ir_value *in[] = {ir_node_out(fill), axis_list, tiles_list};
    ir_value *repeats = ir_node_out(ir_node_create(graph, node, "", "ScatterElements", name, 3, in, 1));
    if (!repeats || !kept)
        return grt_fail_memory(0);
    ir_node_drop_inputs(node, 1);
    ir_node_add_input(node, repeats);
    return GRT_OK;
}

/* Repeated once. */
static bool expand_stays(const grt_op_desc *desc, const grt_tensor *const *in, int32_t n_in,
                         const grt_tensor *out)
{
    (void)desc;
    (void)n_in;
    return grt_tensor_elements(in[0]) == grt_tensor_elements(out);
}

static const op_row rows[] = {
    {.domain = "",
     .name = "Expand",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_SMALL_INTS | OP_SHAPED | OP_FILLS | OP_PICKS,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .infer = infer_expand,
     .stays = expand_stays},
    {.domain = "",
     .name = "Tile",
     .since = 13,
     .min_in = 2,
     .max_in = 2,
     .min_out = 1,
     .max_out = 1,
     .flags = OP_SHAPED | OP_PICKS,
     .precision = OP_FOLLOWS_FIRST,
     .cost = OP_COST_MOVE,
     .infer = infer_tile,
     .stays = expand_stays,
     .upgrade = upgrade_tile},
};
OP_TABLE(expand, rows);
