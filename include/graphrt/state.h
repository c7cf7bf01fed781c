/* SPDX-License-Identifier: Apache-2.0 */
/* State: outputs of one run that are inputs of the next, such as the hidden rows of a recurrent model or a cache
 * of keys and values. Part of <graphrt/graphrt.h>, whose rules hold.
 *
 * A state has the content of such pairs, on the device of its session, and is set to the context that runs with
 * it. Whoever serves many streams has a state for each of them and a few contexts: docs/services.md. */
#ifndef GRAPHRT_STATE_H
#define GRAPHRT_STATE_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_state grt_state;

/* An output and the input that has its content in the next run. Both are tensors of one dtype, none of STRING. */
typedef struct grt_state_pair {
    const char *output; /* names in the model */
    const char *input;
    /* The first run's input: host memory, copied. Its data may be NULL: zeros of these dims. NULL: zeros, of the
     * input's dims, which are then all fixed. Where dims are symbolic, those of the output may change from run to
     * run. */
    const grt_tensor *initial;
    /* The output is written over the input where the model's steps allow it, which saves memory, and the copy where a
     * step changes a part (ScatterND, TensorScatter). A run that does not end well then leaves no content: see
     * grt_context_set_state. grt_state_get says what came of it. */
    bool in_place;
    uint64_t reserved[4]; /* 0 */
} grt_state_pair;

/* Create a state of n pairs, with their initial content. Each input and each output is in one pair at most. n 0: the
 * pairs that the model declares, by the metadata entry "graphrt.state" (a pair OUTPUT=INPUT a line), which `graphc
 * optimize --state` writes.
 * Threads: any. Errors: INVALID_ARGUMENT (names that the model lacks, types that do not agree, an unknown size, no pair
 * at all). */
GRT_API GRT_MUST_USE grt_status grt_state_create(grt_session *session, const grt_state_pair *pairs, size_t n,
                                                 grt_state **out_state);
/* A state that is set to a context stays until the context has another, or none. */
GRT_API void grt_state_release(grt_state *state);

/* Let the following runs of the context begin with this state's content, and leave theirs in it; NULL: none. Contexts
 * of all sessions of the model on the same device may use it, one after the other: nothing is copied. While it is set,
 * its inputs and outputs cannot be bound; grt_context_get_output has the state's memory, which on a device is that of
 * the device. A run that fails or is stopped leaves the state as it was, so it can be repeated; a pair that is written
 * in place has no content then, and runs are INVALID_ARGUMENT until it is reset or restored. What an enqueued run finds
 * wrong on the device does not undo its state. Outputs of the last run are gone. Waits for an enqueued run. A run that
 * the caller captures into a graph ends with its state where it began, so that the graph can be launched again and
 * again; it cannot change the state's dims.
 * Replay: the device graphs of a context are kept for the last 32 sets of pointers, and a state that is not written in
 * place has two.
 * Threads: one a context, one a state. Errors: INVALID_ARGUMENT (of another model or device, or set to another
 * context). */
GRT_API GRT_MUST_USE grt_status grt_context_set_state(grt_context *context, grt_state *state);

/* Everything back to the initial content. As all functions below, on a state whose context runs it is INVALID_ARGUMENT,
 * and it waits for an enqueued run.
 * Threads: one a state. */
GRT_API GRT_MUST_USE grt_status grt_state_reset(grt_state *state);
/* Number of pairs. Threads: any. */
GRT_API size_t grt_state_count(const grt_state *state);
/* Content of pair `index` as a value in host memory, which belongs to the caller: grt_value_write_pb keeps it in a
 * file.
 * Threads: one a state. Errors: INVALID_ARGUMENT (the index; content that is lost). */
GRT_API GRT_MUST_USE grt_status grt_state_save(grt_state *state, size_t index, grt_value **out_value);
/* Make `tensor` the content of pair `index`: host memory, or memory of the state's device. It is copied. Its dims may
 * be all that the input takes.
 * Threads: one a state. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_state_restore(grt_state *state, size_t index, const grt_tensor *tensor);
/* Copy the content of one state to another of the same pairs, of any session of the model: a fork of a stream, or a
 * move to another device.
 * Threads: one a state. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_state_copy(grt_state *to, grt_state *from);

typedef struct grt_state_info {
    size_t struct_size;   /* set by the caller */
    const char *output;   /* belong to the model */
    const char *input;
    grt_tensor tensor;    /* view of the content, in the state's memory: valid until the next run or change */
    bool in_place;        /* the last run wrote it over its input */
    bool lost;            /* by a run that did not end well */
    uint64_t bytes;       /* of memory, in all */
} grt_state_info;
/* Threads: one a state. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_state_get(grt_state *state, size_t index, grt_state_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
