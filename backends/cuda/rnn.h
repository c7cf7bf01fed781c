/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers: what a node says, the sizes of one combination of dims, and the three ways to run it. */
#ifndef GRT_BACKENDS_CUDA_RNN_H
#define GRT_BACKENDS_CUDA_RNN_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/rnn_row_blocks.h"
#include "backends/cuda/rnn_tiles.h"
#include "backends/shared/rnn.h"

struct rnn_layer : grt_rnn_layer {
    bool tf32;
};

struct rnn_size : grt_rnn_places {
    int64_t input, hidden;
};

/* Pointers of a run; NULL where there is none. `projected`: X W^T, [directions, gates, hidden] for each row
 * of X, where that lies. */
template <class T> struct rnn_data {
    const T *projected, *r, *bias, *h0, *c0, *peepholes;
    const int32_t *lengths;
    T *y, *last_h, *last_c;
};

/* False if the layer has something that this kernel has not, or too many numbers. */
bool rnn_resident_takes(const rnn_layer *layer, const rnn_size *size, grt_dtype dtype,
                        const struct cudaDeviceProp *device, rnn_tiles *out_tiles);
cudaError_t rnn_resident_prepare(const rnn_layer *layer, const rnn_size *size, const rnn_tiles *tiles,
                                 grt_dtype dtype);
/* messages: tiles->message_bytes of device memory. data: a rnn_data of the dtype's C++ type. */
grt_status rnn_resident_run(const rnn_layer *layer, const rnn_size *size, const rnn_tiles *tiles,
                            grt_dtype dtype, const void *data, void *messages, cudaStream_t stream);

/* The same where a block can have all hidden units of some rows: those have no need of other blocks. */
bool rnn_rows_takes(const rnn_layer *layer, const rnn_size *size, grt_dtype dtype,
                    const struct cudaDeviceProp *device, rnn_row_blocks *out_rows);
cudaError_t rnn_rows_prepare(const rnn_layer *layer, const rnn_row_blocks *rows, grt_dtype dtype);
grt_status rnn_rows_run(const rnn_layer *layer, const rnn_size *size, const rnn_row_blocks *rows,
                        grt_dtype dtype, const void *data, cudaStream_t stream);

typedef struct rnn_steps rnn_steps;

grt_status rnn_steps_create(cuda_device *device, const grt_op_desc *desc, const rnn_layer *layer,
                            const rnn_size *size, grt_dtype dtype, rnn_steps **out_steps);
void rnn_steps_release(rnn_steps *steps); /* NULL-safe */
size_t rnn_steps_workspace(const rnn_steps *steps);
grt_status rnn_steps_run(const rnn_steps *steps, const grt_op_desc *desc, const void *data, void *workspace,
                         cudaStream_t stream);

#endif
