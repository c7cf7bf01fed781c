/* SPDX-License-Identifier: Apache-2.0 */
// See builder.h.
#include "builder.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 18 };

struct gen_chunk {
    struct gen_chunk *next;
    size_t used, size;
    max_align_t data[];
};

static void *require(void *memory)
{
    if (!memory) {
        fputs("grt-models: out of memory while building the graph\n", stderr);
        exit(2);
    }
    return memory;
}

void *gen_alloc(struct gen *g, size_t bytes)
{
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!g->arena || g->arena->size - g->arena->used < bytes) {
        size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        struct gen_chunk *chunk = require(calloc(1, sizeof *chunk + size));
        chunk->next = g->arena;
        chunk->size = size;
        g->arena = chunk;
    }
    char *memory = (char *)g->arena->data + g->arena->used;
    g->arena->used += bytes;
    return memory;
}

char *gen_format(struct gen *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[256];
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof text) {
        fprintf(stderr, "grt-models: a name made from \"%s\" is too long\n", format);
        exit(2);
    }
    return memcpy(gen_alloc(g, (size_t)length + 1), text, (size_t)length + 1);
}

// Makes room for one more element in an array outside the arena.
static void *grow(void *array, size_t count, size_t *capacity, size_t element)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 64;
    return require(realloc(array, *capacity * element));
}

void gen_init(struct gen *g, const char *graph_name, enum gen_dtype dtype, uint64_t seed)
{
    *g = (struct gen){.dtype = dtype, .seed = seed};
    onnx__model_proto__init(&g->model);
    onnx__graph_proto__init(&g->graph);
    g->graph.name = gen_format(g, "%s", graph_name);
    g->model.has_ir_version = 1;
    g->model.ir_version = 10;
    g->model.producer_name = gen_format(g, "grt-models");
    Onnx__OperatorSetIdProto *opset = gen_alloc(g, sizeof *opset);
    onnx__operator_set_id_proto__init(opset);
    opset->has_version = 1;
    opset->version = 20;
    g->model.opset_import = gen_alloc(g, sizeof(Onnx__OperatorSetIdProto *));
    g->model.opset_import[0] = opset;
    g->model.n_opset_import = 1;
}

void gen_release(struct gen *g)
{
    for (struct gen_chunk *chunk = g->arena, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(g->tensors);
    free(g->graph.node);
    *g = (struct gen){0};
}

static Onnx__ValueInfoProto *value_info(struct gen *g, const char *name, enum gen_dtype dtype, size_t rank,
                                        const int64_t *dims)
{
    Onnx__TensorShapeProto *shape = gen_alloc(g, sizeof *shape);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = rank;
    shape->dim = gen_alloc(g, rank * sizeof(Onnx__TensorShapeProto__Dimension *));
    for (size_t i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *dim = gen_alloc(g, sizeof *dim);
        onnx__tensor_shape_proto__dimension__init(dim);
        if (dims[i] < 0) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = gen_format(g, dims[i] == GEN_BATCH ? "N" : "S");
        } else {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = dims[i];
        }
        shape->dim[i] = dim;
    }
    Onnx__TypeProto__Tensor *tensor = gen_alloc(g, sizeof *tensor);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)dtype;
    tensor->shape = shape;
    Onnx__TypeProto *type = gen_alloc(g, sizeof *type);
    onnx__type_proto__init(type);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    Onnx__ValueInfoProto *info = gen_alloc(g, sizeof *info);
    onnx__value_info_proto__init(info);
    info->name = gen_format(g, "%s", name);
    info->type = type;
    return info;
}

// Graphs have a few inputs and outputs: the list is copied at each addition.
static void append(struct gen *g, Onnx__ValueInfoProto ***list, size_t *count, Onnx__ValueInfoProto *info)
{
    Onnx__ValueInfoProto **longer = gen_alloc(g, (*count + 1) * sizeof *longer);
    if (*count)
        memcpy(longer, *list, *count * sizeof *longer);
    longer[(*count)++] = info;
    *list = longer;
}

gen_value gen_input(struct gen *g, const char *name, enum gen_dtype dtype, size_t rank, const int64_t *dims)
{
    Onnx__ValueInfoProto *info = value_info(g, name, dtype, rank, dims);
    append(g, &g->graph.input, &g->graph.n_input, info);
    return info->name;
}

gen_value gen_output(struct gen *g, const char *name, size_t rank, const int64_t *dims)
{
    Onnx__ValueInfoProto *info = value_info(g, name, g->dtype, rank, dims);
    append(g, &g->graph.output, &g->graph.n_output, info);
    g->graph.node[g->graph.n_node - 1]->output[0] = info->name;
    return info->name;
}

gen_value gen_node(struct gen *g, const char *op, size_t n_inputs, const gen_value *inputs)
{
    Onnx__NodeProto *node = gen_alloc(g, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = gen_format(g, "%s", op);
    node->name = gen_format(g, "node_%s_%zu", op, g->graph.n_node);
    node->n_input = n_inputs;
    node->input = gen_alloc(g, n_inputs * sizeof(char *));
    for (size_t i = 0; i < n_inputs; i++)
        node->input[i] = gen_format(g, "%s", inputs[i] ? inputs[i] : "");
    node->n_output = 1;
    node->output = gen_alloc(g, sizeof(char *));
    node->output[0] = gen_format(g, "%s_%zu", op, g->graph.n_node);
    g->graph.node = grow(g->graph.node, g->graph.n_node, &g->cap_nodes, sizeof(Onnx__NodeProto *));
    g->graph.node[g->graph.n_node++] = node;
    return node->output[0];
}

gen_value gen_extra_output(struct gen *g)
{
    Onnx__NodeProto *node = g->graph.node[g->graph.n_node - 1];
    char **longer = gen_alloc(g, (node->n_output + 1) * sizeof *longer);
    memcpy(longer, node->output, node->n_output * sizeof *longer);
    longer[node->n_output] = gen_format(g, "%s_out%zu", node->output[0], node->n_output);
    node->output = longer;
    return longer[node->n_output++];
}

static Onnx__AttributeProto *attribute(struct gen *g, const char *name,
                                       Onnx__AttributeProto__AttributeType type)
{
    enum { MAX_ATTRIBUTES = 8 };
    Onnx__NodeProto *node = g->graph.node[g->graph.n_node - 1];
    if (!node->attribute)
        node->attribute = gen_alloc(g, MAX_ATTRIBUTES * sizeof(Onnx__AttributeProto *));
    if (node->n_attribute == MAX_ATTRIBUTES) {
        fprintf(stderr, "grt-models: node %s has more than %d attributes\n", node->name, MAX_ATTRIBUTES);
        exit(2);
    }
    Onnx__AttributeProto *a = gen_alloc(g, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = gen_format(g, "%s", name);
    a->has_type = 1;
    a->type = type;
    node->attribute[node->n_attribute++] = a;
    return a;
}

void gen_attr_int(struct gen *g, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = value;
}

void gen_attr_ints(struct gen *g, const char *name, size_t n, const int64_t *values)
{
    Onnx__AttributeProto *a = attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = n;
    a->ints = memcpy(gen_alloc(g, n * sizeof *values), values, n * sizeof *values);
}

void gen_attr_float(struct gen *g, const char *name, float value)
{
    Onnx__AttributeProto *a = attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = value;
}

static size_t dtype_size(enum gen_dtype dtype)
{
    switch (dtype) {
    case GEN_FLOAT32:
        return 4;
    case GEN_FLOAT16:
        return 2;
    case GEN_INT64:
        return 8;
    case GEN_BOOL:
        return 1;
    }
    return 0;
}

static struct gen_tensor *tensor(struct gen *g, const char *name, enum gen_dtype dtype, size_t rank,
                                 const int64_t *dims)
{
    Onnx__TensorProto *proto = gen_alloc(g, sizeof *proto);
    onnx__tensor_proto__init(proto);
    // Sizes come from ranged options, far below what would overflow; the check keeps it so.
    size_t bytes = dtype_size(dtype);
    for (size_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bytes, (size_t)dims[i], &bytes)) {
            fprintf(stderr, "grt-models: the size of tensor %s overflows\n", name ? name : "(constant)");
            exit(2);
        }
    proto->name = name ? gen_format(g, "%s", name) : gen_format(g, "const_%zu", g->n_tensors);
    proto->has_data_type = 1;
    proto->data_type = (int32_t)dtype;
    proto->n_dims = rank;
    if (rank)
        proto->dims = memcpy(gen_alloc(g, rank * sizeof *dims), dims, rank * sizeof *dims);
    if (dtype == GEN_FLOAT32 || dtype == GEN_FLOAT16)
        g->parameters += bytes / dtype_size(dtype);
    g->tensors = grow(g->tensors, g->n_tensors, &g->cap_tensors, sizeof *g->tensors);
    struct gen_tensor *t = &g->tensors[g->n_tensors++];
    *t = (struct gen_tensor){.proto = proto, .bytes = bytes};
    return t;
}

gen_value gen_weight(struct gen *g, const char *name, size_t rank, const int64_t *dims, float low, float high)
{
    struct gen_tensor *t = tensor(g, name, g->dtype, rank, dims);
    t->fill = (struct gen_fill){.key = gen_fill_key(g->seed, g->n_tensors),
                                .low = low,
                                .high = high,
                                .half = g->dtype == GEN_FLOAT16};
    return t->proto->name;
}

gen_value gen_weight_scaled(struct gen *g, const char *name, size_t rank, const int64_t *dims, float gain,
                            int64_t fan_in)
{
    // Uniform in [-b, b] has the variance b * b / 3.
    float bound = sqrtf(3.0f * gain / (float)fan_in);
    return gen_weight(g, name, rank, dims, -bound, bound);
}

gen_value gen_literal(struct gen *g, enum gen_dtype dtype, size_t rank, const int64_t *dims, const void *data)
{
    struct gen_tensor *t = tensor(g, NULL, dtype, rank, dims);
    t->literal = memcpy(gen_alloc(g, t->bytes), data, t->bytes);
    return t->proto->name;
}

gen_value gen_floats(struct gen *g, size_t rank, const int64_t *dims, const float *values)
{
    if (g->dtype == GEN_FLOAT32)
        return gen_literal(g, GEN_FLOAT32, rank, dims, values);
    struct gen_tensor *t = tensor(g, NULL, GEN_FLOAT16, rank, dims);
    uint16_t *halves = gen_alloc(g, t->bytes);
    for (size_t i = 0; i < t->bytes / sizeof *halves; i++)
        halves[i] = gen_half_from_float(values[i]);
    t->literal = halves;
    return t->proto->name;
}

gen_value gen_scalar(struct gen *g, float value)
{
    return gen_floats(g, 0, NULL, &value);
}

gen_value gen_ints(struct gen *g, size_t n, const int64_t *values)
{
    int64_t dims[] = {(int64_t)n};
    return gen_literal(g, GEN_INT64, 1, dims, values);
}
