/* SPDX-License-Identifier: Apache-2.0 */
/* usage: device [--model FILE] [TEST...]
 * Runs the tests of tests.def on cuda:0, each in a process of its own. FILE is a model of one float32 input
 * and one output. The last line is the totals; without a usable device everything is skipped. */
#include "tests/device/device.h"
#include "tests/device/fragile.h"
#include "tests/differential/model.h"

#include <graphrt/processes.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool (*run)(const char *model_path);
} tests[] = {
#define X(name) {#name, name},
#include "tests/device/tests.def"
#undef X
};
enum { N_TESTS = sizeof tests / sizeof *tests, LIMIT_S = 120 };

static bool make_ready(subject *s)
{
    DONE(grt_session_create(s->model, "cuda:0", NULL, &s->session));
    DONE(grt_context_create(s->session, &s->context));
    return true;
}

bool subject_open(subject *s, const char *path)
{
    *s = (subject){0};
    DONE(grt_runtime_create(&s->runtime));
    DONE(grt_model_open(s->runtime, path, &s->model));
    return make_ready(s);
}

bool subject_node(subject *s, const char *op, grt_dtype out, const grt_tensor *in, int n_in,
                  int first_constant)
{
    node n = {.op = op, .n_in = n_in, .out = out};
    for (int i = 0; i < n_in; i++) {
        n.in[i] = in[i];
        n.constant[i] = i >= first_constant;
    }
    return subject_model(s, &n);
}

bool subject_model(subject *s, const node *n)
{
    size_t size;
    *s = (subject){0};
    void *bytes = model_bytes(n, &size);
    EXPECT(bytes, "out of memory");
    DONE(grt_runtime_create(&s->runtime));
    DONE(grt_model_open_memory(s->runtime, bytes, size, &s->model));
    free(bytes);
    return make_ready(s);
}

void subject_release(subject *s)
{
    grt_context_release(s->context);
    grt_session_release(s->session);
    grt_model_release(s->model);
    grt_runtime_release(s->runtime);
    *s = (subject){0};
}

/* 0: passed; 1: failed; 2: crashed, or took too long. */
static int run_alone(bool (*run)(const char *), const char *path)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT_S);
        const bool passed = run(path);
        fflush(stdout);
        exit(passed ? 0 : 1); /* exit() as in user programs: exit handlers must not crash either */
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    if (WIFSIGNALED(status))
        printf("  ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static bool has_device(const char *path)
{
    int32_t n = 0;
    (void)path;
    const bool known = grt_device_count("cuda", &n) == GRT_OK;
    if (!known || n == 0)
        printf("no device: %s\n", grt_last_error());
    return known && n > 0;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc == 0;
}

/* A name of no test would be a run of none that looks like a success. */
static bool names_are_known(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        bool known = false;
        for (int k = 0; k < N_TESTS; k++)
            known |= !strcmp(argv[i], tests[k].name);
        if (!known) {
            fprintf(stderr, "device: no test is called '%s'; usage: device [--model FILE.onnx] [TEST]...\n",
                    argv[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *path = "models/digits/digits.onnx";
    if (argc == 3 && !strcmp(argv[1], "worker")) /* of a pool of workers.c */
        return fragile_register() != GRT_OK || grt_process_serve(atoi(argv[2])) != GRT_OK;
    int passed = 0, failed = 0, skipped = 0, at = 1;
    if (argc > 2 && !strcmp(argv[1], "--model")) {
        path = argv[2];
        at = 3;
    }
    if (!names_are_known(argc - at, argv + at))
        return 2;
    const bool there = run_alone(has_device, path) == 0;
    for (int i = 0; i < N_TESTS; i++) {
        if (!wanted(tests[i].name, argc - at, argv + at))
            continue;
        const int code = there ? run_alone(tests[i].run, path) : 0;
        printf("%s: %s\n", !there ? "skipped" : code ? "FAILED" : "ok", tests[i].name);
        skipped += !there;
        passed += there && code == 0;
        failed += there && code != 0;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
