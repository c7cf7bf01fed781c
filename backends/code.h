/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels of a device: machine code that the plan brings, that the cache's file has from an earlier
 * start on this machine, or that is made from source, in the background if the session may run without it.
 * Until then, and where none can be made, a kernel of the backend's own interprets what would be generated.
 *
 * In a kernel's reshape:
 *
 * @code
 *     const grt_code_request request = {.key = ..., .write = ..., .when = r->code_when};
 *     GRT_TRY(grt_code_take(device->codes, &request, &shape->code));
 *     r->code = shape->code;
 * @endcode
 *
 * In its run: grt_code_get, one atomic read. In release_shape: grt_code_give. */
#ifndef GRT_BACKENDS_CODE_H
#define GRT_BACKENDS_CODE_H

#include "backends/algos.h"
#include "backends/device.h"

#include <stdbool.h>

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_codes grt_codes; /* of a device */
typedef struct grt_code grt_code;   /* for one key, as long as the device is open */

/* When code is made that neither the plan nor the cache has. */
typedef enum grt_code_when {
    GRT_CODE_IN_BACKGROUND = 0, /* while runs interpret */
    GRT_CODE_FIRST,             /* before reshape returns */
    GRT_CODE_NEVER,
} grt_code_when;

/* "background", "first", "never"; NULL or "": `otherwise`. INVALID_ARGUMENT names `option`. */
grt_status grt_code_when_parse(const char *text, grt_code_when otherwise, const char *option,
                               grt_code_when *out_when);

/* What a backend does with code. Functions may be called by any thread. */
typedef struct grt_code_maker {
    /* The parts of a key that decide what compile makes of a source: "target=sm_90;options=...;". */
    void (*target)(grt_device *device, grt_text *key);
    /* *out_code is malloc'ed; `compiler` gets its name and version as a part of a key: "nvrtc=13.0;".
     * DEVICE: there is no compiler on this machine. */
    grt_status (*compile)(grt_device *device, const char *name, const char *source, grt_text *compiler,
                          void **out_code, size_t *out_size);
    /* Brings it to the device, so that a run finds it there. The bytes stay until unload. NULL: the device
     * does not take them. */
    void *(*load)(grt_device *device, const void *code, size_t size, const char *function);
    void (*unload)(grt_device *device, void *loaded);
    /* Blocks will be launched with so much memory of their own; called once for each larger amount. */
    grt_status (*allow)(grt_device *device, void *loaded, size_t block_memory);
} grt_code_maker;

typedef struct grt_code_request {
    const char *key;                                   /* as in plans, see algos.h */
    const char *name;                                  /* of the node, for messages */
    const char *function;                              /* of the source */
    void (*write)(const void *user, grt_text *source); /* called before grt_code_take returns, or never */
    const void *user;
    size_t block_memory; /* see allow */
    grt_code_when when;
} grt_code_request;

grt_status grt_codes_create(grt_device *device, const grt_code_maker *maker, grt_codes **out_codes);
void grt_codes_release(grt_codes *codes); /* when nothing runs in the background; NULL-safe */

/* Any thread. Code that cannot be made or loaded is no error: it is interpreted. Who asks while another
 * thread looks for it waits for that. */
grt_status grt_code_take(grt_codes *codes, const grt_code_request *request, grt_code **out_code);
/* What nobody wants any more is not compiled unless that has begun; NULL-safe. */
void grt_code_give(grt_code *code);
/* What the maker's load returned; NULL: there is none, or none yet. */
void *grt_code_get(const grt_code *code);
/* True if grt_code_get may still change from NULL to something. NULL: false. */
bool grt_code_is_awaited(const grt_code *code);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
