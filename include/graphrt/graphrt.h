/* SPDX-License-Identifier: Apache-2.0 */
/* libgraphrt: run ONNX models on CPUs and GPUs.
 *
 * Start with section 1: open a model, create a session on a device, create a context, run. Section 2 describes models,
 * section 3 has values that are not plain tensors, section 4 compiles plans offline, section 5 is for tools, section 6 adds
 * operators. pool.h, which this header includes, has pools: many runs at once.
 *
 * Rules for every function, unless its comment says otherwise:
 *
 * Errors. A function that can fail returns grt_status. On failure it writes no out-parameter and leaks nothing, and
 *   grt_last_error() has the calling thread's message: node, op, tensor, what was expected and what was found. NULL for an
 *   object, an out_* parameter or a required callback is INVALID_ARGUMENT; functions that return no status then do nothing
 *   and return 0, false or NULL. Every function that creates something may also fail with OUT_OF_MEMORY. "Errors:" in a
 *   comment lists the others.
 * Ownership. An object obtained through an out_* parameter belongs to the caller, who releases it with exactly one
 *   grt_<noun>_release(). Releasing NULL does nothing. Objects keep alive what they need: a session may outlive the caller's
 *   model. Strings and arrays that are passed in are copied before the function returns. Strings and arrays that are returned
 *   (const char *, const T **) belong to the object that returned them and live as long as it does; those passed to a
 *   callback are valid until the callback returns.
 * Threads. "Threads: any" means that any number of threads may call the function at once, with the same objects too.
 *   "Threads: one a context" means that calls with the same context must not overlap; it need not always be the same thread.
 *   A release must not overlap any other use of that object. Callbacks are called on the calling thread, and must not call
 *   back into the objects of the call, unless stated otherwise.
 * Units. Dims are int64_t, sizes are bytes, times are milliseconds. Tensors are dense and row-major.
 *
 * How structs grow. A program that was compiled with an older header works with a newer library of the same GRT_ABI_VERSION.
 *  - A struct that is passed alone begins with struct_size. Zero the struct, set struct_size = sizeof, then set what you need:
 *    every member that is zero means its default. The library reads and fills no more than struct_size bytes. A struct_size
 *    that is not set is INVALID_ARGUMENT; an option that is set but unknown to this library is UNSUPPORTED. In structs that a
 *    callback receives, the library sets struct_size: what lies behind it does not exist.
 *  - A struct that is the element of an array (grt_tensor, grt_input_shape, grt_device_description, grt_cache_row, grt_phase,
 *    grt_step_time) never changes its size. It ends with `reserved` words, which must be zero: zero the struct before you set
 *    its members. A reserved word that is not zero is UNSUPPORTED.
 *  - Enumerations may get new values at their ends; GRT_MAX_RANK and grt_string do not change.
 *
 * The library never prints, exits or aborts on user data. It does not change the locale, signal handlers or OpenMP's settings.
 * The calling thread's current CUDA device or context is the same after a call as before.
 * A process may fork() while no other thread of it is inside the library. The child may go on with CPU sessions and contexts,
 * but must not use GPUs that the parent has opened.
 * The environment variable GRAPHRT_CPU_ISA (base, avx2, avx512 or amx) limits the instruction set of CPU kernels, oneDNN's too. It is
 * read once per process; the default is all that the processor has. Another value makes session creation fail with
 * INVALID_ARGUMENT.
 */
#ifndef GRAPHRT_GRAPHRT_H
#define GRAPHRT_GRAPHRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRT_VERSION_MAJOR 0
#define GRT_VERSION_MINOR 1
#define GRT_VERSION_PATCH 0

/* Number of the binary interface: libgraphrt.so.1. It changes only when programs have to be compiled again. */
#define GRT_ABI_VERSION 1

#if defined(__GNUC__)
#define GRT_API __attribute__((visibility("default")))
#define GRT_MUST_USE __attribute__((warn_unused_result))
#else
#define GRT_API
#define GRT_MUST_USE
#endif

/* ---------------------------------------------------------------------------------------------------------------------
 * 0. Status, data types, tensors
 * ------------------------------------------------------------------------------------------------------------------- */

/* X(name, text): every status with its one-line meaning. */
#define GRT_STATUS_LIST(X)                                                                                             \
    X(OK, "success")                                                                                                   \
    X(INVALID_ARGUMENT, "a parameter is wrong: a NULL, a name, a dtype, a shape or a size that does not fit")          \
    X(INVALID_MODEL, "the ONNX model breaks a rule of the ONNX specification")                                         \
    X(INVALID_PLAN, "the plan file is truncated, corrupt or of a newer format")                                        \
    X(UNSUPPORTED, "valid, but this build or backend has no implementation for it")                                    \
    X(IO, "a file could not be read or written")                                                                       \
    X(OUT_OF_MEMORY, "an allocation on the host or the device failed")                                                 \
    X(DEVICE, "a device is missing, lost or reported an error")                                                        \
    X(CANCELLED, "the caller asked to stop")                                                                           \
    X(INTERNAL, "a bug in libgraphrt: please report it with the message")                                              \
    X(UNTRUSTED, "the plan is not signed by a key that the caller trusts, or was changed since")                       \
    X(DEADLINE_EXCEEDED, "the time that the caller gave was over before the work was done")                            \
    X(BUSY, "not now: a queue is full, or what is waited for is not done yet; the same call may succeed later")

typedef enum grt_status {
#define X(name, text) GRT_STATUS_##name,
    GRT_STATUS_LIST(X)
#undef X
} grt_status;
#define GRT_OK GRT_STATUS_OK

/* One-line meaning of a status; never NULL. The text is static. Threads: any. */
GRT_API const char *grt_status_text(grt_status status);

/* The calling thread's message for its last failed call, "" if none has failed. A call that succeeds does not change it. Valid
 * until the thread's next failing call. The text is printable as grt_printable makes it; further lines are indented.
 * Threads: any; each has its own message. */
GRT_API const char *grt_last_error(void);

/* Make untrusted text, such as names and strings of a model, safe for terminals and logs. Writes to `out`, 0-terminated, ending in
 * "..." where out_size is too small. Printable characters of every language and backslashes stay as they are. Control characters,
 * characters that reorder or hide other text, and bytes that are not UTF-8 become \n, \t, \r, \x1b, \u202e or \U000e0001. Applying it
 * twice gives the same text as once. Returns the length written; with out NULL or out_size 0 it does nothing. Threads: any. */
GRT_API size_t grt_printable(const char *text, size_t size, char *out, size_t out_size);

/* "MAJOR.MINOR.PATCH" of the library that is running; static. Threads: any. */
GRT_API const char *grt_version(void);

/* X(NAME, onnx number, bits per element, text). The numbers are those of ONNX's TensorProto.DataType. Sub-byte elements are
 * packed low bits first; each tensor is padded to whole bytes. BOOL is one byte, 0 or 1. STRING elements are grt_string. */
#define GRT_DTYPE_LIST(X)                                                                                              \
    X(FLOAT, 1, 32, "float32")                                                                                         \
    X(UINT8, 2, 8, "uint8")                                                                                            \
    X(INT8, 3, 8, "int8")                                                                                              \
    X(UINT16, 4, 16, "uint16")                                                                                         \
    X(INT16, 5, 16, "int16")                                                                                           \
    X(INT32, 6, 32, "int32")                                                                                           \
    X(INT64, 7, 64, "int64")                                                                                           \
    X(STRING, 8, 128, "string")                                                                                        \
    X(BOOL, 9, 8, "bool")                                                                                              \
    X(FLOAT16, 10, 16, "float16")                                                                                      \
    X(DOUBLE, 11, 64, "float64")                                                                                       \
    X(UINT32, 12, 32, "uint32")                                                                                        \
    X(UINT64, 13, 64, "uint64")                                                                                        \
    X(COMPLEX64, 14, 64, "complex64")                                                                                  \
    X(COMPLEX128, 15, 128, "complex128")                                                                               \
    X(BFLOAT16, 16, 16, "bfloat16")                                                                                    \
    X(FLOAT8E4M3FN, 17, 8, "float8e4m3fn")                                                                             \
    X(FLOAT8E4M3FNUZ, 18, 8, "float8e4m3fnuz")                                                                         \
    X(FLOAT8E5M2, 19, 8, "float8e5m2")                                                                                 \
    X(FLOAT8E5M2FNUZ, 20, 8, "float8e5m2fnuz")                                                                         \
    X(UINT4, 21, 4, "uint4")                                                                                           \
    X(INT4, 22, 4, "int4")                                                                                             \
    X(FLOAT4E2M1, 23, 4, "float4e2m1")                                                                                 \
    X(FLOAT8E8M0, 24, 8, "float8e8m0")                                                                                 \
    X(UINT2, 25, 2, "uint2")                                                                                           \
    X(INT2, 26, 2, "int2")

typedef enum grt_dtype {
    GRT_DTYPE_NONE = 0,
#define X(name, number, bits, text) GRT_DTYPE_##name = number,
    GRT_DTYPE_LIST(X)
#undef X
    GRT_DTYPE_COUNT
} grt_dtype;

/* "float32", "int64", ...; "none" for GRT_DTYPE_NONE and unknown numbers. The text is static. Threads: any. */
GRT_API const char *grt_dtype_name(grt_dtype dtype);
/* Bits of one element; 0 for GRT_DTYPE_NONE and unknown numbers. Threads: any. */
GRT_API size_t grt_dtype_bits(grt_dtype dtype);

/* One element of a STRING tensor: bytes, not necessarily 0-terminated. */
typedef struct grt_string {
    const char *data;
    size_t size;
} grt_string;

#define GRT_MAX_RANK 16

typedef enum grt_memory {
    GRT_MEMORY_HOST = 0,   /* ordinary host memory */
    GRT_MEMORY_PINNED = 1, /* page-locked host memory: copies to and from devices need no staging */
    GRT_MEMORY_DEVICE = 2, /* memory of device number `device` */
} grt_memory;

/* A view of a dense row-major tensor. It owns nothing: whoever allocated `data` keeps it alive while the view is in use. */
typedef struct grt_tensor {
    grt_dtype dtype;
    int32_t rank;               /* 0 for a scalar; at most GRT_MAX_RANK; -1 if unknown (descriptions of models only) */
    int64_t dims[GRT_MAX_RANK]; /* the first `rank` are read; -1 if unknown (descriptions of models only) */
    void *data;                 /* aligned as its elements are; may be NULL if there are no elements */
    grt_memory memory;
    int32_t device;             /* the device's number, for GRT_MEMORY_DEVICE */
    uint64_t reserved[5];       /* 0 */
} grt_tensor;

/* Number of elements: 1 for a scalar, 0 if a dim is 0, -1 if a dim is unknown or the product of the dims that are not 0 exceeds 2^58.
 * Every function refuses larger tensors. Threads: any. */
GRT_API int64_t grt_tensor_elements(const grt_tensor *tensor);
/* Bytes of the elements, sub-byte types rounded up to whole bytes; SIZE_MAX if a dim is unknown or the size overflows. Threads: any. */
GRT_API size_t grt_tensor_bytes(const grt_tensor *tensor);

/* ---------------------------------------------------------------------------------------------------------------------
 * 1. Running a model
 * ------------------------------------------------------------------------------------------------------------------- */

typedef struct grt_runtime grt_runtime;
typedef struct grt_model grt_model;
typedef struct grt_session grt_session;
typedef struct grt_context grt_context;
typedef struct grt_value grt_value;

/* Create a runtime, the root of models and sessions. Backends and devices are opened at first use, not here. A process needs one;
 * it may have several. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_runtime_create(grt_runtime **out_runtime);
GRT_API void grt_runtime_release(grt_runtime *runtime);

/* Set where the runtime stores the algorithms that GPU libraries chose (section 5): a file, or "off" for memory only. Call it before
 * the first session is created. The default is the environment's GRAPHRT_ALGO_CACHE (a file or "off"), else
 * $XDG_CACHE_HOME/graphrt/algos.db, else ~/.cache/graphrt/algos.db. A file that cannot be used is no error: algorithms are chosen
 * again, and grt_session_get_load has a warning. Threads: any. Errors: INVALID_ARGUMENT after the first session. */
GRT_API GRT_MUST_USE grt_status grt_runtime_set_algo_cache(grt_runtime *runtime, const char *path);

/* Open a plan (.grt) or an ONNX model; the content decides which it is. A plan is mapped and checked. An ONNX model is compiled in
 * memory with default options for the CPU. The file must not be modified while the model exists; replacing it by another file of
 * that name is fine. Threads: any. Errors: IO, INVALID_PLAN, INVALID_MODEL, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_model_open(grt_runtime *runtime, const char *path, grt_model **out_model);
/* The same, with options (section 4) for compiling an ONNX model; NULL: defaults. `target` should be the kind of device that sessions
 * will use: a model compiled for another kind runs, but slower. external_weights, devices and choices concern plan files and are
 * INVALID_ARGUMENT here. Of a plan, only `trust` matters. Threads: any. Errors: as grt_model_open; DEVICE if `target` is no kind of
 * device; UNTRUSTED. */
struct grt_compile_options;
GRT_API GRT_MUST_USE grt_status grt_model_open_with(grt_runtime *runtime, const char *path, const struct grt_compile_options *options,
                                                    grt_model **out_model);
/* As grt_model_open, from `size` bytes of memory. The bytes are copied, except those of a plan at an address aligned to 4096: they
 * are used in place and must stay valid and unchanged until the model and everything created from it is released. An ONNX model has
 * no directory to read external data from: grt_compile_options.external_data gives it. Threads: any. Errors: as grt_model_open. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory(grt_runtime *runtime, const void *data, size_t size,
                                                      grt_model **out_model);
/* The same with options, as in grt_model_open_with. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory_with(grt_runtime *runtime, const void *data, size_t size,
                                                           const struct grt_compile_options *options, grt_model **out_model);
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
/* Number of devices of a kind ("cuda") in this machine, which may be 0; then grt_last_error() says why. Starts the kind's driver.
 * Threads: any. Errors: DEVICE if there is no such kind or its module cannot be opened. */
GRT_API GRT_MUST_USE grt_status grt_device_count(const char *kind, int32_t *out_count);

/* Options of a session. */
typedef struct grt_session_options {
    size_t struct_size;
    /* CPU: threads of one operator, at most 1024. 0: one per physical core that the calling thread may run on, at most the cgroup's
     * CPU quota (rounded up) and what OMP_NUM_THREADS or omp_set_num_threads say. Fewer if the system lets the process create no
     * more: see grt_session_threads. Threads that wait for each other spin, for less time while other work wants their processors,
     * unless GOMP_SPINCOUNT or OMP_WAIT_POLICY say how (docs/guide.md). */
    int32_t threads;
    const char *fallback; /* "cpu": ops without a kernel on the device run on the CPU; NULL: they are an error that lists them */
    uint64_t memory_limit; /* bytes of the device's memory (on the CPU: the host's) that the session, its contexts and states may have
                              together: what goes beyond is OUT_OF_MEMORY; see graphrt/memory.h. 0: no limit */
    int32_t priority;      /* of the session's work on its device, beside other sessions': higher ones first, as far as the device
                              tells them apart (CUDA: 0, the lowest, to 5). Of no meaning on the CPU */
} grt_session_options;

/* Make `model` ready on `device`: "cpu", "null", "cuda:0", ...; NULL means "cpu". Copies and packs weights and creates kernels. The
 * session does not change afterwards; any number of threads may use it, each with a context of its own. options may be NULL.
 * Threads: any. Errors: DEVICE (names the devices that exist), UNSUPPORTED (lists every op without a kernel), INVALID_PLAN (a wrong
 * checksum of weights). */
GRT_API GRT_MUST_USE grt_status grt_session_create(grt_model *model, const char *device, const grt_session_options *options,
                                                   grt_session **out_session);
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
    const char *upload;   /* NULL or "auto": devices that can copy from each other share the work; "direct": each copies all from
                             the host */
    /* Called by the loading threads, one at a time; false cancels. May be NULL. Must not use the model of the sessions. */
    bool (*progress)(void *user, const grt_load_progress *progress);
    void *user;
    uint64_t memory_limit; /* as in grt_session_options, of each session */
    int32_t priority;      /* as in grt_session_options */
} grt_sessions_options;

/* Create one session of `model` on each of n devices in parallel, one thread per device. Weights are read once for all devices. The
 * same device may be named more than once: its weights are on it once, however many sessions of a plan it has. out_sessions[i] is the
 * session on devices[i] and belongs to the caller. n is 1 to 65536; `devices`, or an element of it, may be NULL for "cpu"; options
 * may be NULL.
 * With `partial`, the call succeeds if any device is ready, and grt_last_error() then describes those that are not ("" if all are).
 * Without it, one failure means that no session is created.
 * Threads: any. Errors: as grt_session_create, of the first device that failed, which is named; CANCELLED by `progress`. */
GRT_API GRT_MUST_USE grt_status grt_sessions_create(grt_model *model, const char *const *devices, size_t n,
                                                    const grt_sessions_options *options, grt_session **out_sessions);
/* CPU threads that one operator of this session may use: what was asked for, or as many as could be created. A run in a thread that
 * the system gives no such team uses one. Threads: any. */
GRT_API int32_t grt_session_threads(const grt_session *session);

/* Allocate host memory for inputs and outputs that the session's device copies directly: page-locked (bind it with
 * grt_tensor.memory GRT_MEMORY_PINNED), or ordinary memory where there is nothing to copy. Such copies need no staging, and only they
 * can be enqueued by grt_context_run_async. Aligned to 256 bytes, not cleared. Page-locking is slow (about 2 GB/s) and limits the
 * system's memory: allocate once and reuse. Belongs to the caller, to be freed with grt_session_free_host before the session's
 * release. Threads: any. Errors: DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_session_alloc_host(grt_session *session, size_t size, void **out_data);
/* Free it; data may be NULL. Threads: any. */
GRT_API void grt_session_free_host(grt_session *session, void *data);

/* Create a context: the state of one run at a time, with its activation memory and its bound inputs and outputs. Cheap enough to have
 * many. A run that overlaps another thread's run of the same context is INVALID_ARGUMENT; other overlapping calls are not detected.
 * Threads: any. Errors: DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_context_create(grt_session *session, grt_context **out_context);
GRT_API void grt_context_release(grt_context *context);

/* Bind `tensor` as input `index` (the position in grt_model_input) of the following runs. The view is copied. Its data, and the bytes
 * that elements of STRING point to, are not: they must stay valid and unchanged while runs use them. dtype, rank and fixed dims must
 * equal the model's; symbolic dims take any size, 0 included, and the run checks that inputs agree on a symbol. Host memory must be
 * aligned as its elements are, device memory to 16 bytes. NULL unbinds: an input with a default (an initializer of the same name)
 * takes its default again. Sequences and optionals: grt_context_set_input_value.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input(grt_context *context, size_t index, const grt_tensor *tensor);
/* Let the following runs write output `index` into `tensor`. The view is copied, its memory must stay valid. Its dims must equal the
 * output's at the run, and it must not overlap an input or another bound output; otherwise the run is INVALID_ARGUMENT. NULL goes back
 * to memory of the context. Outputs of STRING, sequences and optionals cannot be bound.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_output(grt_context *context, size_t index, const grt_tensor *tensor);
/* Run the model and wait for it. The first run with a new combination of input dims plans memory and prepares kernels. Later runs with
 * these dims allocate nothing, unless a dim depends on data; the last 16 combinations are kept. A run that fails leaves no outputs and
 * nothing in flight, and the context can run again.
 * Threads: one a context. Errors: INVALID_ARGUMENT (an input that is not set; dims that do not agree with each other or with a bound
 * output; a value that an op refuses), DEVICE, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_context_run(grt_context *context);
/* Milliseconds of the clock that deadlines are on: CLOCK_MONOTONIC. Threads: any. */
GRT_API double grt_clock_ms(void);

/* How a run may end before its time. */
typedef struct grt_run_options {
    size_t struct_size;
    double deadline_ms;         /* on the clock of grt_clock_ms: the run ends with DEADLINE_EXCEEDED then; 0: none */
    bool (*cancel)(void *user); /* polled on the calling thread; true ends the run with CANCELLED. It is not called again after that.
                                   NULL: none */
    void *user;
} grt_run_options;
/* grt_context_run, which may be stopped: it looks for a reason to stop before each step, before each iteration of Loop, Scan and
 * SequenceMap, while it prepares for new dims, and on devices before each segment of steps that is replayed at once (grt_replay_info).
 * A step or segment that has begun is finished. A run whose last step was done returns its results, whatever the time. A run that was
 * stopped has no outputs, nothing of it is in flight, memory bound as outputs may be partly written, and the context can run again.
 * options may be NULL. Threads: one a context. Errors: as grt_context_run; CANCELLED, DEADLINE_EXCEEDED. */
GRT_API GRT_MUST_USE grt_status grt_context_run_with(grt_context *context, const grt_run_options *options);
/* End the run of this context that is in progress, if there is one, with CANCELLED, as grt_context_run_with says; of
 * grt_context_run_async, only the call that enqueues. Does not wait for it. Does nothing where no run is in progress, so a run that
 * begins later is not affected: grt_run_options.cancel is for those who have to reach that, too.
 * Threads: any, also while others use the context, but not while it is released. May be called by signal handlers. */
GRT_API void grt_context_cancel(grt_context *context);
/* Enqueue a run on `stream` (a cudaStream_t; NULL: the context's own) and return at once. Bound inputs and outputs must be device
 * memory aligned to 16 bytes, which is used in place, or page-locked memory, which is copied on the same stream. Outputs that are not
 * bound are in device memory of the context: see grt_context_get_output. The context, its inputs and outputs are in use until the
 * stream has finished the run.
 * Order: the whole run is on `stream`. Runs of one context follow each other, on whatever streams they are; so does grt_context_run.
 * Errors found on the device, such as an index beyond its axis, are returned once, by the next grt_context_run_async or
 * grt_context_get_output that finds them, in place of its work. grt_context_run returns its own at once.
 * Capturing: the caller may be capturing `stream` into a graph, once the same dims have run before. The graph uses the memory that was
 * bound, and memory of the context that stays in place until the context's release, also when runs with other dims follow; each
 * captured combination of dims keeps its own. Launching the graph is a run of the context; the caller orders it among the others.
 * Threads: one a context. Errors: as grt_context_run; UNSUPPORTED on devices without streams, or if a step needs the host (it is
 * named). After an error nothing of this run is in flight. */
GRT_API GRT_MUST_USE grt_status grt_context_run_async(grt_context *context, void *stream);
/* The context's own stream (a cudaStream_t), which grt_context_run and grt_context_run_async with NULL use: whatever is enqueued there comes
 * before the next run. It belongs to the context. NULL on devices without streams. Threads: any. */
GRT_API void *grt_context_stream(const grt_context *context);
/* What output `index` will be for the inputs that are bound: dtype, rank and dims, -1 for what depends on data; no memory. Prepares for these
 * dims if they are new, as the run would, and then the outputs of the last run are gone. Threads: one a context. Errors: as grt_context_run; INVALID_ARGUMENT if the output is no
 * tensor. */
GRT_API GRT_MUST_USE grt_status grt_context_output_dims(grt_context *context, size_t index, grt_tensor *out_tensor);
/* View of output `index` of the last run, in the memory that was bound then. Memory of the context is valid until its next run or
 * release. Threads: one a context. Errors: INVALID_ARGUMENT if the last run failed, if there was none, or if the output is no tensor
 * (then use grt_context_get_output_value); what an enqueued run found on the device. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output(grt_context *context, size_t index, grt_tensor *out_tensor);

/* ---------------------------------------------------------------------------------------------------------------------
 * 2. What a model is
 * ------------------------------------------------------------------------------------------------------------------- */

typedef enum grt_kind { GRT_KIND_TENSOR = 0, GRT_KIND_SEQUENCE = 1, GRT_KIND_OPTIONAL = 2, GRT_KIND_MAP = 3 } grt_kind;

/* One input or output of the graph. */
typedef struct grt_io_info {
    size_t struct_size;                /* set by the caller */
    const char *name;
    grt_kind kind;
    grt_kind element_kind;             /* OPTIONAL: what it holds; SEQUENCE: MAP if its items are maps; otherwise equal to kind */
    grt_dtype dtype;                   /* of the tensor, of the tensors in the sequence or optional, or of the values of maps */
    int32_t rank;                      /* -1 if unknown */
    int64_t dims[GRT_MAX_RANK];        /* -1 where symbolic */
    const char *symbols[GRT_MAX_RANK]; /* name or expression of a symbolic dim ("batch", "2*seq"), else NULL */
    bool has_default;                  /* inputs: may be left unset */
} grt_io_info;

/* Number of inputs and outputs. Threads: any. */
GRT_API size_t grt_model_input_count(const grt_model *model);
GRT_API size_t grt_model_output_count(const grt_model *model);
/* Describe input or output `index`. Strings belong to the model. Threads: any. Errors: INVALID_ARGUMENT if the index is out of range. */
GRT_API GRT_MUST_USE grt_status grt_model_input(const grt_model *model, size_t index, grt_io_info *out_info);
GRT_API GRT_MUST_USE grt_status grt_model_output(const grt_model *model, size_t index, grt_io_info *out_info);

/* Figures of a compiled model. */
typedef struct grt_model_info {
    size_t struct_size;       /* set by the caller */
    int64_t nodes;            /* nodes of the ONNX model, all graphs and inlined functions */
    int64_t steps;            /* executable steps of the main graph */
    int64_t parameters;       /* elements of all weights */
    uint64_t weights_bytes;   /* as stored in the plan */
    uint64_t arena_bytes;     /* planned activations, unknown dims taken as 1 */
    double flops;             /* of one run, unknown dims taken as 1; a multiplication and an addition are two */
    const char *producer;     /* of the ONNX model */
    int64_t opset;            /* ai.onnx opset of the ONNX model */
    const char *target;       /* kind of device that the plan was compiled for: "cpu" */
    const char *options;      /* compile options as text; "" for defaults */
    const char *signer;       /* key that the plan's signature names; "" without one */
    bool verified;            /* the model was opened with that key as `trust`; false: nobody has checked the signature */
} grt_model_info;
/* Strings belong to the model. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_model_get_info(const grt_model *model, grt_model_info *out_info);

/* What the ONNX model says of itself, which plans keep; "" and 0 where it says nothing. Text is as the model has it, line ends included:
 * pass it through grt_printable before it is shown. */
typedef struct grt_metadata_entry {
    const char *key, *value;
    uint64_t reserved[2]; /* 0 */
} grt_metadata_entry;
typedef struct grt_metadata {
    size_t struct_size;             /* set by the caller */
    const char *producer_name;
    const char *producer_version;
    const char *domain;
    const char *description;        /* doc_string of the model */
    const char *graph_name;
    const char *graph_description;  /* doc_string of the main graph */
    int64_t model_version;
    int64_t ir_version;
    size_t n_entries;               /* metadata_props, in the model's order */
    const grt_metadata_entry *entries;
} grt_metadata;
/* Strings and entries belong to the model. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_model_metadata(const grt_model *model, grt_metadata *out_metadata);

/* One executable step, for tools that show plans. */
typedef struct grt_step_info {
    size_t struct_size;       /* set by the caller */
    const char *op;           /* "Conv", "graphrt::Pointwise", ... */
    const char *name;         /* names of the source nodes, joined by '+' */
    const char *detail;       /* fused activation, expression, layout; "" if none */
    size_t n_inputs, n_outputs;
    const int32_t *inputs;    /* value ids, -1 where omitted */
    const int32_t *outputs;
    double flops;             /* unknown dims taken as 1 */
} grt_step_info;
/* Step `index` of the main graph, in order of execution. Strings and arrays belong to the model. Threads: any. Errors: INVALID_ARGUMENT
 * if the index is out of range. */
GRT_API GRT_MUST_USE grt_status grt_model_step(const grt_model *model, size_t index, grt_step_info *out_info);
/* Name of a value id of a step, which belongs to the model, and its type ("float32[2xseqx8]") in the caller's `text` (may be NULL),
 * truncated to text_size. Threads: any. Errors: INVALID_ARGUMENT if there is no such value. */
GRT_API GRT_MUST_USE grt_status grt_model_value(const grt_model *model, int32_t value, const char **out_name, char *text,
                                                size_t text_size);

/* One phase of loading. */
typedef struct grt_phase {
    const char *name;     /* "map", "check", "import", "optimize", "create kernels", ... */
    double begin_ms;      /* since creation of the object began */
    double end_ms;
    uint64_t reserved[5]; /* 0 */
} grt_phase;
/* Phases in order; returns their number. The array belongs to the object. out_phases may be NULL. Threads: any. */
GRT_API size_t grt_model_phases(const grt_model *model, const grt_phase **out_phases);
GRT_API size_t grt_session_phases(const grt_session *session, const grt_phase **out_phases);

/* What loading a session took, besides time. Counters of algorithms are those of the device so far, for all its sessions. */
typedef struct grt_load_info {
    size_t struct_size;       /* set by the caller */
    const char *device;       /* "cuda:0" */
    uint64_t passes;          /* of the optimiser that ran; 0 for plans */
    uint64_t cache_hits;      /* algorithms found in the cache */
    uint64_t cache_misses;
    uint64_t heuristics;      /* questions to a library's heuristic */
    uint64_t searches;        /* algorithms chosen by measuring: always 0 outside `graphc tune` */
    uint64_t host_bytes;      /* weights copied to the device from the host ... */
    uint64_t peer_bytes;      /* ... and from other devices; both 0 if another session had put them there */
    uint64_t read_bytes;      /* weights read on the host, for all devices of the call */
    uint64_t pinned_bytes;    /* host memory that was page-locked meanwhile */
    const char *warnings;     /* problems with the cache's file, a line each; "" if there are none */
    uint64_t plan_rows;       /* algorithms that came with the plan, for any device */
    uint64_t plan_hits;       /* of these, the ones that this device uses */
    uint64_t rejected;        /* stored algorithms, of the plan or the cache, that the library refused: chosen again */
    const char *plan_note;    /* why the plan's were not used; "" if they were. Belongs to the runtime */
} grt_load_info;
/* Strings belong to the session, except plan_note. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_session_get_load(const grt_session *session, grt_load_info *out_info);

/* Counters of a context, for reports. */
typedef struct grt_context_stats {
    size_t struct_size;      /* set by the caller */
    uint64_t arena_bytes;    /* of the current dims */
    uint64_t dynamic_bytes;  /* device memory of outputs whose sizes depend on data: kept for the next runs; 0 on the CPU */
    uint64_t runs;
    uint64_t reshapes;       /* how often a new combination of dims was prepared */
    double host_us;          /* host time of the last run outside kernels, microseconds; 0 unless timing is on */
    double device_ms;        /* device time of the last run without copies in and out; 0 unless it was asked for */
} grt_context_stats;
/* Threads: one a context. */
GRT_API GRT_MUST_USE grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats);

/* Whether runs with the dims of a context's last run are replayed on the device as graphs, which costs the host least: as one, or as one
 * for each range of steps between those that stand in the way. Text belongs to the context and is valid until its next run. */
typedef struct grt_replay_info {
    size_t struct_size;  /* set by the caller */
    bool supported;      /* the device can replay graphs; false on the CPU */
    int32_t graphs;      /* sets of bound pointers for which graphs are kept, the last 32: the second run with a set makes them */
    const char *op;      /* the first step that stands in the way: "NonZero" ... */
    const char *node;    /* ... and its source nodes; both "" if it is no step */
    const char *reason;  /* why that step, or all of them, are enqueued one by one; "" if nothing stands in the way */
    int32_t steps;       /* of a run, those aside that have nothing to do; 0 if the device has no graphs ... */
    int32_t replayed;    /* ... and those of them that graphs replay */
} grt_replay_info;
/* Strings belong to the context and are valid until its next run. Threads: one a context. Errors: INVALID_ARGUMENT before the first
 * run. */
GRT_API GRT_MUST_USE grt_status grt_context_get_replay(const grt_context *context, grt_replay_info *out_info);

/* Time of one step in the last run. */
typedef struct grt_step_time {
    const char *op;
    const char *name;
    double ms;
    uint64_t reserved[5]; /* 0 */
} grt_step_time;
/* Measure the steps of the following runs, which costs about 50 ns a step. Threads: one a context. */
GRT_API void grt_context_set_timing(grt_context *context, bool on);
/* Times of the last run, one for each step of the main graph; returns their number, 0 while timing is off. They belong to the context
 * and are valid until its next run. out_times may be NULL. Threads: one a context. */
GRT_API size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times);
/* Measure device_ms of the following runs. False: the session's device has no clock of its own. Threads: one a context. */
GRT_API bool grt_context_time_device(grt_context *context, bool on);

/* ---------------------------------------------------------------------------------------------------------------------
 * 3. Values: tensors, sequences, optionals, maps that own their memory. They do not change: any number of threads may read one.
 * ------------------------------------------------------------------------------------------------------------------- */

/* Copy a tensor in host memory, bytes of strings included, into a value. Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_from_tensor(const grt_tensor *tensor, grt_value **out_value);
/* A sequence of copies of `n` values; n may be 0. All must be tensors of `dtype`, sequences of such, or maps to such. Threads: any.
 * Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_sequence(grt_dtype dtype, grt_value *const *items, size_t n, grt_value **out_value);
/* An optional that holds a copy of `item`, a tensor or a sequence of `dtype`, or nothing if item is NULL. Threads: any. Errors:
 * INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_optional(grt_dtype dtype, const grt_value *item, grt_value **out_value);
GRT_API void grt_value_release(grt_value *value);

/* TENSOR for NULL. Threads: any. */
GRT_API grt_kind grt_value_kind(const grt_value *value);
/* View of a TENSOR, in memory of the value. Threads: any. Errors: INVALID_ARGUMENT if it is none. */
GRT_API GRT_MUST_USE grt_status grt_value_tensor(const grt_value *value, grt_tensor *out_tensor);
/* SEQUENCE: number of items; OPTIONAL: 0 or 1; TENSOR: 0; MAP: 2. Threads: any. */
GRT_API size_t grt_value_count(const grt_value *value);
/* Item of a sequence or optional; of a map, its keys (0) and their values (1), tensors of one dim. Belongs to `value`. NULL if the index
 * is out of range. Threads: any. */
GRT_API const grt_value *grt_value_item(const grt_value *value, size_t index);

/* A map of ai.onnx.ml: keys of INT64 or STRING, each once, and one value for each. It holds copies of both tensors, which lie in host memory
 * and have one dim of one size, in the order of the keys. Threads: any. Errors: INVALID_ARGUMENT (also if a key comes twice). */
GRT_API GRT_MUST_USE grt_status grt_value_map(const grt_tensor *keys, const grt_tensor *values, grt_value **out_value);
/* dtype of the keys of an input or output that is a map or a sequence of maps; NONE for all else. Threads: any. */
GRT_API grt_dtype grt_model_input_keys(const grt_model *model, size_t index);
GRT_API grt_dtype grt_model_output_keys(const grt_model *model, size_t index);

/* Bind `value` as input `index` of the following runs. It is not copied: it must stay alive while runs use it. NULL unbinds.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input_value(grt_context *context, size_t index, const grt_value *value);
/* A copy of output `index`, of any kind; belongs to the caller. Threads: one a context. Errors: as grt_context_get_output. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output_value(grt_context *context, size_t index, grt_value **out_value);

/* Read an ONNX .pb file, which holds one TensorProto, SequenceProto, OptionalProto or MapProto: `kind` says which. Threads: any. Errors: IO,
 * INVALID_MODEL, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_value_read_pb(const char *path, grt_kind kind, grt_kind element_kind, grt_value **out_value);
/* Write such a file, whole or not at all. Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_value_write_pb(const grt_value *value, const char *path);

/* ---------------------------------------------------------------------------------------------------------------------
 * 4. Compiling
 * ------------------------------------------------------------------------------------------------------------------- */

/* A device that need not be in this machine: enough of it to ask its libraries which algorithms to use. */
typedef struct grt_device_description {
    const char *name;       /* as its driver says: "NVIDIA H200" */
    int32_t sm;             /* compute capability: 90 */
    const char *properties; /* text that the device's libraries write and read; opaque to everyone else */
    uint64_t reserved[5];   /* 0 */
} grt_device_description;
/* Describe a device of this machine ("cuda:0") for machines that lack it. `each` is called once; its argument is valid during the call.
 * Threads: any. Errors: DEVICE; UNSUPPORTED for kinds of devices whose libraries choose no algorithms. */
GRT_API GRT_MUST_USE grt_status grt_device_describe(const char *device,
                                                    void (*each)(void *user, const grt_device_description *description),
                                                    void *user);

/* Dims of an input for which something is to be prepared. */
typedef struct grt_input_shape {
    const char *input; /* name */
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
    uint64_t reserved[2]; /* 0 */
} grt_input_shape;

/* A file of external data in memory: models name it by `location`. */
typedef struct grt_external_data {
    const char *location;
    const void *data;
    size_t size;
    uint64_t reserved[5]; /* 0 */
} grt_external_data;

/* How much the compiler rewrites a model. Results agree at every level, up to rounding. */
typedef enum grt_optimization {
    GRT_OPTIMIZATION_DEFAULT = 0, /* today FULL */
    GRT_OPTIMIZATION_NONE = 1,    /* only what execution needs */
    GRT_OPTIMIZATION_BASIC = 2,   /* removes what has no effect and computes constants */
    GRT_OPTIMIZATION_FULL = 3,    /* everything: fusion and layouts too */
} grt_optimization;

struct grt_finding; /* below */
/* Options of the compiler. */
typedef struct grt_compile_options {
    size_t struct_size;
    grt_optimization optimization;
    const char *disable_passes;  /* comma-separated names of passes to leave out; NULL: none */
    bool allow_symlinks;         /* follow symbolic links to external data, as in Hugging Face caches */
    bool external_weights;       /* write weights to FILE.CHECKSUM.weights beside the plan, before the plan itself. Weights of a plan
                                    that is replaced are removed once no plan in the directory mentions them */
    void (*progress)(void *user, const char *phase, double fraction); /* called on the compiling thread; may be NULL */
    void *user;                  /* for all callbacks of these options */
    const char *target;          /* kind of device that the plan is compiled for: which ops are fused, which layouts constants have.
                                    NULL: "cpu". A plan runs on every kind of device but loads faster on its own. Needs no such device */
    const char *precision;       /* of float32 models. "fp32": as the model says; NULL: the same, save models in half precision whose
                                    exporter made float32 of them (docs/passes.md); "tf32": products may round their inputs to
                                    TF32; "fp16", "bf16": weights and activations are narrowed where that is faster, while sums stay
                                    float32 and inputs and outputs keep their types. "P,NODE=P,...": nodes by name, also with *, ? and [] */
    const grt_device_description *devices; /* choose algorithms for these devices of kind `target` now, wherever dims are known and
                                              the library can decide without the device, and store them in the plan. Needs the
                                              libraries on this machine, and no device */
    size_t n_devices;
    const grt_input_shape *shapes;         /* dims of inputs for these choices; other unknown dims are taken as 1 */
    size_t n_shapes;
    const char *choices;                   /* a cache file (section 5) from a machine with such devices: its choices take precedence
                                              over those a library makes here; NULL: none */
    const char *trust;                     /* opening only: whose plans may bring code and choices of algorithms, which a GPU's libraries
                                              read and execute. "all": anyone's. "none": these are ignored and the rest of the plan is
                                              used. "ed25519:..." (grt_key_create; several separated by commas): only plans signed by
                                              one of these keys are opened, everything else is UNTRUSTED. NULL: the environment's
                                              GRAPHRT_TRUST, else "all" ("none" in setuid programs): see SECURITY.md */
    bool (*cancel)(void *user);  /* polled on the compiling thread, at least between two nodes whose constants are computed; true ends the
                                    call with CANCELLED and leaves no file. May be NULL. It may be called again after that */
    /* A model that breaks a rule of the standard but has one meaning all the same (nodes out of order, a domain that is not listed, ...)
     * is imported, and `warning` gets a finding of status OK for each such place; may be NULL. With `strict`, it is an error. */
    void (*warning)(void *user, const struct grt_finding *finding);
    bool strict;
    const char *free_dims;       /* comma-separated names of dims whose every use may have a size of its own; "*": all; NULL: a name
                                    has one size in a run */
    /* Files of external data, which take precedence over those in the model's directory; a model from memory has none. They are not copied:
     * they must stay valid and unchanged until grt_compile returns, or the model that is opened and everything created from it is released. */
    const grt_external_data *external_data;
    size_t n_external_data;
    /* Gets a finding of status OK for each place that looks like a form which is computed as one op, and is not quite: its message says
     * what is in the way. For whoever wonders why a model is slow; may be NULL. */
    void (*near_miss)(void *user, const struct grt_finding *finding);
    const char *state;           /* pairs OUTPUT=INPUT, a line each, that the plan declares as state: the metadata entry "graphrt.state", which
                                    grt_state_create reads (state.h). NULL: what the model says */
    const char *keep_weights;    /* comma-separated names of initializers that become inputs with defaults, the last of the model's, in the
                                    model's order, so that grt_session_set_weights can replace them: nothing is folded or packed that depends
                                    on them. NULL: none */
} grt_compile_options;

/* Compile an ONNX file to a plan file, which is written whole (temporary file, fsync, rename) or not at all. It replaces a file of that
 * name, unless that is the model or no regular file. The same model and options give the same bytes. options may be NULL.
 * Memory and time are bounded by the model's size, whatever the model contains. With S bytes of model, external data included, and n
 * nodes, operands and attributes, those of inlined functions included: at most 64 MiB + 8 S + 2 KiB n of memory, and of one core 5 s and
 * 1 s for each MB of S. Constants that cannot be computed within these bounds are computed when the model runs.
 * Threads: any. Errors: IO, INVALID_MODEL, UNSUPPORTED (lists every such node), INVALID_ARGUMENT (an option; a plan in place of its
 * model), DEVICE, CANCELLED. */
GRT_API GRT_MUST_USE grt_status grt_compile(const char *onnx_path, const grt_compile_options *options, const char *plan_path);

/* Size of a key as text, with its 0. */
#define GRT_KEY_SIZE 96
/* Create a pair of keys as text: the holder of the secret one ("ed25519-secret:...") signs plans, holders of the public one
 * ("ed25519:...") trust them. The secret key is not encrypted: protect it. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_key_create(char out_public[GRT_KEY_SIZE], char out_secret[GRT_KEY_SIZE]);
/* Write a signed copy of a plan file: Ed25519 over everything in it and over its external weights. It replaces an earlier signature.
 * out_path may be plan_path; plans with external weights must stay in their directory. A plan that is changed afterwards has to be signed
 * again (grt_plan_add_tuning drops the signature). Threads: any. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT if the key is none. */
GRT_API GRT_MUST_USE grt_status grt_plan_sign(const char *plan_path, const char *out_path, const char *secret_key);

/* One problem of a model. */
typedef struct grt_finding {
    size_t struct_size;  /* set by the library */
    grt_status status;   /* INVALID_MODEL or UNSUPPORTED; OK for a warning, whose message says what was assumed */
    const char *node;    /* name of the node, or "" */
    const char *op;      /* "domain::Op", or "" */
    int64_t opset;
    const char *message; /* with dtypes, shapes and the nearest supported form; printable, see grt_printable */
} grt_finding;
/* Find everything that keeps the model from running on `device` (NULL: "cpu"), not only the first problem, and warnings. The model is
 * compiled within the bounds of grt_compile and the result is dropped: no findings means that grt_compile succeeds. Invalid models are
 * examined up to the first step of the compiler that cannot go on. `each` (may be NULL) is called once per finding. The call succeeds even
 * if there are findings; out_count gets their number without warnings. Threads: any. Errors: IO, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_check_model(const char *onnx_path, const char *device,
                                                void (*each)(void *user, const grt_finding *finding), void *user,
                                                size_t *out_count);
/* The same with compile options, whose `target` is the device and whose `warning` and `user` are not used. options may be NULL.
 * Threads: any. Errors: as grt_check_model. */
GRT_API GRT_MUST_USE grt_status grt_check_model_with(const char *onnx_path, const grt_compile_options *options,
                                                     void (*each)(void *user, const grt_finding *finding), void *user,
                                                     size_t *out_count);

/* Names of the optimiser's passes in the order in which they run; returns their number. The array is static. out_names may be NULL.
 * Threads: any. */
GRT_API size_t grt_pass_names(const char *const **out_names);

/* ---------------------------------------------------------------------------------------------------------------------
 * 5. The cache of algorithms, for tools. Sessions use the cache by themselves.
 *
 * Libraries of GPU kernels have many algorithms for one operation. Asking for a suitable one takes milliseconds, measuring takes far
 * longer, so choices are stored in a SQLite database for all processes of a user, which any number of them may use at once. A row's key
 * is text of parts `name=value;` with everything that determines the choice: op, dtypes, shapes, attributes, GPU, driver, the library's
 * version. `path` NULL is the default file everywhere; where the cache is switched off, these functions fail with INVALID_ARGUMENT.
 * ------------------------------------------------------------------------------------------------------------------- */

typedef struct grt_cache_row {
    const char *key;
    const void *data; /* meaningful only to the kernel that stored it */
    size_t size;
    bool tuned;       /* found by measuring; otherwise by a library's heuristic */
    double cost_ms;   /* measured; 0 if it was not */
    int64_t made;     /* seconds since 1970 */
    uint64_t reserved[2]; /* 0 */
} grt_cache_row;

/* The file's name in the caller's buffer, truncated to size; "" where the cache is switched off. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_cache_path(char *out_path, size_t size);
/* Call `each` for all rows in order of their keys; its argument is valid during the call. A file that does not exist has no rows.
 * out_damaged (may be NULL): rows that were skipped because of a wrong checksum. Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_each(const char *path, void (*each)(void *user, const grt_cache_row *row), void *user,
                                               size_t *out_damaged);
/* Remove rows that are older than `days` (0: of any age) and whose keys contain `part` (NULL: all). Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_prune(const char *path, double days, const char *part, size_t *out_removed);
/* Copy all rows of file `from` to file `to`, which is created if it is missing; either may be NULL for the default file. A tuned row is
 * never replaced by one that is not. The format does not depend on the machine. Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_copy(const char *from, const char *to, size_t *out_rows);

/* Write a copy of a plan file with these choices added. A row replaces the plan's row of the same key; the others stay; `made` is not
 * stored. Everything else stays the same byte for byte, except a signature, which is dropped. out_path may be plan_path: the file is
 * replaced at once. Plans with external weights must stay in their directory. Sessions prefer a plan's choices to the cache's, on every
 * GPU with the same compute capability and the same version of the library that made the choice.
 * Threads: any. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT for rows that no plan can hold. */
GRT_API GRT_MUST_USE grt_status grt_plan_add_tuning(const char *plan_path, const char *out_path, const grt_cache_row *rows, size_t n);
/* Call `each` for the choices that came with a plan, in order of their keys; its argument is valid during the call. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_model_choices(const grt_model *model, void (*each)(void *user, const grt_cache_row *row), void *user);

/* One question of a kernel to the cache. */
typedef struct grt_cache_lookup {
    size_t struct_size;       /* set by the library */
    const char *key;
    bool hit;
    const char *nearest;      /* of a miss: the key in the file that has the most parts in common; NULL if none is of the same op */
    bool from_plan;           /* of a hit: it came with the plan */
    const grt_cache_row *row; /* what is known for the key by now; NULL: nothing */
} grt_cache_lookup;
/* Call `each` for what the kernels of the runtime's sessions have asked so far, in no particular order; its argument is valid during the
 * call. Threads: any. */
GRT_API GRT_MUST_USE grt_status grt_cache_lookups(grt_runtime *runtime, void (*each)(void *user, const grt_cache_lookup *lookup),
                                                  void *user);

/* What grt_context_tune found for one choice of algorithm. */
typedef struct grt_tune_result {
    size_t struct_size; /* set by the library */
    const char *key;    /* as in the cache */
    const char *op;     /* of the first step that has this choice, and its name */
    const char *name;
    size_t steps;       /* that have it */
    bool known;         /* it was tuned before and was left as it is; the members below are 0 */
    size_t candidates;  /* that were measured */
    size_t refused;     /* left out: they failed, took too long to load, or computed something else */
    size_t winner;      /* 0: the heuristic's choice stays */
    double before_ms;   /* one run of the heuristic's choice, and of the winner */
    double after_ms;
} grt_tune_result;

/* Options of tuning. */
typedef struct grt_tune_options {
    size_t struct_size;
    double seconds; /* to spend at most; 0: 60. The slowest steps come first */
    bool again;     /* also measure what was tuned before */
    /* Called between measurements; false stops. May be NULL. */
    bool (*progress)(void *user, const char *what, double fraction);
    void (*result)(void *user, const grt_tune_result *result); /* one choice is decided; may be NULL */
    void *user;
} grt_tune_options;

typedef struct grt_tune_report {
    size_t struct_size; /* set by the caller */
    size_t steps;       /* of the model that have a choice at these dims; 0: there is nothing to tune on this device */
    size_t choices;     /* different ones among them */
    size_t tuned;       /* measured now; `known` were tuned before, the rest was left for lack of time */
    size_t known;
    size_t improved;    /* of those measured now: something is faster than the heuristic's choice */
    double before_ms;   /* sums over the steps whose choice was measured now */
    double after_ms;
    bool stopped;       /* by the progress function */
    bool out_of_time;
} grt_tune_report;

/* Measure the library's algorithms for the steps of the model at the dims that are bound, and store the fastest in the cache of
 * algorithms, which sessions, contexts and new dims use from now on; this context does not change. The inputs must be bound: the model
 * runs once. Results are stored one by one, so they stay when time runs out, progress stops the call (both are GRT_OK) or something
 * fails later. The device should be idle otherwise. docs/decisions/tuning.md says what is measured, how, and when the heuristic's choice
 * is replaced. No other function of the library measures algorithms. options may be NULL.
 * Threads: one a context. Errors: as grt_context_run; IO. */
GRT_API GRT_MUST_USE grt_status grt_context_tune(grt_context *context, const grt_tune_options *options,
                                                 grt_tune_report *out_report);

/* ---------------------------------------------------------------------------------------------------------------------
 * 6. Custom operators
 *
 * An operator that a program brings: what ONNX says of one (domain, name, attributes), a rule that tells outputs' types from inputs', and
 * functions that compute. Models and plans use it like any other, in all sessions of the process; a plan with one needs it again where
 * it is opened. Functions are called from any thread, several at once, and must not call into this library but through the host's
 * functions. examples/custom_ops.c is one in a shared object.
 * ------------------------------------------------------------------------------------------------------------------- */

typedef enum grt_attribute_kind {
    GRT_ATTRIBUTE_INT = 0,
    GRT_ATTRIBUTE_FLOAT,
    GRT_ATTRIBUTE_STRING,
    GRT_ATTRIBUTE_TENSOR,
    GRT_ATTRIBUTE_INTS,
    GRT_ATTRIBUTE_FLOATS,
    GRT_ATTRIBUTE_STRINGS
} grt_attribute_kind;

typedef struct grt_custom_attribute {
    const char *name;
    grt_attribute_kind kind;
    bool required;
    uint64_t reserved[6]; /* 0 */
} grt_custom_attribute;

/* A dim in a shape rule: a size, or an expression of sizes that only a run knows. Below 0: nothing is known of it. */
typedef int32_t grt_custom_dim;

typedef struct grt_custom_type {
    grt_dtype dtype;                   /* NONE: not known; of inputs also: left out */
    int32_t rank;                      /* -1: not known */
    grt_custom_dim dims[GRT_MAX_RANK];
    const grt_tensor *value;           /* inputs: the content in host memory, where it is known; else NULL */
    uint64_t reserved[6];              /* 0 */
} grt_custom_type;

struct grt_custom_host;
/* One node of a model, during a call. */
typedef struct grt_custom_node {
    size_t struct_size; /* set by the library, as in all structs that it gives to these functions */
    const char *name;
    size_t n_inputs, n_outputs; /* as the node lists them, those left out included */
    const struct grt_custom_host *host;
    const void *internal;
} grt_custom_node;

/* What functions of operators may ask of the library. Attributes: false, and nothing is written, if the node does not have it, or of
 * another kind; what they point to lives as long as the node, which is as long as the state of its kernel. */
typedef struct grt_custom_host {
    size_t struct_size;
    bool (*get_int)(const grt_custom_node *node, const char *name, int64_t *out_value);
    bool (*get_float)(const grt_custom_node *node, const char *name, float *out_value);
    bool (*get_string)(const grt_custom_node *node, const char *name, grt_string *out_value);
    bool (*get_tensor)(const grt_custom_node *node, const char *name, grt_tensor *out_value);
    bool (*get_ints)(const grt_custom_node *node, const char *name, const int64_t **out_values, size_t *out_n);
    bool (*get_floats)(const grt_custom_node *node, const char *name, const float **out_values, size_t *out_n);
    bool (*get_strings)(const grt_custom_node *node, const char *name, const grt_string **out_values, size_t *out_n);
    /* Returns status; the message follows the node's name in grt_last_error. */
    grt_status (*fail_node)(const grt_custom_node *node, grt_status status, const char *message);
    /* In shape rules only. dim_value: false if the size is not known before a run. dim_compute: operation is + - * / (rounded down) ^ (divided
     * and rounded up) % < (the smaller) > (the larger). */
    grt_custom_dim (*dim_constant)(const grt_custom_node *node, int64_t size);
    bool (*dim_value)(const grt_custom_node *node, grt_custom_dim dim, int64_t *out_size);
    grt_custom_dim (*dim_compute)(const grt_custom_node *node, char operation, grt_custom_dim a, grt_custom_dim b);
} grt_custom_host;

/* One execution of a node. Tensors that are left out are NULL; outputs have their dims and memory. On CUDA all data is in the device's
 * memory, and what is done with it must be enqueued on `stream`, which may be capturing: nothing may wait for the device. */
typedef struct grt_custom_run {
    size_t struct_size;
    const grt_custom_node *node;
    const grt_tensor *const *inputs;
    grt_tensor *const *outputs;
    int32_t threads; /* CPU: that it may use */
    void *stream;    /* a cudaStream_t; NULL on the CPU */
} grt_custom_run;

/* Zero it, then set struct_size. Texts and lists are copied. */
typedef struct grt_custom_op {
    size_t struct_size;
    const char *domain;           /* not ai.onnx, ai.onnx.ml or graphrt */
    const char *name;             /* not one that the library has in that domain */
    size_t min_inputs, max_inputs; /* max: SIZE_MAX for no limit */
    size_t min_outputs, max_outputs;
    const grt_custom_attribute *attributes; /* nodes with others are refused */
    size_t n_attributes;
    const uint64_t *input_dtypes; /* of each input the dtypes that run takes, as 1 << GRT_DTYPE_...; 0: any. The last holds for all that follow */
    size_t n_input_dtypes;        /* 0: all take any */
    bool random;                  /* two runs differ: its results are never computed at compile time */
    /* Fill in the outputs' types, which begin as unknown; they cannot be STRING. Called at compile time, where dims may not be known,
     * and for runs whose dims depend on data: the rank, and every dim, must follow from the inputs' once these are known. */
    grt_status (*infer)(void *user, const grt_custom_node *node, const grt_custom_type *inputs, grt_custom_type *outputs);
    /* Optional: once a session, for attributes; *out_state is NULL before. And its end. */
    grt_status (*create)(void *user, const grt_custom_node *node, void **out_state);
    void (*release)(void *user, void *state);
    /* On the CPU; NULL: it cannot. Not called where an output has no elements. */
    grt_status (*run)(void *user, void *state, const grt_custom_run *run);
    /* On CUDA devices, the session's being current; NULL: it cannot. */
    grt_status (*run_cuda)(void *user, void *state, const grt_custom_run *run);
    void *user;
} grt_custom_op;

/* Register n operators for the life of the process, all or none; all ops[i] have the same struct_size. They serve models that are opened or
 * compiled afterwards. Threads: any. Errors: INVALID_ARGUMENT (names the operator). */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_register(const grt_custom_op *ops, size_t n);
/* Open a shared object, which executes its code, and register what its function graphrt_custom_ops returns. It is never closed. A path
 * without '/' is a file of the current directory. To load the same object again does nothing. Threads: any. Errors: IO, and as
 * grt_custom_ops_register. */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_load(const char *path);
/* What such an object exports by that name: its operators, which must stay where they are, and their number. */
typedef const grt_custom_op *grt_custom_ops_fn(size_t *out_n);
#define GRT_CUSTOM_OPS_SYMBOL "graphrt_custom_ops"

#ifdef __cplusplus
}
#endif

/* Parts of this header in files of their own. */
#include <graphrt/memory.h>  /* IWYU pragma: export */
#include <graphrt/pool.h>    /* IWYU pragma: export */
#include <graphrt/state.h>   /* IWYU pragma: export */
#include <graphrt/trace.h>   /* IWYU pragma: export */
#include <graphrt/weights.h> /* IWYU pragma: export */
#endif
