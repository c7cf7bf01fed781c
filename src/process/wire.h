/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool and the process of a session tell each other. Both are of one release, which the first message
 * checks. One socket has a grt_wire_start, a byte with all descriptors, and a grt_wire_ready as the answer;
 * its end is the process's. Each channel is a socket of its own, with a byte for "run what is in the memory"
 * and one for "it has run", and memory that both map: a head, and the tensors' data behind it. */
#ifndef GRT_SRC_PROCESS_WIRE_H
#define GRT_SRC_PROCESS_WIRE_H

#include "src/base/status.h"

#include <stdatomic.h>

enum { GRT_WIRE_ALIGNMENT = 256, GRT_WIRE_DEVICE = 64, GRT_WIRE_ERROR = 4096, GRT_WIRE_PATH = 4096 };

typedef struct grt_wire_start {
    char release[32];
    char device[GRT_WIRE_DEVICE];
    char custom_ops[GRT_WIRE_PATH]; /* "": none */
    int32_t n_channels;
    int32_t n_tensors; /* inputs and outputs of the model */
    int32_t threads, priority;
    bool fallback;
    uint64_t memory_limit;
    int64_t multiprocessors;
} grt_wire_start;

typedef struct grt_wire_ready {
    grt_status status;
    bool lends; /* its runs have no teams of threads: see grt_lane_session */
    char error[GRT_WIRE_ERROR];
} grt_wire_ready;

/* A tensor's data is at `offset` behind the head. */
typedef struct grt_wire_tensor {
    grt_dtype dtype; /* NONE: the input's default */
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
    uint64_t offset;
} grt_wire_tensor;

typedef struct grt_wire_head {
    atomic_uint cancelled; /* may be set at any time */
    uint64_t bytes;        /* of data that there are: either side makes more while it has the channel */
    double deadline_ms;    /* on the clock of both */
    uint64_t free_at;      /* where results may begin */
    grt_status status;     /* of the run */
    bool lost;             /* the process has lost its device */
    char error[GRT_WIRE_ERROR];
    grt_wire_tensor tensors[]; /* inputs, then outputs */
} grt_wire_head;

#endif
