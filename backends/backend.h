/* SPDX-License-Identifier: Apache-2.0 */
/* Backends: what a kind of device must offer. registry.h has the list of them. */
#ifndef GRT_BACKENDS_BACKEND_H
#define GRT_BACKENDS_BACKEND_H

#include "backends/algos.h"
#include "backends/device.h"
#include "backends/kernel.h"
#include "src/base/device_traits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_backend {
    const char *name; /* "cpu" */
    grt_device_traits traits;
    /* Devices of this kind in this machine; 0 if none, then grt_last_error() says why. */
    int32_t (*device_count)(void);
    grt_status (*device_open)(int32_t index, grt_device **out_device);
    const grt_device_api *api; /* of the devices that it opens */
    /* The kernel for a node, or NULL with the reason in `why`. Needs no open device. */
    const grt_kernel_row *(*find_kernel)(const grt_kernel_node *node, grt_text *why);
    /* optional: a session with these nodes is about to be created, its device perhaps still to be opened.
     * Begin what needs no device, such as loading libraries, in the background. */
    void (*expect)(const grt_kernel_node *nodes, size_t n);
    /* optional, with rows that have `pack`: the plain elements of a packed constant, for other backends.
     * Packed bytes come from a file: sizes are checked. */
    grt_status (*unpack)(const grt_tensor *packed, const grt_packing *packing, void *out_data);
    /* optional, but all or none: a description of a device of this machine, for machines without one; and a
     * device made of a description, on which kernels with GRT_KERNEL_CHOOSES are created and reshaped, but
     * nothing runs: its table has no nouns. */
    grt_status (*describe)(grt_device *device, grt_text *name, int32_t *out_sm, grt_text *properties);
    grt_status (*open_description)(const grt_device_description *description, grt_device **out_device);
    const grt_device_api *description_api;
} grt_backend;

/* The host, whose kernels fold constants and run what devices cannot. */
#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
extern const grt_backend grt_backend_cpu;
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
