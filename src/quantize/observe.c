/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/observe.h"

#include "src/quantize/state.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SAVE_MS = 2000 }; /* between two states of a calibration on disk */

typedef struct observing {
    quant_layers *layers;
    const samples *samples;
    quant_value **values; /* by slot */
    size_t *groups;       /* by slot */
    size_t n, n_groups;
    bool histogram;
    calibration_state state;
    double saved_ms;
} observing;

static bool list_values(observing *o)
{
    quant_layers *l = o->layers;
    o->values = GRT_ARENA_ARRAY(l->arena, quant_value *, l->n_values + 1);
    o->groups = GRT_ARENA_ARRAY(l->arena, size_t, l->n_values + 1);
    for (size_t i = 0; o->values && o->groups && i < l->n_values; i++)
        if (l->values[i].slot >= 0) {
            o->values[l->values[i].slot] = &l->values[i];
            o->n++;
        }
    return o->values && o->groups;
}

/* The float model with one group of values as its outputs. */
static grt_status open_group(const observing *o, size_t group, document *d, runner *r)
{
    GRT_TRY(document_copy(d, o->layers->d));
    d->n_outputs = 0;
    for (size_t i = 0; i < o->n; i++)
        if (o->groups[i] == group)
            document_add_output(d, o->values[i]->name);
    GRT_TRY(document_check(d));
    return runner_open(r, o->samples, d);
}

/* Values in groups of at most so many bytes, as large as they are with the first sample. */
static grt_status divide_outputs(observing *o, const runner *r, size_t most_bytes)
{
    size_t bytes = 0;
    for (size_t i = 0; i < o->n; i++) {
        grt_tensor t;
        GRT_TRY(grt_context_output_dims(r->context, i, &t));
        const size_t size =
            grt_tensor_bytes(&t); /* SIZE_MAX: it depends on data, and gets a group of its own */
        if (bytes && (size > most_bytes || bytes > most_bytes - size)) {
            o->n_groups++;
            bytes = 0;
        }
        o->groups[i] = o->n_groups;
        bytes += size > most_bytes ? most_bytes : size;
    }
    o->n_groups++;
    return GRT_OK;
}

static grt_status make_groups(observing *o, size_t most_bytes)
{
    document d = {0};
    runner r = {.samples = o->samples};
    grt_status status = open_group(o, 0, &d, &r);
    if (status == GRT_OK)
        status = runner_bind(&r, 0);
    if (status == GRT_OK)
        status = divide_outputs(o, &r, most_bytes);
    runner_release(&r);
    document_release(&d);
    return status;
}

static void hash_text(XXH3_state_t *state, const char *text)
{
    XXH3_64bits_update(state, text, strlen(text) + 1);
}

static void hash_number(XXH3_state_t *state, uint64_t number)
{
    XXH3_64bits_update(state, &number, sizeof number);
}

static grt_status observe_make_key(observing *o)
{
    packed_model packed = {0};
    document *d = (document *)(uintptr_t)o->layers->d;
    XXH3_state_t *state = XXH3_createState();
    grt_status status = state ? pack_memory(d, &packed) : grt_fail_memory(0);
    if (status == GRT_OK) {
        XXH3_64bits_reset(state);
        hash_text(state, grt_version());
        hash_text(state, o->samples->options->samples_id ? o->samples->options->samples_id : "");
        hash_number(state, o->samples->options->n_samples);
        hash_number(state, o->histogram);
        XXH3_64bits_update(state, packed.bytes, packed.size);
        for (size_t i = 0; i < packed.n_external; i++)
            XXH3_64bits_update(state, packed.external[i].data, packed.external[i].size);
        for (size_t i = 0; i < o->n; i++) {
            hash_text(state, o->values[i]->name);
            hash_number(state, o->groups[i]);
        }
        o->state.key = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
    pack_release(&packed);
    return status;
}

static grt_status save_state(observing *o)
{
    const char *path = o->samples->options->state;
    if (!path || (!o->state.group && !o->state.sample))
        return GRT_OK;
    o->saved_ms = grt_clock_ms();
    return state_write(&o->state, path);
}

static grt_status take_outputs(observing *o, const runner *r, size_t group)
{
    size_t output = 0;
    for (size_t i = 0; i < o->n; i++) {
        grt_tensor t;
        if (o->groups[i] != group)
            continue;
        GRT_TRY(grt_context_get_output(r->context, output++, &t));
        statistics_add(&o->state.list[i], t.data, grt_tensor_elements(&t), o->histogram);
    }
    return GRT_OK;
}

static grt_status see_sample(observing *o, runner *r, size_t group, size_t sample)
{
    const size_t n = o->samples->options->n_samples;
    GRT_TRY(samples_report(o->samples, "calibrate", group * n + sample, o->n_groups * n));
    GRT_TRY(runner_bind(r, sample));
    GRT_TRY(runner_run(r, sample));
    GRT_TRY(take_outputs(o, r, group));
    o->state.group = group;
    o->state.sample = sample + 1;
    return grt_clock_ms() - o->saved_ms < SAVE_MS ? GRT_OK : save_state(o);
}

static grt_status see_group(observing *o, size_t group, size_t from)
{
    document d = {0};
    runner r = {.samples = o->samples};
    grt_status status = open_group(o, group, &d, &r);
    for (size_t i = from; status == GRT_OK && i < o->samples->options->n_samples; i++)
        status = see_sample(o, &r, group, i);
    runner_release(&r);
    document_release(&d);
    return status;
}

static grt_status see_all(observing *o)
{
    for (size_t group = o->state.group; group < o->n_groups; group++) {
        const size_t from = group == o->state.group ? o->state.sample : 0;
        if (from < o->samples->options->n_samples)
            GRT_TRY(see_group(o, group, from));
    }
    return GRT_OK;
}

/* Work that was stopped is kept, whatever stopped it; that is what counts then. */
static grt_status see_and_save(observing *o)
{
    const grt_status status = see_all(o);
    if (status == GRT_OK)
        return save_state(o);
    char *message = strdup(grt_last_error());
    const bool saved = save_state(o) == GRT_OK;
    if (message)
        grt_error_set(message);
    free(message);
    return saved && status == GRT_STATUS_CANCELLED && o->samples->options->state && o->state.sample
               ? grt_fail(status,
                          "cancelled by the caller; '%s' has the statistics of %zu of %zu samples, from "
                          "which the next "
                          "call goes on",
                          o->samples->options->state,
                          o->state.group * o->samples->options->n_samples + o->state.sample,
                          o->n_groups * o->samples->options->n_samples)
               : status;
}

grt_status observe_values(quant_layers *l, const samples *s, size_t most_bytes, observed *out)
{
    observing o = {.layers = l, .samples = s, .saved_ms = grt_clock_ms()};
    *out = (observed){0};
    o.histogram = s->options->calibration != GRT_CALIBRATION_MIN_MAX;
    if (!list_values(&o))
        return grt_fail_memory(0);
    GRT_TRY(make_groups(&o, most_bytes));
    GRT_TRY(observe_make_key(&o));
    out->list = calloc(o.n + 1, sizeof *out->list);
    if (!out->list)
        return grt_fail_memory(o.n * sizeof *out->list);
    out->n = o.n;
    for (size_t i = 0; i < o.n; i++)
        statistics_clear(&out->list[i]);
    o.state.list = out->list;
    o.state.n = o.n;
    if (s->options->state)
        state_read(&o.state, s->options->state);
    out->resumed = o.state.group * s->options->n_samples + o.state.sample;
    out->resumed = out->resumed < s->options->n_samples ? out->resumed : s->options->n_samples;
    return see_and_save(&o);
}

void observed_release(observed *o)
{
    free(o->list);
    *o = (observed){0};
}
