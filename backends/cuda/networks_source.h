/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels for graphrt::Networks: which there are, their keys, their source. Needs no GPU.
 *
 * Lanes of a warp are neighbouring networks, so that weights are read side by side. Of many rows a warp
 * brings several to shared memory at once, and a thread computes those of one network; what passes from layer
 * to layer stays there, and so do the weights of a block's networks where they are few. Of two layers that
 * are smaller still, two lanes share a network and keep its weights in registers for all of a warp's rows. Of
 * few rows a warp computes one feature of a layer. Widths and activations are code; the numbers of networks
 * and rows are arguments. */
#ifndef GRT_BACKENDS_CUDA_NETWORKS_SOURCE_H
#define GRT_BACKENDS_CUDA_NETWORKS_SOURCE_H

#include "backends/shared/networks.h"
#include "src/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_NETWORKS_KERNEL "networks" /* the name of the function */
enum { CUDA_NETWORKS_LANES = 32 };

typedef struct cuda_networks_form {
    const grt_networks *networks;
    grt_dtype dtype;
    bool few;     /* rows */
    bool whole;   /* rows of the input begin at multiples of 16 bytes */
    bool staged;  /* a block keeps its weights in shared memory */
    bool kept;    /* two lanes keep a network's weights in registers */
    int32_t rows; /* that a thread computes; of few: 1 */
} cuda_networks_form;

/* Of a device; shared memory in bytes. */
typedef struct cuda_networks_limits {
    size_t shared_of_block, shared_of_multiprocessor;
    int32_t multiprocessors;
} cuda_networks_limits;

/* Blocks of lanes x warps threads. */
typedef struct cuda_networks_grid {
    int32_t warps;
    int32_t networks, rows; /* that a block computes */
    size_t shared;          /* bytes that a block is launched with */
} cuda_networks_grid;

typedef struct cuda_networks_args {
    const void *x, *weights[GRT_NETWORKS_LAYERS], *bias[GRT_NETWORKS_LAYERS];
    void *y;
    uint32_t count, rows, lane;
} cuda_networks_args;

void cuda_networks_form_of(const grt_networks *networks, grt_dtype dtype, int64_t rows, int64_t count,
                           const cuda_networks_limits *limits, cuda_networks_form *out_form);
void cuda_networks_grid_of(const cuda_networks_form *form, int64_t rows, const cuda_networks_limits *limits,
                           cuda_networks_grid *out_grid);
/* What the input must begin at a multiple of. */
int32_t cuda_networks_alignment(const cuda_networks_form *form);
/* The parts of a key that tell the kernel from others; behind grt_device_algo_key. */
void cuda_networks_key(const cuda_networks_form *form, grt_text *key);
/* CUDA C++ without headers. */
void cuda_networks_source(const cuda_networks_form *form, grt_text *source);

#ifdef __cplusplus
}
#endif
#endif
