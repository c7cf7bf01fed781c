/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel.h. A kernel computes when it is run, not later: it waits until the stream has done what
 * was enqueued before. */
#include "tests/mirror/kernel.h"

#include "backends/backend.h"
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

static grt_status reshape(grt_reshape *r)
{
    mirror_state *m = r->state;
    r->state = m->state;
    const grt_status status = m->cpu->reshape(r);
    r->state = m;
    return status;
}

static grt_status run(const grt_run *r)
{
    const mirror_state *m = r->state;
    grt_run own = *r;
    own.state = m->state;
    mirror_graph *graph = r->stream ? mirror_stream_captured(r->stream) : NULL;
    if (graph)
        return mirror_graph_add_kernel(graph, m->cpu, &own);
    if (r->stream)
        mirror_stream_wait(r->stream);
    return m->cpu->run(&own);
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
    made->row.reshape = cpu->reshape ? reshape : NULL;
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
