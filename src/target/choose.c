/* SPDX-License-Identifier: Apache-2.0 */
/* See choose.h. The kernels do the choosing: they are created and reshaped on a device that is only
 * described, with a cache of algorithms that writes down what they store. */
#include "src/target/choose.h"

#include "src/base/cancel.h"

#include "src/algos/overlay.h"
#include "src/base/openmp.h"
#include "src/plan/dims.h"
#include "src/algos/tuning.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- what kernels store ---- */

typedef struct collector {
    grt_algos base; /* first: kernels see this */
    pthread_mutex_t lock;
    grt_algo_row *rows; /* key and data of each in one block, which key owns */
    size_t n, capacity;
    grt_algo_overlay *known; /* choices that the caller has from elsewhere */
    bool failed;             /* out of memory */
} collector;

static grt_algo_row *find_row(collector *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->rows[i].key, key))
            return &c->rows[i];
    return NULL;
}

static void add_row(collector *c, const grt_algo_row *row)
{
    if (c->n == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 64;
        grt_algo_row *grown = realloc(c->rows, capacity * sizeof *grown);
        if (!grown) {
            c->failed = true;
            return;
        }
        c->rows = grown;
        c->capacity = capacity;
    }
    const size_t key_size = strlen(row->key) + 1;
    char *block = malloc(key_size + row->size);
    if (!block) {
        c->failed = true;
        return;
    }
    memcpy(block, row->key, key_size);
    if (row->size)
        memcpy(block + key_size, row->data, row->size);
    c->rows[c->n] = *row;
    c->rows[c->n].key = block;
    c->rows[c->n++].data = block + key_size;
}

/* Equal operations are asked for once; what is known from elsewhere goes into the plan as it is. */
static void *find(grt_algos *base, const char *key, size_t *out_size)
{
    collector *c = (collector *)base;
    char *copy = NULL;
    *out_size = 0;
    pthread_mutex_lock(&c->lock);
    const grt_algo_row *row = find_row(c, key), *known = row ? NULL : grt_algo_overlay_find(c->known, key);
    if (known && !find_row(c, known->key))
        add_row(c, known);
    if (known)
        row = known;
    if (row && (copy = malloc(row->size + 1))) {
        if (row->size)
            memcpy(copy, row->data, row->size);
        copy[row->size] = '\0';
        *out_size = row->size;
    }
    pthread_mutex_unlock(&c->lock);
    return copy;
}

static void store(grt_algos *base, const char *key, const void *data, size_t size, grt_algo_source source,
                  double cost_ms)
{
    collector *c = (collector *)base;
    (void)cost_ms; /* nothing is measured here */
    pthread_mutex_lock(&c->lock);
    if (size <= GRT_ALGO_MAX_DATA && !find_row(c, key))
        add_row(c, &(grt_algo_row){.key = key, .data = data, .size = size, .source = (int32_t)source});
    pthread_mutex_unlock(&c->lock);
}

/* Only what came from elsewhere can be refused: it leaves, and the kernel goes on and asks. */
static void reject(grt_algos *base, const char *key)
{
    collector *c = (collector *)base;
    pthread_mutex_lock(&c->lock);
    const grt_algo_row *known = grt_algo_overlay_find(c->known, key);
    grt_algo_row *row = known ? find_row(c, known->key) : NULL;
    if (row) {
        free((char *)row->key);
        *row = c->rows[--c->n];
    }
    (void)grt_algo_overlay_reject(c->known, key);
    pthread_mutex_unlock(&c->lock);
}

static void release(collector *c)
{
    for (size_t i = 0; i < c->n; i++)
        free((char *)c->rows[i].key);
    free(c->rows);
    pthread_mutex_destroy(&c->lock);
}

/* ---- steps ---- */

typedef struct chooser {
    const grt_plan *plan;
    const grt_backend *backend;
    grt_device *device;
    grt_plan_dims dims;
    grt_algo_overlay known;
} chooser;

/* Tensors of one step: as they are known when kernels are created, and at the dims in question. */
typedef struct operands {
    grt_tensor *before, *then;
    grt_packing *packings;
    const grt_tensor **at; /* into `then`; NULL where omitted */
} operands;

static void release_operands(operands *o)
{
    free(o->before);
    free(o->then);
    free(o->packings);
    free(o->at);
}

static bool make_operands(const chooser *c, const grt_plan_step *step, operands *o)
{
    const grt_plan_body *body = &c->plan->bodies[0];
    const size_t n = (size_t)(step->n_in + step->n_out);
    *o = (operands){malloc((n + 1) * sizeof *o->before), malloc((n + 1) * sizeof *o->then),
                    calloc(n + 1, sizeof *o->packings), malloc((n + 1) * sizeof *o->at)};
    if (!o->before || !o->then || !o->packings || !o->at)
        return false;
    for (size_t i = 0; i < n; i++) {
        const int32_t v = i < (size_t)step->n_in ? step->in[i] : step->out[i - (size_t)step->n_in];
        o->before[i] = grt_plan_describe(c->plan, body, v, NULL);
        o->then[i] = grt_plan_describe(c->plan, body, v, &c->dims);
        o->at[i] = v < 0 ? NULL : &o->then[i];
        if (v >= 0 && body->values[v].role == GRT_VALUE_CONST)
            o->packings[i] = grt_plan_packing(c->plan, body->values[v].weight);
    }
    return true;
}

static bool is_known(const grt_tensor *t)
{
    for (int32_t i = 0; t && i < t->rank; i++)
        if (t->dims[i] < 0)
            return false;
    return !t || t->rank >= 0;
}

static grt_status reshape_on(const chooser *c, const grt_kernel_row *row, const grt_plan_step *step,
                             void *state, const operands *o)
{
    grt_reshape r = {.desc = &step->desc,
                     .state = state,
                     .in = o->at,
                     .out = o->at + step->n_in,
                     .n_in = step->n_in,
                     .n_out = step->n_out,
                     .threads = 1,
                     .device = c->device};
    const grt_status status = row->reshape(&r);
    if (status == GRT_OK && row->release_shape)
        row->release_shape(r.shape);
    /* What cannot run with these dims is said when somebody runs it; what is missing here, now. */
    return status == GRT_STATUS_DEVICE || status == GRT_STATUS_INTERNAL ? status : GRT_OK;
}

static grt_status choose_step(const chooser *c, const grt_plan_step *step)
{
    operands o;
    void *state = NULL;
    grt_status status = GRT_OK;
    if (step->kind != GRT_STEP_KERNEL)
        return GRT_OK;
    if (!make_operands(c, step, &o)) {
        release_operands(&o);
        return grt_fail_memory(sizeof o);
    }
    const grt_kernel_node node = {.desc = &step->desc,
                                  .n_in = step->n_in,
                                  .n_out = step->n_out,
                                  .in = o.before,
                                  .out = o.before + step->n_in,
                                  .packing = o.packings,
                                  .threads = 1,
                                  .device = c->device};
    const grt_kernel_row *row = c->backend->find_kernel(&node, NULL);
    bool wanted = row && (row->flags & GRT_KERNEL_CHOOSES) && row->reshape;
    for (int32_t i = 0; i < step->n_in + step->n_out; i++)
        wanted = wanted && is_known(o.at[i]);
    if (wanted && row->create)
        status = row->create(&node, &state);
    if (wanted && status == GRT_OK)
        status = reshape_on(c, row, step, state, &o);
    if (state && row->destroy)
        row->destroy(state);
    release_operands(&o);
    return status;
}

/* Libraries take milliseconds for each answer: all steps in parallel, the first failure is reported. */
static grt_status choose_steps(const chooser *c)
{
    const grt_plan_body *body = &c->plan->bodies[0];
    grt_status first = GRT_OK;
    grt_text message = {0};
    const int32_t team = grt_team_possible(grt_team_default());
    (void)team; /* without OpenMP */
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (body->n_steps > 1)
    for (int32_t s = 0; s < body->n_steps; s++) {
        const grt_status status = choose_step(c, &body->steps[s]);
        if (status == GRT_OK)
            continue;
#pragma omp critical(grt_choose_failure)
        if (first == GRT_OK) {
            first = status;
            grt_text_add(&message, "%s", grt_last_error());
        }
    }
    if (first != GRT_OK)
        grt_error_set(message.failed ? "out of memory" : grt_text_get(&message));
    grt_text_release(&message);
    return first;
}

/* ---- plans ---- */

static grt_status keep(grt_plan *plan, const collector *c)
{
    grt_algo_row *merged;
    size_t n;
    if (c->failed)
        return grt_fail_memory(c->n * sizeof *c->rows);
    GRT_TRY(grt_plan_tuning_merge(plan->tuning, plan->n_tuning, c->rows, c->n, &merged, &n));
    grt_algo_row *rows = grt_arena_memdup(plan->arena, merged, (n + 1) * sizeof *rows);
    for (size_t i = 0; rows && i < n; i++) {
        rows[i].key = grt_arena_strdup(plan->arena, merged[i].key);
        rows[i].data = grt_arena_memdup(plan->arena, merged[i].data, merged[i].size);
    }
    free(merged);
    if (grt_arena_failed(plan->arena))
        return grt_fail_memory(n * sizeof *rows);
    plan->tuning = rows;
    plan->n_tuning = n;
    return GRT_OK;
}

static grt_status choose_for(grt_plan *plan, chooser *c, const grt_device_description *description)
{
    collector collected = {.base = {find, store, reject, find}, .known = &c->known};
    if (!description->name || !description->properties)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the description of a device lacks name or properties");
    GRT_TRY(c->backend->open_description(description, &c->device));
    pthread_mutex_init(&collected.lock, NULL);
    c->device->algos = &collected.base;
    grt_status status = choose_steps(c);
    grt_device_close(c->device);
    if (status == GRT_OK)
        status = keep(plan, &collected);
    release(&collected);
    return status == GRT_OK ? GRT_OK
                            : grt_fail_context(status, "choosing algorithms for %s", description->name);
}

static void take_known(void *user, const grt_algo_row *row)
{
    grt_algo_overlay_add(user, row, 1);
}

static grt_status read_known(const char *path, grt_algo_overlay *known)
{
    size_t damaged;
    if (grt_algo_db_stamp(path) == 0)
        return grt_fail(GRT_STATUS_IO, "there is no algorithm cache '%s'", path);
    return grt_algo_db_read(path, take_known, known, &damaged);
}

grt_status grt_plan_choose(grt_plan *plan, const grt_backend *backend, const grt_compile_options *options)
{
    chooser c = {.plan = plan, .backend = backend};
    if (!options->n_devices)
        return GRT_OK;
    if (!backend->open_description)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "algorithms cannot be chosen for described devices of kind '%s'", backend->name);
    int64_t *symbols = malloc(((size_t)plan->n_symbols + 1) * sizeof *symbols);
    grt_status status = symbols ? grt_plan_symbols(plan, options->shapes, options->n_shapes, symbols)
                                : grt_fail_memory((size_t)plan->n_symbols * sizeof *symbols);
    if (status == GRT_OK)
        status = grt_plan_dims_make(plan, symbols, &c.dims);
    if (status == GRT_OK && options->choices)
        status = read_known(options->choices, &c.known);
    const grt_cancel cancel = {options->cancel, options->user};
    for (size_t i = 0; status == GRT_OK && i < options->n_devices; i++) {
        if (options->progress)
            options->progress(options->user, "choose algorithms", (double)i / (double)options->n_devices);
        status = grt_cancel_check(&cancel);
        if (status == GRT_OK)
            status = choose_for(plan, &c, &options->devices[i]);
    }
    grt_algo_overlay_release(&c.known);
    grt_plan_dims_release(&c.dims);
    free(symbols);
    return status;
}
