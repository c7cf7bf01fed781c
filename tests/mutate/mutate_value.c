/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs say of their inputs, outputs and values: dims, ranks, dtypes, kinds. And inputs that become
 * constants, so that checks happen when compiling instead of in a run. */
#include "tests/differential/draw.h"
#include "tests/mutate/content.h"
#include "tests/mutate/mutation.h"

#include <string.h>

static Onnx__ValueInfoProto *draw_value(mutation *m)
{
    return m->n_values ? m->values[mutation_pick(m->n_values)] : NULL;
}

/* The tensor's type in a value's, however deep; NULL if there is none. */
static Onnx__TypeProto__Tensor *tensor_of(const Onnx__ValueInfoProto *value)
{
    const Onnx__TypeProto *type = value ? value->type : NULL;
    while (type) {
        if (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            return type->tensor_type;
        type = type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE   ? type->sequence_type->elem_type
               : type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE ? type->optional_type->elem_type
                                                                           : NULL;
    }
    return NULL;
}

static void set_dim(Onnx__TensorShapeProto__Dimension *dim, int64_t size)
{
    dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    dim->dim_value = size;
}

bool mutate_value_dim(mutation *m)
{
    Onnx__ValueInfoProto *value = draw_value(m);
    Onnx__TypeProto__Tensor *t = tensor_of(value);
    if (!t || !t->shape || !t->shape->n_dim)
        return false;
    static char *const symbols[] = {"n", "m", "n", "", "2*n"};
    const size_t at = mutation_pick(t->shape->n_dim);
    Onnx__TensorShapeProto__Dimension *dim = t->shape->dim[at];
    const int64_t how = draw(0, 3);
    if (how == 0) {
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dim->dim_param = symbols[draw(0, 4)];
        mutation_tell(m, "%s: dim %zu '%s'", value->name, at, dim->dim_param);
    } else if (how == 1) {
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
        mutation_tell(m, "%s: dim %zu not set", value->name, at);
    } else {
        set_dim(dim, how == 2 ? draw(0, 5) : telling_int());
        mutation_tell(m, "%s: dim %zu is %lld", value->name, at, (long long)dim->dim_value);
    }
    return true;
}

bool mutate_value_rank(mutation *m)
{
    Onnx__ValueInfoProto *value = draw_value(m);
    Onnx__TypeProto__Tensor *t = tensor_of(value);
    if (!t || !t->shape)
        return false;
    const int64_t how = draw(0, 4);
    if (how == 0) {
        t->shape = NULL;
        mutation_tell(m, "%s: no shape", value->name);
        return true;
    }
    if (how == 1) {
        t->shape->n_dim = 0;
    } else if (how == 2 && t->shape->n_dim) {
        t->shape->n_dim--;
    } else {
        for (int64_t more = how == 3 ? 20 : 1; more > 0; more--) {
            Onnx__TensorShapeProto__Dimension *dim =
                GRT_ARENA_NEW(m->arena, Onnx__TensorShapeProto__Dimension);
            onnx__tensor_shape_proto__dimension__init(dim);
            set_dim(dim, draw(0, 3));
            MUTATION_APPEND(m, t->shape->dim, t->shape->n_dim, dim);
        }
    }
    mutation_tell(m, "%s: rank %zu", value->name, t->shape->n_dim);
    return true;
}

bool mutate_value_dtype(mutation *m)
{
    Onnx__ValueInfoProto *value = draw_value(m);
    Onnx__TypeProto__Tensor *t = tensor_of(value);
    if (!t)
        return false;
    t->has_elem_type = true;
    t->elem_type = (int32_t)(draw(0, 9) ? draw(0, GRT_DTYPE_COUNT) : telling_int());
    mutation_tell(m, "%s: dtype %d", value->name, t->elem_type);
    return true;
}

/* A sequence, an optional or a map of what it was, or nothing at all. */
bool mutate_value_kind(mutation *m)
{
    Onnx__ValueInfoProto *value = draw_value(m);
    if (!value || !value->type)
        return false;
    Onnx__TypeProto *wrapped = GRT_ARENA_NEW(m->arena, Onnx__TypeProto);
    onnx__type_proto__init(wrapped);
    const int64_t how = draw(0, 3);
    if (how == 1) {
        wrapped->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
        wrapped->sequence_type = GRT_ARENA_NEW(m->arena, Onnx__TypeProto__Sequence);
        onnx__type_proto__sequence__init(wrapped->sequence_type);
        wrapped->sequence_type->elem_type = value->type;
    } else if (how == 2) {
        wrapped->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
        wrapped->optional_type = GRT_ARENA_NEW(m->arena, Onnx__TypeProto__Optional);
        onnx__type_proto__optional__init(wrapped->optional_type);
        wrapped->optional_type->elem_type = value->type;
    } else if (how == 3) {
        wrapped->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
        wrapped->map_type = GRT_ARENA_NEW(m->arena, Onnx__TypeProto__Map);
        onnx__type_proto__map__init(wrapped->map_type);
        wrapped->map_type->has_key_type = 1;
        wrapped->map_type->key_type = draw(0, 1) ? GRT_DTYPE_INT64 : GRT_DTYPE_STRING;
        wrapped->map_type->value_type = value->type;
    }
    static const char *const told[] = {"no type", "in a sequence", "in an optional", "in a map"};
    value->type = how || draw(0, 1) ? wrapped : NULL;
    mutation_tell(m, "%s: %s", value->name, told[how]);
    return true;
}

/* An input becomes an initializer, with or without being an input any more. */
bool mutate_value_known(mutation *m)
{
    Onnx__GraphProto *g = m->model->graph;
    if (!g || !g->n_input)
        return false;
    const size_t at = mutation_pick(g->n_input);
    const Onnx__ValueInfoProto *value = g->input[at];
    const Onnx__TypeProto__Tensor *type = tensor_of(value);
    if (!type || !type->shape || value->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return false;
    Onnx__TensorProto *t = GRT_ARENA_NEW(m->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(t);
    t->name = value->name;
    t->has_data_type = true;
    t->data_type = type->elem_type;
    for (size_t k = 0; k < type->shape->n_dim; k++) {
        const Onnx__TensorShapeProto__Dimension *dim = type->shape->dim[k];
        const bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        MUTATION_APPEND(m, t->dims, t->n_dims, fixed ? dim->dim_value : draw(0, 3));
    }
    mutation_fit(m, t);
    MUTATION_APPEND(m, g->initializer, g->n_initializer, t);
    mutation_tell(m, "%s: an initializer", value->name);
    if (draw(0, 3))
        MUTATION_REMOVE(g->input, g->n_input, at);
    return true;
}
