/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX .pb files: values read from them and written to them. */
#include "src/base/file_map.h"
#include "src/base/output.h"
#include "src/base/value_map.h"
#include "src/onnx/pb.h"

#include <stdlib.h>

grt_status grt_value_read_pb(const char *path, grt_kind kind, grt_kind element_kind, grt_value **out_value)
{
    if (!path || !out_value || (unsigned)kind > GRT_KIND_MAP)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_value_read_pb: path and out_value must not be NULL, kind must be valid");
    grt_value *value = calloc(1, sizeof *value);
    if (!value)
        return grt_fail_memory(sizeof *value);
    grt_file_map map;
    grt_status status = grt_file_map_open(path, &map);
    if (status == GRT_OK) {
        status = grt_pb_value(map.data, map.size, kind, element_kind, value);
        if (status != GRT_OK)
            grt_fail_context(status, "%s", path);
    }
    grt_file_map_close(&map);
    if (status != GRT_OK) {
        free(value);
        return status;
    }
    *out_value = value;
    return GRT_OK;
}

static Onnx__TensorProto *tensor_message(const grt_tensor *t, grt_arena *arena)
{
    Onnx__TensorProto *p = GRT_ARENA_NEW(arena, Onnx__TensorProto);
    int64_t *dims = grt_arena_memdup(arena, t->dims, (size_t)t->rank * sizeof *t->dims);
    if (!p || !dims)
        return NULL;
    onnx__tensor_proto__init(p);
    p->has_data_type = 1;
    p->data_type = (int32_t)t->dtype;
    p->n_dims = (size_t)t->rank;
    p->dims = dims;
    if (t->dtype != GRT_DTYPE_STRING) {
        p->has_raw_data = 1;
        p->raw_data = (ProtobufCBinaryData){grt_tensor_bytes(t), t->data};
        return p;
    }
    const grt_string *strings = t->data;
    p->n_string_data = (size_t)grt_tensor_elements(t);
    p->string_data = GRT_ARENA_ARRAY(arena, ProtobufCBinaryData, p->n_string_data);
    for (size_t i = 0; p->string_data && i < p->n_string_data; i++)
        p->string_data[i] = (ProtobufCBinaryData){strings[i].size, (uint8_t *)(uintptr_t)strings[i].data};
    return p->string_data ? p : NULL;
}

/* Element i of a tensor as a scalar of its own. */
static Onnx__TensorProto *element_message(const grt_tensor *t, int64_t i, grt_arena *arena)
{
    grt_tensor element = {.dtype = t->dtype};
    element.data = (char *)t->data + (size_t)i * grt_dtype_size(t->dtype);
    return tensor_message(&element, arena);
}

static Onnx__MapProto *map_message(const grt_value *value, grt_arena *arena)
{
    const grt_tensor *keys = grt_map_keys(value), *values = grt_map_values(value);
    const size_t n = (size_t)keys->dims[0];
    Onnx__MapProto *p = GRT_ARENA_NEW(arena, Onnx__MapProto);
    Onnx__SequenceProto *list = GRT_ARENA_NEW(arena, Onnx__SequenceProto);
    Onnx__TensorProto **items = GRT_ARENA_ARRAY(arena, Onnx__TensorProto *, n);
    Onnx__TensorProto *strings = tensor_message(keys, arena);
    if (!p || !list || !items || !strings)
        return NULL;
    onnx__map_proto__init(p);
    onnx__sequence_proto__init(list);
    p->has_key_type = 1;
    p->key_type = (int32_t)keys->dtype;
    p->string_keys = strings->string_data;
    p->n_string_keys = strings->n_string_data;
    p->keys = keys->dtype == GRT_DTYPE_INT64 ? keys->data : NULL;
    p->n_keys = p->keys ? n : 0;
    p->values = list;
    list->has_elem_type = 1;
    list->elem_type = ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
    list->n_tensor_values = n;
    list->tensor_values = items;
    for (size_t i = 0; i < n; i++)
        if (!(items[i] = element_message(values, (int64_t)i, arena)))
            return NULL;
    return p;
}

static Onnx__SequenceProto *sequence_message(const grt_value *value, grt_arena *arena)
{
    Onnx__SequenceProto *p = GRT_ARENA_NEW(arena, Onnx__SequenceProto);
    const bool maps = value->n && value->items[0].kind == GRT_KIND_MAP;
    void **items = GRT_ARENA_ARRAY(arena, void *, value->n);
    if (!p || !items)
        return NULL;
    onnx__sequence_proto__init(p);
    p->has_elem_type = 1;
    p->elem_type = maps ? ONNX__SEQUENCE_PROTO__DATA_TYPE__MAP : ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR;
    *(maps ? &p->n_map_values : &p->n_tensor_values) = value->n;
    if (maps)
        p->map_values = (Onnx__MapProto **)items;
    else
        p->tensor_values = (Onnx__TensorProto **)items;
    for (size_t i = 0; i < value->n; i++) {
        const grt_value *item = &value->items[i];
        if (!(items[i] = maps ? (void *)map_message(item, arena) : tensor_message(&item->t, arena)))
            return NULL;
    }
    return p;
}

static Onnx__OptionalProto *optional_message(const grt_value *value, grt_arena *arena)
{
    Onnx__OptionalProto *p = GRT_ARENA_NEW(arena, Onnx__OptionalProto);
    if (!p)
        return NULL;
    onnx__optional_proto__init(p);
    p->has_elem_type = 1;
    if (!value->n)
        return p;
    const grt_value *item = &value->items[0];
    bool tensor = item->kind == GRT_KIND_TENSOR;
    p->elem_type =
        tensor ? ONNX__OPTIONAL_PROTO__DATA_TYPE__TENSOR : ONNX__OPTIONAL_PROTO__DATA_TYPE__SEQUENCE;
    p->tensor_value = tensor ? tensor_message(&item->t, arena) : NULL;
    p->sequence_value = tensor ? NULL : sequence_message(item, arena);
    return p->tensor_value || p->sequence_value ? p : NULL;
}

static bool is_nested(const grt_value *value)
{
    for (size_t i = 0; i < value->n; i++)
        if (value->kind == GRT_KIND_SEQUENCE
                ? value->items[i].kind != value->items[0].kind || value->items[i].kind == GRT_KIND_SEQUENCE ||
                      value->items[i].kind == GRT_KIND_OPTIONAL
                : is_nested(&value->items[i]))
            return true;
    return false;
}

static grt_status pb_file_write_message(const ProtobufCMessage *message, const char *path)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return grt_fail_memory(size);
    protobuf_c_message_pack(message, bytes);
    grt_output o;
    grt_status status = grt_output_open(&o, path);
    if (status == GRT_OK)
        status = grt_output_write(&o, bytes, size);
    if (status == GRT_OK)
        status = grt_output_commit(&o);
    grt_output_close(&o);
    free(bytes);
    return status;
}

grt_status grt_value_write_pb(const grt_value *value, const char *path)
{
    if (!value || !path)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_value_write_pb: value and path must not be NULL");
    if (is_nested(value))
        return grt_fail(GRT_STATUS_UNSUPPORTED, "'%s': only sequences of tensors, or of maps, can be written",
                        path);
    grt_arena *arena = grt_arena_create();
    if (!arena)
        return grt_fail_memory(1);
    ProtobufCMessage *message =
        value->kind == GRT_KIND_TENSOR     ? (ProtobufCMessage *)tensor_message(&value->t, arena)
        : value->kind == GRT_KIND_SEQUENCE ? (ProtobufCMessage *)sequence_message(value, arena)
        : value->kind == GRT_KIND_MAP      ? (ProtobufCMessage *)map_message(value, arena)
                                           : (ProtobufCMessage *)optional_message(value, arena);
    grt_status status = message ? pb_file_write_message(message, path) : grt_fail_memory(0);
    grt_arena_release(arena);
    return status;
}
