/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are replaced while a session serves: two sets of values in turns, as two adapters or two
 * versions of a table would be.
 *
 *     weights MODEL NAME[,NAME...] [DEVICE [TIMES]]
 *
 * One thread replaces the weights of those names, which are initializers of float32, TIMES times; another
 * runs the model meanwhile. Each result must be that of one set or of the other: all weights of a call change
 * together, and a run that has begun ends with the ones that it began with. Inputs are a ramp, unknown
 * dims 1.
 */
#include <graphrt/graphrt.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_TENSORS = 64, SETS = 2 };

static grt_session *session;
static const char *names[MOST_TENSORS];
static grt_tensor weights[SETS][MOST_TENSORS], inputs[MOST_TENSORS];
static size_t n_weights, n_inputs;
static atomic_bool over;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "weights: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* From `low` to `low` + 1. */
static bool make_ramp(const grt_io_info *info, float low, grt_tensor *out)
{
    *out = (grt_tensor){.dtype = info->dtype, .rank = info->rank};
    for (int32_t k = 0; k < info->rank; k++)
        out->dims[k] = info->dims[k] < 0 ? 1 : info->dims[k];
    const int64_t n = grt_tensor_elements(out);
    out->data = info->dtype == GRT_DTYPE_FLOAT ? malloc(grt_tensor_bytes(out) + 1) : NULL;
    if (!out->data)
        fprintf(stderr, "weights: %s is not of float32, or memory is short\n", info->name);
    for (int64_t i = 0; out->data && i < n; i++)
        ((float *)out->data)[i] = low + (float)i / (float)n;
    return out->data != NULL;
}

/* The model's inputs come first, then the weights, which have defaults. */
static bool make_tensors(const grt_model *model)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(model, i, &info), "input"))
            return false;
        if (!info.has_default) {
            if (n_inputs == MOST_TENSORS || !make_ramp(&info, 0.0f, &inputs[n_inputs++]))
                return false;
            continue;
        }
        if (n_weights == MOST_TENSORS)
            return false;
        names[n_weights] = info.name;
        for (int set = 0; set < SETS; set++)
            if (!make_ramp(&info, (float)-set, &weights[set][n_weights]))
                return false;
        n_weights++;
    }
    return true;
}

static grt_context *make_context(void)
{
    grt_context *context = NULL;
    bool good = ok(grt_context_create(session, &context), "context");
    for (size_t i = 0; good && i < n_inputs; i++)
        good = ok(grt_context_set_input(context, i, &inputs[i]), "set input");
    if (good)
        return context;
    grt_context_release(context);
    return NULL;
}

/* The first output, in memory of its own. */
static void *result_with(int set, size_t *out_bytes)
{
    grt_tensor y;
    void *copy = NULL;
    grt_context *context = make_context();
    if (context && ok(grt_session_set_weights(session, names, weights[set], n_weights), "weights") &&
        ok(grt_context_run(context), "run") && ok(grt_context_get_output(context, 0, &y), "output")) {
        *out_bytes = grt_tensor_bytes(&y);
        copy = malloc(*out_bytes + 1);
        if (copy)
            memcpy(copy, y.data, *out_bytes);
    }
    grt_context_release(context);
    return copy;
}

typedef struct server {
    const void *expected[SETS];
    size_t bytes;
    long runs[SETS], others;
    atomic_long done; /* all of these; LONG_MAX: no more come */
} server;

static void *serve(void *user)
{
    server *s = user;
    grt_tensor y;
    grt_context *context = make_context();
    while (context && !over && ok(grt_context_run(context), "run") &&
           ok(grt_context_get_output(context, 0, &y), "output")) {
        int set = 0;
        while (set < SETS && memcmp(y.data, s->expected[set], s->bytes) != 0)
            set++;
        ++*(set < SETS ? &s->runs[set] : &s->others);
        s->done++;
    }
    s->done = LONG_MAX;
    grt_context_release(context);
    return NULL;
}

/* Each set gets some runs, and changes while one is in progress. */
static void wait_for_result(const server *s)
{
    for (long before = s->done; s->done == before && before < LONG_MAX;)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static bool replace_while_serving(server *s, int times)
{
    pthread_t thread;
    bool good = pthread_create(&thread, NULL, serve, s) == 0;
    if (!good)
        return false;
    for (int i = 0; good && i < times; i++) {
        good = ok(grt_session_set_weights(session, names, weights[i % SETS], n_weights), "weights");
        wait_for_result(s);
    }
    over = true;
    pthread_join(thread, NULL);
    printf("%zu weights replaced %d times: %ld results of one set, %ld of the other, %ld of neither\n",
           n_weights, times, s->runs[0], s->runs[1], s->others);
    return good && s->runs[0] && s->runs[1] && s->others == 0;
}

static bool use(const grt_model *model, int times)
{
    server s = {.bytes = 0};
    size_t bytes = 0;
    void *results[SETS] = {NULL};
    bool good = make_tensors(model) && n_weights > 0;
    for (int set = 0; good && set < SETS; set++) {
        s.expected[set] = results[set] = result_with(set, &bytes);
        good = results[set] != NULL;
    }
    s.bytes = bytes;
    if (good && memcmp(results[0], results[1], bytes) == 0) {
        fprintf(stderr, "weights: the first output does not depend on them\n");
        good = false;
    }
    good = good && replace_while_serving(&s, times);
    for (int set = 0; set < SETS; set++) {
        free(results[set]);
        for (size_t i = 0; i < n_weights; i++)
            free(weights[set][i].data);
    }
    for (size_t i = 0; i < n_inputs; i++)
        free(inputs[i].data);
    return good;
}

int main(int argc, char **argv)
{
    const char *device = argc > 3 ? argv[3] : "cpu";
    const int times = argc > 4 ? atoi(argv[4]) : 1000;
    char kind[32] = "cpu";
    if (argc < 3 || argc > 5 || times < 1) {
        fprintf(stderr, "usage: weights MODEL NAME[,NAME...] [DEVICE [TIMES]]\n");
        return 2;
    }
    sscanf(device, "%31[a-z]", kind);
    /* Nothing is folded or packed of what is to be replaced. */
    const grt_compile_options compile = {
        .struct_size = sizeof compile, .target = kind, .keep_weights = argv[2]};
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    const bool good = ok(grt_runtime_create(&runtime), "runtime") &&
                      ok(grt_model_open_with(runtime, argv[1], &compile, &model), argv[1]) &&
                      ok(grt_session_create(model, device, NULL, &session), "session") && use(model, times);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return !good;
}
