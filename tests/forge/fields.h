/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a message of protobuf-c and of all messages in it, seen through their descriptors, and changes of
 * one. */
#ifndef GRT_TESTS_FORGE_FIELDS_H
#define GRT_TESTS_FORGE_FIELDS_H

#include "src/base/arena.h"

#include <protobuf-c/protobuf-c.h>

enum { FIELDS_MOST = 1 << 15 };

typedef struct field {
    const ProtobufCFieldDescriptor *is;
    ProtobufCMessage *of;
} field;

typedef struct fields {
    grt_arena *arena; /* of the message: what it points to may be changed and dropped at will */
    size_t n;
    field at[FIELDS_MOST];
} fields;

/* What lies behind FIELDS_MOST is not changed. */
void fields_collect(fields *f, ProtobufCMessage *message);
/* Changes one of them. False if it is empty or has no other valid value. */
bool fields_change(fields *f, const field *one);

#endif
