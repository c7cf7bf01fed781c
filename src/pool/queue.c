/* SPDX-License-Identifier: Apache-2.0 */
#include "src/pool/queue.h"

#include <stdlib.h>

static bool is_before(const grt_queue *queue, const grt_queued *a, const grt_queued *b)
{
    if (queue->order == GRT_QUEUE_BY_DEADLINE && a->deadline_ms != b->deadline_ms)
        return a->deadline_ms < b->deadline_ms;
    if (queue->order == GRT_QUEUE_BY_TURN && a->priority != b->priority)
        return a->priority > b->priority;
    return a->number < b->number;
}

static void queue_put(grt_queue *queue, size_t at, grt_queued *item)
{
    queue->items[at] = item;
    item->place[queue->order] = at + 1;
}

static void move_up(grt_queue *queue, size_t at, grt_queued *item)
{
    while (at > 0 && is_before(queue, item, queue->items[(at - 1) / 2])) {
        queue_put(queue, at, queue->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    queue_put(queue, at, item);
}

static void move_down(grt_queue *queue, size_t at, grt_queued *item)
{
    for (size_t child; (child = 2 * at + 1) < queue->n; at = child) {
        if (child + 1 < queue->n && is_before(queue, queue->items[child + 1], queue->items[child]))
            child++;
        if (!is_before(queue, queue->items[child], item))
            break;
        queue_put(queue, at, queue->items[child]);
    }
    queue_put(queue, at, item);
}

grt_status grt_queue_reserve(grt_queue *queue, size_t capacity)
{
    if (capacity <= queue->capacity)
        return GRT_OK;
    grt_queued **grown =
        capacity < SIZE_MAX / sizeof *grown ? realloc(queue->items, capacity * sizeof *grown) : NULL;
    if (!grown)
        return grt_fail_memory(capacity < SIZE_MAX / sizeof *grown ? capacity * sizeof *grown : SIZE_MAX);
    queue->items = grown;
    queue->capacity = capacity;
    return GRT_OK;
}

void grt_queue_release(grt_queue *queue)
{
    free(queue->items);
    queue->items = NULL;
}

void grt_queue_add(grt_queue *queue, grt_queued *item)
{
    move_up(queue, queue->n++, item);
}

void grt_queue_remove(grt_queue *queue, grt_queued *item)
{
    const size_t place = item->place[queue->order];
    if (!place)
        return;
    item->place[queue->order] = 0;
    grt_queued *last = queue->items[--queue->n];
    if (last == item)
        return;
    if (is_before(queue, last, item))
        move_up(queue, place - 1, last);
    else
        move_down(queue, place - 1, last);
}
