/* SPDX-License-Identifier: Apache-2.0 */
/* A small shim over oneDNN's C API (2.6 and 3.x). Only the files dnnl* see its header.
 *
 * Life of an operation: create (for one concrete shape) -> weights_bytes, prepack -> scratch_bytes -> run.
 * All memory is the caller's; run neither allocates nor locks. An operation holds the pointers of its latest
 * run, so it belongs to one thread at a time; the packed weights may be shared by any number of operations
 * that want the same layout (grt_dnnl_op_same_weights, or `like` at creation).
 *
 * Activations are float32 and plain: N C spatial, or N spatial C. Only weights take the library's own layout.
 * Functions that can fail put a sentence into `err` (always terminated, may be NULL with n = 0) and leave
 * grt_last_error() alone. OUT_OF_MEMORY is to be handed on, and DEVICE: oneDNN cannot be opened, and the
 * sentence is in grt_last_error(). Any other failure of a creation says that oneDNN has no such operation. */
#ifndef GRT_BACKENDS_CPU_DNNL_H
#define GRT_BACKENDS_CPU_DNNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/dnnl_conv.h"
#include "src/base/status.h"

typedef struct grt_dnnl_op grt_dnnl_op;

/* `threads` (at least 1) is what every run of the operation uses; oneDNN fixes it at creation. `like` may be
 * NULL; else the operation reads weights in the layout that `like` reads. *out is NULL on failure. */
grt_status grt_dnnl_conv_create(const grt_dnnl_conv *conv, const grt_dnnl_op *like, int threads,
                                grt_dnnl_op **out, char *err, size_t n);
void grt_dnnl_op_release(grt_dnnl_op *op);

/* The library's name of the kernel, such as "jit_1x1:avx2"; lives as long as the operation. */
const char *grt_dnnl_op_impl(const grt_dnnl_op *op);

/* 0 for operations without weights. */
size_t grt_dnnl_op_weights_bytes(const grt_dnnl_op *op);
bool grt_dnnl_op_same_weights(const grt_dnnl_op *a, const grt_dnnl_op *b);
/* A word for the layout that the operation wants its weights in, valid for this version of the library and
 * others; NULL: there is none. */
const char *grt_dnnl_op_weights_format(const grt_dnnl_op *op);
/* `bytes` of weights in that format are what the operation reads. */
bool grt_dnnl_op_reads_format(const grt_dnnl_op *op, const char *format, size_t bytes);
/* Weights to `packed` (64-byte aligned, weights_bytes long), from ONNX's order if format is NULL, else from
 * that format. Allocates; not for the run path. */
grt_status grt_dnnl_op_prepack(const grt_dnnl_op *op, const char *format, const void *weights, size_t bytes,
                               void *packed, char *err, size_t n);
/* From a format back to ONNX's order. */
grt_status grt_dnnl_unpack(const grt_dnnl_filter *filter, const char *format, const void *packed,
                           size_t bytes, float *weights, char *err, size_t n);

/* Scratch for one run, 64-byte aligned; may be 0. */
size_t grt_dnnl_op_scratch_bytes(const grt_dnnl_op *op);

typedef struct grt_dnnl_args {
    const float *src;
    const void *weights;   /* packed */
    const float *bias;     /* out_channels values when the operation was created with bias */
    const float *residual; /* for GRT_DNNL_POST_ADD */
    float *dst;
    void *scratch;
} grt_dnnl_args;

grt_status grt_dnnl_op_run(grt_dnnl_op *op, const grt_dnnl_args *args, char *err, size_t n);

#endif
