/* SPDX-License-Identifier: Apache-2.0 */
/* libgraphrt: write quantised ONNX models. The rules of graphrt/graphrt.h hold here, too; docs/quantize.md has this at
 * length.
 *
 * The result is ONNX of the standard's own operators, which other runtimes open: QuantizeLinear and DequantizeLinear
 * around layers (static), DynamicQuantizeLinear and MatMulInteger (dynamic), DequantizeLinear of weights (weights
 * alone). Layers are Conv, MatMul and Gemm with constant float32 weights in the main graph. */
#ifndef GRAPHRT_QUANTIZE_H
#define GRAPHRT_QUANTIZE_H

#include <graphrt/graphrt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum grt_quantize_mode {
    GRT_QUANTIZE_STATIC = 0,  /* scales of activations come from samples */
    GRT_QUANTIZE_DYNAMIC = 1, /* MatMul and Gemm: activations get their scales when the model runs */
    GRT_QUANTIZE_WEIGHTS = 2, /* MatMul and Gemm: weights alone; activations stay float32 */
} grt_quantize_mode;

/* How the range of a value follows from what samples show of it. */
typedef enum grt_calibration {
    GRT_CALIBRATION_MIN_MAX = 0,    /* smallest and largest */
    GRT_CALIBRATION_PERCENTILE = 1, /* without the outermost elements */
    GRT_CALIBRATION_MSE = 2,        /* the range with the least mean square error */
} grt_calibration;

/* One layer of the model, in the order of nodes. */
typedef struct grt_quantize_layer {
    size_t struct_size;  /* set by the library */
    const char *name;    /* of the node, or of its output if it has none; printable */
    const char *op;
    const char *kept;    /* why the layer stays float32; NULL: it is quantised */
    int64_t weights;     /* elements */
    double weight_error; /* of quantised weights: root of the sum of squared errors over the sum of squares */
    double error;        /* the same of the layer's output with the float model's inputs; -1: not measured */
} grt_quantize_layer;

/* Options; zeroes are defaults. */
typedef struct grt_quantize_options {
    size_t struct_size;
    grt_quantize_mode mode;
    grt_calibration calibration;
    double percentile;         /* of GRT_CALIBRATION_PERCENTILE: elements that are within the range; 0: 99.99 */
    grt_dtype activations;     /* STATIC: UINT8 (default) with a zero point, INT8, symmetric, as GPUs want it, or
                                  FLOAT8E4M3FN: MatMul and Gemm alone, whose weights become FLOAT8E4M3FN, too, with one
                                  scale each */
    grt_dtype weights;         /* WEIGHTS: INT8 (default), INT4 or FLOAT8E4M3FN; otherwise 0, or what follows from
                                  activations */
    int64_t block;             /* WEIGHTS: elements of a weight that share a scale, at least 16; 0: 32; -1: one scale
                                  for each output channel */
    const char *ops;           /* ops of layers, comma-separated; NULL: "Conv,MatMul,Gemm". "ConvTranspose" is the
                                  fourth */
    const char *keep;          /* names of layers that stay float32, comma-separated, with *, ? and [] as in file names;
                                  NULL: none. A name that fits no layer is INVALID_ARGUMENT */
    double max_error;          /* layers are put back to float32, those with the largest error first, until the model's
                                  error is at most this; 0: none */
    int64_t measured;          /* samples that errors are measured with, spread over all; 0: 16; -1: none */
    /* Samples for calibration and for errors: fill `values`, one for each input of the model as grt_model_input counts
     * them (NULL: its default), with values that the library releases. False: none could be made, which fails the call.
     * Called with any index below n_samples, more than once. STATIC needs at least one. */
    size_t n_samples;
    bool (*sample)(void *user, size_t index, grt_value **values);
    const char *samples_id;    /* text that differs where samples do, for `state`; NULL: "" */
    const char *state;         /* a file for statistics: written as samples are seen, and read by a later call with the
                                  same model, samples and calibration, which goes on from there. NULL: none */
    int32_t threads;           /* as in grt_session_options */
    bool allow_symlinks;       /* as in grt_compile_options */
    bool external_weights;     /* weights go into OUT_PATH.data; they do anyway where a file would be 2 GiB or more */
    void (*progress)(void *user, const char *phase, double fraction); /* of this phase, 0 to 1; may be NULL */
    bool (*cancel)(void *user); /* true ends the call with CANCELLED; `state` keeps what was seen. May be NULL */
    void (*layer)(void *user, const grt_quantize_layer *layer); /* called for every layer at the end; may be NULL */
    void *user;                /* for all callbacks */
} grt_quantize_options;

/* What came of it. */
typedef struct grt_quantize_report {
    size_t struct_size;        /* set by the caller */
    int64_t layers, quantised; /* all, and those that are not float32 */
    int64_t values;            /* activations that are quantised */
    int64_t put_back;          /* layers that stay float32 because of max_error */
    int64_t folded;            /* batch normalisations that went into convolutions */
    int64_t opset_before, opset;
    int64_t samples;           /* seen for calibration, in this call or an earlier one */
    int64_t resumed;           /* of these, those that `state` had */
    int64_t measured;          /* samples that errors were measured with */
    double error;              /* of the float32 output that has the largest: root of the sum of squared errors over the
                                  sum of squares; -1: not measured */
    double largest_error;      /* the largest of single elements; -1: not measured */
    uint64_t bytes_before, bytes; /* of the model's weights and of the files that were written */
} grt_quantize_report;

/* Quantise a float32 model. The file is written whole or not at all. The same model, options and samples give the same
 * bytes on the same instruction set. out_report may be NULL.
 * Threads: any. Errors: IO, INVALID_MODEL, UNSUPPORTED (an opset that cannot be raised to 13, or to 21 for weights in
 * blocks), INVALID_ARGUMENT (an option; nothing to quantise; the model in place of itself; max_error cannot be
 * reached), CANCELLED. */
GRT_API GRT_MUST_USE grt_status grt_quantize(const char *onnx_path, const grt_quantize_options *options,
                                             const char *out_path, grt_quantize_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
