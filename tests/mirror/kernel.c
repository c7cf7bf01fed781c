/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel.h. A kernel computes when it is run, not later: it waits until the stream has done what
 * was enqueued before. */
#include "tests/mirror/kernel.h"

#include "backends/backend.h"
#include "tests/mirror/code.h"
#include "tests/mirror/mirror.h"
#include "tests/mirror/stream.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct mirror_state {
    const grt_kernel_row *cpu;
    void *state; /* of the CPU's kernel */
} mirror_state;

static grt_status create(const grt_kernel_node *node, void **out_state)
{
    mirror_state *m = calloc(1, sizeof *m);
    if (!m)
        return grt_fail_memory(sizeof *m);
    m->cpu = grt_backend_cpu.find_kernel(node, NULL); /* there is one: it was found before */
    const grt_status status = m->cpu->create ? m->cpu->create(node, &m->state) : GRT_OK;
    if (status != GRT_OK)
        free(m);
    else
        *out_state = m;
    return status;
}

static void destroy(void *state)
{
    mirror_state *m = state;
    if (m->cpu->destroy && m->state)
        m->cpu->destroy(m->state);
    free(m);
}

/* What reshape made, the CPU's and ours. */
typedef struct mirror_shape {
    void *cpu;
    const grt_kernel_row *row;
    grt_code *code; /* NULL: no kernel is generated for the step */
} mirror_shape;

static void release_shape(void *shape)
{
    mirror_shape *s = shape;
    if (s->cpu && s->row->release_shape)
        s->row->release_shape(s->cpu);
    grt_code_give(s->code);
    free(s);
}

static grt_status reshape(grt_reshape *r)
{
    mirror_state *m = r->state;
    grt_codes *codes = mirror_codes(r->device);
    mirror_shape *s = calloc(1, sizeof *s);
    if (!s)
        return grt_fail_memory(sizeof *s);
    s->row = m->cpu;
    r->state = m->state;
    grt_status status = m->cpu->reshape ? m->cpu->reshape(r) : GRT_OK;
    r->state = m;
    s->cpu = r->shape;
    if (status == GRT_OK && codes && mirror_code_is_for(r->desc))
        status = mirror_code_take(codes, r, &s->code);
    r->shape = NULL;
    if (status == GRT_OK)
        r->shape = s;
    else
        release_shape(s);
    return status;
}

static grt_status compute(const grt_run *r)
{
    const mirror_state *m = r->state;
    const mirror_shape *s = r->shape;
    grt_run own = *r;
    own.state = m->state;
    own.shape = s ? s->cpu : NULL;
    return m->cpu->run(&own);
}

static grt_status compute_generated(const grt_run *r)
{
    atomic_fetch_add(&mirror_code.generated, 1);
    return compute(r);
}

static grt_status compute_interpreted(const grt_run *r)
{
    atomic_fetch_add(&mirror_code.interpreted, 1);
    return compute(r);
}

/* Which one it is, is settled when it is enqueued. */
static const grt_kernel_row *row_of(const mirror_shape *s)
{
    static const grt_kernel_row plain = {.run = compute}, generated = {.run = compute_generated},
                                interpreted = {.run = compute_interpreted};
    return !s || !s->code ? &plain : grt_code_get(s->code) ? &generated : &interpreted;
}

static grt_status run(const grt_run *r)
{
    const grt_kernel_row *row = row_of(r->shape);
    mirror_graph *graph = r->stream ? mirror_stream_captured(r->stream) : NULL;
    if (graph)
        return mirror_graph_add_kernel(graph, row, r);
    if (r->stream)
        mirror_stream_wait(r->stream);
    return row->run(r);
}

/* Rows that were asked for, as long as the process lives. */
typedef struct mirror_row {
    grt_kernel_row row;
    const grt_kernel_row *cpu;
    struct mirror_row *next;
} mirror_row;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mirror_row *rows;

static mirror_row *find(const grt_kernel_row *cpu)
{
    for (mirror_row *m = rows; m; m = m->next)
        if (m->cpu == cpu)
            return m;
    mirror_row *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (mirror_row){*cpu, cpu, rows};
    made->row.create = create;
    made->row.destroy = destroy;
    made->row.reshape = reshape;
    made->row.release_shape = release_shape;
    made->row.run = run;
    return rows = made;
}

const grt_kernel_row *mirror_kernel(const grt_kernel_row *cpu, grt_text *why)
{
    pthread_mutex_lock(&lock);
    mirror_row *found = find(cpu);
    pthread_mutex_unlock(&lock);
    if (!found && why)
        grt_text_add(why, "there is no memory for it");
    return found ? &found->row : NULL;
}
