/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/import/messages.h"

#include "graph/import/importer.h"
#include "src/plan/plan.h"

struct import_messages {
    importer imp;
    compile_source source;
    grt_file_map map;
};

static void close_map(void *messages)
{
    grt_file_map_close(&((import_messages *)messages)->map);
}

grt_status import_messages_open(const compile_source *source, grt_arena *arena, import_messages **out)
{
    import_messages *m = GRT_ARENA_NEW(arena, import_messages);
    ProtobufCMessage *message;
    if (!m)
        return grt_fail_memory(sizeof *m);
    m->source = *source;
    m->imp = (importer){.source = &m->source, .arena = arena, .scratch = arena};
    GRT_TRY(grt_file_map_open(source->path, &m->map));
    if (!grt_arena_defer(arena, close_map, m))
        return grt_fail_memory(0);
    if (grt_plan_recognize(m->map.data, m->map.size))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "%s: this is a plan, made by graphc optimize; an ONNX model is wanted", source->path);
    grt_status status =
        grt_pb_unpack(&onnx__model_proto__descriptor, m->map.data, m->map.size, arena, &message);
    if (status != GRT_OK)
        return compile_fail_file(status, source->path);
    m->imp.model = (const Onnx__ModelProto *)message;
    if (!m->imp.model->graph)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "%s: not an ONNX model: it has no graph", source->path);
    *out = m;
    return GRT_OK;
}

Onnx__ModelProto *import_messages_model(const import_messages *messages)
{
    return (Onnx__ModelProto *)(uintptr_t)messages->imp.model;
}

grt_status import_messages_tensor(import_messages *messages, const Onnx__TensorProto *proto,
                                  const grt_tensor **out_tensor)
{
    return compile_fail_file(import_tensor(&messages->imp, proto, out_tensor), messages->source.path);
}
