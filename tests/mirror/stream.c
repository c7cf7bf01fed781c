/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mirror/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mirror_fence {
    pthread_mutex_t lock;
    pthread_cond_t reached;
    int64_t recorded, done; /* how often */
    double ms;              /* when, the last time */
};

typedef struct operation {
    struct operation *next;
    void *dst;
    const void *src;
    size_t bytes;
    mirror_fence *record, *wait;
    int64_t count; /* of the fence that is meant */
} operation;

struct mirror_stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    operation *first, **last;
    bool started, busy, ending;
    uint64_t id;
    mirror_graph *captured; /* NULL: nothing is captured */
    pthread_t thread;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void reach(mirror_fence *fence, int64_t count)
{
    pthread_mutex_lock(&fence->lock);
    if (fence->done < count) {
        fence->done = count;
        fence->ms = now_ms();
    }
    pthread_cond_broadcast(&fence->reached);
    pthread_mutex_unlock(&fence->lock);
}

static void wait_for(mirror_fence *fence, int64_t count)
{
    pthread_mutex_lock(&fence->lock);
    while (fence->done < count)
        pthread_cond_wait(&fence->reached, &fence->lock);
    pthread_mutex_unlock(&fence->lock);
}

static void perform(const operation *o)
{
    if (o->wait)
        wait_for(o->wait, o->count);
    else if (o->record)
        reach(o->record, o->count);
    else if (o->bytes)
        memcpy(o->dst, o->src, o->bytes);
}

static void *run(void *arg)
{
    mirror_stream *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->ending)
            pthread_cond_wait(&s->changed, &s->lock);
        operation *o = s->first;
        if (!o)
            break;
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        s->busy = true;
        pthread_mutex_unlock(&s->lock);
        perform(o);
        free(o);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

grt_status mirror_stream_create(mirror_stream **out_stream)
{
    static atomic_uint_fast64_t made;
    mirror_stream *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->last = &s->first;
    s->id = atomic_fetch_add(&made, 1) + 1;
    *out_stream = s;
    return GRT_OK;
}

void mirror_stream_release(mirror_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    mirror_graph_release(s->captured);
    free(s);
}

static grt_status enqueue(mirror_stream *s, operation o)
{
    grt_status status = GRT_OK;
    if (s->captured)
        return grt_fail(GRT_STATUS_UNSUPPORTED, "graphs of a mirror hold no fences");
    operation *copy = malloc(sizeof *copy);
    if (!copy)
        return grt_fail_memory(sizeof *copy);
    *copy = o;
    pthread_mutex_lock(&s->lock);
    if (!s->started && pthread_create(&s->thread, NULL, run, s) != 0)
        status = grt_fail(GRT_STATUS_OUT_OF_MEMORY, "no thread can be made for a stream");
    if (status == GRT_OK) {
        s->started = true;
        *s->last = copy;
        s->last = &copy->next;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (status != GRT_OK)
        free(copy);
    return status;
}

grt_status mirror_stream_copy(mirror_stream *s, void *dst, const void *src, size_t bytes)
{
    if (s->captured)
        return mirror_graph_add_copy(s->captured, dst, src, bytes);
    pthread_mutex_lock(&s->lock);
    const bool later = s->started;
    pthread_mutex_unlock(&s->lock);
    if (later)
        return enqueue(s, (operation){.dst = dst, .src = src, .bytes = bytes});
    if (bytes)
        memcpy(dst, src, bytes);
    return GRT_OK;
}

void mirror_stream_wait(mirror_stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->first || s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

uint64_t mirror_stream_id(const mirror_stream *s)
{
    return s->id;
}

grt_status mirror_stream_begin(mirror_stream *s)
{
    if (s->captured)
        return grt_fail(GRT_STATUS_INTERNAL, "the stream is captured already");
    s->captured = mirror_graph_create();
    return s->captured ? GRT_OK : grt_fail_memory(0);
}

grt_status mirror_stream_end(mirror_stream *s, mirror_graph **out_graph)
{
    if (!s->captured)
        return grt_fail(GRT_STATUS_INTERNAL, "the stream is not captured");
    *out_graph = s->captured;
    s->captured = NULL;
    return GRT_OK;
}

mirror_graph *mirror_stream_captured(const mirror_stream *s)
{
    return s->captured;
}

grt_status mirror_stream_launch(mirror_stream *s, const mirror_graph *graph)
{
    mirror_stream_wait(s);
    return mirror_graph_perform(graph);
}

grt_status mirror_fence_create(mirror_fence **out_fence)
{
    mirror_fence *fence = calloc(1, sizeof *fence);
    if (!fence)
        return grt_fail_memory(sizeof *fence);
    pthread_mutex_init(&fence->lock, NULL);
    pthread_cond_init(&fence->reached, NULL);
    *out_fence = fence;
    return GRT_OK;
}

void mirror_fence_release(mirror_fence *fence)
{
    pthread_mutex_destroy(&fence->lock);
    pthread_cond_destroy(&fence->reached);
    free(fence);
}

static int64_t recorded(mirror_fence *fence, int64_t more)
{
    pthread_mutex_lock(&fence->lock);
    const int64_t count = fence->recorded += more;
    pthread_mutex_unlock(&fence->lock);
    return count;
}

grt_status mirror_fence_record(mirror_fence *fence, mirror_stream *stream)
{
    const grt_status status = enqueue(stream, (operation){.record = fence, .count = recorded(fence, 1)});
    if (status != GRT_OK) /* nobody reaches it: it is as it was */
        recorded(fence, -1);
    return status;
}

void mirror_fence_wait(mirror_fence *fence)
{
    wait_for(fence, recorded(fence, 0));
}

double mirror_fence_ms(mirror_fence *fence)
{
    mirror_fence_wait(fence);
    return fence->ms;
}

grt_status mirror_stream_wait_fence(mirror_stream *stream, mirror_fence *fence)
{
    return enqueue(stream, (operation){.wait = fence, .count = recorded(fence, 0)});
}
