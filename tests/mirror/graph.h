/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the mirror: what a stream was given while it was captured. Pointers are as they were then, as in
 * a graph of a GPU's. */
#ifndef GRT_TESTS_MIRROR_GRAPH_H
#define GRT_TESTS_MIRROR_GRAPH_H

#include "backends/kernel.h"

typedef struct mirror_graph mirror_graph;

mirror_graph *mirror_graph_create(void);        /* NULL when out of memory */
void mirror_graph_release(mirror_graph *graph); /* NULL-safe */
grt_status mirror_graph_add_copy(mirror_graph *graph, void *dst, const void *src, size_t bytes);
grt_status mirror_graph_add_kernel(mirror_graph *graph, const grt_kernel_row *row, const grt_run *run);
grt_status mirror_graph_perform(const mirror_graph *graph);

#endif
