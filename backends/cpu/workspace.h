/* SPDX-License-Identifier: Apache-2.0 */
/* Laying out a kernel's workspace: reshape adds regions and keeps their offsets, run finds them again. */
#ifndef GRT_BACKENDS_CPU_WORKSPACE_H
#define GRT_BACKENDS_CPU_WORKSPACE_H

#include "src/base/checked.h"
#include "src/base/status.h"

typedef struct cpu_layout {
    size_t bytes;
    bool overflow;
} cpu_layout;

/* Room for n elements of `size` bytes, 64-byte aligned; returns its offset. n must not be negative. */
static inline size_t cpu_layout_add(cpu_layout *layout, int64_t n, size_t size)
{
    const size_t at = layout->bytes;
    size_t bytes;
    if (n < 0 || !grt_mul_size((size_t)n, size, &bytes) || bytes > SIZE_MAX / 4 || at > SIZE_MAX / 4)
        layout->overflow = true;
    else
        layout->bytes = at + grt_align_up(bytes, 64);
    return at;
}

static inline void *cpu_workspace_at(void *workspace, size_t offset)
{
    return workspace ? (char *)workspace + offset : NULL;
}

#endif
