/* SPDX-License-Identifier: Apache-2.0 */
/* A version of a model in the server: the file, what it takes and gives, and its sessions, one per device for
 * all instances there. */
#ifndef GRT_SERVING_TRITON_SERVED_MODEL_H
#define GRT_SERVING_TRITON_SERVED_MODEL_H

#include "serving/triton/copiers.h"
#include "serving/triton/settings.h"

#include <pthread.h>

/* An input or output. Texts belong to the model. */
typedef struct served_io {
    grt_io_info info;
    TRITONSERVER_DataType type;
    bool state; /* outputs: see settings_is_state */
} served_io;

enum { DEVICE_KIND_SIZE = 32 };
/* "cuda" of "cuda:1". */
void device_kind(const char *device, char out[DEVICE_KIND_SIZE]);
/* True if devices of this kind have memory of their own. */
bool device_kind_is_accelerator(const char *kind);

/* A session that instances share. */
typedef struct device_session {
    struct device_session *next;
    char device[32];
    grt_session *session;
    size_t users;
} device_session;

typedef struct served_model {
    const char *name;
    settings settings;
    char *path;
    grt_runtime *runtime; /* the backend's, as the next */
    copiers *copiers;
    grt_model *model; /* compiled for `target`; it describes inputs and outputs */
    char target[DEVICE_KIND_SIZE];
    size_t n_inputs, n_outputs;
    served_io *inputs, *outputs;
    pthread_mutex_t lock; /* guards what follows */
    device_session *sessions;
} served_model;

/* Opens the model's file. The server's handle must outlive it. */
TRITONSERVER_Error *served_model_create(TRITONBACKEND_Model *handle, grt_runtime *runtime, copiers *helpers,
                                        served_model **out);
void served_model_release(served_model *m);

/* Every input and output has a leading dim that is the batch, and it is the same symbol. */
bool served_model_is_batchable(const served_model *m);

/* The session on `device`, made when the first instance asks for it. */
TRITONSERVER_Error *served_model_take_session(served_model *m, const char *device, grt_session **out_session);
void served_model_give_session(served_model *m, grt_session *session);

#endif
