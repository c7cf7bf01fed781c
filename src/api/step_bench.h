/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a frame, measured by itself: with inputs of its own, as often and with as many algorithms as
 * wanted.
 *
 * A step in a run finds its activations in the device's cache, as the step before has just written them, and
 * its weights not, as others have been read since. So before each measurement the cache is flushed, then the
 * activations are written anew. */
#ifndef GRT_SRC_API_STEP_BENCH_H
#define GRT_SRC_API_STEP_BENCH_H

#include "src/exec/context.h"

typedef struct grt_step_bench grt_step_bench;

/* The step must be static and ready to run. Inputs that the run computes are random numbers from -1 to 1
 * (zeros where they are not floats), constants are what they are. */
grt_status grt_step_bench_create(grt_frame *frame, int32_t step, grt_step_bench **out_bench);
void grt_step_bench_release(grt_step_bench *bench); /* NULL-safe */

/* One candidate configuration of the kernel. */
typedef struct grt_step_way {
    void *shape;
    size_t workspace_bytes;
    double ms; /* that preparing took */
} grt_step_way;
grt_status grt_step_bench_prepare(grt_step_bench *bench, grt_algo_trial *trial, grt_step_way *out_way);
void grt_step_bench_forget(grt_step_bench *bench, grt_step_way *way);

/* Run once, in milliseconds of the device. */
grt_status grt_step_bench_time(grt_step_bench *bench, const grt_step_way *way, double *out_ms);
/* Run once and keep the results, for grt_step_bench_same to compare others with. */
grt_status grt_step_bench_expect(grt_step_bench *bench, const grt_step_way *way);
/* Run once: are the results those expected, but for rounding? */
grt_status grt_step_bench_same(grt_step_bench *bench, const grt_step_way *way, bool *out_same);

#endif
