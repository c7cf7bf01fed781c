/* Sessions: a model resident on a device. Immutable once created, shared by contexts and threads. */
#ifndef GRT_SRC_SESSION_H
#define GRT_SRC_SESSION_H

#include "backends/backend.h"
#include "graph/op.h"
#include "src/model.h"

/* The kernel of one step. row is NULL for steps that the executor runs itself. */
typedef struct grt_session_kernel {
    const grt_kernel_row *row;
    const op_row *op;
    void *state;
    bool host; /* runs on the CPU although the session is on a device */
} grt_session_kernel;

struct grt_session {
    atomic_int refs;
    grt_model *model;
    grt_device *device;
    int32_t threads;
    grt_session_kernel **kernels; /* per body, per step */
    bool on_device;               /* the device has memory of its own */
    bool fallback;                /* ops that the device lacks run on the CPU */
    grt_tensor *host_weights;     /* where they are in host memory */
    void *unpacked;               /* those of a plan that was packed for another backend */
    bool packed;         /* the plan was made for this backend: host_weights lie as its packings say */
    grt_tensor *weights; /* where they are on the device */
    void *weights_block; /* device memory of all weights */
    grt_phases phases;
    char name[48];  /* "cuda:0" */
    char *warnings; /* of the cache of algorithms when the session was made; may be NULL */
};

grt_session *grt_session_retain(grt_session *session);

#endif
