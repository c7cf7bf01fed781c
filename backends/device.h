/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: what they offer, a table of functions for each noun. A table is complete or absent as a whole
 * (NULL); grt_backend_register checks that. Only the functions below look into the tables. */
#ifndef GRT_BACKENDS_DEVICE_H
#define GRT_BACKENDS_DEVICE_H

#include "src/base/text.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

struct grt_backend;
struct grt_algos;
typedef struct grt_device grt_device;

/* Memory that kernels compute on. Absent: the device is only described, nothing runs on it. */
typedef struct grt_memory_api {
    grt_status (*alloc)(grt_device *device, size_t bytes, void **out_data); /* 256-byte aligned */
    void (*free)(grt_device *device, void *data);
    grt_status (*check)(grt_device *device, const void *data); /* refuse what is no memory of this device */
    /* Bytes that all programs together have in use there; 0 for the host's, of which nobody asks that. */
    grt_status (*in_use)(grt_device *device, size_t *out_bytes);
} grt_memory_api;

/* Copies between the host's memory and the device's, enqueued on a stream. Absent: kernels compute on the
 * host's memory, and everything has happened when a call returns. */
typedef struct grt_copy_api {
    grt_status (*upload)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
    grt_status (*download)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
    grt_status (*copy)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
} grt_copy_api;

/* Streams: what is enqueued on one happens in that order. Present where copies are. */
typedef struct grt_stream_api {
    /* Of streams that have work for the device, those of higher priority go first, as far as the device can
     * tell them apart; 0 is the lowest. */
    grt_status (*create)(grt_device *device, int32_t priority, void **out_stream);
    void (*release)(grt_device *device, void *stream);
    grt_status (*wait)(grt_device *device, void *stream); /* block the host until the stream is idle */
    uint64_t (*id)(grt_device *device, void *stream);     /* no other stream of the process has or had it */
    /* True if the caller is capturing what is enqueued on this stream into a graph of its own. */
    bool (*is_captured)(grt_device *device, void *stream);
} grt_stream_api;

/* Parts of a device, for whoever needs some of its processors to itself: devices, too, of the same index,
 * memory and kernels, whose streams compute on the part's processors only. Absent: it cannot be divided. */
typedef struct grt_part_api {
    /* At least n processors of which no other part has any. *part: NULL, or one of this device that was given
     * back and becomes a new part. OUT_OF_MEMORY if so many are not free. */
    grt_status (*take)(grt_device *whole, int64_t n, grt_device **part);
    /* After its streams. Memory that was allocated with it may still be freed with it. */
    void (*give)(grt_device *part);
    void (*close)(grt_device *part); /* one that was given back */
} grt_part_api;

/* The calling thread's current device, for kernels to be created, prepared or run, until leave gives the
 * thread back what was current before; pairs nest. The other tables' functions leave it as they find it.
 * Absent: threads have no current device. */
typedef struct grt_current_api {
    grt_status (*enter)(grt_device *device, bool *out_switched);
    void (*leave)(grt_device *device, bool switched);
} grt_current_api;

/* Fences: points in streams that others wait for. Absent: the host waits for streams. */
typedef struct grt_fence_api {
    grt_status (*create)(grt_device *device, void **out_fence);
    void (*release)(grt_device *device, void *fence);
    grt_status (*record)(grt_device *device, void *fence, void *stream); /* behind what is enqueued so far */
    grt_status (*wait)(grt_device *device, void *fence); /* block the host until it is reached */
    /* What is enqueued on the stream from now on waits for the fence, which may be another device's. */
    grt_status (*stream_wait)(grt_device *device, void *stream, void *fence);
} grt_fence_api;

/* Graphs: what is enqueued on a stream between begin and end is kept, not done; launch enqueues it, any
 * number of times. An end that fails leaves no graph; one that is given no place for it throws away what was
 * kept. Absent: runs go step by step. */
typedef struct grt_graph_api {
    grt_status (*begin)(grt_device *device, void *stream);
    grt_status (*end)(grt_device *device, void *stream, void **out_graph);
    grt_status (*launch)(grt_device *device, void *graph, void *stream);
    void (*release)(grt_device *device, void *graph);
} grt_graph_api;

/* Copies from another device of the backend; wants fences. Absent: every device is filled from the host. */
typedef struct grt_peer_api {
    bool (*can)(grt_device *device, grt_device *from);          /* is there a direct way? */
    grt_status (*enable)(grt_device *device, grt_device *from); /* make it work; may be called again */
    grt_status (*copy)(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                       void *stream);
} grt_peer_api;

/* Page-locked host memory, which the copies of all devices of the backend cross without staging. Absent: any
 * host memory is as good. */
typedef struct grt_pinned_api {
    grt_status (*alloc)(grt_device *device, size_t bytes, void **out_data);
    void (*free)(grt_device *device, void *data);
    grt_status (*pin)(grt_device *device, void *data, size_t bytes); /* pages that are there already */
    void (*unpin)(grt_device *device, void *data);
} grt_pinned_api;

/* Times on the device. Absent: the host's clock around waits. */
typedef struct grt_timer_api {
    grt_status (*create)(grt_device *device, void **out_event);
    void (*release)(grt_device *device, void *event);
    grt_status (*record)(grt_device *device, void *event, void *stream);
    grt_status (*elapsed)(grt_device *device, void *begin, void *end, double *out_ms); /* waits for `end` */
} grt_timer_api;

/* What kernels keep for a context, see grt_run_hooks. Absent: they keep nothing. */
typedef struct grt_local_api {
    /* An error if kernels of the runs so far found fault with their data; it is reported once. */
    grt_status (*check)(grt_device *device, void *local);
    void (*release)(grt_device *device, void *local);
} grt_local_api;

typedef struct grt_device_api {
    void (*close)(grt_device *device);
    /* Adds the parts of a key that tell this device and its driver from others: "gpu=NVIDIA H200;sm=90;
     * driver=13000;". NULL: kernels choose no algorithms, the device is given no cache of them. */
    void (*identify)(grt_device *device, grt_text *key);
    const grt_memory_api *memory;
    const grt_copy_api *copies;
    const grt_stream_api *streams;
    const grt_current_api *current;
    const grt_fence_api *fences;
    const grt_graph_api *graphs;
    const grt_peer_api *peers;
    const grt_pinned_api *pinned;
    const grt_timer_api *timer;
    const grt_local_api *locals;
    const grt_part_api *parts;
} grt_device_api;

struct grt_device {
    const grt_device_api *api;
    const struct grt_backend *backend;
    int32_t index;
    struct grt_algos *algos; /* set by the runtime after opening; NULL: none. See algos.h */
    size_t cache_bytes; /* of the cache between memory and arithmetic, which measuring must empty; 0: none */
};

/* Memory of the host, for devices that compute on it. */
extern const grt_memory_api grt_host_memory;

void grt_device_close(grt_device *device);         /* NULL-safe */
bool grt_device_is_host(const grt_device *device); /* there are no copies and streams */
grt_status grt_device_alloc(grt_device *device, size_t bytes, void **out_data);
void grt_device_free(grt_device *device, void *data); /* NULL-safe */
grt_status grt_device_check_pointer(grt_device *device, const void *data);
grt_status grt_device_in_use(grt_device *device, size_t *out_bytes); /* host devices: 0 */
/* On a host device memcpy, whatever the stream. */
grt_status grt_device_upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
grt_status grt_device_download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
grt_status grt_device_copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
/* Host devices: NULL. */
grt_status grt_device_stream_create(grt_device *device, int32_t priority, void **out_stream);
void grt_device_stream_release(grt_device *device, void *stream); /* NULL-safe */
grt_status grt_device_wait(grt_device *device, void *stream);     /* host devices: nothing to do */
/* UNSUPPORTED where there are none. */
grt_status grt_device_part_take(grt_device *whole, int64_t n, grt_device **part);
void grt_device_part_give(grt_device *part);
void grt_device_part_close(grt_device *part);
uint64_t grt_device_stream_id(grt_device *device, void *stream);
bool grt_device_stream_is_captured(grt_device *device, void *stream);
grt_status grt_device_enter(grt_device *device, bool *out_switched);
void grt_device_leave(grt_device *device, bool switched); /* what enter said */

/* Functions of an absent table: UNSUPPORTED, but where it is said otherwise. Ask before. */
bool grt_device_has_fences(const grt_device *device);
grt_status grt_device_fence_create(grt_device *device, void **out_fence);
void grt_device_fence_release(grt_device *device, void *fence); /* NULL-safe */
grt_status grt_device_fence_record(grt_device *device, void *fence, void *stream);
grt_status grt_device_fence_wait(grt_device *device, void *fence);
grt_status grt_device_stream_wait_fence(grt_device *device, void *stream, void *fence);

bool grt_device_has_graphs(const grt_device *device);
grt_status grt_device_graph_begin(grt_device *device, void *stream);
grt_status grt_device_graph_end(grt_device *device, void *stream, void **out_graph); /* NULL if it fails */
grt_status grt_device_graph_launch(grt_device *device, void *graph, void *stream);
void grt_device_graph_release(grt_device *device, void *graph); /* NULL-safe */

bool grt_device_has_peers(const grt_device *device);
bool grt_device_peer_can(grt_device *device, grt_device *from); /* false: another backend's, or no peers */
grt_status grt_device_peer_enable(grt_device *device, grt_device *from);
grt_status grt_device_peer_copy(grt_device *device, void *dst, grt_device *from, const void *src,
                                size_t bytes, void *stream);

/* Without the table: plain host memory, and pages are left as they are. */
grt_status grt_device_alloc_pinned(grt_device *device, size_t bytes, void **out_data);
void grt_device_free_pinned(grt_device *device, void *data); /* NULL-safe */
grt_status grt_device_pin(grt_device *device, void *data, size_t bytes);
void grt_device_unpin(grt_device *device, void *data);

bool grt_device_has_timer(const grt_device *device);
grt_status grt_device_event_create(grt_device *device, void **out_event);
void grt_device_event_release(grt_device *device, void *event); /* NULL-safe */
grt_status grt_device_event_record(grt_device *device, void *event, void *stream);
grt_status grt_device_event_elapsed(grt_device *device, void *begin, void *end, double *out_ms);

grt_status grt_device_local_check(grt_device *device, void *local); /* NULL-safe */
void grt_device_local_release(grt_device *device, void *local);     /* NULL-safe */

bool grt_device_chooses(const grt_device *device); /* it can be told from others: it may have a cache */
void grt_device_identify(grt_device *device, grt_text *key); /* NULL-safe */

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
