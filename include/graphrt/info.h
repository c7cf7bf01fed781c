/* SPDX-License-Identifier: Apache-2.0 */
/* What models, sessions and contexts tell about themselves. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_INFO_H
#define GRAPHRT_INFO_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_kind { GRT_KIND_TENSOR = 0, GRT_KIND_SEQUENCE = 1, GRT_KIND_OPTIONAL = 2, GRT_KIND_MAP = 3 } grt_kind;

/* One input or output of the graph. */
typedef struct grt_io_info {
    size_t struct_size;                /* set by the caller */
    const char *name;
    grt_kind kind;
    grt_kind element_kind;             /* OPTIONAL: what it holds; SEQUENCE: MAP if its items are maps; otherwise equal
                                          to kind */
    grt_dtype dtype;                   /* of the tensor, of the tensors in the sequence or optional, or of the values of
                                          maps */
    int32_t rank;                      /* -1 if unknown */
    int64_t dims[GRT_MAX_RANK];        /* -1 where symbolic */
    const char *symbols[GRT_MAX_RANK]; /* name or expression of a symbolic dim ("batch", "2*seq"), else NULL */
    bool has_default;                  /* inputs: may be left unset */
} grt_io_info;

/* Number of inputs and outputs. Threads: any. */
GRT_API size_t grt_model_input_count(const grt_model *model);
GRT_API size_t grt_model_output_count(const grt_model *model);
/* Describe input or output `index`. Strings belong to the model.
 * Threads: any. Errors: INVALID_ARGUMENT if the index is out of range. */
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
    bool verified;            /* the model was opened with that key as `trust`; false: nobody has checked the
                                 signature */
} grt_model_info;
/* Strings belong to the model. Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_model_get_info(const grt_model *model, grt_model_info *out_info);

/* What the ONNX model says of itself, which plans keep; "" and 0 where it says nothing. Text is as the model has it,
 * line ends included: pass it through grt_printable before it is shown. */
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
/* Strings and entries belong to the model. Threads: any. Errors: INVALID_ARGUMENT. */
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
/* Step `index` of the main graph, in order of execution. Strings and arrays belong to the model.
 * Threads: any. Errors: INVALID_ARGUMENT if the index is out of range. */
GRT_API GRT_MUST_USE grt_status grt_model_step(const grt_model *model, size_t index, grt_step_info *out_info);
/* Name of a value id of a step, which belongs to the model, and its type ("float32[2xseqx8]") in the caller's `text`
 * (may be NULL), truncated to text_size.
 * Threads: any. Errors: INVALID_ARGUMENT if there is no such value. */
GRT_API GRT_MUST_USE grt_status grt_model_value(const grt_model *model, int32_t value, const char **out_name,
                                                char *text, size_t text_size);

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

/* What loading a session took, besides time. Counters of algorithms are those of the device so far, for all its
 * sessions. */
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
    uint64_t code_plan;       /* generated kernels of this device: that came with plans, ... */
    uint64_t code_store;      /* ... that an earlier start on this machine left in the cache's file, ... */
    uint64_t code_compiled;   /* ... that were compiled now, ... */
    uint64_t code_waiting;    /* ... that are interpreted until they are compiled, ... */
    uint64_t code_interpreted; /* ... and that nobody compiles: there is no compiler, or "never" was asked for */
} grt_load_info;
/* Strings belong to the session, except plan_note. Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_session_get_load(const grt_session *session, grt_load_info *out_info);

/* Counters of a context, for reports. */
typedef struct grt_context_stats {
    size_t struct_size;      /* set by the caller */
    uint64_t arena_bytes;    /* of the current dims */
    uint64_t dynamic_bytes;  /* device memory of outputs whose sizes depend on data: kept for the next runs; 0 on the
                                CPU */
    uint64_t runs;
    uint64_t reshapes;       /* how often a new combination of dims was prepared */
    double host_us;          /* host time of the last run outside kernels, microseconds; 0 unless timing is on */
    double device_ms;        /* device time of the last run without copies in and out; 0 unless it was asked for */
} grt_context_stats;
/* What the context has done and has. Threads: one a context. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_context_get_stats(const grt_context *context, grt_context_stats *out_stats);

/* Whether runs with the dims of a context's last run are replayed on the device as graphs, which costs the host least:
 * as one, or as one for each range of steps between those that stand in the way. Text belongs to the context and is
 * valid until its next run. */
typedef struct grt_replay_info {
    size_t struct_size;  /* set by the caller */
    bool supported;      /* the device can replay graphs; false on the CPU */
    int32_t graphs;      /* sets of bound pointers for which graphs are kept, the last 32: the second run with a set
                            makes them */
    const char *op;      /* the first step that stands in the way: "NonZero" ... */
    const char *node;    /* ... and its source nodes; both "" if it is no step */
    const char *reason;  /* why that step, or all of them, are enqueued one by one; "" if nothing stands in the way */
    int32_t steps;       /* of a run, those aside that have nothing to do; 0 if the device has no graphs ... */
    int32_t replayed;    /* ... and those of them that graphs replay */
} grt_replay_info;
/* Strings belong to the context and are valid until its next run.
 * Threads: one a context. Errors: INVALID_ARGUMENT before the first run. */
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
/* Times of the last run, one for each step of the main graph; returns their number, 0 while timing is off. They belong
 * to the context and are valid until its next run. out_times may be NULL.
 * Threads: one a context. */
GRT_API size_t grt_context_step_times(const grt_context *context, const grt_step_time **out_times);
/* Measure device_ms of the following runs. False: the session's device has no clock of its own.
 * Threads: one a context. */
GRT_API bool grt_context_time_device(grt_context *context, bool on);

#ifdef __cplusplus
}
#endif
#endif
