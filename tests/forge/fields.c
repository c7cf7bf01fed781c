/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/forge/fields.h"

#include "tests/differential/draw.h"
#include "tests/mutate/content.h"

#include <string.h>

static void *data_of(const field *f)
{
    return (char *)f->of + f->is->offset;
}

/* Of a repeated field. */
static size_t *count_of(const field *f)
{
    return (size_t *)((char *)f->of + f->is->quantifier_offset);
}

void fields_collect(fields *f, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields && f->n < FIELDS_MOST; i++) {
        const field one = {&message->descriptor->fields[i], message};
        f->at[f->n++] = one;
        if (one.is->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (one.is->label == PROTOBUF_C_LABEL_REPEATED) {
            ProtobufCMessage **list = *(ProtobufCMessage ***)data_of(&one);
            for (size_t k = 0; k < *count_of(&one); k++)
                fields_collect(f, list[k]);
        } else if (*(ProtobufCMessage **)data_of(&one)) {
            fields_collect(f, *(ProtobufCMessage **)data_of(&one));
        }
    }
}

static size_t width(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 8;
    }
}

/* Mostly a neighbouring number: the index of another value, another form of the operator. */
static void change_int(size_t size, void *at)
{
    int64_t v = 0;
    memcpy(&v, at, size); /* little-endian, as plans are */
    v = draw(0, 2)   ? (int64_t)((uint64_t)v + (uint64_t)draw(-3, 3))
        : draw(0, 1) ? draw(0, 40)
                     : telling_int();
    memcpy(at, &v, size);
}

/* The field as a number; false for other fields. */
static bool change_number(ProtobufCType type, void *at)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = !*(protobuf_c_boolean *)at;
        return true;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)at = telling_float();
        return true;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = (double)telling_float();
        return true;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_BYTES:
        return false;
    default:
        change_int(width(type), at);
        return true;
    }
}

static bool change_bytes(grt_arena *arena, ProtobufCBinaryData *b)
{
    if (!b->len)
        return false;
    b->data = grt_arena_memdup(arena, b->data, b->len);
    if (draw(0, 1))
        b->len = (size_t)draw(0, (int64_t)b->len - 1);
    else
        b->data[draw(0, (int64_t)b->len - 1)] = (uint8_t)draw(0, 255);
    return true;
}

/* The text that the same field has in another message: an operator's name, a format. */
static bool change_string(const fields *f, const field *one)
{
    for (int tries = 0; tries < 20; tries++) {
        const field *other = &f->at[draw(0, (int64_t)f->n - 1)];
        if (other->is == one->is && other->of != one->of) {
            *(char **)data_of(one) = *(char **)data_of(other);
            return true;
        }
    }
    return false;
}

static void list_drop(char *list, size_t *n, size_t size, size_t i)
{
    memmove(list + i * size, list + (i + 1) * size, (*n - i - 1) * size);
    --*n;
}

static void list_repeat(grt_arena *arena, char **list, size_t *n, size_t size, size_t i)
{
    char *longer = grt_arena_alloc(arena, (*n + 1) * size);
    memcpy(longer, *list, *n * size);
    memcpy(longer + *n * size, *list + i * size, size);
    *list = longer;
    ++*n;
}

static void list_swap(char *list, size_t size, size_t i, size_t k)
{
    char kept[sizeof(ProtobufCBinaryData)];
    memcpy(kept, list + i * size, size);
    memmove(list + i * size, list + k * size, size);
    memcpy(list + k * size, kept, size);
}

static bool change_list(fields *f, const field *one)
{
    char **list = data_of(one);
    size_t *n = count_of(one);
    const size_t size = width(one->is->type);
    if (!*n) { /* one to three numbers where there were none */
        *list = grt_arena_calloc(f->arena, 3, size);
        *n = (size_t)draw(1, 3);
        bool any = true;
        for (size_t i = 0; any && i < *n; i++)
            any = change_number(one->is->type, *list + i * size);
        *n = any ? *n : 0;
        return any;
    }
    const size_t i = (size_t)draw(0, (int64_t)*n - 1);
    switch (draw(0, 4)) {
    case 0:
        list_drop(*list, n, size, i);
        return true;
    case 1:
        list_repeat(f->arena, list, n, size, i);
        return true;
    case 2:
        list_swap(*list, size, i, (size_t)draw(0, (int64_t)*n - 1));
        return true;
    default:
        return change_number(one->is->type, *list + i * size);
    }
}

bool fields_change(fields *f, const field *one)
{
    if (one->is->label == PROTOBUF_C_LABEL_REPEATED)
        return change_list(f, one);
    if (one->is->type == PROTOBUF_C_TYPE_STRING)
        return change_string(f, one);
    if (one->is->type == PROTOBUF_C_TYPE_BYTES)
        return change_bytes(f->arena, data_of(one));
    return change_number(one->is->type, data_of(one));
}
