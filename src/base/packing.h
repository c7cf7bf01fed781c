/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of packed constants. A format is a word that the kernels of one backend define; other backends
 * unpack first. */
#ifndef GRT_BASE_PACKING_H
#define GRT_BASE_PACKING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct grt_packing {
    char format[48]; /* "": the plain tensor */
    size_t bytes;    /* of the packed form */
} grt_packing;

/* True if a packed form is fit for a plan. Padding may make much of little; then the constant stays plain in
 * the plan and is packed by sessions. */
static inline bool grt_packing_is_worth(size_t plain_bytes, size_t packed_bytes)
{
    const size_t small = (size_t)16 << 20;
    return packed_bytes <= small || packed_bytes / 4 <= plain_bytes;
}

static inline bool grt_is_packed(const grt_packing *packing)
{
    return packing->format[0] != '\0';
}

#endif
