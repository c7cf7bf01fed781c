/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/pack.h"

#include "src/base/checked.h"
#include "src/base/grow.h"
#include "src/base/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL = 1024,     /* bytes of a weight that is never external */
    ALIGNMENT = 4096, /* of external weights, so that readers can map them */
    MESSAGE_LIMIT = 0x7fffffff,
    SPARE = 1 << 24 /* what names and tags add, far above what they do */
};

/* Where weights go. */
typedef enum placement { PLACE_INSIDE, PLACE_MEMORY, PLACE_FILE } placement;

typedef struct packing {
    document *d;
    placement placement;
    const char *location; /* PLACE_FILE: name of the file with weights */
    uint64_t offset;      /* its size so far */
    names used;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    packed_model *memory;
} packing;

static void note_use(void *user, const char *name)
{
    packing *p = user;
    if (*name && !names_add(&p->used, p->d->arena, name))
        grt_arena_fail(p->d->arena);
}

static void note_uses(packing *p)
{
    const document *d = p->d;
    for (size_t i = 0; i < d->n_nodes; i++) {
        for (size_t k = 0; k < d->nodes[i]->n_input; k++)
            note_use(p, node_in(d->nodes[i], k));
        node_each_captured(d->nodes[i], note_use, p);
    }
    for (size_t i = 0; i < d->n_outputs; i++)
        note_use(p, d->outputs[i]->name);
}

static void add_entry(packing *p, Onnx__TensorProto *t, const char *key, char *value)
{
    Onnx__StringStringEntryProto *entry = GRT_ARENA_NEW(p->d->arena, Onnx__StringStringEntryProto);
    if (!entry || !value) {
        grt_arena_fail(p->d->arena);
        return;
    }
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)(uintptr_t)key;
    entry->value = value;
    t->external_data[t->n_external_data++] = entry;
}

static void place_outside(packing *p, Onnx__TensorProto *t, const document_weight *w)
{
    grt_arena *arena = p->d->arena;
    const size_t bytes = grt_tensor_bytes(&w->tensor);
    t->external_data = GRT_ARENA_ARRAY(arena, Onnx__StringStringEntryProto *, 3);
    if (!t->external_data)
        return;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (p->placement == PLACE_FILE) {
        p->offset = (p->offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        add_entry(p, t, "location", (char *)(uintptr_t)p->location);
        add_entry(p, t, "offset", grt_arena_printf(arena, "%" PRIu64, p->offset));
        add_entry(p, t, "length", grt_arena_printf(arena, "%zu", bytes));
        p->offset += bytes;
        return;
    }
    packed_model *m = p->memory;
    char *location = grt_arena_printf(arena, "%zu", m->n_external);
    add_entry(p, t, "location", location);
    m->external[m->n_external++] =
        (grt_external_data){.location = location, .data = w->tensor.data, .size = bytes};
}

static Onnx__TensorProto *weight_message(packing *p, const document_weight *w)
{
    if (w->message)
        return w->message;
    Onnx__TensorProto *t = GRT_ARENA_NEW(p->d->arena, Onnx__TensorProto);
    if (!t)
        return NULL;
    onnx__tensor_proto__init(t);
    t->name = (char *)(uintptr_t)w->name;
    t->has_data_type = 1;
    t->data_type = (int32_t)w->tensor.dtype;
    t->n_dims = (size_t)w->tensor.rank;
    t->dims = grt_arena_memdup(p->d->arena, w->tensor.dims, t->n_dims * sizeof *t->dims);
    const size_t bytes = grt_tensor_bytes(&w->tensor);
    if (p->placement != PLACE_INSIDE && bytes > SMALL) {
        place_outside(p, t, w);
        return t;
    }
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){bytes, w->tensor.data};
    return t;
}

static void pack_place_weights(packing *p)
{
    document *d = p->d;
    p->graph.n_initializer = 0;
    p->graph.initializer = GRT_ARENA_ARRAY(d->arena, Onnx__TensorProto *, d->n_weights + 1);
    for (size_t i = 0; p->graph.initializer && i < d->n_weights; i++)
        if (names_find(&p->used, d->weights[i]->name))
            p->graph.initializer[p->graph.n_initializer++] = weight_message(p, d->weights[i]);
}

/* ai.onnx in the document's version, other domains as they were. */
static void place_opsets(packing *p)
{
    const Onnx__ModelProto *source = p->d->source;
    p->model.opset_import =
        GRT_ARENA_ARRAY(p->d->arena, Onnx__OperatorSetIdProto *, source->n_opset_import + 1);
    for (size_t i = 0; p->model.opset_import && i < source->n_opset_import; i++) {
        Onnx__OperatorSetIdProto *id =
            grt_arena_memdup(p->d->arena, source->opset_import[i], sizeof *source->opset_import[i]);
        if (id && (!id->domain || !*id->domain || !strcmp(id->domain, "ai.onnx")))
            id->version = p->d->opset;
        p->model.opset_import[i] = id;
    }
}

/* The source's entries but for one of an earlier call, then the document's. */
static void place_about(packing *p)
{
    static const char *const key = "graphrt.quantize";
    const Onnx__ModelProto *source = p->d->source;
    Onnx__StringStringEntryProto **entries =
        GRT_ARENA_ARRAY(p->d->arena, Onnx__StringStringEntryProto *, source->n_metadata_props + 1);
    Onnx__StringStringEntryProto *about = grt_arena_calloc(p->d->arena, 1, sizeof *about);
    if (!p->d->about || !entries || !about)
        return;
    size_t n = 0;
    for (size_t i = 0; i < source->n_metadata_props; i++)
        if (strcmp(source->metadata_props[i]->key, key) != 0)
            entries[n++] = source->metadata_props[i];
    onnx__string_string_entry_proto__init(about);
    about->key = (char *)(uintptr_t)key;
    about->value = (char *)(uintptr_t)p->d->about;
    entries[n++] = about;
    p->model.metadata_props = entries;
    p->model.n_metadata_props = n;
}

static grt_status pack_begin(packing *p, document *d)
{
    p->d = d;
    note_uses(p);
    p->model = *d->source;
    p->graph = *d->source->graph;
    p->model.graph = &p->graph;
    p->model.ir_version = d->ir_version;
    p->model.producer_name = (char *)(uintptr_t) "graphc quantize";
    p->model.producer_version = (char *)(uintptr_t)grt_version();
    p->graph.n_node = d->n_nodes;
    p->graph.node = d->nodes;
    p->graph.n_input = d->n_inputs;
    p->graph.input = d->inputs;
    p->graph.n_output = d->n_outputs;
    p->graph.output = d->outputs;
    p->graph.n_value_info = 0; /* they describe values that are others now */
    place_opsets(p);
    place_about(p);
    pack_place_weights(p);
    return document_check(d);
}

static grt_status pack_size(const packing *p, size_t *out)
{
    *out = onnx__model_proto__get_packed_size(&p->model);
    return *out <= MESSAGE_LIMIT
               ? GRT_OK
               : grt_fail(GRT_STATUS_UNSUPPORTED,
                          "the model's nodes alone take %zu bytes; a message has 2 GiB at most", *out);
}

grt_status pack_memory(document *d, packed_model *out)
{
    *out = (packed_model){.external = GRT_ARENA_ARRAY(d->arena, grt_external_data, d->n_weights + 1)};
    packing p = {.placement = PLACE_MEMORY, .memory = out};
    if (!out->external)
        return grt_fail_memory(0);
    GRT_TRY(pack_begin(&p, d));
    GRT_TRY(pack_size(&p, &out->size));
    out->bytes = malloc(out->size ? out->size : 1);
    if (!out->bytes)
        return grt_fail_memory(out->size);
    onnx__model_proto__pack(&p.model, out->bytes);
    return GRT_OK;
}

void pack_release(packed_model *p)
{
    free(p->bytes);
    *p = (packed_model){0};
}

/* protobuf-c's way to write without a copy of everything. */
typedef struct sink {
    ProtobufCBuffer base; /* first: protobuf-c passes its address */
    grt_output *output;
    grt_status status;
} sink;

static void sink_append(ProtobufCBuffer *buffer, size_t size, const uint8_t *data)
{
    sink *s = (sink *)buffer;
    if (s->status == GRT_OK)
        s->status = grt_output_write(s->output, data, size);
}

static grt_status pack_write_message(const packing *p, grt_output *o)
{
    sink s = {.base = {sink_append}, .output = o};
    onnx__model_proto__pack_to_buffer(&p->model, &s.base);
    return s.status;
}

static grt_status pack_write_weights(const packing *p, grt_output *o)
{
    for (size_t i = 0; i < p->d->n_weights; i++) {
        const document_weight *w = p->d->weights[i];
        const size_t bytes = w->message ? 0 : grt_tensor_bytes(&w->tensor);
        if (bytes <= SMALL || !names_find(&p->used, w->name))
            continue;
        GRT_TRY(grt_output_zeros(o, (size_t)(-o->size % ALIGNMENT)));
        GRT_TRY(grt_output_write(o, w->tensor.data, bytes));
    }
    return GRT_OK;
}

static uint64_t weight_bytes(const document *d)
{
    uint64_t total = 0;
    for (size_t i = 0; i < d->n_weights; i++)
        total += d->weights[i]->message ? 0 : grt_tensor_bytes(&d->weights[i]->tensor);
    return total;
}

static grt_status commit_both(packing *p, grt_output *model, grt_output *data)
{
    GRT_TRY(pack_write_message(p, model));
    if (p->placement == PLACE_FILE) {
        GRT_TRY(pack_write_weights(p, data));
        GRT_TRY(grt_output_commit(data));
    }
    return grt_output_commit(model);
}

grt_status pack_file(document *d, const char *path, bool external, uint64_t *out_bytes)
{
    packing p = {.placement =
                     external || weight_bytes(d) > MESSAGE_LIMIT - SPARE ? PLACE_FILE : PLACE_INSIDE};
    const char *slash = strrchr(path, '/'), *beside = grt_arena_printf(d->arena, "%s.data", path);
    grt_output model = {.fd = -1}, data = {.fd = -1};
    size_t size;
    if (!beside)
        return grt_fail_memory(0);
    p.location = slash ? beside + (slash - path) + 1 : beside;
    GRT_TRY(pack_begin(&p, d));
    GRT_TRY(pack_size(&p, &size));
    grt_status status = grt_output_open(&model, path);
    if (status == GRT_OK && p.placement == PLACE_FILE)
        status = grt_output_open(&data, beside);
    if (status == GRT_OK)
        status = commit_both(&p, &model, &data);
    *out_bytes = model.size + data.size;
    grt_output_close(&model);
    grt_output_close(&data);
    return status;
}
