/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with changed content: indices, dims, kinds, operators, attributes, lists. Offsets and checksums are
 * corrected, so only the checks of a decoded plan protect the kernels.
 */
#ifndef GRT_TESTS_FORGE_FORGERY_H
#define GRT_TESTS_FORGE_FORGERY_H

#include "src/base/arena.h"

#include <stdint.h>

typedef struct forgery {
    uint8_t *bytes; /* in the arena */
    size_t size;
    char what[400]; /* was changed, for reports */
} forgery;

/* Changes META, or seldom TUNING, at one to three places, as tests/differential/draw.h draws them. False if
 * `bytes` are no plan whose header and sections can be read. */
bool forge(grt_arena *arena, const uint8_t *bytes, size_t size, forgery *out);

#endif
