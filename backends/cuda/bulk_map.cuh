/* SPDX-License-Identifier: Apache-2.0 */
/* The bulk copy engine reads a map, which is a kernel's argument, before it copies: asked for early, no copy
 * waits for that. */
#ifndef GRT_BACKENDS_CUDA_BULK_MAP_CUH
#define GRT_BACKENDS_CUDA_BULK_MAP_CUH

#include "backends/cuda/tensor_map.h"

static __device__ __forceinline__ void bulk_map_fetch(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#endif
