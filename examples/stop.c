/* SPDX-License-Identifier: Apache-2.0 */
/* A run that may be stopped: by Ctrl-C, and by a deadline.
 *
 *     stop MODEL [MILLISECONDS]
 *
 * The model runs again and again on zeros, unknown dims being 1, until the time is over. A model whose Loop
 * never ends is stopped as well. Exit status: 0 if the deadline ended it, 3 if an interrupt did.
 */
#include <graphrt/graphrt.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static grt_context *context;
static volatile sig_atomic_t interrupted;

/* grt_context_cancel ends a run in progress; between two runs there is nothing to cancel, hence the flag. */
static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
    grt_context_cancel(context);
}

static bool is_interrupted(void *user)
{
    (void)user;
    return interrupted;
}

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "stop: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* Inputs of zeros: data[i] is the memory of input i, which the caller frees after the context. */
static bool bind_zeros(const grt_model *model, void **data)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(model, i, &info), "input"))
            return false;
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        if (info.has_default)
            continue;
        t.data = data[i] = calloc(grt_tensor_bytes(&t) + 1, 1);
        if (!t.data || !ok(grt_context_set_input(context, i, &t), "bind"))
            return false;
    }
    return true;
}

static int run_until(double deadline_ms)
{
    const grt_run_options options = {
        .struct_size = sizeof options, .deadline_ms = deadline_ms, .cancel = is_interrupted};
    unsigned long runs = 0;
    grt_status status;
    while ((status = grt_context_run_with(context, &options)) == GRT_OK)
        runs++;
    printf("%lu runs, then: %s\n", runs, grt_last_error());
    return status == GRT_STATUS_DEADLINE_EXCEEDED ? 0 : status == GRT_STATUS_CANCELLED ? 3 : 1;
}

int main(int argc, char **argv)
{
    const double ms = argc > 2 ? strtod(argv[2], NULL) : 1000;
    if (argc < 2 || argc > 3 || !(ms > 0)) {
        fprintf(stderr, "usage: stop MODEL [MILLISECONDS]\n");
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    void *data[16] = {NULL};
    const size_t most = sizeof data / sizeof *data;
    int code = 1;
    if (ok(grt_runtime_create(&runtime), "runtime") &&
        ok(grt_model_open(runtime, argv[1], &model), "model") &&
        ok(grt_session_create(model, "cpu", NULL, &session), "session") &&
        ok(grt_context_create(session, &context), "context") && grt_model_input_count(model) <= most &&
        bind_zeros(model, data)) {
        signal(SIGINT, interrupt);
        code = run_until(grt_clock_ms() + ms);
        signal(SIGINT, SIG_DFL); /* before the context goes */
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    for (size_t i = 0; i < most; i++)
        free(data[i]);
    return code;
}
