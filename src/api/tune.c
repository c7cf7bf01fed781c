/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: measure what a library offers for the steps of a model, and keep the fastest. Nothing else in the
 * library measures kernels. docs/decisions/tuning.md says what is measured and why so. */
#include "src/base/structs.h"
#include "src/api/step_bench.h"
#include "src/base/grow.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 5,       /* of every candidate, to find those that may win */
    FINALISTS = 3,     /* that then run against the heuristic's choice ... */
    ROUNDS = 21,       /* ... in turns */
    MOST_LOAD_MS = 20, /* a choice that takes longer to load costs every start more than it gains */
};
static const double default_seconds = 60;
/* Required gain: more than this fraction, and more than the spread of the heuristic's own samples. */
static const double margin = 0.02;
/* At a first look: who takes so much longer than the best so far is not looked at again. */
static const double hopeless = 1.3;
/* Of the time for a choice, the part to list candidates in: libraries may have thousands. */
static const double listing_part = 0.3;

/* A choice that one or more steps have. */
typedef struct choice {
    char *key;
    int32_t step; /* the first that has it */
    size_t steps;
    bool known;
    double ms; /* of one run as it is now */
} choice;

typedef struct tuner {
    grt_context *context;
    grt_frame *frame;
    grt_algo_cache *cache;
    grt_tune_options options;
    grt_tune_report *report;
    choice *choices;
    size_t n, at; /* at: the one that is being tuned */
    double end_ms;
} tuner;

/* The trial comes first, so that its functions find the rest. */
typedef struct naming {
    grt_algo_trial trial;
    char *key; /* of the last choice that was used */
} naming;

typedef struct candidate {
    void *data;
    size_t size;
    bool out;
    double ms;
} candidate;

typedef struct listing {
    grt_algo_trial trial;
    const char *key;
    double end_ms; /* no more after this */
    candidate *list;
    size_t n, capacity;
    bool failed;
} listing;

/* ---- time and cancellation ---- */

static bool may_go_on(tuner *t, const char *what)
{
    const double total = t->options.seconds * 1e3, left = t->end_ms - grt_now_ms();
    double fraction = total > 0 ? 1 - left / total : 1;
    const double done = t->n ? (double)t->at / (double)t->n : 0;
    fraction = fraction > done ? fraction : done;
    if (!t->report->stopped && t->options.progress &&
        !t->options.progress(t->options.user, what, fraction < 1 ? fraction : 1))
        t->report->stopped = true;
    if (left <= 0)
        t->report->out_of_time = true;
    return !t->report->stopped && left > 0;
}

/* ---- which choices there are ---- */

static void note_key(grt_algo_trial *trial, const char *key)
{
    naming *n = (naming *)trial;
    free(n->key);
    n->key = strdup(key);
}

static bool may_tune(const grt_frame *frame, int32_t s)
{
    const grt_instruction *ins = grt_program_instruction(frame->program, s);
    return ins && ins->prepared && !ins->host && ins->call->row && ins->call->row->flags & GRT_KERNEL_TUNES;
}

/* Prepare the step once more, as a session does, to hear which choice it uses; *out_key is NULL if none. */
static grt_status tune_find_key(const grt_frame *frame, int32_t s, char **out_key)
{
    const grt_op_call *call = &frame->calls[s];
    naming n = {.trial = {.uses = note_key}};
    grt_reshape reshape = grt_op_call_reshape(call);
    reshape.trial = &n.trial;
    grt_status status = call->row->reshape(&reshape);
    if (status == GRT_OK && reshape.shape && call->row->release_shape)
        call->row->release_shape(reshape.shape);
    if (status != GRT_OK) {
        free(n.key);
        return status;
    }
    *out_key = n.key;
    return GRT_OK;
}

static grt_status find_choices(tuner *t)
{
    const grt_frame *frame = t->frame;
    t->choices = calloc((size_t)frame->program->body->n_steps + 1, sizeof *t->choices);
    if (!t->choices)
        return grt_fail_memory((size_t)frame->program->body->n_steps * sizeof *t->choices);
    for (int32_t s = 0; s < frame->program->body->n_steps && may_go_on(t, "looking for choices"); s++) {
        char *key = NULL;
        if (!may_tune(frame, s))
            continue;
        GRT_TRY(tune_find_key(frame, s, &key));
        if (!key)
            continue;
        t->report->steps++;
        size_t i = 0;
        while (i < t->n && strcmp(t->choices[i].key, key))
            i++;
        if (i == t->n)
            t->choices[t->n++] = (choice){.key = key, .step = s};
        else
            free(key);
        t->choices[i].steps++;
    }
    t->report->choices = t->n;
    return GRT_OK;
}

/* What each costs now, so that the dearest come first. */
static grt_status measure_choices(tuner *t)
{
    for (size_t i = 0; i < t->n && may_go_on(t, "weighing steps"); i++) {
        choice *c = &t->choices[i];
        grt_step_bench *bench;
        grt_step_way way = {0};
        c->known = !t->options.again && grt_algo_cache_is_tuned(t->cache, c->key);
        if (c->known)
            continue;
        GRT_TRY(grt_step_bench_create(t->frame, c->step, &bench));
        grt_status status = grt_step_bench_prepare(bench, NULL, &way);
        for (int k = 0; k < 3 && status == GRT_OK; k++) { /* the first warms up */
            double ms = 0;
            status = grt_step_bench_time(bench, &way, &ms);
            c->ms = k < 2 || ms < c->ms ? ms : c->ms;
        }
        grt_step_bench_forget(bench, &way);
        grt_step_bench_release(bench);
        GRT_TRY(status);
    }
    return GRT_OK;
}

static double choice_cost(const choice *c)
{
    return c->ms * (double)c->steps;
}

static int dearest_first(const void *a, const void *b)
{
    const double x = choice_cost(a), y = choice_cost(b);
    return x < y ? 1 : x > y ? -1 : 0;
}

/* ---- candidates ---- */

static bool add_candidate(grt_algo_trial *trial, const char *key, const void *data, size_t size)
{
    listing *l = (listing *)trial;
    if (strcmp(key, l->key))
        return true; /* of another choice that the step makes on the way */
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].size == size && !memcmp(l->list[i].data, data, size))
            return grt_now_ms() < l->end_ms;
    void *copy = GRT_GROW(l->list, l->n, l->capacity) ? malloc(size + 1) : NULL;
    l->failed = l->failed || !copy;
    if (!copy)
        return false;
    memcpy(copy, data, size);
    l->list[l->n++] = (candidate){.data = copy, .size = size};
    return grt_now_ms() < l->end_ms;
}

static grt_status list_candidates(grt_step_bench *bench, listing *l)
{
    grt_step_way way = {0};
    l->trial = (grt_algo_trial){.lists = true, .offer = add_candidate};
    GRT_TRY(grt_step_bench_prepare(bench, &l->trial, &way));
    grt_step_bench_forget(bench, &way);
    return l->failed ? grt_fail_memory(l->n * sizeof *l->list) : GRT_OK;
}

/* As a session would have it from the cache; false: it would not. */
static bool prepare_candidate(grt_step_bench *bench, const listing *l, candidate *c, grt_step_way *way)
{
    grt_algo_trial trial = {.key = l->key, .data = c->data, .size = c->size};
    *way = (grt_step_way){0};
    if (grt_step_bench_prepare(bench, &trial, way) != GRT_OK)
        c->out = true;
    else if (trial.refused || way->ms > MOST_LOAD_MS) {
        grt_step_bench_forget(bench, way);
        c->out = true;
    }
    return !c->out;
}

static int compare_choices(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A first look: the median of a few samples; who is far behind the best so far gets one. */
static void measure_candidate(grt_step_bench *bench, const listing *l, candidate *c, double best)
{
    grt_step_way way;
    double samples[SAMPLES];
    int n = 0;
    if (!prepare_candidate(bench, l, c, &way))
        return;
    double ms;
    c->out = grt_step_bench_time(bench, &way, &ms) != GRT_OK; /* warms up */
    while (!c->out && n < SAMPLES && (n == 0 || best <= 0 || samples[0] < hopeless * best)) {
        c->out = grt_step_bench_time(bench, &way, &samples[n]) != GRT_OK;
        n += !c->out;
    }
    if (!c->out) {
        qsort(samples, (size_t)n, sizeof *samples, compare_choices);
        c->ms = samples[n / 2];
    }
    grt_step_bench_forget(bench, &way);
}

/* The fastest but for the first that have not been taken; NULL: none that beats `ms`. */
static candidate *fastest_untaken(listing *l, candidate *const *taken, size_t n_taken, double ms)
{
    candidate *best = NULL;
    for (size_t i = 1; i < l->n; i++) {
        candidate *c = &l->list[i];
        bool free_one = !c->out && c->ms > 0 && c->ms < ms;
        for (size_t k = 0; k < n_taken; k++)
            free_one = free_one && taken[k] != c;
        if (free_one && (!best || c->ms < best->ms))
            best = c;
    }
    return best;
}

/* ---- the decision ---- */

typedef struct finalist {
    candidate *candidate;
    grt_step_way way;
    double samples[ROUNDS];
} finalist;

static double median_of_finalist(const finalist *f)
{
    return f->samples[ROUNDS / 2];
}

/* The heuristic's choice and the fastest candidates with equal results; none if the choice cannot be restored
 * from its recorded data. */
static grt_status choose_finalists(grt_step_bench *bench, listing *l, finalist *list, size_t *out_n)
{
    candidate *taken[1 + FINALISTS];
    size_t n = 0;
    *out_n = 0;
    taken[n] = &l->list[0];
    if (taken[0]->out || !prepare_candidate(bench, l, taken[0], &list[0].way))
        return GRT_OK;
    list[n++].candidate = taken[0];
    *out_n = n;
    GRT_TRY(grt_step_bench_expect(bench, &list[0].way));
    while (n <= FINALISTS) {
        candidate *c = fastest_untaken(l, taken, n, l->list[0].ms);
        bool same = false;
        if (!c)
            break;
        if (!prepare_candidate(bench, l, c, &list[n].way))
            continue;
        if (grt_step_bench_same(bench, &list[n].way, &same) != GRT_OK || !same) {
            c->out = true;
            grt_step_bench_forget(bench, &list[n].way);
            continue;
        }
        taken[n] = list[n].candidate = c;
        *out_n = ++n;
    }
    return GRT_OK;
}

/* All in turns, so that what else happens on the machine meets them alike. */
static grt_status time_finalists(grt_step_bench *bench, finalist *list, size_t n)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++)
            GRT_TRY(grt_step_bench_time(bench, &list[i].way, &list[i].samples[round]));
    for (size_t i = 0; i < n; i++)
        qsort(list[i].samples, ROUNDS, sizeof *list[i].samples, compare_choices);
    return GRT_OK;
}

/* The heuristic's choice unless another is faster by more than noise. */
static const finalist *winner_of(const finalist *list, size_t n)
{
    const finalist *best = &list[0];
    const double spread = (list[0].samples[ROUNDS * 3 / 4] - list[0].samples[ROUNDS / 4]) / 2;
    const double gain =
        spread > margin * median_of_finalist(&list[0]) ? spread : margin * median_of_finalist(&list[0]);
    for (size_t i = 1; i < n; i++)
        if (median_of_finalist(&list[i]) < median_of_finalist(&list[0]) - gain &&
            median_of_finalist(&list[i]) < median_of_finalist(best))
            best = &list[i];
    return best;
}

/* *out_decided is false, and nothing is stored, if there is no choice that could be. */
static grt_status decide_choice(tuner *t, const choice *c, grt_step_bench *bench, listing *l,
                                grt_tune_result *result, bool *out_decided)
{
    finalist list[1 + FINALISTS];
    size_t n = 0;
    grt_status status = choose_finalists(bench, l, list, &n);
    if (status == GRT_OK)
        status = time_finalists(bench, list, n);
    *out_decided = status == GRT_OK && n > 0;
    if (*out_decided) {
        const finalist *best = winner_of(list, n);
        const candidate *won = best->candidate;
        result->before_ms = median_of_finalist(&list[0]);
        result->after_ms = median_of_finalist(best);
        result->winner = (size_t)(won - l->list);
        grt_device_algo_store_tuned(t->context->executor.session->device, c->key, won->data, won->size,
                                    median_of_finalist(best));
        grt_algo_cache_save(t->cache);
    }
    for (size_t i = 0; i < n; i++)
        grt_step_bench_forget(bench, &list[i].way);
    return status;
}

static void report_choice(tuner *t, const choice *c, const grt_tune_result *result)
{
    grt_tune_report *r = t->report;
    if (c->known)
        r->known++;
    else {
        r->tuned++;
        r->improved += result->winner != 0;
        r->before_ms += result->before_ms * (double)c->steps;
        r->after_ms += result->after_ms * (double)c->steps;
    }
    if (t->options.result)
        t->options.result(t->options.user, result);
}

static grt_status tune_with(tuner *t, const choice *c, grt_step_bench *bench, double end_ms)
{
    const grt_op_desc *desc = t->frame->calls[c->step].run.desc;
    grt_tune_result result = {
        .struct_size = sizeof result, .key = c->key, .op = desc->op, .name = desc->name, .steps = c->steps};
    const double begin = grt_now_ms();
    listing l = {.key = c->key, .end_ms = begin + listing_part * (end_ms - begin)};
    double best = 0;
    grt_status status = list_candidates(bench, &l);
    for (size_t i = 0; status == GRT_OK && i < l.n && !t->report->stopped; i++) {
        if (i > 0 && (grt_now_ms() > end_ms || !may_go_on(t, desc->name)))
            break;
        measure_candidate(bench, &l, &l.list[i], best);
        result.candidates++;
        if (!l.list[i].out && (best <= 0 || l.list[i].ms < best))
            best = l.list[i].ms;
    }
    bool decided = false;
    if (status == GRT_OK && result.candidates)
        status = decide_choice(t, c, bench, &l, &result, &decided);
    for (size_t i = 0; i < l.n; i++) {
        result.refused += l.list[i].out;
        free(l.list[i].data);
    }
    free(l.list);
    if (decided)
        report_choice(t, c, &result);
    return status;
}

/* The time that is left goes to the choices that are left, as they cost. */
static grt_status tune_choice(tuner *t, size_t i)
{
    const choice *c = &t->choices[i];
    grt_step_bench *bench;
    double costs = 0;
    t->at = i;
    if (c->known) {
        const grt_op_desc *desc = t->frame->calls[c->step].run.desc;
        const grt_tune_result result = {.struct_size = sizeof result,
                                        .key = c->key,
                                        .op = desc->op,
                                        .name = desc->name,
                                        .steps = c->steps,
                                        .known = true};
        report_choice(t, c, &result);
        return GRT_OK;
    }
    if (!may_go_on(t, t->frame->calls[c->step].run.desc->name))
        return GRT_OK;
    for (size_t k = i; k < t->n; k++)
        costs += t->choices[k].known ? 0 : choice_cost(&t->choices[k]);
    const double now = grt_now_ms(), share = costs > 0 ? choice_cost(c) / costs : 1;
    GRT_TRY(grt_step_bench_create(t->frame, c->step, &bench));
    grt_status status = tune_with(t, c, bench, now + (t->end_ms - now) * share);
    grt_step_bench_release(bench);
    return status;
}

static grt_status tune_choices(tuner *t)
{
    GRT_TRY(grt_context_run(t->context));
    t->frame = t->context->executor.main;
    GRT_TRY(find_choices(t));
    GRT_TRY(measure_choices(t));
    qsort(t->choices, t->n, sizeof *t->choices, dearest_first);
    for (size_t i = 0; i < t->n && !t->report->stopped; i++)
        GRT_TRY(tune_choice(t, i));
    return GRT_OK;
}

grt_status grt_context_tune(grt_context *context, const grt_tune_options *options,
                            grt_tune_report *out_report)
{
    if (!context || !out_report)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_tune: context or out_report is NULL");
    grt_tune_report found = {.struct_size = sizeof found};
    tuner t = {
        .context = context, .cache = context->executor.session->model->runtime->algos, .report = &found};
    GRT_TRY(grt_options_take(&t.options, sizeof t.options, options, "grt_tune_options"));
    GRT_TRY(
        grt_info_give(out_report, &found, sizeof found, "grt_tune_report")); /* before minutes are spent */
    if (!(t.options.seconds >= 0))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_context_tune: seconds is %g, must not be negative",
                        t.options.seconds);
    if (t.options.seconds == 0)
        t.options.seconds = default_seconds;
    t.end_ms = grt_now_ms() + t.options.seconds * 1e3;
    bool switched = false;
    grt_device *device = context->executor.session->device;
    grt_status status = grt_device_enter(device, &switched);
    if (status == GRT_OK)
        status = tune_choices(&t);
    grt_device_leave(device, switched);
    for (size_t i = 0; i < t.n; i++)
        free(t.choices[i].key);
    free(t.choices);
    return status == GRT_OK ? grt_info_give(out_report, &found, sizeof found, "grt_tune_report") : status;
}
