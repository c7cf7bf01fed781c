/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto, SequenceProto, OptionalProto and MapProto to tensors and values. */
#include "src/onnx/pb.h"

#include "src/base/checked.h"
#include "src/base/text.h"
#include "src/base/value_map.h"

#include <inttypes.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "raw_data is little endian, and so must the host be"
#endif

#define FAIL(proto, ...) fail_tensor(proto, __VA_ARGS__)

static grt_status fail_tensor(const Onnx__TensorProto *proto, const char *format, ...) GRT_PRINTF(2, 3);
static grt_status fail_tensor(const Onnx__TensorProto *proto, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    grt_fail_v(GRT_STATUS_INVALID_MODEL, format, args);
    va_end(args);
    return grt_fail_context(GRT_STATUS_INVALID_MODEL, "tensor '%s'", proto->name ? proto->name : "");
}

grt_status grt_pb_tensor_type(const Onnx__TensorProto *proto, grt_tensor *out_tensor)
{
    grt_tensor t = {.dtype = (grt_dtype)proto->data_type};
    if (proto->data_type <= 0 || proto->data_type >= GRT_DTYPE_COUNT)
        return FAIL(proto, "data_type %d is not one that is known (1 to %d)", proto->data_type,
                    GRT_DTYPE_COUNT - 1);
    if (proto->n_dims > GRT_MAX_RANK)
        return FAIL(proto, "rank %zu is above the limit of %d", proto->n_dims, GRT_MAX_RANK);
    t.rank = (int32_t)proto->n_dims;
    for (size_t i = 0; i < proto->n_dims; i++) {
        t.dims[i] = proto->dims[i];
        if (t.dims[i] < 0)
            return FAIL(proto, "dim %zu is %" PRId64 "; dims of a tensor must not be negative", i, t.dims[i]);
    }
    if (grt_tensor_elements(&t) < 0 || grt_tensor_bytes(&t) >= SIZE_MAX / 2) {
        grt_text dims = {0};
        grt_text_add_dims(&dims, t.dims, t.rank);
        grt_status status = FAIL(proto, "dims %s overflow", grt_text_get(&dims));
        grt_text_release(&dims);
        return status;
    }
    *out_tensor = t;
    return GRT_OK;
}

grt_status grt_pb_tensor_place(grt_tensor *t, const void *bytes, grt_arena *arena)
{
    size_t n = grt_tensor_bytes(t);
    size_t align = grt_dtype_size(t->dtype);
    if (grt_dtype_in(t->dtype, GRT_SET_COMPLEX))
        align /= 2;
    bool bad_bool = false;
    if (t->dtype == GRT_DTYPE_BOOL)
        for (size_t i = 0; i < n; i++)
            bad_bool |= ((const uint8_t *)bytes)[i] > 1;
    t->memory = GRT_MEMORY_HOST;
    if (n && !bad_bool && (align < 2 || (uintptr_t)bytes % align == 0)) {
        t->data = (void *)bytes; /* never written: constants are read-only */
        return GRT_OK;
    }
    uint8_t *data = grt_arena_memdup(arena, bytes, n);
    if (!data)
        return grt_fail_memory(n);
    for (size_t i = 0; bad_bool && i < n; i++)
        data[i] = data[i] != 0;
    t->data = data;
    return GRT_OK;
}

/* The typed list that holds a dtype's elements. */
typedef struct typed_list {
    const char *name;
    size_t n, size; /* entries, and bytes of one */
    const void *data;
} typed_list;

enum { FLOATS, INT32S, INT64S, DOUBLES, UINT64S, STRINGS, N_LISTS };

static void gather_lists(const Onnx__TensorProto *p, typed_list lists[N_LISTS])
{
    lists[FLOATS] = (typed_list){"float_data", p->n_float_data, sizeof(float), p->float_data};
    lists[INT32S] = (typed_list){"int32_data", p->n_int32_data, sizeof(int32_t), p->int32_data};
    lists[INT64S] = (typed_list){"int64_data", p->n_int64_data, sizeof(int64_t), p->int64_data};
    lists[DOUBLES] = (typed_list){"double_data", p->n_double_data, sizeof(double), p->double_data};
    lists[UINT64S] = (typed_list){"uint64_data", p->n_uint64_data, sizeof(uint64_t), p->uint64_data};
    lists[STRINGS] =
        (typed_list){"string_data", p->n_string_data, sizeof(ProtobufCBinaryData), p->string_data};
}

static int pb_tensor_list_of(grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
    case GRT_DTYPE_COMPLEX64:
        return FLOATS;
    case GRT_DTYPE_DOUBLE:
    case GRT_DTYPE_COMPLEX128:
        return DOUBLES;
    case GRT_DTYPE_INT64:
        return INT64S;
    case GRT_DTYPE_UINT32:
    case GRT_DTYPE_UINT64:
        return UINT64S;
    case GRT_DTYPE_STRING:
        return STRINGS;
    default:
        return INT32S;
    }
}

/* Entries of the typed list: packed types have one per byte, complex ones two per element. */
static size_t list_entries(const grt_tensor *t)
{
    if (grt_dtype_in(t->dtype, GRT_SET_SUBBYTE))
        return grt_tensor_bytes(t);
    return (size_t)grt_tensor_elements(t) * (grt_dtype_in(t->dtype, GRT_SET_COMPLEX) ? 2 : 1);
}

static grt_status copy_int32s(const Onnx__TensorProto *p, const grt_tensor *t, uint8_t *out)
{
    size_t width = grt_dtype_in(t->dtype, GRT_SET_SUBBYTE) ? 1 : grt_dtype_size(t->dtype);
    int32_t high = width == 1 ? 255 : 65535, low = width == 1 ? -128 : -32768;
    for (size_t i = 0; i < p->n_int32_data; i++) {
        int32_t v = p->int32_data[i];
        if (v < low || v > high)
            return FAIL(p, "int32_data[%zu] is %" PRId32 ", which does not fit %s", i, v,
                        grt_dtype_name(t->dtype));
        if (width == 1)
            out[i] = (uint8_t)(t->dtype == GRT_DTYPE_BOOL ? v != 0 : v);
        else
            memcpy(out + 2 * i, &(uint16_t){(uint16_t)v}, 2);
    }
    return GRT_OK;
}

static grt_status pb_tensor_copy_strings(const Onnx__TensorProto *p, grt_string *out, grt_arena *arena)
{
    for (size_t i = 0; i < p->n_string_data; i++) {
        char *bytes = grt_arena_strndup(arena, (const char *)p->string_data[i].data, p->string_data[i].len);
        if (!bytes)
            return grt_fail_memory(p->string_data[i].len);
        out[i] = (grt_string){bytes, p->string_data[i].len};
    }
    return GRT_OK;
}

static grt_status copy_list(const Onnx__TensorProto *p, const typed_list *list, grt_tensor *t,
                            grt_arena *arena)
{
    size_t bytes = grt_tensor_bytes(t);
    t->data = grt_arena_alloc(arena, bytes);
    if (!t->data)
        return grt_fail_memory(bytes);
    if (t->dtype == GRT_DTYPE_STRING)
        return pb_tensor_copy_strings(p, t->data, arena);
    if (t->dtype == GRT_DTYPE_UINT32) {
        for (size_t i = 0; i < list->n; i++) {
            if (p->uint64_data[i] > UINT32_MAX)
                return FAIL(p, "uint64_data[%zu] is %" PRIu64 ", which does not fit uint32", i,
                            p->uint64_data[i]);
            ((uint32_t *)t->data)[i] = (uint32_t)p->uint64_data[i];
        }
        return GRT_OK;
    }
    if (list->data == p->int32_data && t->dtype != GRT_DTYPE_INT32)
        return copy_int32s(p, t, t->data);
    if (list->n)
        memcpy(t->data, list->data, bytes);
    return GRT_OK;
}

/* At most one value field, and the right one. */
static grt_status check_fields(const Onnx__TensorProto *p, const grt_tensor *t,
                               const typed_list lists[N_LISTS])
{
    const char *used = p->has_raw_data ? "raw_data" : NULL;
    int own = pb_tensor_list_of(t->dtype);
    for (int i = 0; i < N_LISTS; i++) {
        if (!lists[i].n)
            continue;
        if (used)
            return FAIL(p, "has both %s and %s; only one value field is allowed", used, lists[i].name);
        if (i != own)
            return FAIL(p, "%s elements belong in %s or raw_data, not in %s", grt_dtype_name(t->dtype),
                        lists[own].name, lists[i].name);
        used = lists[i].name;
    }
    if (p->has_raw_data && t->dtype == GRT_DTYPE_STRING)
        return FAIL(p, "strings must be in string_data, not in raw_data");
    if (p->segment)
        return FAIL(p, "is split into segments, which is not supported");
    return GRT_OK;
}

grt_status grt_pb_tensor(const Onnx__TensorProto *proto, grt_arena *arena, grt_tensor *out_tensor)
{
    grt_tensor t;
    typed_list lists[N_LISTS];
    GRT_TRY(grt_pb_tensor_type(proto, &t));
    gather_lists(proto, lists);
    GRT_TRY(check_fields(proto, &t, lists));
    if (proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return FAIL(proto, "its data is in another file, which cannot be read here");
    char text[GRT_TYPE_TEXT_SIZE];
    if (proto->has_raw_data) {
        grt_string raw = grt_pb_raw(proto);
        if (raw.size != grt_tensor_bytes(&t))
            return FAIL(proto, "raw_data has %zu bytes, but %s takes %zu", raw.size,
                        grt_tensor_text(&t, text), grt_tensor_bytes(&t));
        GRT_TRY(grt_pb_tensor_place(&t, raw.data, arena));
    } else {
        const typed_list *list = &lists[pb_tensor_list_of(t.dtype)];
        if (list->n != list_entries(&t))
            return FAIL(proto, "%s has %zu entries, but %s takes %zu", list->name, list->n,
                        grt_tensor_text(&t, text), list_entries(&t));
        GRT_TRY(copy_list(proto, list, &t, arena));
    }
    *out_tensor = t;
    return GRT_OK;
}

static grt_status tensor_value(const Onnx__TensorProto *proto, grt_arena *arena, grt_value *out)
{
    grt_tensor t;
    GRT_TRY(grt_pb_tensor(proto, arena, &t));
    return grt_value_copy_tensor(out, &t);
}

/* The keys as a tensor in the arena. */
static grt_status map_keys(const Onnx__MapProto *proto, grt_arena *arena, grt_tensor *out)
{
    *out = (grt_tensor){.dtype = (grt_dtype)proto->key_type, .rank = 1};
    out->dims[0] = (int64_t)(out->dtype == GRT_DTYPE_STRING ? proto->n_string_keys : proto->n_keys);
    if (out->dtype != GRT_DTYPE_STRING) {
        out->data = proto->keys;
        return out->dtype == GRT_DTYPE_INT64
                   ? GRT_OK
                   : grt_fail(GRT_STATUS_UNSUPPORTED,
                              "map '%s': key_type is %d; keys are supported that are int64 or string",
                              proto->name ? proto->name : "", proto->key_type);
    }
    grt_string *strings = GRT_ARENA_ARRAY(arena, grt_string, proto->n_string_keys);
    if (!strings)
        return grt_fail_memory(0);
    for (size_t i = 0; i < proto->n_string_keys; i++)
        strings[i] = (grt_string){(const char *)proto->string_keys[i].data, proto->string_keys[i].len};
    out->data = strings;
    return GRT_OK;
}

/* One element of each of the tensors. */
static grt_status map_values(const Onnx__MapProto *proto, grt_arena *arena, grt_tensor *out)
{
    const Onnx__SequenceProto *list = proto->values;
    const size_t n = list ? list->n_tensor_values : 0;
    const char *name = proto->name ? proto->name : "";
    *out = (grt_tensor){.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {(int64_t)n}};
    char *elements = NULL;
    for (size_t i = 0; i < n; i++) {
        grt_tensor t;
        GRT_TRY(grt_pb_tensor(list->tensor_values[i], arena, &t));
        const size_t size = grt_dtype_size(t.dtype);
        if (!elements) {
            out->dtype = t.dtype;
            out->data = elements = size ? grt_arena_calloc(arena, n, size) : NULL;
            if (size && !elements)
                return grt_fail_memory(n * size);
        }
        if (!size || t.dtype != out->dtype || grt_tensor_elements(&t) != 1)
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "map '%s': value %zu is not one element of the dtype of the others", name, i);
        memcpy(elements + i * size, t.data, size);
    }
    return GRT_OK;
}

static grt_status map_value(const Onnx__MapProto *proto, grt_arena *arena, grt_value *out)
{
    grt_tensor keys, values;
    GRT_TRY(map_keys(proto, arena, &keys));
    GRT_TRY(map_values(proto, arena, &values));
    const char *name = proto->name ? proto->name : "";
    if (keys.dims[0] != values.dims[0])
        return grt_fail(GRT_STATUS_INVALID_MODEL, "map '%s': there are %lld keys and %lld values", name,
                        (long long)keys.dims[0], (long long)values.dims[0]);
    const grt_status status = grt_value_make_map(out, &keys, &values);
    return status == GRT_STATUS_INVALID_ARGUMENT
               ? grt_fail_context(GRT_STATUS_INVALID_MODEL, "map '%s'", name)
               : status;
}

static grt_status sequence_value(const Onnx__SequenceProto *proto, grt_arena *arena, grt_value *out)
{
    grt_value list = {.kind = GRT_KIND_SEQUENCE};
    const bool maps = proto->n_map_values > 0;
    size_t n = maps ? proto->n_map_values : proto->n_tensor_values;
    if (proto->n_sparse_tensor_values || proto->n_sequence_values || proto->n_optional_values ||
        (maps && proto->n_tensor_values))
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "sequence '%s': only sequences of tensors, or of maps, are supported",
                        proto->name ? proto->name : "");
    grt_status status = GRT_OK;
    for (size_t i = 0; status == GRT_OK && i < n; i++) {
        grt_value *item;
        status = grt_value_insert(&list, i, &item);
        if (status == GRT_OK)
            status = maps ? map_value(proto->map_values[i], arena, item)
                          : tensor_value(proto->tensor_values[i], arena, item);
        if (status == GRT_OK && i && item->t.dtype != list.items[0].t.dtype)
            status = grt_fail(GRT_STATUS_INVALID_MODEL, "sequence '%s': item %zu is %s, but item 0 is %s",
                              proto->name ? proto->name : "", i, grt_dtype_name(item->t.dtype),
                              grt_dtype_name(list.items[0].t.dtype));
    }
    if (status != GRT_OK) {
        grt_value_clear(&list);
        return status;
    }
    list.t.dtype = n ? list.items[0].t.dtype : GRT_DTYPE_NONE;
    grt_value_clear(out);
    *out = list;
    return GRT_OK;
}

static grt_status optional_value(const Onnx__OptionalProto *proto, grt_arena *arena, grt_value *out)
{
    grt_value list = {.kind = GRT_KIND_OPTIONAL};
    if (proto->sparse_tensor_value || proto->map_value || proto->optional_value)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "optional '%s': only tensors and sequences of tensors are supported",
                        proto->name ? proto->name : "");
    grt_status status = GRT_OK;
    if (proto->tensor_value || proto->sequence_value) {
        grt_value *item;
        status = grt_value_insert(&list, 0, &item);
        if (status == GRT_OK)
            status = proto->tensor_value ? tensor_value(proto->tensor_value, arena, item)
                                         : sequence_value(proto->sequence_value, arena, item);
        if (status == GRT_OK)
            list.t.dtype = item->t.dtype;
    }
    if (status != GRT_OK) {
        grt_value_clear(&list);
        return status;
    }
    grt_value_clear(out);
    *out = list;
    return GRT_OK;
}

grt_status grt_pb_value(const void *bytes, size_t size, grt_kind kind, grt_kind element_kind,
                        grt_value *out_value)
{
    const ProtobufCMessageDescriptor *descriptors[] = {
        &onnx__tensor_proto__descriptor, &onnx__sequence_proto__descriptor, &onnx__optional_proto__descriptor,
        &onnx__map_proto__descriptor};
    (void)element_kind; /* the message itself says what an optional holds */
    grt_arena *arena = grt_arena_create();
    if (!arena)
        return grt_fail_memory(1);
    ProtobufCMessage *message;
    grt_status status = grt_pb_unpack(descriptors[kind], bytes, size, arena, &message);
    if (status == GRT_OK) {
        if (kind == GRT_KIND_TENSOR)
            status = tensor_value((Onnx__TensorProto *)message, arena, out_value);
        else if (kind == GRT_KIND_SEQUENCE)
            status = sequence_value((Onnx__SequenceProto *)message, arena, out_value);
        else if (kind == GRT_KIND_MAP)
            status = map_value((Onnx__MapProto *)message, arena, out_value);
        else
            status = optional_value((Onnx__OptionalProto *)message, arena, out_value);
    }
    grt_arena_release(arena);
    return status;
}
