/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes, models that are opened, devices, sessions. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_SESSION_H
#define GRAPHRT_SESSION_H

#include <graphrt/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_runtime grt_runtime;
typedef struct grt_model grt_model;
typedef struct grt_session grt_session;
typedef struct grt_context grt_context;
typedef struct grt_value grt_value;

/* Create a runtime, the root of models and sessions. Backends and devices are opened at first use, not here. A process
 * needs one; it may have several. CUDA then opens all GPUs that it sees: a program that wants some of them sets
 * CUDA_VISIBLE_DEVICES at the start of main, before it has threads.
 * Threads: any. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_runtime_create(grt_runtime **out_runtime);
GRT_API void grt_runtime_release(grt_runtime *runtime);

/* Set where the runtime stores the algorithms that GPU libraries chose (tune.h): a file, or "off" for memory only. Call
 * it before the first session is created. The default is the environment's GRAPHRT_ALGO_CACHE (a file or "off"), else
 * $XDG_CACHE_HOME/graphrt/algos.db, else ~/.cache/graphrt/algos.db. A file that cannot be used is no error: algorithms
 * are chosen again, and grt_session_get_load has a warning.
 * Threads: any. Errors: INVALID_ARGUMENT after the first session. */
GRT_API GRT_MUST_USE grt_status grt_runtime_set_algo_cache(grt_runtime *runtime, const char *path);

/* Let the runs of all of the runtime's sessions that are at work at a time have `threads` threads together, at most
 * 1024. A run that would take them beyond that computes on its calling thread alone; none waits. Sessions on other
 * devices do not count. With as many as there are processors, sessions that each ask for all of them serve one client
 * fast and many clients at once without having more threads than processors. 0, the default: each run has its session's
 * threads. Counts for runs that begin afterwards.
 * Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_runtime_set_threads(grt_runtime *runtime, int32_t threads);
/* Generate no more kernels in the background (grt_session_options.compile), and wait for the one that is compiled: for
 * programs that end without releasing the runtime by exit() in a thread that never called this library; in others
 * exit() waits itself. Releasing the runtime does the same. NULL: does nothing.
 * Threads: any. */
GRT_API void grt_runtime_stop_compiling(grt_runtime *runtime);

/* Open a plan (.grt) or an ONNX model; the content decides which it is. A plan is mapped and checked. An ONNX model is
 * compiled in memory with default options for the CPU. The file must not be modified while the model exists; replacing
 * it by another file of that name is fine.
 * Threads: any. Errors: IO, INVALID_PLAN, INVALID_MODEL, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_model_open(grt_runtime *runtime, const char *path, grt_model **out_model);
/* The same, with options (compile.h) for compiling an ONNX model; NULL: defaults. `target` should be the kind of device
 * that sessions will use: a model compiled for another kind runs, but slower. external_weights, devices and choices
 * concern plan files and are INVALID_ARGUMENT here. Of a plan, only `trust` matters.
 * Threads: any. Errors: as grt_model_open; DEVICE if `target` is no kind of device; UNTRUSTED. */
struct grt_compile_options;
GRT_API GRT_MUST_USE grt_status grt_model_open_with(grt_runtime *runtime, const char *path,
                                                    const struct grt_compile_options *options, grt_model **out_model);
/* As grt_model_open, from `size` bytes of memory. The bytes are copied, except those of a plan at an address aligned to
 * 4096: they are used in place and must stay valid and unchanged until the model and everything created from it is
 * released. An ONNX model has no directory to read external data from: grt_compile_options.external_data gives it.
 * Threads: any. Errors: as grt_model_open. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory(grt_runtime *runtime, const void *data, size_t size,
                                                      grt_model **out_model);
/* The same with options, as in grt_model_open_with. Threads: any. Errors: those of both. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory_with(grt_runtime *runtime, const void *data, size_t size,
                                                           const struct grt_compile_options *options,
                                                           grt_model **out_model);
GRT_API void grt_model_release(grt_model *model);

/* One kind of device that this build of the library knows. */
typedef struct grt_device_kind_info {
    size_t struct_size; /* set by the caller */
    const char *name;   /* "cpu", "cuda"; static. Devices are "NAME" or "NAME:NUMBER" */
    bool accelerator;   /* its devices have memory of their own: GPUs */
    bool test_only;     /* simulates a device, for tests and dry runs */
} grt_device_kind_info;
/* Number of kinds of devices, whether this machine has such devices or not. Opens nothing. Threads: any. */
GRT_API size_t grt_device_kind_count(void);
/* Kind number `index`. Opens nothing. Threads: any. Errors: INVALID_ARGUMENT if the index is out of range. */
GRT_API GRT_MUST_USE grt_status grt_device_kind(size_t index, grt_device_kind_info *out_info);
/* Number of devices of a kind ("cuda") in this machine, which may be 0; then grt_last_error() says why. Starts the
 * kind's driver.
 * Threads: any. Errors: DEVICE if there is no such kind or its module cannot be opened. */
GRT_API GRT_MUST_USE grt_status grt_device_count(const char *kind, int32_t *out_count);

/* Options of a session. */
typedef struct grt_session_options {
    size_t struct_size;
    /* CPU: threads of one operator, at most 1024. 0: one per physical core that the calling thread may run on, at most
     * the cgroup's CPU quota (rounded up) and what OMP_NUM_THREADS or omp_set_num_threads say. Fewer if the system lets
     * the process create no more: see grt_session_threads. Threads that wait for each other spin, for less time while
     * other work wants their processors, unless GOMP_SPINCOUNT or OMP_WAIT_POLICY say how (docs/guide.md). */
    int32_t threads;
    const char *fallback; /* "cpu": ops without a kernel on the device run on the CPU; NULL: they are an error that
                             lists them */
    uint64_t memory_limit; /* bytes of the device's memory (on the CPU: the host's) that the session, its contexts and
                              states may have together: what goes beyond is OUT_OF_MEMORY; see graphrt/memory.h. 0: no
                              limit */
    int32_t priority;      /* of the session's work on its device, beside other sessions': higher ones first, as far as
                              the device tells them apart (CUDA: 0, the lowest, to 5). Of no meaning on the CPU */
    int64_t multiprocessors; /* CUDA: the session computes on so many of the GPU's multiprocessors, rounded up to what
                                the GPU can set apart (Hopper: 8), and on no others; other sessions of this process that
                                have some are on others. Sessions that have none use all of them: give those some, too,
                                that are to stay away. 0: all of the GPU's. Errors of making the session: UNSUPPORTED by
                                the kind of device, or by a driver older than CUDA 12.5's; INVALID_ARGUMENT if there are
                                not as many; OUT_OF_MEMORY if other sessions have too many */
    const char *compile;     /* when kernels are generated that neither the plan nor the cache's file has; they are kept
                                there for the next start on this machine. NULL or "background": while runs interpret
                                them, which takes longer; a context changes to them between two runs, and sums of rows
                                may then differ in their last bits. "first": before shapes are ready, so that nothing
                                changes later. "never": they are interpreted. NULL is what GRAPHRT_COMPILE says, if that
                                is set when the runtime is made. See also grt_runtime_stop_compiling */
} grt_session_options;

/* Make `model` ready on `device`: "cpu", "null", "cuda:0", ...; NULL means "cpu". Copies and packs weights and creates
 * kernels. The session does not change afterwards; any number of threads may use it, each with a context of its own.
 * options may be NULL.
 * Threads: any. Errors: DEVICE (names the devices that exist), UNSUPPORTED (lists every op without a kernel),
 * INVALID_PLAN (a wrong checksum of weights). */
GRT_API GRT_MUST_USE grt_status grt_session_create(grt_model *model, const char *device,
                                                   const grt_session_options *options, grt_session **out_session);
GRT_API void grt_session_release(grt_session *session);

/* Progress of grt_sessions_create. */
typedef struct grt_load_progress {
    size_t struct_size; /* set by the library */
    size_t index;       /* position of the device that made progress */
    const char *device; /* its name: "cuda:3" */
    const char *phase;  /* "start driver", "open device", "weights", "create kernels", "prepare", "ready" */
    double fraction;    /* of all work on all devices, 0 to 1 */
} grt_load_progress;

/* Options of sessions that are created together. */
typedef struct grt_sessions_options {
    size_t struct_size;
    int32_t threads;      /* as in grt_session_options */
    const char *fallback; /* as in grt_session_options */
    bool partial;         /* devices that fail have NULL in out_sessions and the others go on; false: all or none */
    int32_t max_parallel; /* devices that are loaded at once; 0: all */
    int32_t readers;      /* threads that read weights; 0: one per core, at most 16 */
    size_t max_pinned;    /* bytes of host memory to page-lock meanwhile; 0: 128 MiB */
    const char *upload;   /* NULL or "auto": devices that can copy from each other share the work; "direct": each copies
                             all from the host */
    /* Called by the loading threads, one at a time; false cancels. May be NULL. Must not use the model of the
     * sessions. */
    bool (*progress)(void *user, const grt_load_progress *progress);
    void *user;
    uint64_t memory_limit; /* as in grt_session_options, of each session */
    int32_t priority;      /* as in grt_session_options */
    int64_t multiprocessors; /* as in grt_session_options */
    const char *compile;     /* as in grt_session_options */
} grt_sessions_options;

/* Create one session of `model` on each of n devices in parallel, one thread per device. Weights are read once for all
 * devices. The same device may be named more than once: its weights are on it once, however many sessions of a plan it
 * has. out_sessions[i] is the session on devices[i] and belongs to the caller. n is 1 to 65536; `devices`, or an
 * element of it, may be NULL for "cpu"; options may be NULL. With `partial`, the call succeeds if any device is ready,
 * and grt_last_error() then describes those that are not ("" if all are). Without it, one failure means that no session
 * is created.
 * Threads: any. Errors: as grt_session_create, of the first device that failed, which is named; CANCELLED by
 * `progress`. */
GRT_API GRT_MUST_USE grt_status grt_sessions_create(grt_model *model, const char *const *devices, size_t n,
                                                    const grt_sessions_options *options, grt_session **out_sessions);
/* CPU threads that one operator of this session may use: what was asked for, or as many as could be created. A run in a
 * thread that the system gives no such team uses one.
 * Threads: any. */
GRT_API int32_t grt_session_threads(const grt_session *session);

/* Allocate host memory for inputs and outputs that the session's device copies directly: page-locked (bind it with
 * grt_tensor.memory GRT_MEMORY_PINNED), or ordinary memory where there is nothing to copy. Such copies need no staging,
 * and only they can be enqueued by grt_context_run_async. Aligned to 256 bytes, not cleared. Page-locking is slow
 * (about 2 GB/s) and limits the system's memory: allocate once and reuse. Belongs to the caller, to be freed with
 * grt_session_free_host before the session's release.
 * Threads: any. Errors: DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_session_alloc_host(grt_session *session, size_t size, void **out_data);
/* Free it; data may be NULL. Threads: any. */
GRT_API void grt_session_free_host(grt_session *session, void *data);

#ifdef __cplusplus
}
#endif
#endif
