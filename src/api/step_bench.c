/* SPDX-License-Identifier: Apache-2.0 */
#include "src/api/step_bench.h"

#include "src/base/checked.h"
#include "src/base/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 65521 }; /* random numbers before they repeat; a prime, so that rows differ */

struct grt_step_bench {
    grt_device *device;
    grt_op_call *call;
    void *stream;
    grt_value *in, *out; /* as the step has them, but for their data */
    const grt_tensor **in_list;
    grt_tensor **out_list;
    void **fresh; /* copies of the inputs that are not constant: what each run finds in the cache */
    void *expected[8], *found;
    int32_t n_expected;
    char *flush; /* two halves */
    void *workspace;
    size_t workspace_bytes;
    void *begin, *end; /* events; NULL: the host's clock has to do */
};

static void fill_random(grt_dtype dtype, void *data, size_t n, uint64_t seed)
{
    const size_t size = grt_dtype_bits(dtype) / 8;
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < n && i < PATTERN; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        grt_element_store(dtype, data, i, (double)(state >> 40) / 0x1p23 - 1.0);
    }
    for (size_t done = PATTERN; done < n; done *= 2)
        memcpy((char *)data + done * size, data, (done < n - done ? done : n - done) * size);
}

static grt_status upload_bench_data(const grt_step_bench *b, void *to, const void *from, size_t bytes)
{
    GRT_TRY(grt_device_upload(b->device, to, from, bytes, b->stream));
    return grt_device_wait(b->device, b->stream);
}

static grt_status make_bench_input(grt_step_bench *b, int32_t i)
{
    grt_tensor *t = &b->in[i].t;
    const size_t bytes = grt_tensor_bytes(t);
    void *host = calloc(1, bytes + 1);
    if (!host)
        return grt_fail_memory(bytes);
    if (grt_dtype_in(t->dtype, GRT_SET_FLOATS))
        fill_random(t->dtype, host, (size_t)grt_tensor_elements(t), (uint64_t)i + 1);
    t->data = NULL;
    grt_status status = grt_device_alloc(b->device, bytes, &t->data);
    if (status == GRT_OK)
        status = grt_device_alloc(b->device, bytes, &b->fresh[i]);
    if (status == GRT_OK)
        status = upload_bench_data(b, t->data, host, bytes);
    if (status == GRT_OK)
        status = upload_bench_data(b, b->fresh[i], host, bytes);
    free(host);
    return status;
}

static bool is_kept_value(const grt_frame *frame, int32_t value)
{
    return grt_place_is_constant(&frame->program->places[value]);
}

static grt_status make_tensors(grt_step_bench *b, const grt_frame *frame, const grt_plan_step *step)
{
    const grt_run *run = &b->call->run;
    for (int32_t i = 0; i < run->n_in; i++) {
        if (!run->in[i])
            continue;
        b->in[i] = *(const grt_value *)run->in[i];
        b->in_list[i] = &b->in[i].t;
        if (!is_kept_value(frame, step->in[i]))
            GRT_TRY(make_bench_input(b, i));
    }
    for (int32_t i = 0; i < run->n_out; i++) {
        if (!run->out[i])
            continue;
        b->out[i] = *(const grt_value *)run->out[i];
        b->out_list[i] = &b->out[i].t;
        b->out[i].t.data = NULL;
        GRT_TRY(grt_device_alloc(b->device, grt_tensor_bytes(&b->out[i].t), &b->out[i].t.data));
    }
    return GRT_OK;
}

static grt_status make_clock(grt_step_bench *b)
{
    if (b->device->cache_bytes) {
        void *flush;
        GRT_TRY(grt_device_alloc(b->device, 2 * b->device->cache_bytes, &flush));
        b->flush = flush;
    }
    if (!grt_device_has_timer(b->device))
        return GRT_OK;
    GRT_TRY(grt_device_event_create(b->device, &b->begin));
    return grt_device_event_create(b->device, &b->end);
}

grt_status grt_step_bench_create(grt_frame *frame, int32_t step, grt_step_bench **out_bench)
{
    grt_op_call *call = &frame->calls[step];
    const size_t n_in = (size_t)call->run.n_in + 1, n_out = (size_t)call->run.n_out + 1;
    grt_step_bench *b = calloc(1, sizeof *b);
    if (!b)
        return grt_fail_memory(sizeof *b);
    *b = (grt_step_bench){.device = grt_executor_device(frame->executor),
                          .call = call,
                          .stream = frame->executor->stream,
                          .in = calloc(n_in, sizeof *b->in),
                          .out = calloc(n_out, sizeof *b->out),
                          .in_list = calloc(n_in, sizeof *b->in_list),
                          .out_list = calloc(n_out, sizeof *b->out_list),
                          .fresh = calloc(n_in, sizeof *b->fresh)};
    grt_status status = b->in && b->out && b->in_list && b->out_list && b->fresh
                            ? make_tensors(b, frame, &frame->program->body->steps[step])
                            : grt_fail_memory(n_in * sizeof *b->in);
    if (status == GRT_OK)
        status = make_clock(b);
    if (status != GRT_OK) {
        grt_step_bench_release(b);
        return status;
    }
    *out_bench = b;
    return GRT_OK;
}

void grt_step_bench_release(grt_step_bench *b)
{
    if (!b)
        return;
    for (int32_t i = 0; b->in && b->fresh && i < b->call->run.n_in; i++) {
        if (!b->in_list[i] || b->in[i].t.data == b->call->run.in[i]->data)
            continue;
        grt_device_free(b->device, b->in[i].t.data);
        grt_device_free(b->device, b->fresh[i]);
    }
    for (int32_t i = 0; b->out && i < b->call->run.n_out; i++)
        grt_device_free(b->device, b->out[i].t.data);
    for (int32_t i = 0; i < b->n_expected; i++)
        free(b->expected[i]);
    free(b->found);
    grt_device_free(b->device, b->flush);
    grt_device_free(b->device, b->workspace);
    grt_device_event_release(b->device, b->begin);
    grt_device_event_release(b->device, b->end);
    free(b->in);
    free(b->out);
    free(b->in_list);
    free(b->out_list);
    free(b->fresh);
    free(b);
}

grt_status grt_step_bench_prepare(grt_step_bench *b, grt_algo_trial *trial, grt_step_way *out_way)
{
    const grt_op_call *call = b->call;
    grt_reshape reshape = grt_op_call_reshape(call);
    reshape.trial = trial;
    const double begin = grt_now_ms();
    GRT_TRY(call->row->reshape(&reshape));
    *out_way = (grt_step_way){reshape.shape, reshape.workspace_bytes, grt_now_ms() - begin};
    if (reshape.workspace_bytes <= b->workspace_bytes)
        return GRT_OK;
    void *workspace;
    grt_status status = grt_device_alloc(b->device, reshape.workspace_bytes, &workspace);
    if (status != GRT_OK) {
        grt_step_bench_forget(b, out_way);
        return status;
    }
    grt_device_free(b->device, b->workspace);
    b->workspace = workspace;
    b->workspace_bytes = reshape.workspace_bytes;
    return GRT_OK;
}

void grt_step_bench_forget(grt_step_bench *b, grt_step_way *way)
{
    if (way->shape && b->call->row->release_shape)
        b->call->row->release_shape(way->shape);
    *way = (grt_step_way){0};
}

static grt_status run_bench_step(grt_step_bench *b, const grt_step_way *way)
{
    grt_run r = b->call->run;
    r.in = b->in_list;
    r.out = b->out_list;
    r.shape = way->shape;
    r.workspace = b->workspace;
    r.stream = b->stream;
    return b->call->row->run(&r);
}

/* The cache as the step before would leave it. */
static grt_status settle_cache(const grt_step_bench *b)
{
    const size_t bytes = b->device->cache_bytes;
    if (!bytes)
        return GRT_OK;
    GRT_TRY(grt_device_copy(b->device, b->flush, b->flush + bytes, bytes, b->stream));
    for (int32_t i = 0; i < b->call->run.n_in; i++)
        if (b->fresh[i])
            GRT_TRY(grt_device_copy(b->device, b->in[i].t.data, b->fresh[i], grt_tensor_bytes(&b->in[i].t),
                                    b->stream));
    return GRT_OK;
}

grt_status grt_step_bench_time(grt_step_bench *b, const grt_step_way *way, double *out_ms)
{
    GRT_TRY(settle_cache(b));
    if (b->end) {
        GRT_TRY(grt_device_event_record(b->device, b->begin, b->stream));
        GRT_TRY(run_bench_step(b, way));
        GRT_TRY(grt_device_event_record(b->device, b->end, b->stream));
        return grt_device_event_elapsed(b->device, b->begin, b->end, out_ms);
    }
    GRT_TRY(grt_device_wait(b->device, b->stream));
    const double begin = grt_now_ms();
    GRT_TRY(run_bench_step(b, way));
    GRT_TRY(grt_device_wait(b->device, b->stream));
    *out_ms = grt_now_ms() - begin;
    return GRT_OK;
}

/* Of float results, as a part of the largest: sums in another order, and rounding to the type. */
static double tolerance_of_type(const grt_step_bench *b, grt_dtype dtype)
{
    switch (dtype) {
    case GRT_DTYPE_DOUBLE:
        return 1e-11;
    case GRT_DTYPE_FLOAT16:
        return 5e-3;
    case GRT_DTYPE_BFLOAT16:
        return 3e-2;
    default:
        return !strcmp(grt_attr_string(b->call->run.desc, "math", ""), "tf32") ? 5e-3 : 1e-5;
    }
}

static bool are_results_equal(const grt_step_bench *b, const grt_tensor *t, const void *expected,
                              const void *found)
{
    const size_t n = (size_t)grt_tensor_elements(t);
    if (!grt_dtype_in(t->dtype, GRT_SET_FLOATS))
        return !memcmp(expected, found, grt_tensor_bytes(t));
    double largest = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = grt_element_load(t->dtype, expected, i), f = grt_element_load(t->dtype, found, i),
                     difference = fabs(e - f);
        if (isfinite(e) && fabs(e) > largest)
            largest = fabs(e);
        if (e == f || (isnan(e) && isnan(f)))
            continue;
        if (!isfinite(difference))
            return false;
        off = difference > off ? difference : off;
    }
    return off <= tolerance_of_type(b, t->dtype) * largest;
}

/* Results are overwritten before, so that who writes nothing is found out. */
static grt_status run_into(grt_step_bench *b, const grt_step_way *way, int32_t i, void *host)
{
    const grt_tensor *t = &b->out[i].t;
    const size_t bytes = grt_tensor_bytes(t);
    memset(host, 0xff, bytes);
    GRT_TRY(upload_bench_data(b, t->data, host, bytes));
    GRT_TRY(run_bench_step(b, way));
    GRT_TRY(grt_device_download(b->device, host, t->data, bytes, b->stream));
    return grt_device_wait(b->device, b->stream);
}

grt_status grt_step_bench_expect(grt_step_bench *b, const grt_step_way *way)
{
    size_t most = 0;
    enum { MOST = sizeof b->expected / sizeof *b->expected };
    for (int32_t i = 0; i < b->call->run.n_out && i < MOST; i++) {
        const size_t bytes = b->out_list[i] ? grt_tensor_bytes(b->out_list[i]) : 0;
        most = bytes > most ? bytes : most;
        free(b->expected[i]);
        b->n_expected = b->n_expected > i ? b->n_expected : i + 1;
        if (!(b->expected[i] = malloc(bytes + 1)))
            return grt_fail_memory(bytes);
        if (bytes)
            GRT_TRY(run_into(b, way, i, b->expected[i]));
    }
    free(b->found);
    b->found = malloc(most + 1);
    return b->found ? GRT_OK : grt_fail_memory(most);
}

grt_status grt_step_bench_same(grt_step_bench *b, const grt_step_way *way, bool *out_same)
{
    *out_same = true;
    for (int32_t i = 0; *out_same && i < b->n_expected; i++) {
        if (!b->out_list[i] || !grt_tensor_bytes(b->out_list[i]))
            continue;
        GRT_TRY(run_into(b, way, i, b->found));
        *out_same = are_results_equal(b, b->out_list[i], b->expected[i], b->found);
    }
    return GRT_OK;
}
