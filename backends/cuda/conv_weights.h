/* SPDX-License-Identifier: Apache-2.0 */
/* The constant weights of a convolution with channels last, in the forms that its kernels read. */
#ifndef GRT_BACKENDS_CUDA_CONV_WEIGHTS_H
#define GRT_BACKENDS_CUDA_CONV_WEIGHTS_H

#include "backends/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed: of a convolution whose weights are read as ONNX has them. The pointers are to device memory; NULL
 * on a device that is only described. */
typedef struct cuda_conv_weights {
    void *turned_copy; /* with channels last, or NULL: the input has them as they are wanted */
    bool turned;       /* the input itself has channels last: the plan was made so */
    bool ready;     /* channels last, wherever they are; always, as ONNX has them, where that is the same */
    bool depthwise; /* one filter a channel, or several */
    void *rows;     /* padded to whole vectors, for windows that become rows (gemm_node.h); or NULL */
    void *filters;  /* of depthwise ones for our own kernel, [window, out_channels] */
} cuda_conv_weights;

/* Leaves out zeroed if the weights are no constant that is read with channels last. On failure, too,
 * cuda_conv_weights_destroy frees what out has. */
grt_status cuda_conv_weights_create(const grt_kernel_node *node, bool transposed, int64_t groups,
                                    cuda_conv_weights *out);
void cuda_conv_weights_destroy(const cuda_conv_weights *weights);
/* As they are wanted, of an input w. */
static inline const void *cuda_conv_weights_of(const cuda_conv_weights *weights, const void *w)
{
    return weights->turned_copy ? weights->turned_copy : w;
}
/* grt_kernel_row.pack of convolutions. */
grt_status cuda_conv_weights_pack(const grt_kernel_node *node, int32_t i, grt_packing *out_packing,
                                  void **out_data);

#ifdef __cplusplus
}
#endif
#endif
