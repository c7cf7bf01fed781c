/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which convolutions read constant weights: channels last, [out, window, in] for ONNX's [out, in,
 * window]. */
#ifndef GRT_BACKENDS_CUDA_PACKING_H
#define GRT_BACKENDS_CUDA_PACKING_H

#include "src/base/packing.h"
#include "src/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the order differ at all? Rank 3 or more is wanted. */
bool cuda_packing_differs(const grt_tensor *weights);
void cuda_packing_turn(const grt_tensor *weights, void *out_data);
/* Name and size of the packed form of these weights. */
void cuda_packing_describe(const grt_tensor *weights, grt_packing *out_packing);
/* Is this the packed form of such weights? */
bool cuda_packing_is(const grt_packing *packing, const grt_tensor *weights);
/* The way back, for grt_backend.unpack. */
grt_status cuda_packing_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data);

#ifdef __cplusplus
}
#endif
#endif
