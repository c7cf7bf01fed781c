/* SPDX-License-Identifier: Apache-2.0 */
/* Walking tensors that are broadcast together, block by block.
 *
 * A walk is made once per shape: dims that can be walked as one are merged, so that most cases become one
 * long row. Running it calls `block` for pieces of at most PW_BLOCK output elements, in which every operand
 * is either a vector or one element. */
#ifndef GRT_BACKENDS_CPU_POINTWISE_WALK_H
#define GRT_BACKENDS_CPU_POINTWISE_WALK_H

#include "backends/kernel.h"

enum { PW_BLOCK = 1024 };

typedef struct pw_walk pw_walk;

/* One piece: write n elements to out. Where scalar[k] is set, in[k] is one element, else n. `scratch` is this
 * thread's. */
typedef void (*pw_block)(const void *user, int64_t n, void *out, const void *const *in, const uint8_t *scalar,
                         void *scratch);

/* For operands (dense, whole-byte elements, each broadcastable to dims) and an output of these dims. threads:
 * at most so many will run it. scratch_bytes: what `block` wants per thread. */
grt_status cpu_pw_walk_create(int32_t rank, const int64_t *dims, int32_t n, const grt_tensor *const *in,
                              int32_t threads, size_t scratch_bytes, pw_walk **out_walk);
/* The same for operands that are not dense: strides[k] walk operand k while the output is traversed; along
 * the output's last axes neighbours are neighbours or one element. NULL: as above. */
grt_status cpu_pw_walk_create_strided(int32_t rank, const int64_t *dims, int32_t n,
                                      const grt_tensor *const *in, const int64_t (*strides)[GRT_MAX_RANK],
                                      int32_t threads, size_t scratch_bytes, pw_walk **out_walk);
void cpu_pw_walk_release(void *walk); /* NULL-safe; fits grt_kernel_row.release_shape */
/* 64-byte aligned memory that running wants. */
size_t cpu_pw_walk_workspace(const pw_walk *walk);
/* data[k]: of operand k. out_size: bytes per output element. */
void cpu_pw_walk_run(const pw_walk *walk, const void *const *data, void *out, size_t out_size,
                     void *workspace, pw_block block, const void *user);

#endif
