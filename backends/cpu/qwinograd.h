/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 8-bit images with windows of 3 x 3, stride 1 and channels last by Winograd's F(2 x 2, 3 x
 * 3) in integers: four outputs take 16 products a channel where the definition takes 36. Transformed inputs
 * and weights are int16. Weights are transformed without halving, so that sums are four times what they
 * should be, modulo 2^32: sums that fit 30 bits are exact, which packing makes sure of. Zero points of
 * weights are subtracted before the transform, so that rows need no sums. */
#ifndef GRT_BACKENDS_CPU_QWINOGRAD_H
#define GRT_BACKENDS_CPU_QWINOGRAD_H

#include "backends/cpu/qgemm.h"
#include "backends/cpu/qwindow.h"

typedef struct cpu_qwinograd {
    const struct grt_qgemm_kernel *kernel;
    int64_t channels, filters; /* of input and output */
} cpu_qwinograd;

/* Weights in ONNX's order. */
typedef struct cpu_qwinograd_weights {
    const uint8_t *data;
    bool is_signed;
    const uint8_t *zero; /* one, or one for each filter, of the weights' type; NULL: zeros */
    bool zero_each;
} cpu_qwinograd_weights;

/* True if it is a convolution of that kind that gains with this kernel (NULL: this process's), which *out
 * then describes. Sizes that are not positive are not known. */
bool cpu_qwinograd_fits(const struct grt_qgemm_kernel *kernel, const cpu_window *w, int64_t channels,
                        int64_t filters, cpu_qwinograd *out);

bool cpu_qwinograd_packed_bytes(const cpu_qwinograd *c, size_t *out_bytes);
/* sums: of each filter. False: the sums of outputs might be too large. `packed` is 64-byte aligned. */
bool cpu_qwinograd_pack(const cpu_qwinograd *c, const cpu_qwinograd_weights *w, void *packed, int32_t *sums);

/* Bytes of 64-byte aligned scratch that a run wants with that many threads. False: overflow. */
bool cpu_qwinograd_scratch_bytes(const cpu_qwinograd *c, const cpu_window *w, int64_t images, int threads,
                                 size_t *out_bytes);
/* window: of all channels. finish->zero is NULL. y: the images' pixels, one behind the other. */
void cpu_qwinograd_run(const cpu_qwinograd *c, const cpu_qwindow *window, const void *packed,
                       const grt_qgemm_finish *finish, void *y, void *scratch, int threads);

#endif
