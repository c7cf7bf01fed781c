/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on parts of a GPU: right answers at once, and what one gives back another gets. */
#include "tests/device/device.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 512, RUNS = 20 };

static bool run_part(subject *s, const float *x, float *y)
{
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {SIZE, SIZE}, .data = (void *)x};
    grt_tensor out;
    DONE(grt_context_set_input(s->context, 0, &in));
    for (int i = 0; i < RUNS; i++)
        DONE(grt_context_run(s->context));
    DONE(grt_context_get_output(s->context, 0, &out));
    memcpy(y, out.data, grt_tensor_bytes(&out));
    return true;
}

static bool open_on_part(const subject *whole, int64_t multiprocessors, subject *out)
{
    const grt_session_options options = {.struct_size = sizeof options, .multiprocessors = multiprocessors};
    *out = (subject){0};
    DONE(grt_session_create(whole->model, "cuda:0", &options, &out->session));
    DONE(grt_context_create(out->session, &out->context));
    return true;
}

bool sessions_on_parts(const char *path)
{
    subject s, few, many;
    struct cudaDeviceProp prop;
    grt_session *none;
    float *x = malloc(SIZE * SIZE * sizeof *x), *w = malloc(SIZE * SIZE * sizeof *w);
    float *expected = malloc(SIZE * SIZE * sizeof *x), *found = malloc(SIZE * SIZE * sizeof *x);
    (void)path;
    for (int i = 0; i < SIZE * SIZE; i++) {
        x[i] = (float)(i % 7 - 3);
        w[i] = (float)(i % 5 - 2);
    }
    const grt_tensor in[] = {{.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {SIZE, SIZE}, .data = x},
                             {.dtype = GRT_DTYPE_FLOAT, .rank = 2, .dims = {SIZE, SIZE}, .data = w}};
    if (!subject_node(&s, "MatMul", GRT_DTYPE_FLOAT, in, 2, 1) || !run_part(&s, x, expected))
        return false;
    CUDA(cudaGetDeviceProperties(&prop, 0));
    const int64_t half = prop.multiProcessorCount / 2 - 2;
    for (int turn = 0; turn < 3; turn++) { /* the second has what the first gave back */
        if (!open_on_part(&s, 8, &few) || !open_on_part(&s, half, &many))
            return false;
        grt_session_options options = {.struct_size = sizeof options, .multiprocessors = half + 8};
        EXPECT(grt_session_create(s.model, "cuda:0", &options, &none) == GRT_STATUS_OUT_OF_MEMORY,
               "more than there is");
        EXPECT(strstr(grt_last_error(), "multiprocessors left"), "%s", grt_last_error());
        const subject *const parts[] = {&few, &many};
        for (int i = 0; i < 2; i++) {
            subject part = *parts[i];
            if (!run_part(&part, x, found))
                return false;
            EXPECT(memcmp(found, expected, SIZE * SIZE * sizeof *x) == 0, "other numbers");
        }
        subject_release(&few);
        subject_release(&many);
    }
    subject_release(&s);
    free(x);
    free(w);
    free(expected);
    free(found);
    return true;
}
