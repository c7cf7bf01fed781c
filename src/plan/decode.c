/* SPDX-License-Identifier: Apache-2.0 */
/* META: protobuf messages to the structures of src/plan/plan.h. Sizes are checked here, what indices point at
 * in check.c. */
#include "src/plan/format.h"

#include "proto/plan.pb-c.h"
#include "src/base/checked.h"

#include <stdio.h>
#include <string.h>

typedef struct decoder {
    const char *path;
    grt_arena *arena; /* of the plan */
    grt_status status;
} decoder;

/* Messages live in an arena that is dropped at once after decoding. */
static void *decode_message_alloc(void *arena, size_t size)
{
    return grt_arena_alloc(arena, size ? size : 1);
}
static void decode_message_free(void *arena, void *data)
{
    (void)arena;
    (void)data;
}

static bool decode_fail(decoder *d, const char *what, const char *problem)
{
    if (d->status == GRT_OK)
        d->status = grt_fail(GRT_STATUS_INVALID_PLAN, "%s: section META: %s: %s", d->path, what, problem);
    return false;
}

static void *decode_array(decoder *d, size_t n, size_t size)
{
    return n ? grt_arena_calloc(d->arena, n, size) : NULL;
}

static const char *decode_text(decoder *d, const char *s)
{
    return s && *s ? grt_arena_strdup(d->arena, s) : "";
}

static bool decode_small_count(decoder *d, const char *what, size_t n)
{
    return n <= INT32_MAX || decode_fail(d, what, "more than 2^31 items");
}

/* Arrays of indices: numbers above INT32_MAX are always invalid. */
static const int32_t *decode_indices(decoder *d, const char *what, size_t n, const uint32_t *v)
{
    if (!decode_small_count(d, what, n))
        return NULL;
    int32_t *out = decode_array(d, n, sizeof *out);
    for (size_t i = 0; out && i < n; i++) {
        if (v[i] > INT32_MAX) {
            decode_fail(d, what, "an index is above 2^31");
            return NULL;
        }
        out[i] = (int32_t)v[i];
    }
    return out;
}

static const int32_t *decode_signed_indices(decoder *d, const char *what, size_t n, const int32_t *v)
{
    if (!decode_small_count(d, what, n) || !n)
        return NULL;
    return grt_arena_memdup(d->arena, v, n * sizeof *v);
}

static grt_string decode_bytes_of(decoder *d, ProtobufCBinaryData b)
{
    /* strndup stops at zeros, which strings may hold */
    char *copy = grt_arena_alloc(d->arena, b.len + 1);
    if (copy && b.len)
        memcpy(copy, b.data, b.len);
    return (grt_string){copy ? copy : "", copy ? b.len : 0};
}

static const grt_string *decode_strings_of(decoder *d, size_t n, const ProtobufCBinaryData *v)
{
    grt_string *out = decode_array(d, n, sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        out[i] = decode_bytes_of(d, v[i]);
    return out;
}

/* dtype and dims; *out_elements is their number. */
static bool decode_tensor_type(decoder *d, const char *what, uint32_t dtype, size_t rank, const int64_t *dims,
                               grt_tensor *out, int64_t *out_elements)
{
    if (dtype == 0 || dtype >= GRT_DTYPE_COUNT)
        return decode_fail(d, what, "dtype is unknown");
    if (rank > GRT_MAX_RANK)
        return decode_fail(d, what, "rank is above 16");
    out->dtype = (grt_dtype)dtype;
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++)
        out->dims[i] = dims[i];
    *out_elements = grt_tensor_elements(out);
    if (*out_elements < 0 || grt_tensor_bytes(out) == SIZE_MAX)
        return decode_fail(d, what, "dims are negative or their product overflows");
    return true;
}

static bool decode_tensor_strings(decoder *d, const char *what, size_t n, const ProtobufCBinaryData *v,
                                  int64_t elements, grt_tensor *out)
{
    if ((int64_t)n != elements)
        return decode_fail(d, what, "the number of strings does not fit the dims");
    out->data = n ? (void *)decode_strings_of(d, n, v) : (void *)"";
    return true;
}

static const grt_tensor *decode_tensor(decoder *d, const char *what, const Grt__Plan__Tensor *t)
{
    grt_tensor *out = GRT_ARENA_NEW(d->arena, grt_tensor);
    int64_t elements;
    if (!out || !decode_tensor_type(d, what, t->dtype, t->n_dims, t->dims, out, &elements))
        return NULL;
    if (out->dtype == GRT_DTYPE_STRING) {
        if (!decode_tensor_strings(d, what, t->n_strings, t->strings, elements, out))
            return NULL;
    } else {
        if (t->data.len != grt_tensor_bytes(out)) {
            decode_fail(d, what, "the data's size does not fit dtype and dims");
            return NULL;
        }
        out->data = (void *)decode_bytes_of(d, t->data).data;
    }
    return out;
}

static void decode_attribute(decoder *d, const Grt__Plan__Attribute *a, grt_attr *out)
{
    out->name = decode_text(d, a->name);
    out->kind = (grt_attr_kind)a->kind;
    switch (a->kind) {
    case GRT_ATTR_INT:
        out->i = a->i;
        break;
    case GRT_ATTR_FLOAT:
        out->f = a->f;
        break;
    case GRT_ATTR_STRING:
        out->s = decode_bytes_of(d, a->s);
        break;
    case GRT_ATTR_TENSOR:
        if (!a->t) {
            decode_fail(d, out->name, "tensor attribute without a tensor");
            return;
        }
        out->t = decode_tensor(d, out->name, a->t);
        break;
    case GRT_ATTR_INTS:
        out->ints.n = a->n_ints;
        out->ints.v = a->n_ints ? grt_arena_memdup(d->arena, a->ints, a->n_ints * sizeof *a->ints) : NULL;
        break;
    case GRT_ATTR_FLOATS:
        out->floats.n = a->n_floats;
        out->floats.v =
            a->n_floats ? grt_arena_memdup(d->arena, a->floats, a->n_floats * sizeof *a->floats) : NULL;
        break;
    case GRT_ATTR_STRINGS:
        out->strings.n = a->n_strings;
        out->strings.v = decode_strings_of(d, a->n_strings, a->strings);
        break;
    case GRT_ATTR_GRAPH:
        out->body = a->body;
        break;
    case GRT_ATTR_TYPE:
        out->type.kind = (grt_kind)a->type_kind;
        out->type.dtype = (grt_dtype)a->type_dtype;
        break;
    default:
        decode_fail(d, out->name, "attribute kind is unknown");
    }
}

static void decode_value(decoder *d, const Grt__Plan__Value *v, grt_plan_value *out)
{
    out->name = decode_text(d, v->name);
    out->role = (grt_plan_value_role)v->role;
    out->kind = (grt_kind)v->kind;
    out->element_kind = (grt_kind)v->element_kind;
    out->dtype = (grt_dtype)v->dtype;
    out->keys = (grt_dtype)v->keys;
    out->is_static = v->is_static;
    if (v->n_dims > GRT_MAX_RANK || (v->unranked && v->n_dims)) {
        decode_fail(d, out->name, "rank of a value is above 16, or unknown but with dims");
        return;
    }
    out->rank = v->unranked ? -1 : (int32_t)v->n_dims;
    out->dims = decode_indices(d, out->name, v->n_dims, v->dims);
    if (v->weight > INT32_MAX) {
        decode_fail(d, out->name, "weight index is above 2^31");
        return;
    }
    out->weight = (int32_t)v->weight - 1;
}

static void decode_step(decoder *d, const Grt__Plan__Step *s, grt_plan_step *out)
{
    out->kind = (grt_step_kind)s->kind;
    out->desc.domain = decode_text(d, s->domain);
    out->desc.op = decode_text(d, s->op);
    out->desc.name = decode_text(d, s->name);
    grt_attr *attrs = decode_array(d, s->n_attributes, sizeof *attrs);
    for (size_t i = 0; attrs && i < s->n_attributes; i++)
        decode_attribute(d, s->attributes[i], &attrs[i]);
    out->desc.attrs = attrs;
    out->desc.n_attrs = s->n_attributes;
    out->in = decode_signed_indices(d, out->desc.name, s->n_inputs, s->inputs);
    out->out = decode_signed_indices(d, out->desc.name, s->n_outputs, s->outputs);
    out->bodies = decode_indices(d, out->desc.name, s->n_bodies, s->bodies);
    out->n_in = (int32_t)s->n_inputs;
    out->n_out = (int32_t)s->n_outputs;
    out->n_bodies = (int32_t)s->n_bodies;
    out->is_static = s->is_static;
    out->flops = s->flops;
}

static void decode_body(decoder *d, const Grt__Plan__Body *b, grt_plan_body *out)
{
    out->name = decode_text(d, b->name);
    out->parent = b->parent;
    if (!decode_small_count(d, "values", b->n_values) || !decode_small_count(d, "steps", b->n_steps))
        return;
    if (b->n_captures_outer != b->n_captures_inner) {
        decode_fail(d, out->name, "captures of a body are not pairs");
        return;
    }
    grt_plan_value *values = decode_array(d, b->n_values, sizeof *values);
    for (size_t i = 0; values && i < b->n_values && d->status == GRT_OK; i++)
        decode_value(d, b->values[i], &values[i]);
    grt_plan_step *steps = decode_array(d, b->n_steps, sizeof *steps);
    for (size_t i = 0; steps && i < b->n_steps && d->status == GRT_OK; i++)
        decode_step(d, b->steps[i], &steps[i]);
    out->values = values;
    out->steps = steps;
    out->inputs = decode_indices(d, "inputs", b->n_inputs, b->inputs);
    out->outputs = decode_indices(d, "outputs", b->n_outputs, b->outputs);
    out->captures_outer = decode_indices(d, "captures", b->n_captures_outer, b->captures_outer);
    out->captures_inner = decode_indices(d, "captures", b->n_captures_inner, b->captures_inner);
    if (b->n_output_names != b->n_outputs) {
        decode_fail(d, out->name, "outputs of a body do not all have names");
        return;
    }
    const char **names = decode_array(d, b->n_output_names, sizeof *names);
    for (size_t i = 0; names && i < b->n_output_names; i++)
        names[i] = decode_text(d, b->output_names[i]);
    out->output_names = names;
    out->n_values = (int32_t)b->n_values;
    out->n_steps = (int32_t)b->n_steps;
    out->n_inputs = (int32_t)b->n_inputs;
    out->n_outputs = (int32_t)b->n_outputs;
    out->n_captures = (int32_t)b->n_captures_inner;
}

static bool decode_packing_of(decoder *d, const char *what, const Grt__Plan__Weight *w, grt_packing *out)
{
    const size_t length = strlen(w->format);
    if (length == 0)
        return true;
    if (length >= sizeof out->format || w->dtype == GRT_DTYPE_STRING || w->bytes > SIZE_MAX / 2)
        return decode_fail(d, what, "a packed weight has strings, a format without end or an absurd size");
    memcpy(out->format, w->format, length);
    out->bytes = (size_t)w->bytes;
    return true;
}

static void decode_weights(decoder *d, const Grt__Plan__Plan *m, grt_plan *plan, const uint64_t **out_offsets)
{
    if (!decode_small_count(d, "weights", m->n_weights))
        return;
    grt_tensor *tensors = decode_array(d, m->n_weights, sizeof *tensors);
    grt_packing *packings = decode_array(d, m->n_weights, sizeof *packings);
    uint64_t *offsets = decode_array(d, m->n_weights, sizeof *offsets);
    for (size_t i = 0; tensors && packings && offsets && i < m->n_weights; i++) {
        const Grt__Plan__Weight *w = m->weights[i];
        int64_t elements;
        char what[32];
        snprintf(what, sizeof what, "weight %zu", i);
        if (!decode_tensor_type(d, what, w->dtype, w->n_dims, w->dims, &tensors[i], &elements))
            return;
        if (w->dtype == GRT_DTYPE_STRING &&
            !decode_tensor_strings(d, what, w->n_strings, w->strings, elements, &tensors[i]))
            return;
        if (!decode_packing_of(d, what, w, &packings[i]))
            return;
        offsets[i] = w->offset;
    }
    plan->weights = tensors;
    plan->packings = packings;
    plan->n_weights = (int32_t)m->n_weights;
    *out_offsets = offsets;
}

static void symbols_and_dims(decoder *d, const Grt__Plan__Plan *m, grt_plan *plan)
{
    if (!decode_small_count(d, "symbols", m->n_symbols) || !decode_small_count(d, "dims", m->n_dims))
        return;
    const char **symbols = decode_array(d, m->n_symbols, sizeof *symbols);
    for (size_t i = 0; symbols && i < m->n_symbols; i++)
        symbols[i] = decode_text(d, m->symbols[i]);
    grt_dim_expr *dims = decode_array(d, m->n_dims, sizeof *dims);
    for (size_t i = 0; dims && i < m->n_dims; i++) {
        const Grt__Plan__Dim *e = m->dims[i];
        if (e->a > INT32_MAX || e->b > INT32_MAX) {
            decode_fail(d, "dims", "an operand is above 2^31");
            return;
        }
        bool leaf = e->op == GRT_DIM_CONST || e->op == GRT_DIM_SYMBOL;
        dims[i] = (grt_dim_expr){(grt_dim_op)e->op, leaf ? GRT_DIM_NONE : (grt_dim)e->a,
                                 leaf ? GRT_DIM_NONE : (grt_dim)e->b, e->value};
    }
    plan->symbols = symbols;
    plan->n_symbols = (int32_t)m->n_symbols;
    plan->dims = dims;
    plan->n_dims = (int32_t)m->n_dims;
}

static void metadata(decoder *d, const Grt__Plan__Metadata *m, grt_metadata *out)
{
    if (m->n_keys != m->n_values) {
        decode_fail(d, "metadata", "keys and values are not pairs");
        return;
    }
    grt_metadata_entry *entries = decode_array(d, m->n_keys, sizeof *entries);
    for (size_t i = 0; entries && i < m->n_keys; i++)
        entries[i] =
            (grt_metadata_entry){.key = decode_text(d, m->keys[i]), .value = decode_text(d, m->values[i])};
    *out = (grt_metadata){.producer_name = decode_text(d, m->producer_name),
                          .producer_version = decode_text(d, m->producer_version),
                          .domain = decode_text(d, m->domain),
                          .description = decode_text(d, m->description),
                          .graph_name = decode_text(d, m->graph_name),
                          .graph_description = decode_text(d, m->graph_description),
                          .model_version = m->model_version,
                          .ir_version = m->ir_version,
                          .n_entries = m->n_keys,
                          .entries = entries};
}

static void decode_message(decoder *d, const Grt__Plan__Plan *m, grt_plan *plan, const uint64_t **out_offsets,
                           plan_external *out_external)
{
    plan->producer = decode_text(d, m->producer);
    plan->options = decode_text(d, m->options);
    plan->target = decode_text(d, m->target);
    plan->opset = m->opset;
    plan->source_nodes = m->source_nodes;
    plan->parameters = m->parameters;
    plan->arena_bytes = m->arena_bytes;
    plan->flops = m->flops;
    symbols_and_dims(d, m, plan);
    decode_weights(d, m, plan, out_offsets);
    if (!decode_small_count(d, "bodies", m->n_bodies))
        return;
    grt_plan_body *bodies = decode_array(d, m->n_bodies, sizeof *bodies);
    for (size_t i = 0; bodies && i < m->n_bodies && d->status == GRT_OK; i++)
        decode_body(d, m->bodies[i], &bodies[i]);
    plan->bodies = bodies;
    plan->n_bodies = (int32_t)m->n_bodies;
    if (m->metadata)
        metadata(d, m->metadata, &plan->metadata);
    *out_external = (plan_external){0};
    if (m->external)
        *out_external =
            (plan_external){decode_text(d, m->external->name), m->external->size, m->external->checksum};
}

grt_status plan_decode(const char *path, const void *meta, size_t size, grt_plan *plan,
                       const uint64_t **out_offsets, plan_external *out_external)
{
    grt_arena *messages = grt_arena_create();
    if (!messages)
        return grt_fail_memory(sizeof(void *));
    ProtobufCAllocator allocator = {decode_message_alloc, decode_message_free, messages};
    Grt__Plan__Plan *m = grt__plan__plan__unpack(&allocator, size, meta);
    decoder d = {path, plan->arena, GRT_OK};
    if (m)
        decode_message(&d, m, plan, out_offsets, out_external);
    else if (!grt_arena_failed(messages))
        d.status = grt_fail(GRT_STATUS_INVALID_PLAN,
                            "%s: section META (%zu bytes) is no valid protobuf message", path, size);
    if (d.status == GRT_OK && (grt_arena_failed(messages) || grt_arena_failed(plan->arena)))
        d.status = grt_fail_memory(size);
    grt_arena_release(messages);
    return d.status;
}
