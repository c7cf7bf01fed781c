/* SPDX-License-Identifier: Apache-2.0 */
/* Random nodes on a device beside the CPU, through the public API: random shapes, broadcasts, attributes and
 * dtypes; guards round every buffer that is ours; several runs, so that replayed ones are compared too.
 * makers.def lists what is drawn. Case i has seed N + i. Nodes that the device has no kernel for are skipped.
 * The last line is the totals. */
#include "tests/differential/makers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 3 }; /* step by step, captured, replayed; as many on both, as random numbers count them */

typedef struct result {
    grt_status status;
    char error[300];
    grt_tensor out; /* guarded */
} result;

static grt_status remember(result *r, grt_status status)
{
    if (status != GRT_OK)
        snprintf(r->error, sizeof r->error, "%s", grt_last_error());
    return r->status = status;
}

/* Compiled for the device, with its layouts and fusions. */
static grt_status open_model(const node *n, const char *device, grt_runtime *runtime, const void *bytes,
                             size_t size, grt_model **out)
{
    if (!strcmp(device, "cpu"))
        return grt_model_open_memory(runtime, bytes, size, out);
    char target[32], directory[] = "/tmp/differential-XXXXXX", onnx[64], plan[64];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(device, ":"), device);
    grt_compile_options options = {
        .struct_size = sizeof options, .target = target, .precision = n->precision};
    if (!mkdtemp(directory))
        exit(2);
    snprintf(onnx, sizeof onnx, "%s/model.onnx", directory);
    snprintf(plan, sizeof plan, "%s/model.grt", directory);
    FILE *file = fopen(onnx, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        exit(2);
    grt_status status = grt_compile(onnx, &options, plan);
    if (status == GRT_OK)
        status = grt_model_open(runtime, plan, out);
    remove(onnx);
    remove(plan);
    remove(directory);
    return status;
}

static int64_t multiprocessors; /* that sessions on the device have to themselves */

/* The node's result into memory of our own, of the size that the first run finds. */
static void run_node(const node *n, const char *device, grt_runtime *runtime, result *r)
{
    grt_model *model = NULL;
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_session_options options = {.struct_size = sizeof options, .threads = 1, .compile = "first"};
    if (strcmp(device, "cpu") != 0)
        options.multiprocessors = multiprocessors;
    size_t size = 0;
    void *bytes = model_bytes(n, &size);
    if (!bytes)
        exit(2);
    if (remember(r, open_model(n, device, runtime, bytes, size, &model)) == GRT_OK &&
        remember(r, grt_session_create(model, device, &options, &session)) == GRT_OK)
        remember(r, grt_context_create(session, &context));
    for (int i = 0, at = 0; r->status == GRT_OK && i < n->n_in; i++)
        if (!n->constant[i] && !n->omitted[i])
            remember(r, grt_context_set_input(context, (size_t)at++, &n->in[i]));
    if (r->status == GRT_OK && remember(r, grt_context_run(context)) == GRT_OK &&
        remember(r, grt_context_get_output(context, 0, &r->out)) == GRT_OK) {
        r->out.memory = GRT_MEMORY_HOST;
        r->out.data = guarded(grt_tensor_bytes(&r->out));
        remember(r, grt_context_set_output(context, 0, &r->out));
        for (int i = 0; i < RUNS && r->status == GRT_OK; i++)
            remember(r, grt_context_run(context));
    }
    grt_context_release(context);
    grt_session_release(session);
    grt_model_release(model);
    free(bytes);
}

/* Tolerance: the type's precision over sums of a few hundred terms. bfloat16 has 8 bits: attention scores of
 * 4 to 8 that are rounded to it, as the definition demands, are up to 0.016 off. */
static bool close_enough(const grt_tensor *found, const char *precision, double a, double b)
{
    if ((isnan(a) && isnan(b)) || a == b)
        return true;
    if (!dtype_is_float(found->dtype))
        return false;
    const double unit = found->dtype == GRT_DTYPE_BFLOAT16               ? 2e-2
                        : found->dtype == GRT_DTYPE_FLOAT16 || precision ? 4e-3
                                                                         : 2e-5;
    return fabs(a - b) <= unit * (1 + fabs(a));
}

static bool same(const node *n, const result *want, const result *found, char *why, size_t size)
{
    const grt_tensor *a = &want->out, *b = &found->out;
    bool fits = b->dtype == (n->wide ? n->out : a->dtype) && a->rank == b->rank;
    for (int32_t k = 0; fits && k < a->rank; k++)
        fits = a->dims[k] == b->dims[k];
    if (!fits) {
        snprintf(why, size, "dtype or dims differ");
        return false;
    }
    for (int64_t i = 0; i < grt_tensor_elements(a); i++)
        if (!close_enough(b, n->precision, element_get(a, i), element_get(b, i))) {
            snprintf(why, size, "element %lld is %.9g, on the CPU %.9g", (long long)i, element_get(b, i),
                     element_get(a, i));
            return false;
        }
    return true;
}

typedef struct totals {
    size_t passed, failed, skipped;
} totals;

/* One node on the caller's inputs, whose memory no result is written over. */
static void run_reference(const node *n, grt_runtime *runtime, result *r)
{
    node alone, wide;
    node_settle(n, &alone);
    if (n->wide) {
        node_widen(&alone, &wide);
        run_node(&wide, "cpu", runtime, r);
        node_release(&wide);
    } else
        run_node(&alone, "cpu", runtime, r);
    node_release(&alone);
}

static void report(uint64_t seed, const node *n, const char *device, const result *cpu, const result *other,
                   totals *all)
{
    char text[600], why[400] = "";
    node_describe(n, text, sizeof text);
    const bool held = node_guards_hold(n) &&
                      (!other->out.data || guards_hold(other->out.data, grt_tensor_bytes(&other->out)));
    if (other->status == GRT_STATUS_UNSUPPORTED || (cpu->status != GRT_OK && cpu->status == other->status)) {
        all->skipped++;
    } else if (cpu->status != GRT_OK || other->status != GRT_OK) {
        printf("FAIL seed %llu: %s: cpu says '%s', %s says '%s'\n", (unsigned long long)seed, text,
               cpu->error, device, other->error);
        all->failed++;
    } else if (!held || !same(n, cpu, other, why, sizeof why)) {
        printf("FAIL seed %llu: %s: %s\n", (unsigned long long)seed, text,
               held ? why : "wrote beyond a buffer");
        all->failed++;
    } else {
        all->passed++;
    }
}

/* False if the ops have no maker. */
static bool try_seed(uint64_t seed, const char *device, const char *ops, grt_runtime *runtime, totals *all)
{
    node n = {0};
    result cpu = {0}, other = {0};
    draw_from(seed);
    if (!make_node(&n, ops))
        return false;
    if (n.wide && !strncmp(device, "mirror", 6)) { /* the CPU's kernels again, which are slow in 16 bits */
        node narrow = n;
        node_widen(&narrow, &n);
        node_release(&narrow);
    }
    run_reference(&n, runtime, &cpu);
    run_node(&n, device, runtime, &other);
    report(seed, &n, device, &cpu, &other, all);
    node_release(&n);
    release(cpu.out.data);
    release(other.out.data);
    return true;
}

static const char usage[] =
    "usage: differential [--device DEVICE] [--multiprocessors N] [--seed N] [--count N] [--op OP,...]\n"
    "  --device DEVICE  beside the CPU (mirror)\n"
    "  --multiprocessors N  of that device, for sessions on it alone (0: all)\n"
    "  --seed N         of the first case (1); what fails is repeated by --seed THAT "
    "--count 1, and the same --op\n"
    "  --count N        cases (400)\n"
    "  --op OP,...      draw nodes of these ops only\n";

int main(int argc, char **argv)
{
    const char *device = "mirror", *ops = NULL;
    uint64_t seed = 1, count = 400;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--device"))
            device = argv[i + 1];
        else if (!strcmp(argv[i], "--multiprocessors"))
            multiprocessors = strtoll(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--count"))
            count = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--op"))
            ops = argv[i + 1];
        else
            argc = 0;
    }
    if (argc == 2 && !strcmp(argv[1], "--help")) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc % 2 == 0) {
        fputs(usage, stderr);
        return 2;
    }
    grt_runtime *runtime;
    totals all = {0};
    if (grt_runtime_create(&runtime) != GRT_OK) {
        fprintf(stderr, "differential: %s\n", grt_last_error());
        return 2;
    }
    bool made = true;
    for (uint64_t i = 0; i < count && made; i++)
        made = try_seed(seed + i, device, ops, runtime, &all);
    grt_runtime_release(runtime);
    if (!made) {
        fprintf(stderr, "differential: no maker draws '%s'; see tests/differential/makers.def\n", ops);
        return 2;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", all.passed, all.failed, all.skipped);
    return all.failed || !all.passed;
}
