/* SPDX-License-Identifier: Apache-2.0 */
/* Backends: what a kind of device must offer. Callers use the grt_device_* wrappers, which check, never the
 * vtable. */
#ifndef GRT_BACKENDS_BACKEND_H
#define GRT_BACKENDS_BACKEND_H

#include "backends/algos.h"
#include "backends/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_device grt_device;

typedef struct grt_backend {
    const char *name; /* "cpu" */
    /* Devices of this kind in this machine; 0 if none, then grt_last_error() says why. */
    int32_t (*device_count)(void);
    grt_status (*device_open)(int32_t index, grt_device **out_device);
    /* The kernel for a node, or NULL with the reason in `why`. Needs no open device. */
    const grt_kernel_row *(*find_kernel)(const grt_kernel_node *node, grt_text *why);
    bool own_memory; /* devices have memory of their own, which weights are copied to */
    bool imitates;   /* no device at all: its choices go to a cache's file only if somebody named that file */
    bool channels_last;  /* convolution regions run better in NHWC */
    bool joins_products; /* one product of one row runs better than several of fewer columns */
    /* Multiply-adds from which on a product runs as well by itself as in a batch of its like; 0: none does.
     */
    int64_t lone_product;
    /* optional: a session with these ops is about to be created, its device perhaps still to be opened. Begin
     * what needs no device, such as loading libraries, in the background. */
    void (*expect)(const grt_op_desc *const *ops, size_t n);
    /* optional, with rows that have `pack`: the plain elements of a packed constant, for other backends.
     * Packed bytes come from a file: sizes are checked. */
    grt_status (*unpack)(const grt_tensor *packed, const grt_packing *packing, void *out_data);
    /* optional, but both or none: what tells a device of this machine to a machine without it; and a device
     * that is only described, on which kernels with GRT_KERNEL_CHOOSES are created and reshaped, but nothing
     * runs. */
    grt_status (*describe)(grt_device *device, grt_text *name, int32_t *out_sm, grt_text *properties);
    grt_status (*open_description)(const grt_device_description *description, grt_device **out_device);
} grt_backend;

/* Device memory and order of execution. Host devices leave the optional entries NULL: their memory is host
 * memory, copies are memcpy, and everything has happened when a call returns. */
typedef struct grt_device_vtable {
    void (*close)(grt_device *device);
    grt_status (*alloc)(grt_device *device, size_t bytes, void **out_data); /* 256-byte aligned */
    void (*free)(grt_device *device, void *data);
    /* optional, but all or none of them */
    /* The device is the calling thread's current one, for kernels to be created, prepared or run, until leave
     * gives the thread back what was current before; pairs nest. All other entries leave it as they find it,
     * too. */
    grt_status (*enter)(grt_device *device, bool *out_switched);
    void (*leave)(grt_device *device, bool switched);
    grt_status (*upload)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
    grt_status (*download)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
    grt_status (*copy)(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
    grt_status (*alloc_pinned)(grt_device *device, size_t bytes, void **out_data);
    void (*free_pinned)(grt_device *device, void *data);
    grt_status (*stream_create)(grt_device *device, void **out_stream);
    void (*stream_release)(grt_device *device, void *stream);
    grt_status (*stream_wait)(grt_device *device, void *stream); /* block the host until the stream is idle */
    /* optional: what is enqueued between begin and end becomes a graph, which launch replays */
    grt_status (*graph_begin)(grt_device *device, void *stream);
    grt_status (*graph_end)(grt_device *device, void *stream, void **out_graph);
    grt_status (*graph_launch)(grt_device *device, void *graph, void *stream);
    void (*graph_release)(grt_device *device, void *graph);
    /* optional, but all or none of them: fences, points in streams that others wait for */
    grt_status (*fence_create)(grt_device *device, void **out_fence);
    void (*fence_release)(grt_device *device, void *fence);
    grt_status (*fence_record)(grt_device *device, void *fence,
                               void *stream);                  /* behind what is enqueued so far */
    grt_status (*fence_wait)(grt_device *device, void *fence); /* block the host until it is reached */
    /* what is enqueued on the stream from now on waits for the fence, which may be another device's */
    grt_status (*stream_wait_fence)(grt_device *device, void *stream, void *fence);
    /* optional, but all or none; want fences: copies from another device of the backend. peer_can: are there
     * direct ones? peer_enable: make them work; may be called again */
    bool (*peer_can)(grt_device *device, grt_device *from);
    grt_status (*peer_enable)(grt_device *device, grt_device *from);
    grt_status (*peer_copy)(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                            void *stream);
    /* optional, but both or none: lock pages of host memory for the copies of all devices of the backend */
    grt_status (*pin)(grt_device *device, void *data, size_t bytes);
    void (*unpin)(grt_device *device, void *data);
    /* optional; a device that has it is given the cache of algorithms. Adds the parts of a key that tell this
     * device and its driver from others: "gpu=NVIDIA H200;sm=90;driver=13000;" */
    void (*identify)(grt_device *device, grt_text *key);
    /* optional: a number that no other stream of the process has or had; without it, the handle has to do */
    uint64_t (*stream_id)(grt_device *device, void *stream);
    /* optional, but both or none: what kernels keep for a context, see grt_run_hooks. Check: an error if
     * kernels of the runs so far found fault with their data; it is reported once. */
    grt_status (*local_check)(grt_device *device, void *local);
    void (*local_release)(grt_device *device, void *local);
    /* optional: is the caller capturing what is enqueued on this stream into a graph of its own? */
    bool (*stream_is_captured)(grt_device *device, void *stream);
    /* optional: times on the device. `elapsed` waits for `end`. */
    grt_status (*event_create)(grt_device *device, void **out_event);
    void (*event_release)(grt_device *device, void *event);
    grt_status (*event_record)(grt_device *device, void *event, void *stream);
    grt_status (*event_elapsed)(grt_device *device, void *begin, void *end, double *out_ms);
    /* optional: refuse a pointer that is no memory of this device. */
    grt_status (*check_pointer)(grt_device *device, const void *data);
} grt_device_vtable;

struct grt_device {
    const grt_device_vtable *vtable;
    const grt_backend *backend;
    int32_t index;
    grt_algos *algos;   /* set by the runtime after opening; NULL: none. See algos.h */
    size_t cache_bytes; /* of the cache between memory and arithmetic, which measuring must empty; 0: none */
};

bool grt_device_is_host(const grt_device *device);
void grt_device_close(grt_device *device); /* NULL-safe */
grt_status grt_device_enter(grt_device *device, bool *out_switched);
void grt_device_leave(grt_device *device, bool switched); /* what enter said */
grt_status grt_device_alloc(grt_device *device, size_t bytes, void **out_data);
void grt_device_free(grt_device *device, void *data);
grt_status grt_device_upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
grt_status grt_device_download(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);

grt_status grt_device_copy(grt_device *device, void *dst, const void *src, size_t bytes, void *stream);
grt_status grt_device_wait(grt_device *device, void *stream);

extern const grt_backend grt_backend_cpu, grt_backend_null, grt_backend_mirror;
extern const grt_backend grt_backend_cuda; /* in its own module */
/* Backend by name; a module is looked for and opened on first use. NULL if there is none; then the error says
 * why, and which exist. */
const grt_backend *grt_backend_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
