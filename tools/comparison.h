/* SPDX-License-Identifier: Apache-2.0 */
/* Two models that ran with the same inputs, tensor by tensor: what the first made, and how far what the
 * second made is from that. A tensor's name is that of the model's tensor that it is, also behind fused
 * steps; tensors that are none of the model's are compared if steps alike make them of the same nodes. */
#ifndef TOOLS_COMPARISON_H
#define TOOLS_COMPARISON_H

#include "tools/difference.h"
#include "tools/inputs.h"
#include "tools/loaded.h"

/* A tensor that the first model made. */
typedef struct made_tensor {
    char *name, *op, *nodes, *form;
    bool is_of_file; /* the name is a tensor's of the file, else that of the nodes */
    grt_tensor t;    /* data is a copy */
    bool met;        /* by the second */
} made_tensor;

/* A tensor that both made. */
typedef struct compared_tensor {
    const made_tensor *first;
    char *op;        /* of the second */
    grt_dtype dtype; /* of the second */
    difference by;
    bool is_output, after_half;
} compared_tensor;

/* Zeroed before it is used. */
typedef struct comparison {
    const grt_model *model; /* that runs */
    made_tensor *made;
    size_t n_made, most_made;
    compared_tensor *compared; /* in the order of the second's steps */
    size_t n, most;
    size_t only_second, reshaped; /* tensors of the second: of no name of the first's; of other dims */
    bool any_half;                /* so far */
    bool failed;                  /* out of memory */
} comparison;

/* Both models run once; the second gets what the first got, by name. False after a message. Release what was
 * compared in any case. */
bool comparison_run(comparison *c, const loaded l[2], const input_specs *inputs, uint64_t seed);
void comparison_release(comparison *c);
size_t comparison_only_first(const comparison *c); /* tensors that the second did not make */
bool comparison_is_half(grt_dtype dtype);          /* floats of 16 bits */

#endif
