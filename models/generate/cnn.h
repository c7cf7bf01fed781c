/* SPDX-License-Identifier: Apache-2.0 */
// What the convolutional families share.
#ifndef GRT_MODELS_CNN_H
#define GRT_MODELS_CNN_H

#include "builder.h"

struct cnn_conv {
    int64_t in, out, kernel, stride, groups; // padding keeps the size at stride 1
    float gain;                              // see gen_weight_scaled
};

// name.weight
gen_value cnn_conv(struct gen *g, gen_value x, const char *name, struct cnn_conv conv);
// name.{weight,bias,running_mean,running_var}; the scale is around `scale`: small on the last one of a
// residual branch, so that activations do not grow with depth.
gen_value cnn_batch_norm(struct gen *g, gen_value x, const char *name, int64_t channels, float scale);
gen_value cnn_max_pool(struct gen *g, gen_value x, int64_t kernel, int64_t stride, int64_t pad);
gen_value cnn_average_pool(struct gen *g, gen_value x, int64_t kernel, int64_t stride);
// A fully connected layer on [N, in]: name.{weight,bias}, weight [out, in].
gen_value cnn_gemm(struct gen *g, gen_value x, const char *name, int64_t in, int64_t out, float gain);

#endif
