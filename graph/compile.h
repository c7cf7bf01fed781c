/* The compiler's door: ONNX bytes in, plan out. */
#ifndef GRT_GRAPH_COMPILE_H
#define GRT_GRAPH_COMPILE_H

#include "graph/passes/pass.h"
#include "src/plan/plan.h"

typedef struct compile_source {
    const char *path;  /* of the model file; NULL if from memory (then external data is refused) */
    const void *bytes; /* NULL: read from path */
    size_t size;
    bool allow_symlinks;
    bool strict; /* what import would warn of is an error */
    /* Called for all that the model breaks rules with and that was understood all the same; may be NULL. */
    void (*warn)(void *user, const grt_finding *finding);
    void *warn_user;
    const char *free_dims; /* comma-separated dim names whose uses need not agree; "*": all; NULL: none */
} compile_source;

/* What the caller's options say of import. */
void compile_source_take(compile_source *source, const grt_compile_options *options);
/* How a caller's options cancel. */
grt_cancel compile_cancel(const grt_compile_options *options);

/* Name the model's file before the current message, unless that does so. */
grt_status compile_fail_file(grt_status status, const char *path);

/* graph/import/: parse, validate, upgrade to the newest opset, inline functions. Weights stay mapped from
 * their files as long as the module lives. */
grt_status ir_import(const compile_source *source, ir_module **out_module);
/* The same, but calls `each` for every problem instead of stopping at the first. *out_module may still be
 * NULL. */
grt_status ir_import_check(const compile_source *source, void (*each)(void *user, const grt_finding *finding),
                           void *user, ir_module **out_module);

/* graph/ir/infer.c: types of all values. */
grt_status ir_infer(ir_module *module);

/* graph/lower.c: the plan of an optimised module; takes over the module (weights stay where they are). */
grt_status ir_lower(ir_module *module, const grt_target *target, grt_plan **out_plan);

/* All of it: import, infer, passes, lower. options may be NULL. */
grt_status grt_compile_plan(const compile_source *source, const grt_compile_options *options,
                            const grt_target *target, grt_plan **out_plan);

/* Import and compile the model with default options and drop the result; `each` gets every problem,
 * INVALID_MODEL or UNSUPPORTED. The first that a pass finds ends its search. Fails for other reasons only, as
 * compiling would. */
grt_status grt_compile_check(const compile_source *source, const grt_target *target,
                             void (*each)(void *user, const grt_finding *finding), void *user);

#endif
