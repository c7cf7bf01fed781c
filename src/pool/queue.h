/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of requests: heaps from which any request can be removed, as it knows its places. */
#ifndef GRT_SRC_POOL_QUEUE_H
#define GRT_SRC_POOL_QUEUE_H

#include "src/base/status.h"

/* What a queue is ordered by: the request that is served first, or whose deadline comes first. */
typedef enum grt_queue_order {
    GRT_QUEUE_BY_TURN = 0,
    GRT_QUEUE_BY_DEADLINE,
    GRT_QUEUE_ORDERS
} grt_queue_order;

/* A request's part in queues. */
typedef struct grt_queued {
    size_t place[GRT_QUEUE_ORDERS]; /* in the queue of that order, from 1 on; 0: in none */
    int32_t priority;
    uint64_t number; /* of submissions */
    double deadline_ms;
} grt_queued;

typedef struct grt_queue {
    grt_queue_order order;
    grt_queued **items;
    size_t n, capacity;
} grt_queue;

/* Room for so many; adding allocates nothing. */
grt_status grt_queue_reserve(grt_queue *queue, size_t capacity);
void grt_queue_release(grt_queue *queue);
void grt_queue_add(grt_queue *queue, grt_queued *item);    /* there is room */
void grt_queue_remove(grt_queue *queue, grt_queued *item); /* may be in none */

static inline grt_queued *grt_queue_first(const grt_queue *queue)
{
    return queue->n ? queue->items[0] : NULL;
}

#endif
