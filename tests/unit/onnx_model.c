/* SPDX-License-Identifier: Apache-2.0 */
/* Building ONNX messages in an arena. */
#include "tests/unit/onnx_model.h"

#include "tests/unit/files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *fresh(onnx_model *m, const ProtobufCMessageDescriptor *descriptor)
{
    void *message = grt_arena_alloc(m->arena, descriptor->sizeof_message);
    descriptor->message_init(message);
    return message;
}
#define FRESH(m, Type, lower) ((Onnx__##Type *)fresh(m, &onnx__##lower##__descriptor))

/* One more element of a repeated field. */
static void *grow(onnx_model *m, void *list, size_t n, size_t size)
{
    char *bigger = grt_arena_calloc(m->arena, n + 1, size);
    if (n)
        memcpy(bigger, list, n * size);
    return bigger;
}
#define APPEND(m, message, field, element)                                                            \
    do {                                                                                              \
        (message)->field = grow(m, (message)->field, (message)->n_##field, sizeof *(message)->field); \
        (message)->field[(message)->n_##field++] = element;                                           \
    } while (0)

static size_t count(const char *list)
{
    size_t n = *list != 0;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static char **split(onnx_model *m, const char *list, size_t *out_n)
{
    *out_n = count(list);
    char **parts = GRT_ARENA_ARRAY(m->arena, char *, *out_n);
    for (size_t i = 0; i < *out_n; i++) {
        size_t n = strcspn(list, ",");
        parts[i] = grt_arena_strndup(m->arena, list, n);
        list += n + 1;
    }
    return parts;
}

static int64_t *numbers(onnx_model *m, const char *list, size_t *out_n)
{
    char **parts = split(m, list, out_n);
    int64_t *out = GRT_ARENA_ARRAY(m->arena, int64_t, *out_n);
    for (size_t i = 0; i < *out_n; i++)
        out[i] = strtoll(parts[i], NULL, 10);
    return out;
}

static char *text(onnx_model *m, const char *s)
{
    return grt_arena_strdup(m->arena, s);
}

Onnx__GraphProto *onnx_graph(onnx_model *m, const char *name)
{
    Onnx__GraphProto *g = FRESH(m, GraphProto, graph_proto);
    g->name = text(m, name);
    return g;
}

onnx_model onnx_create(void)
{
    onnx_model m = {.arena = grt_arena_create()};
    m.proto = FRESH(&m, ModelProto, model_proto);
    m.proto->has_ir_version = 1;
    m.proto->ir_version = 10;
    m.graph = m.proto->graph = onnx_graph(&m, "g");
    onnx_opset(&m, "", 20);
    return m;
}

void onnx_release(onnx_model *m)
{
    grt_arena_release(m->arena);
}

static Onnx__TypeProto *tensor_type(onnx_model *m, grt_dtype dtype, const char *dims)
{
    Onnx__TypeProto *type = FRESH(m, TypeProto, type_proto);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = FRESH(m, TypeProto__Tensor, type_proto__tensor);
    type->tensor_type->has_elem_type = 1;
    type->tensor_type->elem_type = (int32_t)dtype;
    if (!dims)
        return type;
    Onnx__TensorShapeProto *shape = FRESH(m, TensorShapeProto, tensor_shape_proto);
    type->tensor_type->shape = shape;
    size_t n;
    char **parts = split(m, dims, &n);
    for (size_t i = 0; i < n; i++) {
        Onnx__TensorShapeProto__Dimension *dim =
            FRESH(m, TensorShapeProto__Dimension, tensor_shape_proto__dimension);
        if (parts[i][0] == '-' || (parts[i][0] >= '0' && parts[i][0] <= '9')) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = strtoll(parts[i], NULL, 10);
        } else if (strcmp(parts[i], "?")) {
            dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = parts[i];
        }
        APPEND(m, shape, dim, dim);
    }
    return type;
}

void onnx_input(onnx_model *m, Onnx__GraphProto *g, const char *name, grt_dtype dtype, const char *dims)
{
    Onnx__ValueInfoProto *info = FRESH(m, ValueInfoProto, value_info_proto);
    info->name = text(m, name);
    info->type = tensor_type(m, dtype, dims);
    APPEND(m, g, input, info);
}

void onnx_output(onnx_model *m, Onnx__GraphProto *g, const char *name)
{
    Onnx__ValueInfoProto *info = FRESH(m, ValueInfoProto, value_info_proto);
    info->name = text(m, name);
    info->type = tensor_type(m, GRT_DTYPE_FLOAT, NULL);
    APPEND(m, g, output, info);
}

static Onnx__NodeProto *make_node(onnx_model *m, const char *op, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = FRESH(m, NodeProto, node_proto);
    node->op_type = text(m, op);
    node->name = grt_arena_printf(m->arena, "the_%s", op);
    node->input = split(m, inputs, &node->n_input);
    node->output = split(m, outputs, &node->n_output);
    return node;
}

Onnx__NodeProto *onnx_node(onnx_model *m, Onnx__GraphProto *g, const char *op, const char *inputs,
                           const char *outputs)
{
    Onnx__NodeProto *node = make_node(m, op, inputs, outputs);
    APPEND(m, g, node, node);
    return node;
}

static Onnx__TensorProto *empty_tensor(onnx_model *m, const char *name, grt_dtype dtype, const char *dims)
{
    Onnx__TensorProto *t = FRESH(m, TensorProto, tensor_proto);
    t->name = text(m, name);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    t->dims = numbers(m, dims, &t->n_dims);
    return t;
}

Onnx__TensorProto *onnx_tensor(onnx_model *m, const char *name, const char *dims)
{
    Onnx__TensorProto *t = empty_tensor(m, name, GRT_DTYPE_FLOAT, dims);
    size_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        n *= (size_t)t->dims[i];
    t->float_data = GRT_ARENA_ARRAY(m->arena, float, n);
    t->n_float_data = n;
    for (size_t i = 0; i < n; i++)
        t->float_data[i] = (float)i;
    return t;
}

Onnx__TensorProto *onnx_raw(onnx_model *m, const char *name, grt_dtype dtype, const char *dims,
                            const void *data, size_t size)
{
    Onnx__TensorProto *t = empty_tensor(m, name, dtype, dims);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){size, grt_arena_memdup(m->arena, data, size)};
    return t;
}

void onnx_initializer(onnx_model *m, Onnx__GraphProto *g, Onnx__TensorProto *tensor)
{
    APPEND(m, g, initializer, tensor);
}

Onnx__AttributeProto *onnx_attr(onnx_model *m, Onnx__NodeProto *node, const char *name, int type)
{
    Onnx__AttributeProto *attr = FRESH(m, AttributeProto, attribute_proto);
    attr->name = text(m, name);
    attr->has_type = 1;
    attr->type = (Onnx__AttributeProto__AttributeType)type;
    APPEND(m, node, attribute, attr);
    return attr;
}

void onnx_attr_int(onnx_model *m, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *attr = onnx_attr(m, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    attr->has_i = 1;
    attr->i = value;
}

static void onnx_attr_ref(onnx_model *m, Onnx__NodeProto *node, const char *name, int type,
                          const char *reference)
{
    onnx_attr(m, node, name, type)->ref_attr_name = text(m, reference);
}

void onnx_opset(onnx_model *m, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *opset = FRESH(m, OperatorSetIdProto, operator_set_id_proto);
    opset->domain = text(m, domain);
    opset->has_version = 1;
    opset->version = version;
    APPEND(m, m->proto, opset_import, opset);
}

Onnx__FunctionProto *onnx_function(onnx_model *m, const char *domain, const char *name, const char *inputs,
                                   const char *outputs)
{
    Onnx__FunctionProto *f = FRESH(m, FunctionProto, function_proto);
    f->domain = text(m, domain);
    f->name = text(m, name);
    f->input = split(m, inputs, &f->n_input);
    f->output = split(m, outputs, &f->n_output);
    f->opset_import = m->proto->opset_import; /* those of the model so far */
    f->n_opset_import = m->proto->n_opset_import;
    APPEND(m, m->proto, functions, f);
    return f;
}

Onnx__NodeProto *onnx_function_node(onnx_model *m, Onnx__FunctionProto *f, const char *domain, const char *op,
                                    const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = make_node(m, op, inputs, outputs);
    node->domain = text(m, domain);
    APPEND(m, f, node, node);
    return node;
}

grt_string onnx_bytes(onnx_model *m)
{
    size_t size = onnx__model_proto__get_packed_size(m->proto);
    uint8_t *bytes = grt_arena_alloc(m->arena, size);
    onnx__model_proto__pack(m->proto, bytes);
    return (grt_string){(const char *)bytes, size};
}

void onnx_write(onnx_model *m, const char *path)
{
    const grt_string bytes = onnx_bytes(m);
    files_write(path, bytes.data, bytes.size);
}

void onnx_compile(onnx_model *m, const grt_compile_options *options, const char *plan)
{
    char source[FILES_NAME];
    files_fresh(source);
    onnx_write(m, source);
    ck_assert_msg(grt_compile(source, options, plan) == GRT_OK, "%s", grt_last_error());
    unlink(source);
}

grt_status onnx_import(onnx_model *m, ir_module **out_module)
{
    grt_string bytes = onnx_bytes(m);
    compile_source source = {.bytes = bytes.data, .size = bytes.size};
    return ir_import(&source, out_module);
}

grt_model *onnx_open(onnx_model *m, grt_runtime *runtime)
{
    const grt_string bytes = onnx_bytes(m);
    grt_model *model = NULL;
    ck_assert_msg(grt_model_open_memory(runtime, bytes.data, bytes.size, &model) == GRT_OK, "%s",
                  grt_last_error());
    return model;
}

grt_model *onnx_open_plan(onnx_model *m, grt_runtime *runtime, const grt_compile_options *options)
{
    char plan[FILES_NAME];
    grt_model *model = NULL;
    files_fresh(plan);
    onnx_compile(m, options, plan);
    ck_assert_msg(grt_model_open(runtime, plan, &model) == GRT_OK, "%s", grt_last_error());
    unlink(plan);
    return model;
}

onnx_model onnx_relu(void)
{
    onnx_model m = onnx_create();
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2,3");
    onnx_node(&m, m.graph, "Relu", "x", "y");
    onnx_output(&m, m.graph, "y");
    return m;
}

onnx_model onnx_functions(void)
{
    onnx_model m = onnx_create();
    onnx_opset(&m, "my", 1);
    Onnx__FunctionProto *once = onnx_function(&m, "my", "once", "a", "b");
    onnx_attr_ref(&m, onnx_function_node(&m, once, "", "LeakyRelu", "a", "b"), "alpha",
                  ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "slope");
    Onnx__FunctionProto *twice = onnx_function(&m, "my", "twice", "a", "b");
    Onnx__NodeProto *first = onnx_function_node(&m, twice, "my", "once", "a", "t");
    onnx_attr_ref(&m, first, "slope", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "s");
    onnx_function_node(&m, twice, "my", "once", "t", "b");
    onnx_input(&m, m.graph, "x", GRT_DTYPE_FLOAT, "2");
    Onnx__NodeProto *node = onnx_node(&m, m.graph, "twice", "x", "y");
    node->domain = (char *)"my";
    Onnx__AttributeProto *s = onnx_attr(&m, node, "s", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    s->has_f = 1;
    s->f = 0.5f;
    onnx_output(&m, m.graph, "y");
    return m;
}
