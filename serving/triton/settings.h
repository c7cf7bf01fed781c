/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's configuration says to this backend. */
#ifndef GRT_SERVING_TRITON_SETTINGS_H
#define GRT_SERVING_TRITON_SETTINGS_H

#include "serving/triton/errors.h"

#include <jansson.h>

/* How many rows a run gets for requests that have fewer than max_batch_size. */
typedef enum batch_padding {
    PADDING_BY_DEVICE = 0, /* a power of two on devices with memory of their own, else none */
    PADDING_NONE,
    PADDING_POWER_OF_TWO, /* the next one, at most max_batch_size */
    PADDING_FULL,         /* max_batch_size */
} batch_padding;

/* Texts belong to `config`; NULL if they are not given. */
typedef struct settings {
    json_t *config;
    const char *file;       /* default_model_filename */
    int64_t max_batch;      /* max_batch_size: 0 if requests have no dim of a batch */
    bool pins_inputs;       /* optimization.input_pinned_memory, which is on by default */
    int32_t threads;        /* parameter "threads": of one operator; 0: see served_model.c */
    const char *fallback;   /* parameter "fallback" */
    const char *precision;  /* parameter "precision" */
    const char *trust;      /* parameter "trust" */
    const char *device;     /* parameter "device": of instances of KIND_MODEL */
    const char *custom_ops; /* parameter "custom_ops": a shared object */
    batch_padding padding;  /* parameter "padding" */
} settings;

/* Reads the configuration as the server has it now. Release it by settings_release, also after an error. */
TRITONSERVER_Error *settings_read(TRITONBACKEND_Model *model, settings *out);
void settings_release(settings *s);

/* The server's JSON; the caller releases it by json_decref. */
TRITONSERVER_Error *settings_parse(TRITONSERVER_Message *message, json_t **out_json);

/* Number of instances on CPUs that the configuration asks for; at least 1. */
int64_t settings_cpu_instances(const settings *s);
/* True if output `name` is a state of sequences: it goes to the next request of its sequence. */
bool settings_is_state(const settings *s, const char *name);

#endif
