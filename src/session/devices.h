/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a runtime has opened: each once, for all its sessions, until the runtime is released. */
#ifndef GRT_SRC_SESSION_DEVICES_H
#define GRT_SRC_SESSION_DEVICES_H

#include "backends/backend.h"
#include "src/algos/cache.h"
#include "src/base/background.h"

typedef struct grt_devices grt_devices;

grt_status grt_devices_create(grt_devices **out_devices);
void grt_devices_release(grt_devices *devices); /* closes them; NULL-safe */

bool grt_devices_any(grt_devices *devices); /* has one been asked for? */
/* The device, opened if it is not yet; any number of threads may open different devices at once, and threads
 * that want the same one wait for whoever was first. `algos`: the cache that its kernels get; `background`:
 * who makes code for them. */
grt_status grt_devices_open(grt_devices *devices, const grt_backend *backend, int32_t index,
                            grt_algo_cache *algos, grt_background *background, grt_device **out_device);

/* A part of a device with n processors to itself; it is given back, and closed with the device. */
grt_status grt_devices_take_part(grt_devices *devices, grt_device *whole, int64_t n, grt_device **out_part);
void grt_devices_give_part(grt_devices *devices, grt_device *part);

/* "cpu", "null:3" to backend and number. */
grt_status grt_device_parse(const char *text, const grt_backend **out_backend, int32_t *out_index);

#endif
