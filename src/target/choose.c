/* SPDX-License-Identifier: Apache-2.0 */
/* See choose.h. Kernels choose: they are created and reshaped on a described device with a cache of
 * algorithms that records their choices. */
#include "src/target/choose.h"

#include "src/base/cancel.h"
#include "src/base/failures.h"

#include "src/algos/cache.h"
#include "src/algos/db.h"
#include "src/base/grow.h"
#include "src/base/openmp.h"
#include "src/plan/dims.h"
#include "src/plan/choices.h"

#include <stdlib.h>
#include <string.h>

typedef struct chooser {
    const grt_plan *plan;
    const grt_backend *backend;
    grt_device *device;
    grt_plan_dims dims;
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

static bool choose_is_known(const grt_tensor *t)
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
    /* Steps that cannot run with these dims fail in the run; missing libraries fail now. */
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
        wanted = wanted && choose_is_known(o.at[i]);
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
    grt_failures failures = {0};
    const int32_t team = grt_team_possible(grt_team_default());
    (void)team; /* without OpenMP */
#pragma omp parallel for schedule(dynamic, 1) num_threads(team) if (body->n_steps > 1)
    for (int32_t s = 0; s < body->n_steps; s++)
        grt_failures_add(&failures, choose_step(c, &body->steps[s]));
    return grt_failures_end(&failures);
}

/* What kernels found or stored, to be merged into the plan. */
typedef struct collected {
    grt_choice *list;
    size_t n, capacity;
    bool failed;
} collected;

static void choose_collect(void *user, const grt_algo_lookup *lookup)
{
    collected *all = user;
    if (!lookup->choice)
        return;
    if (GRT_GROW(all->list, all->n, all->capacity))
        all->list[all->n++] = *lookup->choice;
    else
        all->failed = true;
}

static grt_status choose_merge(grt_plan *plan, const collected *found)
{
    grt_choice *merged;
    size_t n;
    GRT_TRY(grt_choices_merge(plan->choices, plan->n_choices, found->list, found->n, &merged, &n));
    grt_choice *choices = grt_arena_memdup(plan->arena, merged, (n + 1) * sizeof *choices);
    for (size_t i = 0; choices && i < n; i++) {
        choices[i].key = grt_arena_strdup(plan->arena, merged[i].key);
        choices[i].data = grt_arena_memdup(plan->arena, merged[i].data, merged[i].size);
    }
    free(merged);
    if (grt_arena_failed(plan->arena))
        return grt_fail_memory(n * sizeof *choices);
    plan->choices = choices;
    plan->n_choices = n;
    return GRT_OK;
}

static grt_status choose_keep(grt_plan *plan, grt_algo_cache *cache)
{
    collected found = {0};
    grt_algo_cache_lookups(cache, choose_collect, &found);
    const grt_status status = found.failed || grt_algo_cache_forgot(cache)
                                  ? grt_fail_memory(found.n * sizeof *found.list)
                                  : choose_merge(plan, &found);
    free(found.list);
    return status;
}

static void take_known(void *user, const grt_choice *choice)
{
    grt_algo_cache_add_plan(user, choice, 1);
}

/* Choices that the caller has from elsewhere go into the plan as they are. */
static grt_status read_known(const char *path, grt_algo_cache *cache)
{
    size_t damaged;
    if (!path)
        return GRT_OK;
    if (grt_algo_db_stamp(path) == 0)
        return grt_fail(GRT_STATUS_IO, "there is no algorithm cache '%s'", path);
    return grt_algo_db_read(path, take_known, cache, &damaged);
}

static grt_status choose_on(grt_plan *plan, chooser *c, const grt_device_description *description,
                            grt_algo_cache *cache)
{
    grt_device_algos algos;
    grt_device_algos_init(&algos, cache);
    algos.base.code = algos.base.find; /* code is generated here, once for all steps that want it */
    GRT_TRY(c->backend->open_description(description, &c->device));
    c->device->algos = &algos.base;
    const grt_status status = choose_steps(c);
    grt_device_close(c->device);
    return status == GRT_OK ? choose_keep(plan, cache) : status;
}

/* With a cache of its own, which has no file: what it has in the end is what this device needs. */
static grt_status choose_for(grt_plan *plan, chooser *c, const grt_device_description *description,
                             const char *known)
{
    grt_algo_cache *cache;
    if (!description->name || !description->properties)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the description of a device lacks name or properties");
    GRT_TRY(grt_algo_cache_create("off", &cache));
    grt_status status = read_known(known, cache);
    if (status == GRT_OK) {
        status = choose_on(plan, c, description, cache);
        if (status != GRT_OK)
            status = grt_fail_context(status, "choosing algorithms for %s", description->name);
    }
    grt_algo_cache_release(cache);
    return status;
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
    const grt_cancel cancel = {options->cancel, options->user};
    for (size_t i = 0; status == GRT_OK && i < options->n_devices; i++) {
        if (options->progress)
            options->progress(options->user, "choose algorithms", (double)i / (double)options->n_devices);
        status = grt_cancel_check(&cancel);
        if (status == GRT_OK)
            status = choose_for(plan, &c, &options->devices[i], options->choices);
    }
    grt_plan_dims_release(&c.dims);
    free(symbols);
    return status;
}
