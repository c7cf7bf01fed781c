/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a model's life fails once: opening, creating session and context, two runs with
 * different dims, releasing. Each time the status is OUT_OF_MEMORY with a message, nothing leaks, and the
 * next life succeeds.
 *
 * usage: starve [--step N] [--from N] [--for-good] [--threads N] MODEL
 *   --step N      every Nth allocation only
 *   --for-good    all allocations after it fail, too
 *   --show        where each allocation was whose failure had no effect
 * The last line is "N passed, N failed, N skipped". */
#include <execinfo.h>
#include <graphrt/graphrt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/starve/refuse.h"

enum { MAX_IO = 8, LENGTHS = 2, SETTLED = 3 };

typedef struct life {
    const char *path;
    grt_session_options options;
    grt_tensor in[LENGTHS][MAX_IO];
    size_t n_in, n_out;
    grt_tensor wanted[LENGTHS][MAX_IO]; /* what a run without refusals gave */
    bool has_wanted;
} life;

static long at; /* the allocation that is being refused */

/* What was not fused or packed for lack of memory is rounded otherwise. */
static bool same(const grt_tensor *a, const grt_tensor *b)
{
    if (a->dtype != b->dtype || grt_tensor_bytes(a) != grt_tensor_bytes(b))
        return false;
    if (a->dtype != GRT_DTYPE_FLOAT)
        return !memcmp(a->data, b->data, grt_tensor_bytes(a));
    const float *x = a->data, *y = b->data;
    for (int64_t i = 0; i < grt_tensor_elements(a); i++)
        if (x[i] != y[i] && !isnan(x[i]) && !(fabsf(x[i] - y[i]) <= 1e-5f + 1e-4f * fabsf(y[i])))
            return false;
    return true;
}

static grt_tensor copy(const grt_tensor *t)
{
    grt_tensor made = *t;
    made.data = malloc(grt_tensor_bytes(t) + 1);
    memcpy(made.data, t->data, grt_tensor_bytes(t));
    return made;
}

static grt_status run(life *l, grt_context *context, int length, bool *out_right)
{
    grt_status status = GRT_OK;
    for (size_t i = 0; status == GRT_OK && i < l->n_in; i++)
        status = grt_context_set_input(context, i, &l->in[length][i]);
    if (status == GRT_OK)
        status = grt_context_run(context);
    for (size_t i = 0; status == GRT_OK && i < l->n_out; i++) {
        grt_tensor y;
        status = grt_context_get_output(context, i, &y);
        if (status == GRT_OK && l->has_wanted)
            *out_right &= same(&y, &l->wanted[length][i]);
        else if (status == GRT_OK)
            l->wanted[length][i] = copy(&y);
    }
    return status;
}

/* *out_right: were the results those of the first life, where there were results? */
static grt_status live(life *l, bool *out_right)
{
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    *out_right = true;
    grt_status status = grt_runtime_create(&runtime);
    if (status == GRT_OK)
        status = grt_model_open(runtime, l->path, &model);
    if (status == GRT_OK)
        status = grt_session_create(model, "cpu", &l->options, &session);
    if (status == GRT_OK)
        status = grt_context_create(session, &context);
    bool again = true; /* a run that failed did no harm */
    for (int length = 0; status == GRT_OK && length < LENGTHS; length++) {
        status = run(l, context, length, out_right);
        if (status != GRT_OK) {
            refuse_stop();
            again = run(l, context, length, out_right) == GRT_OK;
        }
    }
    *out_right &= again;
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return status;
}

/* Unknown dims are 1, then 2; elements are 1 where they may count or name something, else small numbers. */
static grt_tensor make_input(const grt_io_info *info, int length)
{
    grt_tensor t = {.dtype = info->dtype, .rank = info->rank};
    for (int32_t i = 0; i < t.rank; i++)
        t.dims[i] = info->dims[i] < 0 ? length + 1 : info->dims[i];
    const int64_t n = grt_tensor_elements(&t);
    t.data = calloc((size_t)n + 1, 8);
    for (int64_t i = 0; i < n; i++)
        if (t.dtype == GRT_DTYPE_FLOAT)
            ((float *)t.data)[i] = (float)(i % 17) / 16.0f;
        else if (t.dtype == GRT_DTYPE_INT64)
            ((int64_t *)t.data)[i] = 1;
        else if (grt_dtype_bits(t.dtype) == 8)
            ((uint8_t *)t.data)[i] = 1;
    return t;
}

static bool prepare(life *l)
{
    grt_runtime *runtime;
    grt_model *model;
    if (grt_runtime_create(&runtime) != GRT_OK || grt_model_open(runtime, l->path, &model) != GRT_OK)
        return false;
    l->n_in = grt_model_input_count(model);
    l->n_out = grt_model_output_count(model);
    bool fine = l->n_in <= MAX_IO && l->n_out <= MAX_IO;
    for (size_t i = 0; fine && i < l->n_in; i++) {
        grt_io_info info = {.struct_size = sizeof info};
        fine = grt_model_input(model, i, &info) == GRT_OK && info.kind == GRT_KIND_TENSOR && info.rank >= 0 &&
               info.dtype != GRT_DTYPE_STRING;
        for (int length = 0; fine && length < LENGTHS; length++)
            l->in[length][i] = make_input(&info, length);
    }
    grt_model_release(model);
    grt_runtime_release(runtime);
    return fine;
}

static void died(int number)
{
    char line[128];
    refuse_stop();
    const int n =
        snprintf(line, sizeof line, "FAILED: allocation %ld: the process dies of signal %d\n", at, number);
    if (write(2, line, (size_t)n) == n)
        refuse_show();
    void *frames[48]; /* of the crash; the former are those of the refused allocation */
    const int depth = number ? backtrace(frames, 48) : 0;
    if (depth && write(2, "it died at\n", 11) == 11)
        backtrace_symbols_fd(frames, depth, 2);
    _exit(1);
}

static void ended(void)
{
    if (at)
        died(0);
}

typedef struct totals {
    long passed, failed, unmissed;
} totals;

static void judge(totals *t, const life *l, grt_status status, bool right, bool show)
{
    (void)l;
    const char *text = status == GRT_OK ? "" : grt_last_error();
    const bool told =
        status == GRT_STATUS_OUT_OF_MEMORY && strstr(text, "memory") && !strstr(text, " 0 bytes");
    t->unmissed += status == GRT_OK;
    if ((told || status == GRT_OK) && right)
        t->passed++;
    else
        t->failed++;
    if (!right || (!told && (show || status != GRT_OK))) {
        fprintf(stderr, "%s: allocation %ld: %s%s%s\n", right && status == GRT_OK ? "unmissed" : "FAILED", at,
                right ? "" : "wrong results; ", grt_status_text(status), text);
        refuse_show();
    }
}

/* A life without a refusal follows and succeeds. If it leaves more blocks than usual, a library may have
 * cached something; then the same refusal again leaves no more.
 */
static bool nothing_lost(life *l, bool for_good, long *usual)
{
    bool right = true, fine = true;
    for (int again = 0; again < 2 && fine; again++) {
        refuse_stop();
        fine = live(l, &right) == GRT_OK && right;
        const long before = *usual;
        *usual = refuse_live() > before ? refuse_live() : before;
        if (fine && (*usual == before || refuse_was_in_dnnl()))
            return true;
        refuse_at(at, for_good);
        const grt_status ignored = live(l, &right);
        (void)ignored;
    }
    refuse_stop();
    fprintf(stderr, "FAILED: after allocation %ld: %s, %ld blocks are left\n", at,
            right ? grt_last_error() : "wrong results", *usual);
    refuse_show();
    return false;
}

static int trial(life *l, long from, long step, bool for_good, bool show)
{
    totals t = {0};
    bool right;
    for (int i = 0; i < SETTLED; i++, l->has_wanted = true) /* libraries fill their caches */
        if (live(l, &right) != GRT_OK || !right) {
            fprintf(stderr, "FAILED: %s\n", grt_last_error());
            return 1;
        }
    long usual = refuse_live();
    signal(SIGSEGV, died);
    signal(SIGABRT, died);
    atexit(ended);
    for (at = from;; at += step) {
        refuse_at(at, for_good);
        const grt_status status = live(l, &right);
        const long refused = refuse_refused(), all = refuse_count();
        refuse_stop();
        if (!refused) {
            printf("%s: %ld allocations\n", l->path, all);
            break;
        }
        judge(&t, l, status, right, show);
        t.failed += !nothing_lost(l, for_good, &usual);
    }
    at = 0;
    if (refuse_disturbed())
        printf("FAILED: a cache was emptied %ld times while a thread needed it\n", refuse_disturbed());
    t.failed += refuse_disturbed() != 0;
    printf("%ld were not missed\n%ld passed, %ld failed, 0 skipped\n", t.unmissed, t.passed, t.failed);
    return t.failed || !t.passed;
}

int main(int argc, char **argv)
{
    static life l = {.options = {.struct_size = sizeof l.options, .threads = 1}};
    long from = 1, step = 1;
    bool for_good = false, show = false;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--step") && i + 1 < argc)
            step = atol(argv[++i]);
        else if (!strcmp(argv[i], "--from") && i + 1 < argc)
            from = atol(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            l.options.threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--for-good"))
            for_good = true;
        else if (!strcmp(argv[i], "--show"))
            show = true;
        else
            l.path = argv[i];
    if (!l.path || step < 1 || from < 1 || !prepare(&l)) {
        fprintf(stderr, "usage: starve [--step N] [--from N] [--for-good] [--show] [--threads N] MODEL\n");
        return 2;
    }
    return trial(&l, from, step, for_good, show);
}
