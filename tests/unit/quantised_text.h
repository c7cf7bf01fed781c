/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs of quantised models have in common (ir_text.h): x, quantised to xq and widened to xd; r, which
 * is to be quantised and widened to the output y; weights. Scales are powers of two, so that integers and
 * floats give the same numbers. */
#ifndef GRT_TESTS_QUANTISED_TEXT_H
#define GRT_TESTS_QUANTISED_TEXT_H

#define X_QUANTISED               \
    "const s f32 - 0.0078125\n"   \
    "const z u8 - 128\n"          \
    "const t f32 - 0.5\n"         \
    "const ws f32 - 0.03125\n"    \
    "const wz i8 - 0\n"           \
    "xq = QuantizeLinear x s z\n" \
    "xd = DequantizeLinear xq s z\n"
#define Y_QUANTISED                 \
    "yq = QuantizeLinear r t z\n"   \
    "y = DequantizeLinear yq t z\n" \
    "out y\n"
#define WEIGHTS " 3 -7 100 -128 127 5 -60 33 18 -2 77\n"
#define RESIDUAL_QUANTISED        \
    "uq = QuantizeLinear u t z\n" \
    "ud = DequantizeLinear uq t z\n"

#endif
