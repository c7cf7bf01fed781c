/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that have been made when the call returns, between any two of the host's and a device's memory. */
#ifndef GRT_SRC_SESSION_DEVICE_MEMORY_H
#define GRT_SRC_SESSION_DEVICE_MEMORY_H

#include "backends/device.h"

/* The bytes of `from`; both are of that size, in host memory or in the device's. */
grt_status grt_device_move(grt_device *device, const grt_tensor *to, const grt_tensor *from);

#endif
