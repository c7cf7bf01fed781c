/* SPDX-License-Identifier: Apache-2.0 */
/* The device's memory: what runs take of it. */
#include "tests/device/device.h"

#include <stdint.h>
#include <stdlib.h>

enum { NUMBERS = 8 << 20, RUNS_OF_A_TRY = 4, MOST_TRIES = 16 };

/* Finds the places of the ones, every other run one less: the same memory serves. *kept is what the context
 * keeps for them, 0 before the first run. */
static bool find_places(const subject *s, float *x, uint64_t *kept)
{
    grt_context_stats stats = {.struct_size = sizeof stats};
    for (int run = 0; run < RUNS_OF_A_TRY; run++) {
        grt_tensor result;
        x[0] = run % 2 ? 0 : 1;
        DONE(grt_context_run(s->context));
        DONE(grt_context_get_output(s->context, 0, &result));
        const int64_t n = NUMBERS / 2 - run % 2;
        EXPECT(result.dims[1] == n && ((const int64_t *)result.data)[n - 1] == NUMBERS - 2,
               "run %d: %lld places", run, (long long)result.dims[1]);
        DONE(grt_context_get_stats(s->context, &stats));
        EXPECT(stats.dynamic_bytes == *kept || !*kept, "run %d: the context keeps %llu bytes, at first %llu",
               run, (unsigned long long)stats.dynamic_bytes, (unsigned long long)*kept);
        *kept = stats.dynamic_bytes;
    }
    return true;
}

/* Runs of sizes that were there before take nothing from the device. Other processes may take memory of it at
 * any time, so that one try in which nothing was taken is enough: a library that takes some fails all of
 * them. */
static bool nothing_is_taken(const subject *s, float *x)
{
    size_t before, after, total, taken = SIZE_MAX;
    uint64_t kept = 0;
    if (!find_places(s, x, &kept))
        return false;
    EXPECT(kept >= NUMBERS / 2 * sizeof(int64_t), "%llu bytes", (unsigned long long)kept);
    for (int i = 0; i < MOST_TRIES && taken; i++) {
        CUDA(cudaMemGetInfo(&before, &total));
        if (!find_places(s, x, &kept))
            return false;
        CUDA(cudaMemGetInfo(&after, &total));
        const size_t now = before > after ? before - after : 0;
        taken = now < taken ? now : taken;
    }
    EXPECT(!taken, "each of %d tries took %zu bytes or more", MOST_TRIES, taken);
    return true;
}

bool dynamic_memory_is_kept(const char *path)
{
    subject s;
    float *x = calloc(NUMBERS, sizeof *x);
    (void)path;
    const grt_tensor in = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {NUMBERS}, .data = x};
    for (int i = 0; i < NUMBERS; i += 2)
        x[i] = 1;
    if (!subject_node(&s, "NonZero", GRT_DTYPE_INT64, &in, 1, 1))
        return false;
    DONE(grt_context_set_input(s.context, 0, &in));
    const bool same = nothing_is_taken(&s, x);
    free(x);
    subject_release(&s);
    return same;
}
