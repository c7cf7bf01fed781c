/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid data in device memory; shapes that share a kernel. */
#include "tests/device/device.h"
#include "tests/differential/model.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 4, CELLS = ROWS * COLUMNS };

typedef struct bad_case {
    const char *op, *says;
    grt_dtype dtype; /* of the indices */
    int32_t rank;
    int64_t dims[2];
    int64_t good, bad, at;
    bool updates; /* a third input, of the indices' dims */
} bad_case;

static const bad_case cases[] = {
    {"Gather",
     "input 'indices' holds 6 at element 1; -6 to 5 are there",
     GRT_DTYPE_INT64,
     1,
     {4},
     -6,
     6,
     1,
     false},
    {"Gather",
     "input 'indices' holds -7 at element 3; -6 to 5 are there",
     GRT_DTYPE_INT32,
     1,
     {4},
     5,
     -7,
     3,
     false},
    {"GatherElements", "holds 6 at element 5; -6 to 5", GRT_DTYPE_INT64, 2, {2, COLUMNS}, -1, 6, 5, false},
    {"GatherND",
     "holds 1099511627776 at element 2; -6 to 5",
     GRT_DTYPE_INT64,
     2,
     {3, 1},
     2,
     (int64_t)1 << 40,
     2,
     false},
    {"ScatterElements", "holds 9 at element 0; -6 to 5", GRT_DTYPE_INT64, 2, {1, COLUMNS}, 3, 9, 0, true},
    {"ReverseSequence",
     "input 'sequence_lens' holds 7 at element 2; 0 to 6",
     GRT_DTYPE_INT64,
     1,
     {COLUMNS},
     6,
     7,
     2,
     false},
};

static void set_indices(const bad_case *c, void *data, int64_t n, int64_t bad)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = i == c->at ? bad : c->good;
        if (c->dtype == GRT_DTYPE_INT32)
            ((int32_t *)data)[i] = (int32_t)v;
        else
            ((int64_t *)data)[i] = v;
    }
}

static bool refused(grt_status status, const bad_case *c)
{
    EXPECT(status == GRT_STATUS_INVALID_ARGUMENT, "%s: status %d", c->op, (int)status);
    EXPECT(strstr(grt_last_error(), c->says) && strstr(grt_last_error(), c->op), "%s", grt_last_error());
    return true;
}

static bool try_case(const bad_case *c)
{
    subject s;
    float x[CELLS] = {0};
    int64_t host[CELLS];
    grt_tensor in[3] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {ROWS, COLUMNS}, .data = x},
                        {.dtype = c->dtype, .rank = c->rank}},
               out;
    memcpy(in[1].dims, c->dims, sizeof c->dims);
    in[1].data = host;
    in[2] = in[1];
    in[2].dtype = GRT_DTYPE_FLOAT;
    in[2].data = x;
    const int64_t n = grt_tensor_elements(&in[1]);
    const int n_in = c->updates ? 3 : 2;
    if (!subject_node(&s, c->op, GRT_DTYPE_FLOAT, in, n_in, n_in))
        return false;
    for (int i = 0; i < n_in; i++)
        DONE(grt_context_set_input(s.context, (size_t)i, &in[i]));
    for (int run = 0; run < 10; run++) { /* step by step, captured, replayed; good and bad ones in turn */
        set_indices(c, host, n, run % 2 ? c->bad : c->good);
        grt_status status = grt_context_run(s.context);
        if (run % 2 ? !refused(status, c) : status != GRT_OK) {
            printf("  %s, run %d: %s\n", c->op, run, grt_last_error());
            return false;
        }
        EXPECT((grt_context_get_output(s.context, 0, &out) == GRT_OK) == !(run % 2), "%s: outputs", c->op);
    }
    /* Enqueued runs: the next call reports the fault. */
    void *device[3];
    for (int i = 0; i < n_in; i++) {
        const size_t bytes = grt_tensor_bytes(&in[i]);
        set_indices(c, host, n, c->bad);
        CUDA(cudaMalloc(&device[i], bytes));
        CUDA(cudaMemcpy(device[i], in[i].data, bytes, cudaMemcpyHostToDevice));
        in[i].memory = GRT_MEMORY_DEVICE;
        in[i].data = device[i];
        DONE(grt_context_set_input(s.context, (size_t)i, &in[i]));
    }
    for (int run = 0; run < 4; run++) {
        DONE(grt_context_run_async(s.context, NULL));
        CUDA(cudaDeviceSynchronize());
        grt_status status =
            run % 2 ? grt_context_run_async(s.context, NULL) : grt_context_get_output(s.context, 0, &out);
        if (!refused(status, c))
            return false;
    }
    for (int i = 0; i < n_in; i++)
        CUDA(cudaFree(device[i]));
    subject_release(&s);
    return true;
}

bool indices_out_of_range(const char *path)
{
    (void)path;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!try_case(&cases[i]))
            return false;
    return true;
}

enum { LENGTH = 24, HEADS = 2, MOST = 256 };

static bool attend(const subject *s, int64_t size)
{
    static float x[LENGTH * HEADS * MOST];
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {1, HEADS, LENGTH, size}, .data = x};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(i % 7) / 7;
    for (size_t i = 0; i < 3; i++)
        DONE(grt_context_set_input(s->context, i, &in));
    DONE(grt_context_run(s->context));
    return true;
}

bool attention_of_two_head_sizes(const char *path)
{
    static const grt_dtype dtypes[] = {GRT_DTYPE_FLOAT};
    static const int64_t sizes[] = {256, 192, 200};
    subject s[3];
    (void)path;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (int k = 0; k < 3; k++) { /* prepared one after the other ... */
            const grt_tensor t = {.dtype = dtypes[d], .rank = 4, .dims = {1, HEADS, LENGTH, sizes[k]}};
            const grt_tensor in[] = {t, t, t};
            if (!subject_node(&s[k], "Attention", dtypes[d], in, 3, 3) || !attend(&s[k], sizes[k]))
                return false;
        }
        for (int run = 0; run < 3; run++) /* ... and all of them run on */
            for (int k = 0; k < 3; k++)
                if (!attend(&s[k], sizes[k]))
                    return false;
        for (int k = 0; k < 3; k++)
            subject_release(&s[k]);
    }
    return true;
}
