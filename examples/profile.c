/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest steps of a model, by a callback after each run.
 *
 *     profile MODEL [DEVICE [RUNS]]
 *
 * Inputs are zeros, unknown dims 1. Times are the device's where it has a clock.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUTS = 16, MAX_STEPS = 4096, SHOWN = 10 };

typedef struct step {
    const char *op, *name; /* belong to the session */
    double ms;             /* in all runs */
} step;

typedef struct profile {
    step steps[MAX_STEPS];
    double run_ms;
    int runs;
    bool on_device;
} profile;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "profile: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* After each run, on its thread: the run itself first, then its parts. */
static void add_event(void *user, const grt_profile_event *event)
{
    profile *p = user;
    const double ms = event->end_ms - event->begin_ms;
    if (event->kind == GRT_PROFILE_RUN) {
        p->run_ms += ms;
        p->runs++;
    } else if (event->kind == GRT_PROFILE_STEP && event->step < MAX_STEPS) {
        step *s = &p->steps[event->step];
        *s = (step){.op = event->op, .name = event->name, .ms = s->ms + ms};
        p->on_device = event->on_device;
    }
}

static bool run_profiled(grt_context *context, profile *p, int runs)
{
    const grt_profile_options options = {
        .struct_size = sizeof options, .event = add_event, .user = p, .steps = true};
    bool good = ok(grt_context_run(context), "first run"); /* which plans */
    good = good && ok(grt_context_set_profile(context, &options), "profile");
    for (int i = 0; good && i < runs; i++)
        good = ok(grt_context_run(context), "run");
    return good;
}

static int compare_steps(const void *a, const void *b)
{
    const double x = ((const step *)a)->ms, y = ((const step *)b)->ms;
    return (x < y) - (x > y);
}

static void print_slowest(profile *p)
{
    qsort(p->steps, MAX_STEPS, sizeof *p->steps, compare_steps);
    printf("%d runs of %.3f ms; times of steps are the %s's\n", p->runs, p->run_ms / p->runs,
           p->on_device ? "device" : "host");
    for (int i = 0; i < SHOWN && p->steps[i].op; i++)
        printf("%10.4f ms  %s %s\n", p->steps[i].ms / p->runs, p->steps[i].op, p->steps[i].name);
}

static bool bind_zeros(const grt_model *model, grt_context *context, void **data)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (i == MAX_INPUTS || !ok(grt_model_input(model, i, &info), "input"))
            return false;
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        t.data = data[i] = info.has_default ? NULL : calloc(grt_tensor_bytes(&t) + 1, 1);
        if (data[i] && !ok(grt_context_set_input(context, i, &t), "bind"))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static profile p;
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    void *data[MAX_INPUTS] = {0};
    const int runs = argc > 3 ? atoi(argv[3]) : 10;
    if (argc < 2 || runs < 1) {
        fprintf(stderr, "usage: profile MODEL [DEVICE [RUNS]]\n");
        return 2;
    }
    const bool good = ok(grt_runtime_create(&runtime), "runtime") &&
                      ok(grt_model_open(runtime, argv[1], &model), "model") &&
                      ok(grt_session_create(model, argc > 2 ? argv[2] : "cpu", NULL, &session), "session") &&
                      ok(grt_context_create(session, &context), "context") &&
                      bind_zeros(model, context, data) && run_profiled(context, &p, runs);
    if (good)
        print_slowest(&p);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    for (int i = 0; i < MAX_INPUTS; i++)
        free(data[i]);
    return good ? 0 : 1;
}
