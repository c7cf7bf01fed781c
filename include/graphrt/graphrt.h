/* SPDX-License-Identifier: Apache-2.0 */
/* libgraphrt: run ONNX models on CPUs and GPUs.
 *
 * Start with the simple part (section 1): open a model, create a session on a device, create a context, run.
 * Section 2 describes models; section 3 has values that are not plain tensors; section 4 compiles plans offline.
 *
 * Rules that hold for every function, unless its comment says otherwise:
 *  - A function that can fail returns grt_status. On failure no out-parameter is written, nothing is leaked, and
 *    grt_last_error() gives the calling thread's full message: node, op, tensor, what was expected and what was found.
 *  - A NULL where an object, an out_* parameter or a callback is needed is INVALID_ARGUMENT; functions that return no status
 *    then do nothing and return 0, false or NULL.
 *  - Objects obtained through out_* parameters belong to the caller, who gives each one back with exactly one
 *    grt_<noun>_release(); releasing NULL does nothing.
 *  - Structs that have struct_size: zero them, then set it to sizeof. Programs that were compiled with an older header keep
 *    working: their shorter structs are read and filled as far as they go. A size that was not set is INVALID_ARGUMENT.
 *  - Strings passed in are copied; strings returned as const char * belong to the object that returned them.
 *  - runtime, model and session objects may be used from any number of threads at once. A context is used by one thread at a
 *    time, not always the same. Values are immutable: any number of threads may read one. Objects keep what they need alive: a session may outlive the caller's model reference, and so on.
 *  - dims are int64_t; sizes are bytes; times are milliseconds. Tensors are dense and row-major.
 *  - The environment's GRAPHRT_CPU_ISA (base, avx2 or avx512) caps the instruction set of kernels for the CPU, oneDNN's included; it
 *    is read once a process. Without it, all that the processor has is used. Another word: INVALID_ARGUMENT from session creation.
 *  - The library never prints, exits or aborts on user data. It leaves locale, signals and OpenMP's settings alone.
 *  - A process may fork() while no other thread of it is in a call. The child may go on with CPU sessions and contexts; GPUs that
 *    the parent has opened are not the child's to use.
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
    X(UNTRUSTED, "the plan is not signed by a key that the caller trusts, or was changed since")

typedef enum grt_status {
#define X(name, text) GRT_STATUS_##name,
    GRT_STATUS_LIST(X)
#undef X
} grt_status;
#define GRT_OK GRT_STATUS_OK

/* One-line meaning of a status; never NULL. */
GRT_API const char *grt_status_text(grt_status status);

/* The calling thread's message for its last failed call; "" if none failed. A call that succeeds leaves it. Valid until that thread's
 * next failing call. It may be printed: what it quotes of a model is as grt_printable makes it; lines behind the first are indented. */
GRT_API const char *grt_last_error(void);

/* Text of others, such as names and strings of a model, for terminals and logs: into the caller's buffer, 0-terminated, with "..." at its
 * end if there is no room for all. Printable characters of any language stay, backslashes too; others become \n, \t, \r, \x1b, \u202e or
 * \U000e0001: controls, what turns or hides text beside it, and bytes that are not UTF-8. Returns the length; nothing is done with out NULL or
 * out_size 0. To do it twice changes nothing. */
GRT_API size_t grt_printable(const char *text, size_t size, char *out, size_t out_size);

/* "MAJOR.MINOR.PATCH" of the library that is running. */
GRT_API const char *grt_version(void);

/* X(NAME, onnx number, bits per element, text). The numbers are those of ONNX's TensorProto.DataType. Sub-byte elements are
 * packed low bits first, each tensor padded to whole bytes. BOOL is one byte, 0 or 1. STRING elements are grt_string. */
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

/* "float32", "int64", ...; "none" for GRT_DTYPE_NONE and unknown numbers. */
GRT_API const char *grt_dtype_name(grt_dtype dtype);
/* Bits per element; 0 for GRT_DTYPE_NONE and unknown numbers. */
GRT_API size_t grt_dtype_bits(grt_dtype dtype);

/* One element of a STRING tensor: bytes, not necessarily 0-terminated. */
typedef struct grt_string {
    const char *data;
    size_t size;
} grt_string;

#define GRT_MAX_RANK 16

typedef enum grt_memory {
    GRT_MEMORY_HOST = 0,   /* ordinary host memory */
    GRT_MEMORY_PINNED = 1, /* page-locked host memory: copies to devices need no staging */
    GRT_MEMORY_DEVICE = 2, /* memory of device `device` */
} grt_memory;

/* A view of a dense row-major tensor. It owns nothing: whoever made `data` keeps it alive while the view is in use. */
typedef struct grt_tensor {
    grt_dtype dtype;
    int32_t rank; /* 0 for a scalar; at most GRT_MAX_RANK; -1 where unknown (model descriptions only) */
    int64_t dims[GRT_MAX_RANK]; /* those from rank on are not looked at; -1 where unknown (model descriptions only) */
    void *data; /* aligned as its elements are; may be NULL if there are none */
    grt_memory memory;
    int32_t device; /* of GRT_MEMORY_DEVICE */
} grt_tensor;

/* Elements of a tensor with known dims; 1 for a scalar, 0 if any dim is 0, -1 if a dim is unknown or the product of those that are not 0
 * is above 2^58. Tensors beyond that are refused everywhere. */
GRT_API int64_t grt_tensor_elements(const grt_tensor *tensor);
/* Bytes of a tensor with known dims (sub-byte types rounded up to whole bytes); SIZE_MAX if unknown or overflowing. */
GRT_API size_t grt_tensor_bytes(const grt_tensor *tensor);

/* ---------------------------------------------------------------------------------------------------------------------
 * 1. Running a model
 * ------------------------------------------------------------------------------------------------------------------- */

/* The calling thread's current CUDA device, or context, is as it was when a function of this library returns. */

typedef struct grt_runtime grt_runtime;
typedef struct grt_model grt_model;
typedef struct grt_session grt_session;
typedef struct grt_context grt_context;
typedef struct grt_value grt_value;

/* Create the process's runtime: backends and devices are looked up on first use, not here. Several runtimes may coexist. */
GRT_API GRT_MUST_USE grt_status grt_runtime_create(grt_runtime **out_runtime);
GRT_API void grt_runtime_release(grt_runtime *runtime);

/* Where this runtime keeps the algorithms that libraries chose for its devices (section 5): a file, or "off" for memory only. To be
 * called before the first session; afterwards INVALID_ARGUMENT. Without it: the environment's GRAPHRT_ALGO_CACHE (a file or
 * "off"), else $XDG_CACHE_HOME/graphrt/algos.db, else ~/.cache/graphrt/algos.db. A file that cannot be used is no error: choices
 * are made anew, and grt_session_get_load says what is wrong. */
GRT_API GRT_MUST_USE grt_status grt_runtime_set_algo_cache(grt_runtime *runtime, const char *path);

/* Open a plan (.grt) or an ONNX model; the content says which it is. A plan is mapped and checked; an ONNX model is compiled in memory
 * with default options for the CPU. The file must not be modified while the model lives (another one may take its name).
 * Errors: IO, INVALID_PLAN, INVALID_MODEL, UNSUPPORTED, OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_model_open(grt_runtime *runtime, const char *path, grt_model **out_model);
/* The same with an ONNX model compiled as the options say (section 3), NULL: as above. `target` is the kind of device that sessions are for:
 * a model that was compiled for another runs, but not as fast. What is about the plan's file (external_weights, devices, choices)
 * is INVALID_ARGUMENT here. A plan is opened as it is; what it may bring is for `trust` to say. Errors: also DEVICE, if there is no such
 * kind, and UNTRUSTED. */
struct grt_compile_options;
GRT_API GRT_MUST_USE grt_status grt_model_open_with(grt_runtime *runtime, const char *path, const struct grt_compile_options *options,
                                                    grt_model **out_model);
/* As grt_model_open, from `size` bytes of memory. `data` is copied unless it is a plan aligned to 4096 bytes, which must then outlive the model.
 * External data of an ONNX model is refused here, as it has no directory to be read from: grt_compile_options.external_data gives it. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory(grt_runtime *runtime, const void *data, size_t size,
                                                      grt_model **out_model);
/* The same with options, as grt_model_open_with has them. */
GRT_API GRT_MUST_USE grt_status grt_model_open_memory_with(grt_runtime *runtime, const void *data, size_t size,
                                                           const struct grt_compile_options *options, grt_model **out_model);
GRT_API void grt_model_release(grt_model *model);

/* Devices of a kind ("cuda") in this machine; there may be 0. Starts the kind's driver. Errors: DEVICE if there is no such kind, or its
 * module cannot be opened. */
GRT_API GRT_MUST_USE grt_status grt_device_count(const char *kind, int32_t *out_count);

/* Session options. Set struct_size = sizeof(grt_session_options) and leave the rest zero for defaults. */
typedef struct grt_session_options {
    size_t struct_size;
    /* CPU: threads of one operator, at most 1024. 0: one per physical core that the calling thread may run on, at most the cgroup's
     * CPU quota (rounded up) and what OMP_NUM_THREADS or omp_set_num_threads say. Fewer if the system lets the process make no more:
     * see grt_session_threads. Threads that wait for each other spin, by GNU OpenMP's default for milliseconds: beside busy processes
     * use 1, or set GOMP_SPINCOUNT or OMP_WAIT_POLICY in the environment before the process starts (docs/guide.md). */
    int32_t threads;
    const char *fallback; /* "cpu": ops without a kernel on the device run on the CPU; NULL: they are an error that lists them */
} grt_session_options;

/* Make `model` resident on `device`: "cpu", "null" or "cuda:0"; NULL means "cpu". Packs weights and creates kernels. The session
 * is immutable and may be shared by any number of threads, one context each. options may be NULL.
 * Errors: DEVICE (names the devices that exist), UNSUPPORTED (lists every op without a kernel), INVALID_PLAN (weights whose checksum is
 * wrong), OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_session_create(grt_model *model, const char *device, const grt_session_options *options,
                                                   grt_session **out_session);
GRT_API void grt_session_release(grt_session *session);

/* Where the making of many sessions stands. */
typedef struct grt_load_progress {
    size_t index;       /* of the device that reached something */
    const char *device; /* its name: "cuda:3" */
    const char *phase;  /* "open device", "weights", "create kernels", "ready" */
    double fraction;    /* of all work on all devices, 0 to 1 */
} grt_load_progress;

/* Options for many sessions. Set struct_size and leave the rest zero for defaults. */
typedef struct grt_sessions_options {
    size_t struct_size;
    int32_t threads;      /* as in grt_session_options */
    const char *fallback; /* as in grt_session_options */
    bool partial;         /* devices that fail leave NULL in sessions, the others go on; false: all or none */
    int32_t max_parallel; /* devices that are made ready at once; 0: all */
    int32_t readers;      /* threads that read weights; 0: one per core, at most 16 */
    size_t max_pinned;    /* bytes of host memory to page-lock meanwhile; 0: 128 MiB */
    const char *upload;   /* NULL or "auto": devices that can copy from each other share the work; "direct": each copies all from the host */
    /* Called by the threads at work, one at a time; false asks to stop. May be NULL. Must not call into the sessions' model. */
    bool (*progress)(void *user, const grt_load_progress *progress);
    void *user;
} grt_sessions_options;

/* One session of `model` on each of n devices, made in parallel by a thread for each: reading the weights and opening the
 * devices begin at once, and every device goes on as soon as it is open. Weights are read once for all. The same device may be named
 * twice; weights are on a device once, however many sessions of a plan it has. sessions[i] belongs to devices[i] and to the caller.
 * With `partial`, GRT_OK if any device is ready; grt_last_error() then tells of those that are not (else it is ""). Without it, a
 * failure or a progress function that returned false leaves no session: CANCELLED, or the first failure's status and text, which names the
 * device. n is 1 to 65536; devices, or one of them, may be NULL for "cpu"; options may be NULL. */
GRT_API GRT_MUST_USE grt_status grt_sessions_create(grt_model *model, const char *const *devices, size_t n,
                                                    const grt_sessions_options *options, grt_session **out_sessions);
/* CPU threads that one operator of this session may use: what was asked for, or as many as could be made. A run in a thread that
 * can have no team of as many, because of a limit of the system's, works on one. */
GRT_API int32_t grt_session_threads(const grt_session *session);

/* Host memory for inputs and outputs that copies to and from the session's device reach directly (page-locked; bind it with
 * grt_tensor.memory GRT_MEMORY_PINNED): they need no staging, and only such copies can be enqueued. Ordinary memory where there is
 * nothing to copy. 256-byte aligned, not cleared. Page-locking is slow (about 2 GB/s) and takes memory from the system: allocate
 * once, reuse. To be given back before the session's release. Errors: OUT_OF_MEMORY, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_session_alloc_host(grt_session *session, size_t size, void **out_data);
GRT_API void grt_session_free_host(grt_session *session, void *data); /* data may be NULL */

/* One execution in flight: activation memory, bound inputs and outputs. For one thread at a time: a run that meets another thread's run
 * of the same context is INVALID_ARGUMENT, all else is not noticed. Cheap enough to have many. */
GRT_API GRT_MUST_USE grt_status grt_context_create(grt_session *session, grt_context **out_context);
GRT_API void grt_context_release(grt_context *context);

/* Use `tensor` as input `index` (position in grt_model_input) of the following runs. The view is copied; its data, and the bytes that
 * elements of STRING point to, must stay valid and unchanged while runs use it. dtype must equal the model's, rank and fixed
 * dims too; symbolic dims take any size, 0 included, and whether inputs agree on a symbol is seen at the run. Host memory must be
 * aligned as its elements are, device memory to 16 bytes.
 * tensor == NULL unbinds: an input with a default (an initializer of the same name) takes its default again.
 * Errors: INVALID_ARGUMENT; what was bound before stays. Sequences and optionals: grt_context_set_input_value. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input(grt_context *context, size_t index, const grt_tensor *tensor);
/* Let output `index` of the following runs be written into `tensor`, whose dims must equal the output's at the run, else the run is
 * INVALID_ARGUMENT, and so it is if the memory overlaps that of an input or of another output that is bound. NULL goes back to memory of
 * the context's own. Outputs of STRING, sequences and optionals cannot be bound. */
GRT_API GRT_MUST_USE grt_status grt_context_set_output(grt_context *context, size_t index, const grt_tensor *tensor);
/* Run the model. The first run with a new combination of input dims plans memory and prepares kernels for it; later runs with
 * dims seen before (the last 16 combinations are kept) allocate nothing, where no dim depends on data. A run that fails leaves no
 * outputs; the context can be run again. Errors: INVALID_ARGUMENT (an input that is not set; dims that do not fit each other or an output
 * that is bound; a value that an op refuses), OUT_OF_MEMORY, DEVICE, UNSUPPORTED. After an error nothing of this run is in flight: memory that was bound
 * may be given back. */
GRT_API GRT_MUST_USE grt_status grt_context_run(grt_context *context);
/* Enqueue a run on `stream` (a cudaStream_t; NULL: the context's own) and return at once. Inputs and outputs that are bound must be
 * device memory (grt_tensor.memory, .device), aligned to 16 bytes, which is used where it is, or page-locked memory, which is copied from
 * and to on the same stream. Outputs that are not bound lie in device memory of the context's, see grt_context_get_output. The
 * context, its inputs and outputs are in use until the stream has got there.
 * Order: everything that the run does is on `stream`. Runs of one context come one behind the other, on whatever streams they are, and so does
 * grt_context_run behind them.
 * Data that an op refuses, such as an index beyond its axis, is seen on the device only: the next call of grt_context_run_async or
 * grt_context_get_output that finds it there returns the error, once, instead of doing its work (grt_context_run returns its own at once).
 * Capturing: the stream may be one that the caller is capturing into a graph, once the same dims ran before. The graph works on the memory that was
 * bound, and on the context's, which stays where it is until the context's release, also when runs with other dims follow; each
 * combination of dims that was captured keeps its own. A launch of the graph is a run of the context, whose order among the others is the
 * caller's affair.
 * Errors: UNSUPPORTED on devices without streams, or if a step needs the host (named). After an error nothing of this run is in flight. */
GRT_API GRT_MUST_USE grt_status grt_context_run_async(grt_context *context, void *stream);
/* View of output `index` as the last run wrote it, in the memory that was bound then. If the memory is the context's own, it is valid
 * until the context's next run or release. Errors: INVALID_ARGUMENT if the last run failed, if there was none, or if the output
 * is no tensor (then: grt_context_get_output_value), or what an enqueued run refused. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output(grt_context *context, size_t index, grt_tensor *out_tensor);

/* Contexts of one or more sessions with a thread each, fed from one queue: while one request computes, the inputs of the next and the
 * results of the last are copied, and requests go to the device that has the fewest. For any number of threads at once. */
typedef struct grt_pool grt_pool;
/* What was submitted to a pool, until it is released. */
typedef struct grt_request grt_request;

/* Set struct_size = sizeof(grt_pool_options) and leave the rest zero for defaults. */
typedef struct grt_pool_options {
    size_t struct_size;
    int32_t contexts; /* of each session, at most 64; 0: 3 on devices with memory of their own, else 1 */
    int32_t queue;    /* requests that wait for a context at most; 0: as many as there are contexts */
} grt_pool_options;

/* Sessions are of one model, whose inputs and outputs are tensors; they may be released before the pool. Options may be NULL. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (sequences, optionals), OUT_OF_MEMORY, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_pool_create(grt_session *const *sessions, size_t n, const grt_pool_options *options,
                                                grt_pool **out_pool);
/* Finishes what was submitted. Requests stay valid. No other thread may be inside the pool's functions. */
GRT_API void grt_pool_release(grt_pool *pool);

/* Let the pool run the model on `inputs` (as grt_context_set_input, in the model's order; dtype NONE: the input's default) and, where
 * outputs[i].dtype is not NONE, write output i there (as grt_context_set_output). n_outputs may be 0. The arrays are copied; the data they
 * point to is in use until the request is done. Waits while the queue is full. What is wrong with a tensor is the request's
 * error, see grt_request_wait. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_pool_submit(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs, const grt_tensor *outputs,
                                                size_t n_outputs, grt_request **out_request);
/* Submit and wait. Outputs that are not named are lost. */
GRT_API GRT_MUST_USE grt_status grt_pool_run(grt_pool *pool, const grt_tensor *inputs, size_t n_inputs, const grt_tensor *outputs,
                                             size_t n_outputs);

/* Wait until the request is done; its run's status, with the message in the calling thread's grt_last_error(). */
GRT_API GRT_MUST_USE grt_status grt_request_wait(grt_request *request);
/* View of output `index` of a request that is done without error: the memory that was named, or memory of the request's own, valid
 * until its release. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_request_get_output(grt_request *request, size_t index, grt_tensor *out_tensor);
/* Set struct_size before the call. */
typedef struct grt_request_info {
    size_t struct_size;
    size_t session;   /* that ran it: its place in grt_pool_create's array */
    double queued_ms; /* from submitting to the begin of the run */
    double run_ms;    /* the run, copies included */
} grt_request_info;
/* Of a request that is done. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_request_get_info(grt_request *request, grt_request_info *out_info);
/* Waits until the request is done. NULL is accepted. */
GRT_API void grt_request_release(grt_request *request);

/* ---------------------------------------------------------------------------------------------------------------------
 * 2. What a model is
 * ------------------------------------------------------------------------------------------------------------------- */

typedef enum grt_kind { GRT_KIND_TENSOR = 0, GRT_KIND_SEQUENCE = 1, GRT_KIND_OPTIONAL = 2, GRT_KIND_MAP = 3 } grt_kind;

/* One graph input or output. */
typedef struct grt_io_info {
    const char *name;
    grt_kind kind;
    grt_kind element_kind; /* OPTIONAL: what it holds; SEQUENCE: MAP if its items are maps; otherwise equal to kind */
    grt_dtype dtype;       /* of the tensor, of the tensors in the sequence or optional, or of the values of maps */
    int32_t rank;          /* -1 if unknown */
    int64_t dims[GRT_MAX_RANK];            /* -1 where symbolic */
    const char *symbols[GRT_MAX_RANK];     /* name or expression of a symbolic dim ("batch", "2*seq"), else NULL */
    bool has_default;                      /* inputs: may be left unset */
} grt_io_info;

GRT_API size_t grt_model_input_count(const grt_model *model);
GRT_API size_t grt_model_output_count(const grt_model *model);
/* index out of range: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_model_input(const grt_model *model, size_t index, grt_io_info *out_info);
GRT_API GRT_MUST_USE grt_status grt_model_output(const grt_model *model, size_t index, grt_io_info *out_info);

/* Figures of a compiled model. */
typedef struct grt_model_info {
    size_t struct_size;       /* set by the caller to sizeof(grt_model_info) */
    int64_t nodes;            /* source ONNX nodes, all graphs and inlined functions */
    int64_t steps;            /* executable steps of the main graph */
    int64_t parameters;       /* elements of all weights */
    uint64_t weights_bytes;   /* as stored in the plan */
    uint64_t arena_bytes;     /* planned activations at the default shapes (unknown dims taken as 1) */
    double flops;             /* multiply and add counted separately, at the default shapes */
    const char *producer;     /* of the ONNX model */
    int64_t opset;            /* ai.onnx opset of the ONNX model */
    const char *target;       /* backend that the plan was made for: "cpu" */
    const char *options;      /* compile options as text; "" for defaults */
    const char *signer;       /* key that the plan's signature names; "" without one */
    bool verified;            /* the model was opened with that key as `trust`; else nobody has looked whether the signature is right */
} grt_model_info;
GRT_API GRT_MUST_USE grt_status grt_model_get_info(const grt_model *model, grt_model_info *out_info);

/* What the ONNX model says of itself, kept in plans; "" and 0 where it says nothing, as for plans of older versions of this library. Text
 * belongs to the model; it is as the model has it, line ends included: grt_printable before it is shown. */
typedef struct grt_metadata_entry {
    const char *key, *value;
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
GRT_API GRT_MUST_USE grt_status grt_model_metadata(const grt_model *model, grt_metadata *out_metadata);

/* One executable step, for tools that show plans. */
typedef struct grt_step_info {
    const char *op;           /* "Conv", "graphrt::Pointwise", ... */
    const char *name;         /* source node names, joined by '+' */
    const char *detail;       /* fused activation, expression, layout; "" if none */
    size_t n_inputs, n_outputs;
    const int32_t *inputs;    /* value ids, -1 where omitted */
    const int32_t *outputs;
    double flops;             /* at the default shapes */
} grt_step_info;
GRT_API GRT_MUST_USE grt_status grt_model_step(const grt_model *model, size_t index, grt_step_info *out_info);
/* Name of a value id that a step names, and its type ("float32[2xseqx8]") in the caller's `text` (may be NULL), cut to text_size. */
GRT_API GRT_MUST_USE grt_status grt_model_value(const grt_model *model, int32_t value, const char **out_name, char *text,
                                                size_t text_size);

/* Milliseconds of each load phase of a model or session, in order. Names and times belong to the object. */
typedef struct grt_phase {
    const char *name; /* "map", "check", "import", "optimize", "create kernels", ... */
    double begin_ms;  /* since the object's creation was asked for */
    double end_ms;
} grt_phase;
GRT_API size_t grt_model_phases(const grt_model *model, const grt_phase **out_phases);
GRT_API size_t grt_session_phases(const grt_session *session, const grt_phase **out_phases);

/* What becoming ready took, beside time. Counters of algorithms are those of the device so far, all its sessions together. */
typedef struct grt_load_info {
    size_t struct_size;       /* set by the caller */
    const char *device;       /* "cuda:0" */
    uint64_t passes;          /* of the optimiser that ran; 0 for plans */
    uint64_t cache_hits;      /* algorithms that were found in the cache */
    uint64_t cache_misses;
    uint64_t heuristics;      /* questions to a library's heuristic */
    uint64_t searches;        /* algorithms that were chosen by measuring: always 0 outside `graphc tune` */
    uint64_t host_bytes;      /* weights that came to the device from the host ... */
    uint64_t peer_bytes;      /* ... and from other devices; both 0 if another session had put them there */
    uint64_t read_bytes;      /* weights read on the host, for all devices of the call */
    uint64_t pinned_bytes;    /* host memory that was page-locked meanwhile */
    const char *warnings;     /* what is wrong with the cache's file, a line each; "" if nothing is. Belongs to the session */
    uint64_t plan_rows;       /* algorithms that came with the plan, for any device */
    uint64_t plan_hits;       /* of them, those that serve on this device */
    uint64_t rejected;        /* stored algorithms, of the plan or the cache, that the library refused: chosen anew */
    const char *plan_note;    /* why those of the plan were passed over; "" if they were not. Belongs to the runtime */
} grt_load_info;
GRT_API GRT_MUST_USE grt_status grt_session_get_load(const grt_session *session, grt_load_info *out_info);

/* Counters of a context, for reports. */
typedef struct grt_context_stats {
    size_t struct_size;      /* set by the caller */
    uint64_t arena_bytes;    /* of the current dims */
    uint64_t dynamic_bytes;  /* device memory of outputs whose sizes depend on data: kept for the next runs; 0 on the CPU */
    uint64_t runs;
    uint64_t reshapes;       /* how often a new combination of dims was prepared */
    double host_us;          /* host time of the last run outside kernels, microseconds; 0 unless timing was asked for */
    double device_ms;        /* device time of the last run without copies in and out; 0 unless it was asked for */
} grt_context_stats;
GRT_API GRT_MUST_USE grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats);

/* Whether runs with the dims of a context's last run are replayed on the device as one graph, which costs the host least. Text belongs
 * to the context and is valid until its next run. */
typedef struct grt_replay_info {
    size_t struct_size;  /* set by the caller */
    bool supported;      /* the device can replay graphs; false on the CPU */
    int32_t graphs;      /* that are kept, one for each set of bound pointers: the second run with a set makes one */
    const char *op;      /* the first step that stands in the way: "NonZero" ... */
    const char *node;    /* ... and its source nodes; both "" if it is no step */
    const char *reason;  /* why steps are enqueued one by one; "" if nothing stands in the way */
} grt_replay_info;
/* Errors: INVALID_ARGUMENT before the first run. */
GRT_API GRT_MUST_USE grt_status grt_context_get_replay(const grt_context *context, grt_replay_info *out_info);

/* Per-step times of the last run, once asked for: measuring costs about 50 ns a step. */
typedef struct grt_step_time {
    const char *op;
    const char *name;
    double ms;
} grt_step_time;
GRT_API void grt_context_set_timing(grt_context *context, bool on);
/* Returns their number, one for each step of the main graph; 0 while timing is off. They belong to the context. */
GRT_API size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times);
/* Fill device_ms of the following runs. False: this session's device has no clock of its own. */
GRT_API bool grt_context_time_device(grt_context *context, bool on);

/* ---------------------------------------------------------------------------------------------------------------------
 * 3. Values: tensors, sequences, optionals, maps that own their memory
 * ------------------------------------------------------------------------------------------------------------------- */

/* Copy a tensor in host memory (string bytes included) into a value. */
GRT_API GRT_MUST_USE grt_status grt_value_from_tensor(const grt_tensor *tensor, grt_value **out_value);
/* A sequence of copies of `n` values (n may be 0). All must be tensors of `dtype`, sequences of such, or maps to such. */
GRT_API GRT_MUST_USE grt_status grt_value_sequence(grt_dtype dtype, grt_value *const *items, size_t n, grt_value **out_value);
/* An optional that holds a copy of `item`, a tensor or a sequence of `dtype`, or nothing if item is NULL. */
GRT_API GRT_MUST_USE grt_status grt_value_optional(grt_dtype dtype, const grt_value *item, grt_value **out_value);
GRT_API void grt_value_release(grt_value *value);

GRT_API grt_kind grt_value_kind(const grt_value *value);
/* TENSOR: a view that lives as long as the value. */
GRT_API GRT_MUST_USE grt_status grt_value_tensor(const grt_value *value, grt_tensor *out_tensor);
/* SEQUENCE: number of items; OPTIONAL: 0 or 1; TENSOR: 0; MAP: 2. */
GRT_API size_t grt_value_count(const grt_value *value);
/* Item of a sequence or optional; of a map, its keys (0) and their values (1), tensors of one dim. Belongs to `value`. NULL if out of range. */
GRT_API const grt_value *grt_value_item(const grt_value *value, size_t index);

/* Maps, ai.onnx.ml's dictionaries: keys of INT64 or STRING, each once, and one value of one dtype for each.
 * A map that holds copies of both tensors, which have one dim of one size, in the order of the keys. Errors: INVALID_ARGUMENT (also for a key
 * that comes twice), OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_value_map(const grt_tensor *keys, const grt_tensor *values, grt_value **out_value);
/* dtype of the keys of an input or output that is a map or a sequence of maps; NONE for all else. */
GRT_API grt_dtype grt_model_input_keys(const grt_model *model, size_t index);
GRT_API grt_dtype grt_model_output_keys(const grt_model *model, size_t index);

/* Use `value` as input `index` of the following runs. It is not copied: it must stay alive while runs use it. NULL unbinds. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input_value(grt_context *context, size_t index, const grt_value *value);
/* A copy of output `index`, of any kind. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output_value(grt_context *context, size_t index, grt_value **out_value);

/* ONNX .pb files hold one TensorProto, SequenceProto, OptionalProto or MapProto; the kind says which. They are written whole or not at all. */
GRT_API GRT_MUST_USE grt_status grt_value_read_pb(const char *path, grt_kind kind, grt_kind element_kind, grt_value **out_value);
GRT_API GRT_MUST_USE grt_status grt_value_write_pb(const grt_value *value, const char *path);

/* ---------------------------------------------------------------------------------------------------------------------
 * 4. Compiling
 * ------------------------------------------------------------------------------------------------------------------- */

/* A device that need not be in this machine: enough of it to ask its libraries which algorithms suit it. */
typedef struct grt_device_description {
    const char *name;       /* as its driver says: "NVIDIA H200" */
    int32_t sm;             /* compute capability: 90 */
    const char *properties; /* the text that the libraries make of such a device, and read: only they know what it means */
} grt_device_description;
/* Describe a device of this machine, "cuda:0", for machines that lack it. `each` is called once; what it is given is valid during the
 * call. Errors: DEVICE, UNSUPPORTED for kinds of devices whose algorithms are not chosen by libraries. */
GRT_API GRT_MUST_USE grt_status grt_device_describe(const char *device,
                                                    void (*each)(void *user, const grt_device_description *description),
                                                    void *user);

/* Dims of an input for which something is to be prepared. */
typedef struct grt_input_shape {
    const char *input; /* name */
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
} grt_input_shape;

/* A file of external data that is in memory: models name it by `location`. */
typedef struct grt_external_data {
    const char *location;
    const void *data;
    size_t size;
} grt_external_data;

struct grt_finding; /* below */
typedef struct grt_compile_options {
    size_t struct_size;          /* sizeof(grt_compile_options) */
    int32_t level;               /* -1: the default, 2. 0, which is what a zeroed struct has: only what execution needs; 1: clean and fold;
                                    2: everything */
    const char *disable_passes;  /* comma-separated pass names that are left out; NULL: none */
    bool allow_symlinks;         /* follow symlinks to external data inside a Hugging Face style cache */
    bool external_weights;       /* leave weights in FILE.CHECKSUM.weights beside the plan, in place before it; those of a plan that
                                    it replaced are removed once no plan in the directory mentions them */
    void (*progress)(void *user, const char *phase, double fraction); /* called on the compiling thread; may be NULL */
    void *user;
    const char *target;          /* kind of device that the plan is made for: which ops are fused, which layouts constants have; NULL:
                                    "cpu". A plan runs on every kind of device, but starts faster on its own. Needs no such device. */
    const char *precision;       /* of float32 models: "fp32" (default, also for NULL): as the model says; "tf32": products may round
                                    their inputs to TF32; "fp16", "bf16": weights and activations are narrowed where that gains,
                                    sums stay float32, inputs and outputs keep their types */
    const grt_device_description *devices; /* for these devices of kind `target` algorithms are chosen now, wherever dims are known and the
                                              library can tell without the device, and kept in the plan: sessions with the same versions
                                              of the libraries do not ask for them again. Needs the libraries on this machine, and no device */
    size_t n_devices;
    const grt_input_shape *shapes;         /* dims of inputs for those choices; unknown dims of others are taken as 1 */
    size_t n_shapes;
    const char *choices;                   /* a cache's file (section 5) from a machine with such devices: its choices go before what a
                                              library says here; NULL: none */
    const char *trust;                     /* opening only: whose plans may bring code and choices of algorithms, which a GPU's libraries
                                              read and run. "all": any. "none": those are left out, the rest of the plan is used.
                                              "ed25519:..." (grt_key_create; several with commas between): only plans that one of these keys
                                              has signed are opened at all, everything else is UNTRUSTED. NULL: what the environment's
                                              GRAPHRT_TRUST says, else "all" ("none" in setuid programs): see SECURITY.md */
    bool (*cancel)(void *user); /* asked now and then on the compiling thread, at least between two nodes that are folded; true ends the
                                   call with CANCELLED and leaves no file behind; may be NULL. It may be asked again after that */
    /* What a model breaks the standard's rules with, but what has one meaning all the same (nodes out of order, a domain that is not
     * listed, ...), is imported and told to `warning`, a finding of status OK each, with `user`; may be NULL. With `strict`, it is an error. */
    void (*warning)(void *user, const struct grt_finding *finding);
    bool strict;
    const char *free_dims; /* comma-separated names of dims of which every use may have a size of its own; "*": all; NULL: a name has
                              one size in a run */
    /* Looked through before the model's directory, which a model from memory does not have. The data is not copied: it must stay as it is as
     * long as the model that is opened, or until grt_compile returns. */
    const grt_external_data *external_data;
    size_t n_external_data;
} grt_compile_options;

/* Compile an ONNX file to a plan file; written whole (temporary file, fsync, rename) or not at all. A file of that name is replaced,
 * unless it is the model or no regular file. The same model and options give the same bytes. options may be NULL.
 * What it takes is bounded by the model's size, whatever the model says. With S bytes of model, external data included, and n nodes, operands
 * and attributes, those of inlined functions included: at most 64 MiB + 8 S + 2 KiB n of memory, and of one core 5 s and 1 s for each MB of S.
 * Constants that cannot be computed within that are computed when the model runs.
 * Errors: IO, INVALID_MODEL, UNSUPPORTED (lists every such node), INVALID_ARGUMENT (options, or the plan over the model), CANCELLED (by
 * options->cancel). */
GRT_API GRT_MUST_USE grt_status grt_compile(const char *onnx_path, const grt_compile_options *options, const char *plan_path);

/* Room for a key as text, with its 0. */
#define GRT_KEY_SIZE 96
/* A new pair of keys, as text: who has the secret one ("ed25519-secret:...") signs plans, who has the public one ("ed25519:...") trusts
 * them. Keep the secret one secret: it is not encrypted. */
GRT_API GRT_MUST_USE grt_status grt_key_create(char out_public[GRT_KEY_SIZE], char out_secret[GRT_KEY_SIZE]);
/* A plan file like the one at plan_path, signed: Ed25519 over everything in it, and over its external weights. A signature that was there is
 * replaced. out_path may be plan_path; plans with external weights have to stay in their directory. Whatever changes the plan afterwards
 * (grt_plan_add_tuning too, which drops the signature) has to sign it again. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT for what is no key. */
GRT_API GRT_MUST_USE grt_status grt_plan_sign(const char *plan_path, const char *out_path, const char *secret_key);

/* One thing that `grt_check_model` found. */
typedef struct grt_finding {
    grt_status status;   /* INVALID_MODEL or UNSUPPORTED; OK for a warning: the message says what was assumed */
    const char *node;    /* node name, or "" */
    const char *op;      /* "domain::Op", or "" */
    int64_t opset;
    const char *message; /* with dtypes, shapes, and the nearest supported form; printable, see grt_printable */
} grt_finding;
/* All that would keep the model from running on `device` (NULL: "cpu"), not only the first, and warnings: it is compiled within the
 * bounds of grt_compile, and the result dropped, so that no findings means that grt_compile succeeds. What is wrong with the model itself is
 * told up to the first step of the compiler that cannot go on. `each` is called once a finding on the calling thread; strings are valid during
 * the call. OK even if there are findings; their number, without warnings, goes to out_count. */
GRT_API GRT_MUST_USE grt_status grt_check_model(const char *onnx_path, const char *device,
                                                void (*each)(void *user, const grt_finding *finding), void *user,
                                                size_t *out_count);
/* The same for a model that is compiled with these options, whose `target` is the device, and whose `warning` and `user` are not used.
 * options may be NULL. */
GRT_API GRT_MUST_USE grt_status grt_check_model_with(const char *onnx_path, const grt_compile_options *options,
                                                     void (*each)(void *user, const grt_finding *finding), void *user,
                                                     size_t *out_count);

/* Names of the optimiser's passes in the order in which they run; *out_names belongs to the library. Returns their number. */
GRT_API size_t grt_pass_names(const char *const **out_names);

/* ---------------------------------------------------------------------------------------------------------------------
 * 5. The cache of algorithms
 *
 * Libraries of GPU kernels have many algorithms for one operation; asking which one suits takes milliseconds each, measuring takes
 * far longer. What was chosen is kept in a file, for all processes of a user: a SQLite database that any number of them may use at
 * once. A row's key is text of parts `name=value;` that holds all that decides the choice: op, dtypes, shapes, attributes, GPU,
 * driver, the library's version. These functions are for tools; sessions use the cache by themselves. `path` NULL is the default
 * place everywhere; where the cache is switched off, they fail with INVALID_ARGUMENT.
 * ------------------------------------------------------------------------------------------------------------------- */

typedef struct grt_cache_row {
    const char *key;
    const void *data; /* known to the kernel that stored it only */
    size_t size;
    bool tuned;     /* found by measuring; otherwise a library's heuristic said so */
    double cost_ms; /* measured; 0 if it was not */
    int64_t made;   /* seconds since 1970 */
} grt_cache_row;

/* The file's name into the caller's buffer, truncated to size; "" where the cache is switched off. */
GRT_API GRT_MUST_USE grt_status grt_cache_path(char *out_path, size_t size);
/* All rows in order of their keys, on the calling thread; what `each` is given is valid during the call. A file that does not exist has
 * none. out_damaged (may be NULL): rows that were skipped as their checksums are wrong. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_each(const char *path, void (*each)(void *user, const grt_cache_row *row), void *user,
                                               size_t *out_damaged);
/* Remove rows that are older than `days` (0: of any age) and whose keys contain `part` (NULL: all). */
GRT_API GRT_MUST_USE grt_status grt_cache_prune(const char *path, double days, const char *part, size_t *out_removed);
/* Copy all rows of file `from` into file `to`, which is made if it is missing; one of the two may be NULL for the default place. A
 * tuned row is never replaced by one that is not. The files have the same format, whatever the machine. */
GRT_API GRT_MUST_USE grt_status grt_cache_copy(const char *from, const char *to, size_t *out_rows);

/* A plan file like the one at plan_path with these choices too. A row replaces that of an equal key, the others stay; `made` is not
 * kept. All else in the file stays byte for byte, but a signature goes. out_path may be plan_path: the file there is whole at any time. Plans with external
 * weights have to stay in their directory. Sessions of a plan prefer its choices to the cache's, on every GPU with the same compute
 * capability and the same version of the library that made the choice.
 * Errors: IO, INVALID_PLAN, INVALID_ARGUMENT for rows that no plan can hold. */
GRT_API GRT_MUST_USE grt_status grt_plan_add_tuning(const char *plan_path, const char *out_path, const grt_cache_row *rows, size_t n);
/* The choices that come with a plan, in order of their keys, on the calling thread; what `each` is given is valid during the call. */
GRT_API GRT_MUST_USE grt_status grt_model_choices(const grt_model *model, void (*each)(void *user, const grt_cache_row *row), void *user);

/* What the kernels of this runtime's sessions have asked the cache for so far, in no order. */
typedef struct grt_cache_lookup {
    const char *key;
    bool hit;
    const char *nearest; /* of a miss: the key in the file that has the most parts in common, NULL if none is of the same op */
    bool from_plan;      /* of a hit: it came with the plan */
    const grt_cache_row *row; /* what is known for the key by now; NULL: nothing */
} grt_cache_lookup;
GRT_API GRT_MUST_USE grt_status grt_cache_lookups(grt_runtime *runtime, void (*each)(void *user, const grt_cache_lookup *lookup),
                                                  void *user);

/* What `grt_context_tune` found for one choice of algorithm. */
typedef struct grt_tune_result {
    const char *key;    /* as in the cache */
    const char *op;     /* of the first step that has this choice, and its name */
    const char *name;
    size_t steps;       /* that have it */
    bool known;         /* it had been tuned before and was left as it is; the fields below are 0 */
    size_t candidates;  /* that were measured */
    size_t refused;     /* left out: they failed, took too long to load, or computed something else */
    size_t winner;      /* 0: the heuristic's choice stays */
    double before_ms;   /* one run of the heuristic's choice, and of the winner */
    double after_ms;
} grt_tune_result;

/* Options for tuning. Set struct_size and leave the rest zero for defaults. */
typedef struct grt_tune_options {
    size_t struct_size;
    double seconds; /* to be spent at most; 0: 60. Steps that take longest come first */
    bool again;     /* measure what was tuned before, too */
    /* Called between measurements; false asks to stop. May be NULL. */
    bool (*progress)(void *user, const char *what, double fraction);
    void (*result)(void *user, const grt_tune_result *result); /* one choice is decided; may be NULL */
    void *user;
} grt_tune_options;

typedef struct grt_tune_report {
    size_t struct_size; /* set by the caller */
    size_t steps;       /* of the model that have a choice at these dims; 0: there is nothing to tune on this device */
    size_t choices;     /* different ones among them */
    size_t tuned;       /* measured now; `known` are from before, the rest was left for want of time */
    size_t known;
    size_t improved;    /* of those measured now: something else is faster than what the heuristic said */
    double before_ms;   /* sums over the steps whose choice was measured now */
    double after_ms;
    bool stopped;       /* by the progress function */
    bool out_of_time;
} grt_tune_report;

/* Measure what the library has to offer for the steps of the context's model at the dims that are bound, and keep what is fastest
 * in the cache of algorithms, where sessions, contexts and new dims find it from now on; this context stays as it is. The inputs must be
 * bound: the model is run once. What is found is kept at once, also if the time is over, progress asks to stop (both are GRT_OK) or
 * something fails later. The device should have nothing else to do meanwhile. What is measured, how, and when the heuristic's
 * choice is replaced: docs/decisions/tuning.md. Nothing else in the library ever measures algorithms. options may be NULL. */
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
} grt_custom_attribute;

/* A dim in a shape rule: a size, or an expression of sizes that only a run knows. Below 0: nothing is known of it. */
typedef int32_t grt_custom_dim;

typedef struct grt_custom_type {
    grt_dtype dtype;                   /* NONE: not known; of inputs also: left out */
    int32_t rank;                      /* -1: not known */
    grt_custom_dim dims[GRT_MAX_RANK];
    const grt_tensor *value;           /* inputs: the content in host memory, where it is known; else NULL */
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
    grt_status (*fail)(const grt_custom_node *node, grt_status status, const char *message);
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

/* Register n operators for the life of the process, all or none; ops[i] have one struct_size. For models that are opened, and compiled,
 * afterwards. Errors: INVALID_ARGUMENT (names the operator), UNSUPPORTED (a field that only a newer library knows), OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_register(const grt_custom_op *ops, size_t n);
/* Open a shared object, which runs code of it, and register what its function graphrt_custom_ops returns. It is never closed. A path without '/'
 * is a file of the current directory. The same object again is GRT_OK. Errors: also IO (it cannot be loaded). */
GRT_API GRT_MUST_USE grt_status grt_custom_ops_load(const char *path);
/* What such an object exports by that name: its operators, which must stay where they are, and their number. */
typedef const grt_custom_op *grt_custom_ops_fn(size_t *out_n);
#define GRT_CUSTOM_OPS_SYMBOL "graphrt_custom_ops"

#ifdef __cplusplus
}
#endif
#endif
