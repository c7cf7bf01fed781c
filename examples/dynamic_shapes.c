/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of changing size: the first run with new dims prepares them, later runs with dims seen before
 * allocate nothing. Outputs are written where the caller wants them.
 *
 *     dynamic_shapes models/digits/digits.onnx
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLASSES = 10, LARGEST = 64, PIXELS = 64 };

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "dynamic_shapes: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Runs a batch of n images into the caller's memory, and prints time and memory. */
static bool run_batch(grt_context *context, float *images, float *logits, int64_t n)
{
    grt_tensor input = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {n, 1, 8, 8}, .data = images};
    grt_tensor output = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {n, CLASSES}, .data = logits};
    grt_context_stats before = {.struct_size = sizeof before}, after = before;
    if (!ok(grt_context_get_stats(context, &before), "stats") ||
        !ok(grt_context_set_input(context, 0, &input), "input") ||
        !ok(grt_context_set_output(context, 0, &output), "output"))
        return false;
    double start = now_ms();
    if (!ok(grt_context_run(context), "run"))
        return false;
    double ms = now_ms() - start;
    if (!ok(grt_context_get_stats(context, &after), "stats"))
        return false;
    printf("batch %3lld: %7.3f ms, arena %7llu bytes, %s\n", (long long)n, ms,
           (unsigned long long)after.arena_bytes,
           after.reshapes > before.reshapes ? "new dims: memory planned, kernels prepared"
                                            : "dims seen before");
    return true;
}

static bool run_all(grt_context *context)
{
    static const int64_t batches[] = {1, 7, LARGEST, 7, 1, LARGEST, 0};
    static float images[LARGEST * PIXELS], logits[LARGEST * CLASSES];
    for (int i = 0; i < LARGEST * PIXELS; i++)
        images[i] = (float)(i * 7 % 16) / 16.0f;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        if (!run_batch(context, images, logits, batches[i]))
            return false;

    /* Inputs that do not fit the model are refused before anything runs. */
    grt_tensor wrong = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {1, 3, 8, 8}, .data = images};
    if (grt_context_set_input(context, 0, &wrong) == GRT_OK) {
        fprintf(stderr, "dynamic_shapes: three channels were accepted\n");
        return false;
    }
    printf("three channels: %s\n", grt_last_error());
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: dynamic_shapes digits.onnx|digits.grt\n");
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    bool done = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open(runtime, argv[1], &model), "model") &&
                ok(grt_session_create(model, "cpu", NULL, &session), "session") &&
                ok(grt_context_create(session, &context), "context") && run_all(context);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
