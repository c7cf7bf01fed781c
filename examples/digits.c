/* SPDX-License-Identifier: Apache-2.0 */
/* Reads handwritten digits: runs a trained network on a batch of held-out images, compares with their labels,
 * measures.
 *
 *     graphc optimize models/digits/digits.onnx -o build/digits.grt
 *     digits build/digits.grt models/digits/test_images.npy models/digits/test_labels.npy
 */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, SHOWN = 6 };

/* True if the call succeeded; otherwise prints what failed and why. */
static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "digits: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The class with the largest of the CLASSES logits. */
static int best(const float *logits)
{
    int at = 0;
    for (int i = 1; i < CLASSES; i++)
        if (logits[i] > logits[at])
            at = i;
    return at;
}

/* Draw some images side by side, with what the network and the label say beneath. */
static void show(const float *images, const float *logits, const int64_t *labels, int64_t n)
{
    static const char shades[] = " .:-=+*#%@";
    int64_t shown = n < SHOWN ? n : SHOWN;
    for (int row = 0; row < SIDE; row++, putchar('\n'))
        for (int64_t i = 0; i < shown; i++, fputs("  ", stdout))
            for (int col = 0; col < SIDE; col++) {
                char shade = shades[(int)(images[i * PIXELS + row * SIDE + col] * 9.0f)];
                printf("%c%c", shade, shade);
            }
    for (int64_t i = 0; i < shown; i++)
        printf("read %d, is %-7d", best(logits + i * CLASSES), (int)labels[i]);
    putchar('\n');
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median time of a run with the first `batch` images. */
static bool measure(grt_context *context, const grt_tensor *images, int64_t batch)
{
    enum { WARMUP = 10, RUNS = 200 };
    double ms[RUNS];
    grt_tensor some = *images;
    some.dims[0] = batch;
    if (!ok(grt_context_set_input(context, 0, &some), "images"))
        return false;
    for (int i = -WARMUP; i < RUNS; i++) {
        double start = now_ms();
        if (!ok(grt_context_run(context), "run"))
            return false;
        if (i >= 0)
            ms[i] = now_ms() - start;
    }
    qsort(ms, RUNS, sizeof *ms, by_value);
    printf("latency %.3f ms for a batch of %lld (median of %d runs, p99 %.3f ms): %.0f images/s\n",
           ms[RUNS / 2], (long long)batch, RUNS, ms[RUNS * 99 / 100], 1e3 * (double)batch / ms[RUNS / 2]);
    return true;
}

static bool classify(grt_context *context, const grt_tensor *images, const grt_tensor *labels)
{
    grt_tensor logits;
    if (!ok(grt_context_set_input(context, 0, images), "images") || !ok(grt_context_run(context), "run") ||
        !ok(grt_context_get_output(context, 0, &logits), "logits"))
        return false;
    int64_t n = images->dims[0], right = 0;
    if (logits.dtype != GRT_DTYPE_FLOAT || grt_tensor_elements(&logits) != n * CLASSES) {
        fprintf(stderr, "digits: the model does not give %d float32 logits an image\n", CLASSES);
        return false;
    }
    const int64_t *label = labels->data;
    show(images->data, logits.data, label, n);
    for (int64_t i = 0; i < n; i++)
        right += best((const float *)logits.data + i * CLASSES) == label[i];
    printf("accuracy %.1f%% on %lld images\n", 100.0 * (double)right / (double)n, (long long)n);
    return measure(context, images, 1) && measure(context, images, n < 32 ? n : 32);
}

static bool run(const char *path, const grt_tensor *images, const grt_tensor *labels)
{
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    bool done = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open(runtime, path, &model), "model") &&
                ok(grt_session_create(model, "cpu", NULL, &session), "session") &&
                ok(grt_context_create(session, &context), "context") && classify(context, images, labels);
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return done;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: digits MODEL IMAGES.npy LABELS.npy\n");
        return 2;
    }
    grt_tensor images = {0}, labels = {0};
    bool done = npy_read(argv[2], &images) && npy_read(argv[3], &labels);
    if (done && (images.dtype != GRT_DTYPE_FLOAT || images.rank != 4 || labels.dtype != GRT_DTYPE_INT64 ||
                 labels.rank != 1 || images.dims[0] < 1 || labels.dims[0] != images.dims[0] ||
                 grt_tensor_elements(&images) != images.dims[0] * PIXELS)) {
        fprintf(stderr, "digits: want float32 images [N, 1, %d, %d] and int64 labels [N]\n", SIDE, SIDE);
        done = false;
    }
    done = done && run(argv[1], &images, &labels);
    free(images.data);
    free(labels.data);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
