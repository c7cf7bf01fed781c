/* SPDX-License-Identifier: Apache-2.0 */
/* Types: what is known of a value before the model runs. All that an op's rule sees. */
#ifndef GRT_GRAPH_IR_TYPE_H
#define GRT_GRAPH_IR_TYPE_H

#include "src/base/dim.h"
#include "src/base/op_desc.h"

/* Type and shape of a value. */
typedef struct ir_type {
    grt_kind kind, element_kind; /* element_kind: what an OPTIONAL holds; MAP: a SEQUENCE of maps */
    grt_dtype dtype;             /* NONE: not known */
    grt_dtype keys;              /* of maps */
    int32_t rank;                /* -1: not known */
    const grt_dim *dims;         /* rank handles, each a constant or an expression; arena */
    const grt_tensor *data;      /* content of a constant, else NULL */
    const grt_dim *elems; /* content of a small integer tensor of rank 0 or 1 as expressions, else NULL */
    int64_t n_elems;
} ir_type;

#endif
