/* SPDX-License-Identifier: Apache-2.0 */
/* See spans.h. Blocks of spans and of text, which are never moved. */
#include "tools/spans.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SPANS = 4096, BLOCK_TEXT = 256 * 1024, MOST_BLOCKS = 256 };

typedef struct block {
    struct block *next;
    size_t n, used;
    recorded_span spans[BLOCK_SPANS];
    char text[BLOCK_TEXT];
} block;

static pthread_mutex_t spans_lock = PTHREAD_MUTEX_INITIALIZER;
static block *first_block, *last_block;
static size_t n_blocks, n_left_out;
static int n_threads;
static _Thread_local int this_thread;

const char *span_kind_text(grt_span_kind kind)
{
    static const char *const texts[] = {"request", "queue",  "copy in", "run",      "prepare", "upload",
                                        "step",    "replay", "capture", "download", "wait",    "copy out"};
    return (size_t)kind < sizeof texts / sizeof *texts ? texts[kind] : "";
}

static size_t text_size(const grt_span *s)
{
    return strlen(s->op) + strlen(s->name) + strlen(s->device) + 3;
}

/* With the lock. */
static block *block_for(const grt_span *s)
{
    const size_t size = text_size(s);
    if (last_block && last_block->n < BLOCK_SPANS && size <= BLOCK_TEXT - last_block->used)
        return last_block;
    block *b = n_blocks < MOST_BLOCKS && size <= BLOCK_TEXT ? malloc(sizeof *b) : NULL;
    if (!b)
        return NULL;
    b->next = NULL;
    b->n = b->used = 0;
    *(last_block ? &last_block->next : &first_block) = b;
    last_block = b;
    n_blocks++;
    return b;
}

static const char *keep_text(block *b, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *kept = memcpy(b->text + b->used, text, size);
    b->used += size;
    return kept;
}

static void record_span(void *user, const grt_span *s)
{
    (void)user;
    pthread_mutex_lock(&spans_lock);
    if (!this_thread)
        this_thread = ++n_threads;
    block *b = block_for(s);
    if (b)
        b->spans[b->n++] = (recorded_span){.kind = s->kind,
                                           .thread = this_thread,
                                           .step = s->step,
                                           .status = s->status,
                                           .request = s->request,
                                           .lane = s->lane,
                                           .begin_ms = s->begin_ms,
                                           .end_ms = s->end_ms,
                                           .op = keep_text(b, s->op),
                                           .name = keep_text(b, s->name),
                                           .device = keep_text(b, s->device)};
    else
        n_left_out++;
    pthread_mutex_unlock(&spans_lock);
}

void spans_start(void)
{
    grt_trace_set(record_span, NULL);
}

void spans_stop(void)
{
    grt_trace_set(NULL, NULL);
}

void spans_each(void (*each)(void *user, const recorded_span *span), void *user)
{
    for (const block *b = first_block; b; b = b->next)
        for (size_t i = 0; i < b->n; i++)
            each(user, &b->spans[i]);
}

size_t spans_left_out(void)
{
    return n_left_out;
}

void spans_release(void)
{
    for (block *b = first_block, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    first_block = last_block = NULL;
    n_blocks = n_left_out = 0;
}
