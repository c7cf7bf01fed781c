/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mirror/graph.h"

#include <stdlib.h>
#include <string.h>

/* A copy, or with a row a kernel: its run has tensors of its own behind it. */
typedef struct node {
    struct node *next;
    void *dst;
    const void *src;
    size_t bytes;
    const grt_kernel_row *row;
    grt_run run;
    grt_tensor **pointers; /* inputs, then outputs */
    grt_tensor tensors[];
} node;

struct mirror_graph {
    node *first, **last;
};

mirror_graph *mirror_graph_create(void)
{
    mirror_graph *graph = calloc(1, sizeof *graph);
    if (graph)
        graph->last = &graph->first;
    return graph;
}

void mirror_graph_release(mirror_graph *graph)
{
    for (node *n = graph ? graph->first : NULL, *next; n; n = next) {
        next = n->next;
        free(n->pointers);
        free(n);
    }
    free(graph);
}

static void append(mirror_graph *graph, node *n)
{
    *graph->last = n;
    graph->last = &n->next;
}

grt_status mirror_graph_add_copy(mirror_graph *graph, void *dst, const void *src, size_t bytes)
{
    node *n = calloc(1, sizeof *n);
    if (!n)
        return grt_fail_memory(sizeof *n);
    n->dst = dst;
    n->src = src;
    n->bytes = bytes;
    append(graph, n);
    return GRT_OK;
}

grt_status mirror_graph_add_kernel(mirror_graph *graph, const grt_kernel_row *row, const grt_run *run)
{
    const size_t n_in = (size_t)run->n_in, n_all = n_in + (size_t)run->n_out;
    node *n = calloc(1, sizeof *n + n_all * sizeof *n->tensors);
    if (!n)
        return grt_fail_memory(sizeof *n);
    n->pointers = calloc(n_all + 1, sizeof(grt_tensor *));
    if (!n->pointers) {
        free(n);
        return grt_fail_memory(n_all * sizeof(grt_tensor *));
    }
    for (size_t i = 0; i < n_all; i++) {
        const grt_tensor *t = i < n_in ? run->in[i] : run->out[i - n_in];
        if (t)
            *(n->pointers[i] = &n->tensors[i]) = *t;
    }
    n->row = row;
    n->run = *run;
    n->run.in = (const grt_tensor *const *)n->pointers;
    n->run.out = n->pointers + n_in;
    append(graph, n);
    return GRT_OK;
}

grt_status mirror_graph_perform(const mirror_graph *graph)
{
    for (const node *n = graph->first; n; n = n->next)
        if (n->row)
            GRT_TRY(n->row->run(&n->run));
        else if (n->bytes)
            memcpy(n->dst, n->src, n->bytes);
    return GRT_OK;
}
