/* SPDX-License-Identifier: Apache-2.0 */
/* Compile ONNX files to plans, check models, sign plans. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_COMPILE_H
#define GRAPHRT_COMPILE_H

#include <graphrt/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A device that need not be in this machine: enough of it to ask its libraries which algorithms to use. */
typedef struct grt_device_description {
    const char *name;       /* as its driver says: "NVIDIA H200" */
    int32_t sm;             /* compute capability: 90 */
    const char *properties; /* text that the device's libraries write and read; opaque to everyone else */
    uint64_t reserved[5];   /* 0 */
} grt_device_description;
/* Describe a device of this machine ("cuda:0") for machines that lack it. `each` is called once; its argument is valid
 * during the call.
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
    bool external_weights;       /* write weights to FILE.CHECKSUM.weights beside the plan, before the plan itself.
                                    Weights of a plan that is replaced are removed once no plan in the directory
                                    mentions them */
    void (*progress)(void *user, const char *phase, double fraction); /* called on the compiling thread; may be NULL */
    void *user;                  /* for all callbacks of these options */
    const char *target;          /* kind of device that the plan is compiled for: which ops are fused, which layouts
                                    constants have. NULL: "cpu". A plan runs on every kind of device but loads faster on
                                    its own. Needs no such device */
    const char *precision;       /* of float32 models. "fp32": as the model says; NULL: the same, save models in half
                                    precision whose exporter made float32 of them (docs/passes.md); "tf32": products may
                                    round their inputs to TF32; "fp16", "bf16": weights and activations are narrowed
                                    where that is faster, while sums stay float32 and inputs and outputs keep their
                                    types. "P,NODE=P,...": nodes by name, also with *, ? and []. "exact": models with
                                    16-bit floats are computed node by node, and every node's result is rounded to its
                                    type, as ONNX's reference does; slower (docs/passes.md). Other models are as by
                                    "fp32" */
    const grt_device_description *devices; /* choose algorithms for these devices of kind `target` now, wherever dims
                                              are known and the library can decide without the device, and store them in
                                              the plan. Needs the libraries on this machine, and no device */
    size_t n_devices;
    const grt_input_shape *shapes;         /* dims of inputs for these choices; other unknown dims are taken as 1 */
    size_t n_shapes;
    const char *choices;                   /* a cache file (tune.h) from a machine with such devices: its choices take
                                              precedence over those a library makes here; NULL: none */
    const char *trust;                     /* opening only: whose plans may bring code and choices of algorithms, which
                                              a GPU's libraries read and execute. "all": anyone's. "none": these are
                                              ignored and the rest of the plan is used. "ed25519:..." (grt_key_create;
                                              several separated by commas): only plans signed by one of these keys are
                                              opened, everything else is UNTRUSTED. NULL: the environment's
                                              GRAPHRT_TRUST, else "all" ("none" in setuid programs): see SECURITY.md */
    bool (*cancel)(void *user);  /* polled on the compiling thread, at least between two nodes whose constants are
                                    computed; true ends the call with CANCELLED and leaves no file. May be NULL. It may
                                    be called again after that */
    /* A model that breaks a rule of the standard but has one meaning all the same (nodes out of order, a domain that is
     * not listed, ...) is imported, and `warning` gets a finding of status OK for each such place; may be NULL. With
     * `strict`, it is an error. */
    void (*warning)(void *user, const struct grt_finding *finding);
    bool strict;
    const char *free_dims;       /* comma-separated names of dims whose every use may have a size of its own; "*": all;
                                    NULL: a name has one size in a run */
    /* Files of external data, which take precedence over those in the model's directory; a model from memory has none.
     * They are not copied: they must stay valid and unchanged until grt_compile returns, or the model that is opened
     * and everything created from it is released. */
    const grt_external_data *external_data;
    size_t n_external_data;
    /* Gets a finding of status OK for each place that looks like a form which is computed as one op, and is not quite:
     * its message says what is in the way. For whoever wonders why a model is slow; may be NULL. */
    void (*near_miss)(void *user, const struct grt_finding *finding);
    const char *state;           /* pairs OUTPUT=INPUT, a line each, that the plan declares as state: the metadata entry
                                    "graphrt.state", which grt_state_create reads (state.h). NULL: what the model
                                    says */
    const char *keep_weights;    /* comma-separated names of initializers that become inputs with defaults, the last of
                                    the model's, in the model's order, so that grt_session_set_weights can replace them:
                                    nothing is folded or packed that depends on them. NULL: none */
    const char *enable_passes;   /* comma-separated names of passes to run although the target does not ask for them:
                                    those that are not known to gain there (docs/passes.md says which). NULL: none */
} grt_compile_options;

/* Compile an ONNX file to a plan file, which is written whole (temporary file, fsync, rename) or not at all. It
 * replaces a file of that name, unless that is the model or no regular file. A path where no file can be made is found
 * before anything is compiled. The same model and options give the same bytes. options may be NULL. Memory and time are
 * bounded by the model's size, whatever the model contains. With S bytes of model, external data included, and n nodes,
 * operands and attributes, those of inlined functions included: at most 64 MiB + 8 S + 2 KiB n of memory, and of one
 * core 5 s and 1 s for each MB of S. Constants that cannot be computed within these bounds are computed when the model
 * runs.
 * Threads: any. Errors: IO, INVALID_MODEL, UNSUPPORTED (lists every such node), INVALID_ARGUMENT (an option; a plan in
 * place of its model), DEVICE, CANCELLED. */
GRT_API GRT_MUST_USE grt_status grt_compile(const char *onnx_path, const grt_compile_options *options,
                                            const char *plan_path);

/* Size of a key as text, with its 0. */
#define GRT_KEY_SIZE 96
/* Create a pair of keys as text: the holder of the secret one ("ed25519-secret:...") signs plans, holders of the public
 * one ("ed25519:...") trust them. The secret key is not encrypted: protect it.
 * Threads: any.
 * Errors: INVALID_ARGUMENT; INTERNAL where libsodium cannot be initialised. */
GRT_API GRT_MUST_USE grt_status grt_key_create(char out_public[GRT_KEY_SIZE], char out_secret[GRT_KEY_SIZE]);
/* Write a signed copy of a plan file: Ed25519 over everything in it and over its external weights. It replaces an
 * earlier signature. out_path may be plan_path; plans with external weights must stay in their directory. A plan that
 * is changed afterwards has to be signed again (grt_plan_add_tuning drops the signature).
 * Threads: any. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT if the key is none. */
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
/* Find everything that keeps the model from running on `device` (NULL: "cpu"), not only the first problem, and
 * warnings. The model is compiled within the bounds of grt_compile and the result is dropped: no findings means that
 * grt_compile succeeds. Invalid models are examined up to the first step of the compiler that cannot go on. `each` (may
 * be NULL) is called once per finding. The call succeeds even if there are findings; out_count gets their number
 * without warnings.
 * Threads: any. Errors: IO, DEVICE. */
GRT_API GRT_MUST_USE grt_status grt_check_model(const char *onnx_path, const char *device,
                                                void (*each)(void *user, const grt_finding *finding), void *user,
                                                size_t *out_count);
/* The same with compile options, whose `target` is the device and whose `warning` and `user` are not used. options may
 * be NULL.
 * Threads: any. Errors: as grt_check_model. */
GRT_API GRT_MUST_USE grt_status grt_check_model_with(const char *onnx_path, const grt_compile_options *options,
                                                     void (*each)(void *user, const grt_finding *finding), void *user,
                                                     size_t *out_count);

/* Names of the optimiser's passes in the order in which they run; returns their number. The array is static. out_names
 * may be NULL.
 * Threads: any. */
GRT_API size_t grt_pass_names(const char *const **out_names);

#ifdef __cplusplus
}
#endif
#endif
