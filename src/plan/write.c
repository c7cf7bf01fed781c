/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files out: the same plan gives the same bytes, and a file is there whole or not at all. */
#include "src/plan/format.h"

#include "proto/plan.pb-c.h"
#include "src/base/checked.h"
#include "src/base/output.h"
#include "src/base/hash.h"
#include "src/plan/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- messages ---- */

typedef struct encoder {
    const grt_plan *plan;
    grt_arena *arena;
    const uint64_t *offsets; /* of weights */
} encoder;

/* An array of pointers to n initialised messages of the type. NULL when out of memory (the arena remembers).
 */
static void **messages(encoder *e, size_t n, size_t size, void (*init)(void *))
{
    void **list = GRT_ARENA_ARRAY(e->arena, void *, n + 1);
    char *items = grt_arena_calloc(e->arena, n + 1, size);
    if (!list || !items)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        list[i] = items + i * size;
        init(list[i]);
    }
    return list;
}
#define MESSAGES(e, n, Type, init) ((Type **)messages((e), (size_t)(n), sizeof(Type), init))

/* protobuf-c wants init functions of exact types: one adapter each. */
#define ADAPTER(name, Type, init)   \
    static void name(void *message) \
    {                               \
        init((Type *)message);      \
    }
ADAPTER(init_attribute, Grt__Plan__Attribute, grt__plan__attribute__init)
ADAPTER(init_body, Grt__Plan__Body, grt__plan__body__init)
ADAPTER(init_dim, Grt__Plan__Dim, grt__plan__dim__init)
ADAPTER(init_step, Grt__Plan__Step, grt__plan__step__init)
ADAPTER(init_tensor, Grt__Plan__Tensor, grt__plan__tensor__init)
ADAPTER(init_value, Grt__Plan__Value, grt__plan__value__init)
ADAPTER(init_weight, Grt__Plan__Weight, grt__plan__weight__init)

static ProtobufCBinaryData write_binary(const void *data, size_t size)
{
    return (ProtobufCBinaryData){size, (uint8_t *)data};
}

static ProtobufCBinaryData *binaries(encoder *e, const grt_string *strings, size_t n)
{
    ProtobufCBinaryData *out = GRT_ARENA_ARRAY(e->arena, ProtobufCBinaryData, n + 1);
    for (size_t i = 0; out && i < n; i++)
        out[i] = write_binary(strings[i].data, strings[i].size);
    return out;
}

static Grt__Plan__Tensor *encode_tensor(encoder *e, const grt_tensor *t)
{
    Grt__Plan__Tensor **list = MESSAGES(e, 1, Grt__Plan__Tensor, init_tensor);
    if (!list)
        return NULL;
    Grt__Plan__Tensor *m = *list;
    m->dtype = t->dtype;
    m->n_dims = (size_t)t->rank;
    m->dims = (int64_t *)t->dims;
    if (t->dtype == GRT_DTYPE_STRING) {
        m->n_strings = (size_t)grt_tensor_elements(t);
        m->strings = binaries(e, t->data, m->n_strings);
    } else {
        m->data = write_binary(t->data, grt_tensor_bytes(t));
    }
    return m;
}

static void encode_attribute(encoder *e, const grt_attr *a, Grt__Plan__Attribute *m)
{
    m->name = (char *)a->name;
    m->kind = a->kind;
    switch (a->kind) {
    case GRT_ATTR_INT:
        m->i = a->i;
        break;
    case GRT_ATTR_FLOAT:
        m->f = a->f;
        break;
    case GRT_ATTR_STRING:
        m->s = write_binary(a->s.data, a->s.size);
        break;
    case GRT_ATTR_TENSOR:
        m->t = encode_tensor(e, a->t);
        break;
    case GRT_ATTR_INTS:
        m->n_ints = a->ints.n;
        m->ints = (int64_t *)a->ints.v;
        break;
    case GRT_ATTR_FLOATS:
        m->n_floats = a->floats.n;
        m->floats = (float *)a->floats.v;
        break;
    case GRT_ATTR_STRINGS:
        m->n_strings = a->strings.n;
        m->strings = binaries(e, a->strings.v, a->strings.n);
        break;
    case GRT_ATTR_GRAPH:
        m->body = (uint32_t)a->body;
        break;
    case GRT_ATTR_TYPE:
        m->type_kind = a->type.kind;
        m->type_dtype = a->type.dtype;
        break;
    }
}

static void encode_value(const grt_plan_value *v, Grt__Plan__Value *m)
{
    m->name = (char *)v->name;
    m->role = v->role;
    m->kind = v->kind;
    m->element_kind = v->element_kind;
    m->dtype = v->dtype;
    m->keys = v->keys;
    m->unranked = v->rank < 0;
    m->n_dims = v->rank > 0 ? (size_t)v->rank : 0;
    m->dims = (uint32_t *)v->dims;
    m->weight = v->role == GRT_VALUE_CONST || v->role == GRT_VALUE_INPUT ? (uint32_t)(v->weight + 1) : 0;
    m->is_static = v->is_static;
}

static void encode_step(encoder *e, const grt_plan_step *s, Grt__Plan__Step *m)
{
    m->kind = s->kind;
    m->domain = (char *)s->desc.domain;
    m->op = (char *)s->desc.op;
    m->name = (char *)s->desc.name;
    m->n_attributes = s->desc.n_attrs;
    m->attributes = MESSAGES(e, s->desc.n_attrs, Grt__Plan__Attribute, init_attribute);
    for (size_t i = 0; m->attributes && i < s->desc.n_attrs; i++)
        encode_attribute(e, &s->desc.attrs[i], m->attributes[i]);
    m->n_inputs = (size_t)s->n_in;
    m->inputs = (int32_t *)s->in;
    m->n_outputs = (size_t)s->n_out;
    m->outputs = (int32_t *)s->out;
    m->n_bodies = (size_t)s->n_bodies;
    m->bodies = (uint32_t *)s->bodies;
    m->is_static = s->is_static;
    m->flops = s->flops;
}

static void encode_body(encoder *e, const grt_plan_body *b, Grt__Plan__Body *m)
{
    m->name = (char *)b->name;
    m->n_values = (size_t)b->n_values;
    m->values = MESSAGES(e, b->n_values, Grt__Plan__Value, init_value);
    for (int32_t i = 0; m->values && i < b->n_values; i++)
        encode_value(&b->values[i], m->values[i]);
    m->n_steps = (size_t)b->n_steps;
    m->steps = MESSAGES(e, b->n_steps, Grt__Plan__Step, init_step);
    for (int32_t i = 0; m->steps && i < b->n_steps; i++)
        encode_step(e, &b->steps[i], m->steps[i]);
    m->n_inputs = (size_t)b->n_inputs;
    m->inputs = (uint32_t *)b->inputs;
    m->n_outputs = (size_t)b->n_outputs;
    m->outputs = (uint32_t *)b->outputs;
    m->n_output_names = (size_t)b->n_outputs;
    m->output_names = (char **)b->output_names;
    m->n_captures_outer = m->n_captures_inner = (size_t)b->n_captures;
    m->captures_outer = (uint32_t *)b->captures_outer;
    m->captures_inner = (uint32_t *)b->captures_inner;
    m->parent = b->parent;
}

static void encode_dims(encoder *e, Grt__Plan__Plan *m)
{
    m->n_dims = (size_t)e->plan->n_dims;
    m->dims = MESSAGES(e, m->n_dims, Grt__Plan__Dim, init_dim);
    for (size_t i = 0; m->dims && i < m->n_dims; i++) {
        const grt_dim_expr *x = &e->plan->dims[i];
        m->dims[i]->op = x->op;
        if (x->op == GRT_DIM_CONST || x->op == GRT_DIM_SYMBOL) {
            m->dims[i]->value = x->value;
        } else {
            m->dims[i]->a = (uint32_t)x->a;
            m->dims[i]->b = (uint32_t)x->b;
        }
    }
}

static void encode_weights(encoder *e, Grt__Plan__Plan *m)
{
    m->n_weights = (size_t)e->plan->n_weights;
    m->weights = MESSAGES(e, m->n_weights, Grt__Plan__Weight, init_weight);
    for (size_t i = 0; m->weights && i < m->n_weights; i++) {
        const grt_tensor *w = &e->plan->weights[i];
        m->weights[i]->dtype = w->dtype;
        m->weights[i]->n_dims = (size_t)w->rank;
        m->weights[i]->dims = (int64_t *)w->dims;
        m->weights[i]->offset = e->offsets[i];
        if (e->plan->packings && grt_is_packed(&e->plan->packings[i])) {
            m->weights[i]->format = (char *)e->plan->packings[i].format;
            m->weights[i]->bytes = e->plan->packings[i].bytes;
        }
        if (w->dtype == GRT_DTYPE_STRING) {
            m->weights[i]->n_strings = (size_t)grt_tensor_elements(w);
            m->weights[i]->strings = binaries(e, w->data, m->weights[i]->n_strings);
        }
    }
}

static void encode_metadata(encoder *e, Grt__Plan__Metadata *m)
{
    const grt_metadata *from = &e->plan->metadata;
    const struct {
        const char *text;
        char **to;
    } texts[] = {{from->producer_name, &m->producer_name},
                 {from->producer_version, &m->producer_version},
                 {from->domain, &m->domain},
                 {from->description, &m->description},
                 {from->graph_name, &m->graph_name},
                 {from->graph_description, &m->graph_description}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text)
            *texts[i].to = (char *)texts[i].text;
    m->model_version = from->model_version;
    m->ir_version = from->ir_version;
    m->keys = GRT_ARENA_ARRAY(e->arena, char *, from->n_entries);
    m->values = GRT_ARENA_ARRAY(e->arena, char *, from->n_entries);
    for (size_t i = 0; m->keys && m->values && i < from->n_entries; i++) {
        m->keys[i] = (char *)from->entries[i].key;
        m->values[i] = (char *)from->entries[i].value;
    }
    m->n_keys = m->n_values = from->n_entries;
}

/* META bytes; malloc'ed. external may be NULL. */
static void *write_encode(const grt_plan *plan, const uint64_t *offsets, Grt__Plan__ExternalWeights *external,
                          size_t *out_size)
{
    encoder e = {plan, grt_arena_create(), offsets};
    if (!e.arena)
        return NULL;
    Grt__Plan__Plan m = GRT__PLAN__PLAN__INIT;
    m.producer = (char *)plan->producer;
    m.opset = plan->opset;
    m.source_nodes = plan->source_nodes;
    m.parameters = plan->parameters;
    m.arena_bytes = plan->arena_bytes;
    m.flops = plan->flops;
    m.options = (char *)plan->options;
    m.target = (char *)plan->target;
    m.n_symbols = (size_t)plan->n_symbols;
    m.symbols = (char **)plan->symbols;
    encode_dims(&e, &m);
    encode_weights(&e, &m);
    m.n_bodies = (size_t)plan->n_bodies;
    m.bodies = MESSAGES(&e, plan->n_bodies, Grt__Plan__Body, init_body);
    for (int32_t i = 0; m.bodies && i < plan->n_bodies; i++)
        encode_body(&e, &plan->bodies[i], m.bodies[i]);
    m.external = external;
    Grt__Plan__Metadata metadata = GRT__PLAN__METADATA__INIT;
    encode_metadata(&e, &metadata);
    m.metadata = &metadata;
    uint8_t *bytes = NULL;
    if (!grt_arena_failed(e.arena)) {
        *out_size = grt__plan__plan__get_packed_size(&m);
        bytes = malloc(*out_size ? *out_size : 1);
        if (bytes)
            grt__plan__plan__pack(&m, bytes);
    }
    grt_arena_release(e.arena);
    return bytes;
}

/* ---- where weights go ---- */

typedef struct stored {
    struct {
        uint64_t hash, size;
    } key;
    int32_t weight;      /* that has these bytes */
    struct stored *next; /* same key, other bytes */
    UT_hash_handle hh;
} stored;

typedef struct layout {
    grt_arena *arena;
    uint64_t *offsets; /* per weight */
    bool *first;       /* per weight: its bytes are written (not those of an equal one before) */
    uint64_t size;
} layout;

/* Offset of equal bytes stored before, or a new one at the end. */
static bool write_place(layout *l, stored **table, const grt_plan *plan, int32_t i)
{
    const grt_tensor *w = &plan->weights[i];
    size_t size = grt_plan_packing(plan, i).bytes;
    stored *fresh = GRT_ARENA_NEW(l->arena, stored), *found = NULL;
    if (!fresh)
        return false;
    fresh->key.hash = XXH3_64bits(w->data, size);
    fresh->key.size = size;
    fresh->weight = i;
    HASH_FIND(hh, *table, &fresh->key, sizeof fresh->key, found);
    for (stored *s = found; s; s = s->next)
        if (memcmp(plan->weights[s->weight].data, w->data, size) == 0) {
            l->offsets[i] = l->offsets[s->weight];
            return true;
        }
    if (found) {
        fresh->next = found->next;
        found->next = fresh;
    } else {
        HASH_ADD(hh, *table, key, sizeof fresh->key, fresh);
        if (!GRT_HASH_HAS(fresh))
            return false;
    }
    l->first[i] = true;
    l->offsets[i] = grt_align_up(l->size, PLAN_TENSOR_ALIGNMENT);
    l->size = l->offsets[i] + size;
    return true;
}

static bool write_lay_out(layout *l, const grt_plan *plan)
{
    stored *table = NULL;
    l->arena = grt_arena_create();
    if (!l->arena)
        return false;
    l->offsets = GRT_ARENA_ARRAY(l->arena, uint64_t, plan->n_weights + 1);
    l->first = GRT_ARENA_ARRAY(l->arena, bool, plan->n_weights + 1);
    bool ok = l->offsets && l->first;
    for (int32_t i = 0; ok && i < plan->n_weights; i++)
        if (plan->weights[i].dtype != GRT_DTYPE_STRING && grt_tensor_bytes(&plan->weights[i]) > 0)
            ok = write_place(l, &table, plan, i);
    HASH_CLEAR(hh, table);
    return ok;
}

/* ---- files ---- */

/* Weights may take long to write: `cancel` is asked before each. */
static grt_status write_weights(grt_output *o, const grt_plan *plan, const layout *l,
                                const grt_cancel *cancel, uint64_t *out_checksum)
{
    static const char zeros[PLAN_TENSOR_ALIGNMENT];
    plan_hasher hasher;
    if (!plan_hasher_begin(&hasher))
        return grt_fail_memory(sizeof hasher);
    uint64_t at = 0;
    grt_status status = GRT_OK;
    for (int32_t i = 0; status == GRT_OK && i < plan->n_weights; i++) {
        if (!l->first[i])
            continue;
        size_t padding = (size_t)(l->offsets[i] - at), size = grt_plan_packing(plan, i).bytes;
        status = grt_cancel_check(cancel);
        if (status != GRT_OK)
            break;
        plan_hasher_add(&hasher, zeros, padding);
        plan_hasher_add(&hasher, plan->weights[i].data, size);
        status = grt_output_zeros(o, padding);
        if (status == GRT_OK)
            status = grt_output_write(o, plan->weights[i].data, size);
        at = l->offsets[i] + size;
    }
    *out_checksum = plan_hasher_end(&hasher);
    return status;
}

static grt_status write_header(grt_output *o, const plan_section *sections, uint32_t n)
{
    union {
        plan_header header;
        char page[PLAN_PAGE];
    } u;
    memset(&u, 0, sizeof u);
    memcpy(u.header.magic, PLAN_MAGIC, sizeof u.header.magic);
    u.header.version = PLAN_VERSION;
    u.header.file_size = o->size;
    u.header.n_sections = n;
    memcpy(u.header.sections, sections, n * sizeof *sections);
    u.header.checksum = plan_header_checksum(u.page);
    return grt_output_overwrite(o, u.page, sizeof u.page);
}

/* On a page of its own. */
static grt_status next_section(grt_output *o, plan_section *section, plan_section_kind kind, uint64_t length)
{
    GRT_TRY(grt_output_zeros(o, grt_align_up(o->size, PLAN_PAGE) - o->size));
    *section = (plan_section){.kind = kind, .offset = o->size, .length = length};
    return GRT_OK;
}

static grt_status write_tuning(grt_output *o, const grt_plan *plan, plan_section *section)
{
    void *data;
    size_t size;
    GRT_TRY(plan_choices_encode(plan->choices, plan->n_choices, &data, &size));
    grt_status status = next_section(o, section, PLAN_TUNING, size);
    if (status == GRT_OK)
        status = plan_checksum(data, size, &section->checksum) ? GRT_OK : grt_fail_memory(size);
    if (status == GRT_OK)
        status = grt_output_write(o, data, size);
    free(data);
    return status;
}

static grt_status write_file(grt_output *o, const grt_plan *plan, const layout *l,
                             Grt__Plan__ExternalWeights *external, const grt_cancel *cancel)
{
    plan_section sections[3] = {{.kind = PLAN_META, .offset = PLAN_PAGE}};
    uint32_t n = 1;
    size_t size = 0;
    void *meta = write_encode(plan, l->offsets, external, &size);
    if (!meta)
        return grt_fail_memory(size);
    sections[0].length = size;
    grt_status status = plan_checksum(meta, size, &sections[0].checksum) ? GRT_OK : grt_fail_memory(size);
    if (status == GRT_OK)
        status = grt_output_zeros(o, PLAN_PAGE);
    if (status == GRT_OK)
        status = grt_output_write(o, meta, size);
    free(meta);
    GRT_TRY(status);
    if (!external && l->size > 0) {
        plan_section *weights = &sections[n++];
        GRT_TRY(next_section(o, weights, PLAN_WEIGHTS, l->size));
        GRT_TRY(write_weights(o, plan, l, cancel, &weights->checksum));
    }
    if (plan->n_choices) /* last: it is the section that may be replaced */
        GRT_TRY(write_tuning(o, plan, &sections[n++]));
    GRT_TRY(write_header(o, sections, n));
    return grt_output_commit(o);
}

static grt_status write_plan(const grt_plan *plan, const char *path, const layout *l,
                             Grt__Plan__ExternalWeights *external, const grt_cancel *cancel)
{
    grt_output o;
    grt_status status = grt_output_open(&o, path);
    if (status == GRT_OK)
        status = write_file(&o, plan, l, external, cancel);
    grt_output_close(&o);
    return status;
}

/* Weights first, so that a plan never names a missing file. The lock keeps other writers from removing them
 * in between.
 */
static grt_status put_both(grt_output *weights, const grt_plan *plan, const char *path, const layout *l,
                           uint64_t checksum, const grt_cancel *cancel)
{
    char name[PLAN_MAX_NAME];
    if (!plan_weights_name(path, checksum, name))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: not usable as a file name", path);
    Grt__Plan__ExternalWeights external = GRT__PLAN__EXTERNAL_WEIGHTS__INIT;
    external.name = name;
    external.size = l->size;
    external.checksum = checksum;
    GRT_TRY(grt_output_rename(weights, name));
    const int lock = grt_output_lock_directory(path);
    grt_status status = grt_output_commit(weights);
    if (status == GRT_OK)
        status = write_plan(plan, path, l, &external, cancel);
    if (status == GRT_OK && lock >= 0)
        plan_weights_tidy(path, name);
    if (lock >= 0)
        close(lock);
    return status;
}

static grt_status write_both(const grt_plan *plan, const char *path, const layout *l,
                             const grt_cancel *cancel)
{
    uint64_t checksum = 0;
    grt_output weights;
    grt_status status = grt_output_open(&weights, path);
    if (status == GRT_OK)
        status = write_weights(&weights, plan, l, cancel, &checksum);
    if (status == GRT_OK)
        status = put_both(&weights, plan, path, l, checksum, cancel);
    grt_output_close(&weights);
    return status;
}

grt_status grt_plan_write(const grt_plan *plan, const char *path, bool external_weights,
                          const grt_cancel *cancel)
{
    /* A plan that could not be read must not replace one that can. */
    if (plan_check(path, plan) != GRT_OK)
        return grt_fail_context(GRT_STATUS_INTERNAL, "the compiler made a plan that breaks its own rules");
    layout l = {0};
    grt_status status = write_lay_out(&l, plan) ? GRT_OK : grt_fail_memory(sizeof(stored));
    if (status == GRT_OK)
        status =
            external_weights ? write_both(plan, path, &l, cancel) : write_plan(plan, path, &l, NULL, cancel);
    grt_arena_release(l.arena);
    return status;
}
