/* SPDX-License-Identifier: Apache-2.0 */
/* The models that mutants are made of: their bytes, and their nodes as donors of ops and attributes. */
#ifndef GRT_TESTS_MUTATE_POOL_H
#define GRT_TESTS_MUTATE_POOL_H

#include "proto/onnx.pb-c.h"
#include "src/base/arena.h"

typedef struct pool_case {
    const char *name; /* of its directory */
    const unsigned char *bytes;
    size_t size;
} pool_case;

typedef struct pool {
    grt_arena *arena;
    pool_case *cases; /* by name */
    size_t n_cases;
    Onnx__NodeProto **nodes; /* of the main graphs */
    size_t n_nodes;
} pool;

/* DIRECTORY/<case>/model.onnx. False, and a line on stderr, if there is none or one is not to be read. */
bool pool_open(const char *directory, pool *out);
void pool_release(pool *p);

/* A message in an arena: what it points to may be changed and dropped at will. NULL if the bytes are none. */
/* pool_copy: of a message, with all that it points to. */
ProtobufCMessage *pool_copy(grt_arena *arena, const ProtobufCMessage *message);
Onnx__ModelProto *pool_unpack(grt_arena *arena, const unsigned char *bytes, size_t size);

#endif
