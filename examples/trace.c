/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool does, for ui.perfetto.dev: spans as they are told, written as a trace of Chrome.
 *
 *     trace MODEL DEVICE FILE.json [REQUESTS]
 *
 * Inputs are zeros, unknown dims 1. Where a program has threads of its own to show, they go into the same
 * file.
 */
#include <graphrt/graphrt.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_INPUTS = 16 };

typedef struct program {
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_pool *pool;
    grt_tensor inputs[MAX_INPUTS];
    size_t n_inputs;
} program;

typedef struct trace {
    FILE *file;
    pthread_mutex_t lock;
    long events;
} trace;

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "trace: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* Names of nodes are of the model's author: quotes and the like would end the string. */
static void write_text(FILE *f, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || *text == '"' || *text == '\\' ? '_' : *text, f);
}

/* By any thread, several at once. A request begins on one thread and ends on another: an event of its own
 * kind, by its number. */
static void write_span(void *user, const grt_span *span)
{
    static _Atomic(int) threads;
    static _Thread_local int thread;
    static const char *const kinds[] = {"request", "queue",  "copy in", "run",      "prepare", "upload",
                                        "step",    "replay", "capture", "download", "wait",    "copy out"};
    trace *t = user;
    const bool of_request = span->kind == GRT_SPAN_REQUEST || span->kind == GRT_SPAN_QUEUE;
    thread = thread ? thread : ++threads;
    pthread_mutex_lock(&t->lock);
    for (int end = 0; end < (of_request ? 2 : 1); end++) {
        fprintf(t->file, "%s\n{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":\"", t->events++ ? "," : "",
                !of_request ? "X" : (end ? "e" : "b"), of_request ? "request" : kinds[span->kind]);
        write_text(t->file, span->kind == GRT_SPAN_STEP ? span->op : kinds[span->kind]);
        fputc(' ', t->file);
        write_text(t->file, span->name);
        fprintf(t->file, "\",\"pid\":1,\"tid\":%d,\"ts\":%.3f", thread,
                1e3 * (end ? span->end_ms : span->begin_ms));
        if (of_request)
            fprintf(t->file, ",\"id\":%" PRIu64 "}", span->request);
        else
            fprintf(t->file, ",\"dur\":%.3f}", 1e3 * (span->end_ms - span->begin_ms));
    }
    pthread_mutex_unlock(&t->lock);
}

static bool make_inputs(program *p)
{
    for (size_t i = 0; i < p->n_inputs; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_tensor *t = &p->inputs[i];
        if (!ok(grt_model_input(p->model, i, &info), "input"))
            return false;
        if (info.has_default)
            continue;
        *t = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t->dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        t->data = calloc(grt_tensor_bytes(t) + 1, 1);
        if (!t->data)
            return false;
    }
    return true;
}

static bool open_all(program *p, const char *path, const char *device)
{
    if (!ok(grt_runtime_create(&p->runtime), "runtime") ||
        !ok(grt_model_open(p->runtime, path, &p->model), "model") ||
        !ok(grt_session_create(p->model, device, NULL, &p->session), "session") ||
        !ok(grt_pool_create(&p->session, 1, NULL, &p->pool), "pool"))
        return false;
    p->n_inputs = grt_model_input_count(p->model);
    return p->n_inputs <= MAX_INPUTS && make_inputs(p);
}

static bool run_requests(const program *p, int n)
{
    bool good = true;
    for (int i = 0; good && i < n; i++)
        good = ok(grt_pool_run(p->pool, p->inputs, p->n_inputs, NULL, 0), "run");
    return good;
}

static bool run_traced(const program *p, const char *path, int n)
{
    trace t = {.file = fopen(path, "w"), .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!t.file) {
        perror(path);
        return false;
    }
    fprintf(t.file, "{\"traceEvents\":[");
    grt_trace_set(write_span, &t);
    const bool good = run_requests(p, n);
    grt_trace_set(NULL, NULL); /* from here on nobody writes */
    fprintf(t.file, "\n]}\n");
    printf("%ld events of %d requests in %s\n", t.events, n, path);
    return fclose(t.file) == 0 && good;
}

static void close_all(program *p)
{
    grt_pool_release(p->pool);
    grt_session_release(p->session);
    grt_model_release(p->model);
    grt_runtime_release(p->runtime);
    for (int i = 0; i < MAX_INPUTS; i++)
        free(p->inputs[i].data);
}

int main(int argc, char **argv)
{
    program p = {0};
    if (argc < 4) {
        fprintf(stderr, "usage: trace MODEL DEVICE FILE.json [REQUESTS]\n");
        return 2;
    }
    const bool good =
        open_all(&p, argv[1], argv[2]) && run_traced(&p, argv[3], argc > 4 ? atoi(argv[4]) : 10);
    close_all(&p);
    return good ? 0 : 1;
}
