/* SPDX-License-Identifier: Apache-2.0 */
/* The mirror: a device that tests have instead of a GPU. Programs that hold it register it; others find its
 * module, libgraphrt-mirror.so, which is built but never installed. */
#ifndef GRT_TESTS_MIRROR_MIRROR_H
#define GRT_TESTS_MIRROR_MIRROR_H

#include "backends/backend.h"

extern const grt_backend grt_backend_mirror;

/* Of generated kernels (code.h); NULL: it has none. */
grt_codes *mirror_codes(grt_device *device);

#endif
