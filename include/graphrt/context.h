/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: one run at a time. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_CONTEXT_H
#define GRAPHRT_CONTEXT_H

#include <graphrt/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Create a context: the state of one run at a time, with its activation memory and its bound inputs and outputs. Cheap
 * enough to have many. A run that overlaps another thread's run of the same context is INVALID_ARGUMENT; other
 * overlapping calls are not detected.
 * Threads: any. Errors: DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_context_create(grt_session *session, grt_context **out_context);
GRT_API void grt_context_release(grt_context *context);

/* Bind `tensor` as input `index` (the position in grt_model_input) of the following runs. The view is copied. Its data,
 * and the bytes that elements of STRING point to, are not: they must stay valid and unchanged while runs use them.
 * dtype, rank and fixed dims must equal the model's; symbolic dims take any size, 0 included, and the run checks that
 * inputs agree on a symbol. Host memory must be aligned as its elements are, device memory to 16 bytes. NULL unbinds:
 * an input with a default (an initializer of the same name) takes its default again. Sequences and optionals:
 * grt_context_set_input_value.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input(grt_context *context, size_t index, const grt_tensor *tensor);
/* Let the following runs write output `index` into `tensor`. The view is copied, its memory must stay valid. Its dims
 * must equal the output's at the run, and it must not overlap an input or another bound output; otherwise the run is
 * INVALID_ARGUMENT. NULL goes back to memory of the context. Outputs of STRING, sequences and optionals cannot be
 * bound.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_output(grt_context *context, size_t index, const grt_tensor *tensor);
/* Run the model and wait for it. The first run with a new combination of input dims plans memory and prepares kernels.
 * Later runs with these dims allocate nothing, unless a dim depends on data; the last 16 combinations are kept. A run
 * that fails leaves no outputs and nothing in flight, and the context can run again.
 * Threads: one a context. Errors: INVALID_ARGUMENT (an input that is not set; dims that do not agree with each other or
 * with a bound output; a value that an op refuses), DEVICE, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_context_run(grt_context *context);
/* Milliseconds of the clock that deadlines are on: CLOCK_MONOTONIC. Threads: any. */
GRT_API double grt_clock_ms(void);

/* How a run may end before its time. */
typedef struct grt_run_options {
    size_t struct_size;
    double deadline_ms;         /* on the clock of grt_clock_ms: the run ends with DEADLINE_EXCEEDED then; 0: none */
    bool (*cancel)(void *user); /* polled on the calling thread; true ends the run with CANCELLED. It is not called
                                   again after that. NULL: none */
    void *user;
} grt_run_options;
/* grt_context_run, which may be stopped: it looks for a reason to stop before each step, before each iteration of Loop,
 * Scan and SequenceMap, while it prepares for new dims, and on devices before each segment of steps that is replayed at
 * once (grt_replay_info). A step or segment that has begun is finished. A run whose last step was done returns its
 * results, whatever the time. A run that was stopped has no outputs, nothing of it is in flight, memory bound as
 * outputs may be partly written, and the context can run again. options may be NULL.
 * Threads: one a context. Errors: as grt_context_run; CANCELLED, DEADLINE_EXCEEDED. */
GRT_API GRT_MUST_USE grt_status grt_context_run_with(grt_context *context, const grt_run_options *options);
/* End the run of this context that is in progress, if there is one, with CANCELLED, as grt_context_run_with says; of
 * grt_context_run_async, only the call that enqueues. Does not wait for it. Does nothing where no run is in progress,
 * so a run that begins later is not affected: grt_run_options.cancel is for those who have to reach that, too.
 * Threads: any, also while others use the context, but not while it is released. May be called by signal handlers. */
GRT_API void grt_context_cancel(grt_context *context);
/* Enqueue a run on `stream` (a cudaStream_t; NULL: the context's own) and return at once. Bound inputs and outputs must
 * be device memory aligned to 16 bytes, which is used in place, or page-locked memory, which is copied on the same
 * stream. Outputs that are not bound are in device memory of the context: see grt_context_get_output. The context, its
 * inputs and outputs are in use until the stream has finished the run.
 * Order: the whole run is on `stream`. Runs of one context follow each other, on whatever streams they are; so does
 * grt_context_run. Errors found on the device, such as an index beyond its axis, are returned once, by the next
 * grt_context_run_async or grt_context_get_output that finds them, in place of its work. grt_context_run returns its
 * own at once.
 * Capturing: the caller may be capturing `stream` into a graph, once the same dims have run before. The graph uses the
 * memory that was bound, and memory of the context that stays in place until the context's release, also when runs with
 * other dims follow; each captured combination of dims keeps its own. Launching the graph is a run of the context; the
 * caller orders it among the others.
 * Threads: one a context. Errors: as grt_context_run; UNSUPPORTED on devices without streams, or if a step needs the
 * host (it is named). After an error nothing of this run is in flight. */
GRT_API GRT_MUST_USE grt_status grt_context_run_async(grt_context *context, void *stream);
/* The context's own stream (a cudaStream_t), which grt_context_run and grt_context_run_async with NULL use: whatever is
 * enqueued there comes before the next run. It belongs to the context. NULL on devices without streams.
 * Threads: any. */
GRT_API void *grt_context_stream(const grt_context *context);
/* What output `index` will be for the inputs that are bound: dtype, rank and dims, -1 for what depends on data; no
 * memory. Prepares for these dims if they are new, as the run would, and then the outputs of the last run are gone.
 * Threads: one a context. Errors: as grt_context_run; INVALID_ARGUMENT if the output is no tensor. */
GRT_API GRT_MUST_USE grt_status grt_context_output_dims(grt_context *context, size_t index, grt_tensor *out_tensor);
/* View of output `index` of the last run, in the memory that was bound then. Memory of the context is valid until its
 * next run or release.
 * Threads: one a context. Errors: INVALID_ARGUMENT if the last run failed, if there was none, or if the output is no
 * tensor (then use grt_context_get_output_value); what an enqueued run found on the device. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output(grt_context *context, size_t index, grt_tensor *out_tensor);

#ifdef __cplusplus
}
#endif
#endif
