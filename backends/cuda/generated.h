/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels that have generated ones do in reshape. */
#ifndef GRT_BACKENDS_CUDA_GENERATED_H
#define GRT_BACKENDS_CUDA_GENERATED_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/generated_source.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_generated {
    const char *op;                               /* of the key */
    void (*key)(const void *user, grt_text *key); /* adds what tells the kernel from others */
    void (*source)(const void *user, grt_text *source);
    const void *user;
    const char *function; /* of the source */
    size_t shared;        /* bytes of shared memory that blocks are launched with */
} cuda_generated;

/* On a described device, for which a plan is made, it is compiled and kept for that plan; *out_code is NULL.
 * Elsewhere *out_code is to be given back with the shape. */
grt_status cuda_generated_take(grt_reshape *r, const cuda_generated *wanted, grt_code **out_code);

#ifdef __cplusplus
}
#endif
#endif
