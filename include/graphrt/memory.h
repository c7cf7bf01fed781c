/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices for programs without a driver's toolkit, outputs whose size the caller learns from the run, and
 * memory of idle contexts. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_MEMORY_H
#define GRAPHRT_MEMORY_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate memory of the session's device, to be bound with GRT_MEMORY_DEVICE and the number in *out_device; on the
 * CPU, host memory, to be bound with GRT_MEMORY_HOST, and *out_device is -1. out_device may be NULL. Aligned to 256
 * bytes (on the CPU 64), not cleared. Belongs to the caller, who frees it with grt_session_free_device before the
 * session's release, when no run uses it.
 * Threads: any. Errors: DEVICE, OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_session_alloc_device(grt_session *session, size_t size, void **out_data,
                                                         int32_t *out_device);
/* Free it; data may be NULL. Threads: any. */
GRT_API void grt_session_free_device(grt_session *session, void *data);
/* Copy the elements of `from` into the memory of `to`: tensors of equal dtype and dims, not of STRING, in host memory,
 * page-locked memory or memory of the session's device, that do not overlap. The copy is done when the call returns. It
 * is in no order with runs that are enqueued: wait for those first.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_session_copy(grt_session *session, const grt_tensor *to, const grt_tensor *from);

/* Gives memory for an output. `tensor` has its dtype and dims, and memory and device as the caller of
 * grt_context_set_output_allocator wants them; bytes is their size, never 0. Returns memory of that kind, aligned as
 * grt_context_set_output says, or NULL: the run fails with OUT_OF_MEMORY. Called on the thread that runs. */
typedef void *grt_output_allocator(void *user, size_t index, const grt_tensor *tensor, size_t bytes);
/* Let the following runs ask `allocate` for the memory of output `index`, of the kind `memory`; its size may depend on
 * data. Where the size follows from the inputs' dims, it is asked before the run, whose steps write there; else after
 * the last step, and the output is copied. grt_context_get_output then returns that memory, which belongs to the
 * caller, as does memory that was given for a run that failed. NULL: memory of the context again. It replaces what was
 * bound, and grt_context_set_output replaces it.
 * Threads: one a context. Errors: INVALID_ARGUMENT (an output that is no tensor, of STRING, or state; device memory on
 * the CPU). In grt_context_run_async, an output whose size depends on data is UNSUPPORTED, and so is
 * GRT_MEMORY_HOST. */
GRT_API GRT_MUST_USE grt_status grt_context_set_output_allocator(grt_context *context, size_t index,
                                                                 grt_output_allocator *allocate, void *user,
                                                                 grt_memory memory);

/* Give the memory of a context that will be idle back: activations, workspaces, what is prepared for combinations of
 * dims and, on devices, their graphs and the device heap. Bindings and state stay. The next run prepares anew and has
 * the same results. What graphs that the caller captured point at stays. Outputs of the last run are gone. Waits for an
 * enqueued run. *out_bytes (may be NULL) is what was given back of the device's memory.
 * Threads: one a context. Errors: DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_context_trim(grt_context *context, uint64_t *out_bytes);

/* Memory of the session's device (on the CPU: of the host) that a session has, in bytes. */
typedef struct grt_memory_info {
    size_t struct_size;         /* set by the caller */
    uint64_t weights_bytes;     /* of the plan. On the CPU mostly pages of the plan's file, which processes share */
    uint64_t kernels_bytes;     /* what kernels keep of constants: copies in a layout that the plan does not have,
                                   tables made of them */
    uint64_t activations_bytes; /* of all contexts, as all that follows */
    uint64_t workspaces_bytes;
    uint64_t inputs_bytes;      /* devices: room for inputs that lie in host memory, for each combination of dims that
                                   is kept, and rows that pools put together there */
    uint64_t values_bytes;      /* results whose size depends on data, sequences, loop variables: as many as there are
                                   now */
    uint64_t state_bytes;       /* of grt_state objects */
    uint64_t total_bytes;       /* all these, which grt_session_options.memory_limit bounds */
    uint64_t peak_bytes;        /* the most that it ever was */
    uint64_t limit_bytes;       /* 0: none */
    uint64_t process_bytes;     /* grt_model_predict_memory only, see there */
} grt_memory_info;
/* What the session has now. Weights that sessions of a runtime share on a device are counted for each of them.
 * Threads: any.
 * Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_session_get_memory(const grt_session *session, grt_memory_info *out_info);

/* Of a session that is to be predicted. */
typedef struct grt_memory_options {
    size_t struct_size;
    int32_t threads;               /* as in grt_session_options */
    int32_t contexts;              /* that will run; 0: 1 */
    const char *fallback;          /* as in grt_session_options */
    const grt_input_shape *shapes; /* dims of inputs. Others: dims that are not fixed are as those by the same name,
                                      else 1 */
    size_t n_shapes;
} grt_memory_options;
/* What a session of the model on `device` (NULL: "cpu") and its contexts will have after their first run with these
 * dims, before anything of it is loaded: kernels are created and activations planned as for a run, but no weight is
 * copied to the device and nothing runs. Results whose size depends on data, sequences and state are not in it.
 * process_bytes: on the CPU, private memory that this process will have then (RssAnon), the caller's own included and
 * the plan's mapped file not; on other devices, the device's memory that all processes will have in use: the driver's
 * and its libraries' too. It is 0 where the system does not tell. A session with a memory_limit of total_bytes can be
 * made and run. options may be NULL.
 * Threads: any; process_bytes is right if nobody else allocates meanwhile. Errors: as grt_session_create;
 * INVALID_ARGUMENT (a shape). */
GRT_API GRT_MUST_USE grt_status grt_model_predict_memory(grt_model *model, const char *device,
                                                         const grt_memory_options *options, grt_memory_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
