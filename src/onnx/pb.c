/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking: the walk before protobuf-c, and the fields that it removes. */
#include "src/onnx/pb.h"

#include "src/base/checked.h"
#include "src/onnx/other_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LENGTH_BYTES = 5, /* lengths are written padded, so that they can be filled in afterwards */
    RAW_DATA_TAG = 9, /* TensorProto.raw_data */
};

/* A message may want this much memory once unpacked: the ratio of an empty message to its two bytes is over a
 * hundred, that of real models below ten. */
enum {
    FREE_BYTES = 16 << 20,
    BYTES_PER_BYTE = 64,
    FIELD_BYTES = 64 /* protobuf-c's notes on one field while it decodes */
};

/* What stands in for raw_data in the bytes that protobuf-c sees. */
typedef struct raw_place {
    const uint8_t *data;
    uint64_t size;
} raw_place;

typedef struct walk {
    const uint8_t *begin; /* of the whole file, for offsets in messages */
    uint8_t *out;
    size_t size, capacity;
    size_t wanted, allowed; /* memory of the unpacked message */
    bool free_text;         /* within metadata_props */
} walk;

static grt_status pb_fail_at(const walk *w, const uint8_t *p, const char *what)
{
    return grt_fail(GRT_STATUS_INVALID_MODEL, "not a valid ONNX file: %s at byte %zu", what,
                    (size_t)(p - w->begin));
}

static grt_status pb_put(walk *w, const void *bytes, size_t n)
{
    if (n > w->capacity - w->size) {
        size_t capacity = w->capacity * 2 + n + 4096;
        uint8_t *out = realloc(w->out, capacity);
        if (!out)
            return grt_fail_memory(capacity);
        w->out = out;
        w->capacity = capacity;
    }
    memcpy(w->out + w->size, bytes, n);
    w->size += n;
    return GRT_OK;
}

static grt_status get_varint(const walk *w, const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (*p == end)
            return pb_fail_at(w, *p, "it ends in the middle of a number");
        uint8_t byte = *(*p)++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return GRT_OK;
        }
    }
    return pb_fail_at(w, *p, "a number of more than 10 bytes");
}

static int wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 5;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 1;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 2;
    default:
        return 0;
    }
}

/* What a model says of itself: text of any kind, with line ends. CatBoost's version is what it was built of.
 */
static bool is_description(const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor *field)
{
    static const char *const of_model[] = {"producer_name", "producer_version", "domain", "metadata_props"};
    const bool model = message == &onnx__model_proto__descriptor;
    for (size_t i = 0; model && i < sizeof of_model / sizeof *of_model; i++)
        if (!strcmp(field->name, of_model[i]))
            return true;
    return (model || message == &onnx__graph_proto__descriptor) && !strcmp(field->name, "doc_string");
}

/* Fields that nothing here reads: documentation of parts, training, device hints. */
static bool is_dropped(const ProtobufCMessageDescriptor *message, const ProtobufCFieldDescriptor *field)
{
    if (is_description(message, field))
        return false;
    static const char *const names[] = {
        "doc_string",    "metadata_props",          "training_info", "device_configurations",
        "configuration", "quantization_annotation", "denotation"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(field->name, names[i]))
            return true;
    return false;
}

static grt_status check_string(const walk *w, const ProtobufCMessageDescriptor *message,
                               const ProtobufCFieldDescriptor *field, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < 0x20 || p[i] == 0x7f)
            return grt_fail(GRT_STATUS_INVALID_MODEL,
                            "not a valid ONNX file: %s.%s at byte %zu contains the control character 0x%02x; "
                            "names must be "
                            "printable",
                            message->short_name, field->name, (size_t)(p + i - w->begin), p[i]);
    return GRT_OK;
}

static grt_status want(walk *w, const uint8_t *p, size_t bytes)
{
    w->wanted += bytes;
    if (w->wanted <= w->allowed)
        return GRT_OK;
    return pb_fail_at(
        w, p,
        "more empty messages than a model has, memory for them would be out of proportion to the file,");
}

static grt_status walk_message(walk *w, const ProtobufCMessageDescriptor *message, const uint8_t *p,
                               const uint8_t *end, int depth);

static grt_status walk_submessage(walk *w, const ProtobufCFieldDescriptor *field, const uint8_t *p, size_t n,
                                  int depth)
{
    if (depth >= GRT_PB_MAX_DEPTH)
        return pb_fail_at(w, p, "messages nested deeper than 100 levels");
    const ProtobufCMessageDescriptor *message = field->descriptor;
    static const uint8_t room[LENGTH_BYTES];
    size_t at = w->size;
    GRT_TRY(pb_put(w, room, LENGTH_BYTES));
    GRT_TRY(walk_message(w, message, p, p + n, depth + 1));
    uint64_t length = w->size - at - LENGTH_BYTES;
    if (length > INT32_MAX)
        return pb_fail_at(w, p, "a message of more than 2 GiB without its raw data");
    for (int i = 0; i < LENGTH_BYTES; i++)
        w->out[at + (size_t)i] = (uint8_t)((length >> 7 * i & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return GRT_OK;
}

static grt_status walk_sized(walk *w, const ProtobufCMessageDescriptor *message,
                             const ProtobufCFieldDescriptor *field, const uint8_t *start,
                             const uint8_t *tag_end, const uint8_t *p, size_t n, int depth)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        GRT_TRY(pb_put(w, start, (size_t)(tag_end - start)));
        w->free_text = is_description(message, field);
        const grt_status status = walk_submessage(w, field, p, n, depth);
        w->free_text = false;
        return status;
    }
    if (message == &onnx__tensor_proto__descriptor && field->id == RAW_DATA_TAG) {
        raw_place place = {p, n};
        uint8_t size = sizeof place;
        GRT_TRY(pb_put(w, start, (size_t)(tag_end - start)));
        GRT_TRY(pb_put(w, &size, 1));
        return pb_put(w, &place, sizeof place);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING && !w->free_text && !is_description(message, field))
        GRT_TRY(check_string(w, message, field, p, n));
    if (n > INT32_MAX)
        return pb_fail_at(w, p, "a field of more than 2 GiB");
    /* Packed varints take 1 byte in the file and up to 8 in memory. */
    GRT_TRY(want(w, start, n * (wire_type(field->type) == 0 ? 8 : 1)));
    return pb_put(w, start, (size_t)(p - start) + n);
}

/* A field that is not repeated may come once: decoders would merge what comes again, at any cost. */
static grt_status check_once(const walk *w, const ProtobufCMessageDescriptor *message,
                             const ProtobufCFieldDescriptor *field, const uint8_t *start, uint64_t *seen)
{
    uint64_t bit = (uint64_t)1 << ((size_t)(field - message->fields) & 63);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return GRT_OK;
    if (*seen & bit)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "not a valid ONNX file: %s.%s is given twice, at byte %zu",
                        message->short_name, field->name, (size_t)(start - w->begin));
    *seen |= bit;
    return GRT_OK;
}

static grt_status walk_field(walk *w, const ProtobufCMessageDescriptor *message, const uint8_t **at,
                             const uint8_t *end, int depth, uint64_t *seen)
{
    const uint8_t *start = *at, *p = start;
    uint64_t tag, n = 0;
    GRT_TRY(get_varint(w, &p, end, &tag));
    int type = (int)(tag & 7);
    if (tag >> 3 == 0 || tag >> 32)
        return pb_fail_at(w, start, "an impossible field number");
    const uint8_t *tag_end = p;
    if (type == 0)
        GRT_TRY(get_varint(w, &p, end, &n));
    else if (type == 2)
        GRT_TRY(get_varint(w, &p, end, &n));
    else if (type != 1 && type != 5)
        return pb_fail_at(w, start, "an impossible wire type");
    size_t body = type == 0 ? 0 : type == 1 ? 8 : type == 5 ? 4 : (size_t)n;
    if (body > (size_t)(end - p))
        return pb_fail_at(w, start, "a field that is longer than what is left");
    *at = p + body;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message, (unsigned)(tag >> 3));
    if (!field || is_dropped(message, field))
        return GRT_OK;
    GRT_TRY(check_once(w, message, field, start, seen));
    GRT_TRY(want(w, start, FIELD_BYTES));
    int expected = wire_type(field->type);
    if (type != expected && !(type == 2 && field->label == PROTOBUF_C_LABEL_REPEATED))
        return grt_fail(GRT_STATUS_INVALID_MODEL,
                        "not a valid ONNX file: %s.%s at byte %zu has wire type %d instead of %d",
                        message->short_name, field->name, (size_t)(start - w->begin), type, expected);
    if (type == 2)
        return walk_sized(w, message, field, start, tag_end, p, body, depth);
    return pb_put(w, start, (size_t)(*at - start));
}

static grt_status walk_message(walk *w, const ProtobufCMessageDescriptor *message, const uint8_t *p,
                               const uint8_t *end, int depth)
{
    GRT_TRY(want(w, p, message->sizeof_message + 32));
    uint64_t seen = 0;
    while (p < end)
        GRT_TRY(walk_field(w, message, &p, end, depth, &seen));
    return GRT_OK;
}

static void *arena_alloc(void *arena, size_t size)
{
    return grt_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

grt_status grt_pb_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                         grt_arena *arena, ProtobufCMessage **out_message)
{
    walk w = {.begin = bytes};
    if (!grt_mul_size(size, BYTES_PER_BYTE, &w.allowed) || !grt_add_size(w.allowed, FREE_BYTES, &w.allowed))
        w.allowed = SIZE_MAX;
    grt_status status = size ? walk_message(&w, descriptor, bytes, (const uint8_t *)bytes + size, 0) : GRT_OK;
    if (status == GRT_OK) {
        ProtobufCAllocator allocator = {arena_alloc, arena_free, arena};
        *out_message = protobuf_c_message_unpack(descriptor, &allocator, w.size, w.out);
        if (!*out_message)
            status = grt_arena_failed(arena)
                         ? grt_fail_memory(w.size)
                         : grt_fail(GRT_STATUS_INVALID_MODEL, "not a valid ONNX file: %s does not decode",
                                    descriptor->short_name);
    }
    free(w.out);
    const char *other = status == GRT_STATUS_INVALID_MODEL ? grt_other_file(bytes, size) : NULL;
    return other ? grt_fail(status, "not an ONNX file, but %s", other) : status;
}

grt_string grt_pb_raw(const Onnx__TensorProto *proto)
{
    if (!proto->has_raw_data)
        return (grt_string){NULL, 0};
    raw_place place;
    memcpy(&place, proto->raw_data.data, sizeof place);
    return (grt_string){(const char *)place.data, place.size};
}
