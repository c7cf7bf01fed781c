/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/pool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *take(void *arena, size_t size)
{
    return grt_arena_alloc(arena, size ? size : 1);
}

static void leave(void *arena, void *data)
{
    (void)arena;
    (void)data;
}

Onnx__ModelProto *pool_unpack(grt_arena *arena, const unsigned char *bytes, size_t size)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    return onnx__model_proto__unpack(&allocator, size, bytes);
}

ProtobufCMessage *pool_copy(grt_arena *arena, const ProtobufCMessage *message)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = leave, .allocator_data = arena};
    const size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = grt_arena_alloc(arena, size + 1);
    protobuf_c_message_pack(message, bytes);
    return protobuf_c_message_unpack(message->descriptor, &allocator, size, bytes);
}

static bool read_case(pool *p, const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/model.onnx", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return true; /* a case without a model */
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *bytes = size > 0 ? grt_arena_alloc(p->arena, (size_t)size) : NULL;
    const bool ok = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (ok)
        p->cases[p->n_cases++] =
            (pool_case){.name = grt_arena_strdup(p->arena, name), .bytes = bytes, .size = (size_t)size};
    return ok;
}

static bool read_cases(pool *p, const char *directory)
{
    struct dirent **entries;
    const int n = scandir(directory, &entries, NULL, alphasort);
    if (n < 0)
        return false;
    bool ok = true;
    p->cases = GRT_ARENA_ARRAY(p->arena, pool_case, n);
    for (int i = 0; i < n; i++) {
        ok = ok && (entries[i]->d_name[0] == '.' || read_case(p, directory, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    return ok && p->n_cases;
}

static bool read_nodes(pool *p)
{
    size_t room = 0;
    Onnx__ModelProto **models = GRT_ARENA_ARRAY(p->arena, Onnx__ModelProto *, p->n_cases);
    for (size_t i = 0; i < p->n_cases; i++) {
        models[i] = pool_unpack(p->arena, p->cases[i].bytes, p->cases[i].size);
        if (!models[i] || !models[i]->graph)
            return false;
        room += models[i]->graph->n_node;
    }
    p->nodes = GRT_ARENA_ARRAY(p->arena, Onnx__NodeProto *, room);
    for (size_t i = 0; i < p->n_cases; i++)
        for (size_t k = 0; k < models[i]->graph->n_node; k++)
            p->nodes[p->n_nodes++] = models[i]->graph->node[k];
    return room > 0;
}

bool pool_open(const char *directory, pool *out)
{
    *out = (pool){.arena = grt_arena_create()};
    if (out->arena && read_cases(out, directory) && read_nodes(out))
        return true;
    fprintf(stderr, "mutate: %s: no models, or one that cannot be read\n", directory);
    pool_release(out);
    return false;
}

void pool_release(pool *p)
{
    grt_arena_release(p->arena);
}
