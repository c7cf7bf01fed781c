/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms, for tools. Sessions use the cache by themselves. Part of <graphrt/graphrt.h>, whose rules
 * hold.
 *
 * Libraries of GPU kernels have many algorithms for one operation. Asking for a suitable one takes milliseconds,
 * measuring takes far longer, so choices are stored in a SQLite database for all processes of a user, which any number
 * of them may use at once. A row's key is text of parts `name=value;` with everything that determines the choice: op,
 * dtypes, shapes, attributes, GPU, driver, the library's version. `path` NULL is the default file everywhere; where the
 * cache is switched off, these functions fail with INVALID_ARGUMENT. */
#ifndef GRAPHRT_TUNE_H
#define GRAPHRT_TUNE_H

#include <graphrt/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_cache_row {
    const char *key;
    const void *data; /* meaningful only to the kernel that stored it */
    size_t size;
    bool tuned;       /* found by measuring; otherwise by a library's heuristic */
    double cost_ms;   /* measured; 0 if it was not. Of code what making it took */
    int64_t made;     /* seconds since 1970 */
    uint64_t reserved[2]; /* 0 */
} grt_cache_row;

/* The file's name in the caller's buffer, truncated to size; "" where the cache is switched off. Threads: any.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
GRT_API GRT_MUST_USE grt_status grt_cache_path(char *out_path, size_t size);
/* Call `each` for all rows, those of choices in order of their keys, then those of generated kernels, whose keys begin
 * with "code="; its argument is valid during the call. A file that does not exist has no rows. out_damaged (may be
 * NULL): rows that were skipped because of a wrong checksum.
 * Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_each(const char *path, void (*each)(void *user, const grt_cache_row *row),
                                               void *user, size_t *out_damaged);
/* Remove rows that are older than `days` (0: of any age) and whose keys contain `part` (NULL: all).
 * Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_prune(const char *path, double days, const char *part, size_t *out_removed);
/* Copy all rows of file `from` to file `to`, which is created if it is missing; either may be NULL for the default
 * file. A tuned row is never replaced by one that is not. The format does not depend on the machine.
 * Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_cache_copy(const char *from, const char *to, size_t *out_rows);

/* Write a copy of a plan file with these choices added. A row replaces the plan's row of the same key; the others stay;
 * `made` is not stored. Everything else stays the same byte for byte, except a signature, which is dropped. out_path
 * may be plan_path: the file is replaced at once. Plans with external weights must stay in their directory. Sessions
 * prefer a plan's choices to the cache's, on every GPU with the same compute capability and the same version of the
 * library that made the choice.
 * Threads: any. Errors: IO, INVALID_PLAN, INVALID_ARGUMENT for rows that no plan can hold. */
GRT_API GRT_MUST_USE grt_status grt_plan_add_tuning(const char *plan_path, const char *out_path,
                                                    const grt_cache_row *rows, size_t n);
/* Call `each` for the choices that came with a plan, in order of their keys; its argument is valid during the call.
 * Threads: any.
 * Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_model_choices(const grt_model *model,
                                                  void (*each)(void *user, const grt_cache_row *row), void *user);

/* One question of a kernel to the cache. */
typedef struct grt_cache_lookup {
    size_t struct_size;       /* set by the library */
    const char *key;
    bool hit;
    const char *nearest;      /* of a miss: the key in the file that has the most parts in common; NULL if none is of
                                 the same op */
    bool from_plan;           /* of a hit: it came with the plan */
    const grt_cache_row *row; /* what is known for the key by now; NULL: nothing */
    const char *code;         /* NULL: the key is that of a choice. Of a generated kernel where it is from: "plan";
                                 "store": the cache's file; "compiled" now; "waiting" to be compiled, and interpreted
                                 until then; "interpreted". A hit is of the first two */
} grt_cache_lookup;
/* Call `each` for what the kernels of the runtime's sessions have asked so far, in no particular order; its argument is
 * valid during the call.
 * Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_cache_lookups(grt_runtime *runtime,
                                                  void (*each)(void *user, const grt_cache_lookup *lookup), void *user);

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

/* Measure the library's algorithms for the steps of the model at the dims that are bound, and store the fastest in the
 * cache of algorithms, which sessions, contexts and new dims use from now on; this context does not change. The inputs
 * must be bound: the model runs once. Results are stored one by one, so they stay when time runs out, progress stops
 * the call (both are GRT_OK) or something fails later. The device should be idle otherwise. docs/decisions/tuning.md
 * says what is measured, how, and when the heuristic's choice is replaced. No other function of the library measures
 * algorithms. options may be NULL.
 * Threads: one a context. Errors: as grt_context_run; IO. */
GRT_API GRT_MUST_USE grt_status grt_context_tune(grt_context *context, const grt_tune_options *options,
                                                 grt_tune_report *out_report);

#ifdef __cplusplus
}
#endif
#endif
