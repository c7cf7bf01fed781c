/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/lt_start.h"

#include "backends/cuda/lt_matmul.h"
#include "src/base/exit_guard.h"

#include <stdlib.h>

enum { TYPES = 5 };

/* One type's; its thread is there once it has begun. */
typedef struct beginning {
    cuda_device *device;
    cuda_lt_matmul product;
    pthread_t thread;
    bool begun, has_thread;
} beginning;

struct cuda_lt_start {
    pthread_mutex_t lock;
    beginning types[TYPES];
};

grt_status cuda_lt_start_create(cuda_lt_start **out_start)
{
    cuda_lt_start *start = calloc(1, sizeof *start);
    if (!start)
        return grt_fail_memory(sizeof *start);
    pthread_mutex_init(&start->lock, NULL);
    *out_start = start;
    return GRT_OK;
}

/* A failure is met again where it matters. */
static void *ask_early(void *data)
{
    const beginning *b = data;
    if (!grt_exit_guard_ends() && cudaSetDevice(b->device->base.index) == cudaSuccess)
        cuda_lt_ask(b->device, &b->product);
    return NULL;
}

static beginning *find_type(cuda_lt_start *start, grt_dtype dtype, bool tf32)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT16:
        return &start->types[0];
    case GRT_DTYPE_BFLOAT16:
        return &start->types[1];
    case GRT_DTYPE_DOUBLE:
        return &start->types[2];
    case GRT_DTYPE_FLOAT:
        return &start->types[tf32 ? 3 : 4];
    default:
        return NULL;
    }
}

void cuda_lt_start_type(cuda_device *device, grt_dtype dtype, bool tf32)
{
    enum { SIDE = 128, CAP = 4 << 20 };                      /* a product like many */
    cuda_lt_start *start = device ? device->lt_start : NULL; /* NULL: the device is only described */
    beginning *b = start ? find_type(start, dtype, tf32) : NULL;
    if (!b)
        return;
    pthread_mutex_lock(&start->lock);
    if (!b->begun) {
        *b = (beginning){.device = device,
                         .product = {.dtype = dtype,
                                     .tf32 = tf32,
                                     .m = SIDE,
                                     .n = SIDE,
                                     .k = SIDE,
                                     .batch = 1,
                                     .alignment = 16,
                                     .workspace_cap = CAP},
                         .begun = true};
        b->has_thread = grt_exit_guard_start(&b->thread, ask_early, b) == 0;
    }
    pthread_mutex_unlock(&start->lock);
}

void cuda_lt_start_release(cuda_lt_start *start)
{
    if (!start)
        return;
    for (int i = 0; i < TYPES; i++)
        if (start->types[i].has_thread)
            pthread_join(start->types[i].thread, NULL);
    pthread_mutex_destroy(&start->lock);
    free(start);
}
