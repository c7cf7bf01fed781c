/* SPDX-License-Identifier: Apache-2.0 */
/* The backend and the nouns of a GPU, as backends/backend.h and backends/device.h have them. */
#ifndef GRT_BACKENDS_CUDA_TABLES_H
#define GRT_BACKENDS_CUDA_TABLES_H

#include "backends/backend.h"

extern const grt_backend grt_backend_cuda;
extern const grt_memory_api cuda_memory;
extern const grt_copy_api cuda_copies;
extern const grt_pinned_api cuda_pinned;
extern const grt_stream_api cuda_streams;
extern const grt_part_api cuda_parts;
extern const grt_graph_api cuda_graphs;
extern const grt_timer_api cuda_timer;
extern const grt_fence_api cuda_fences;
extern const grt_peer_api cuda_peers;

#endif
