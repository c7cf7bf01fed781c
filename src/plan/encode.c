/* SPDX-License-Identifier: Apache-2.0 */
/* META: the structures of src/plan/plan.h to protobuf messages, what decode.c reads. */
#include "src/plan/format.h"

#include "proto/plan.pb-c.h"

#include <stdlib.h>

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

static ProtobufCBinaryData binary(const void *data, size_t size)
{
    return (ProtobufCBinaryData){size, (uint8_t *)data};
}

static ProtobufCBinaryData *binaries(encoder *e, const grt_string *strings, size_t n)
{
    ProtobufCBinaryData *out = GRT_ARENA_ARRAY(e->arena, ProtobufCBinaryData, n + 1);
    for (size_t i = 0; out && i < n; i++)
        out[i] = binary(strings[i].data, strings[i].size);
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
        m->data = binary(t->data, grt_tensor_bytes(t));
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
        m->s = binary(a->s.data, a->s.size);
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

void *plan_encode(const grt_plan *plan, const uint64_t *offsets, const plan_external *external,
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
    Grt__Plan__ExternalWeights weights = GRT__PLAN__EXTERNAL_WEIGHTS__INIT;
    if (external) {
        weights.name = (char *)external->name;
        weights.size = external->size;
        weights.checksum = external->checksum;
        m.external = &weights;
    }
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
