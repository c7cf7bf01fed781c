/* SPDX-License-Identifier: Apache-2.0 */
/* Generated kernels for groups of pointwise functions (graphrt::Pointwise): which shapes they are for, their
 * keys, their source. Needs no GPU.
 *
 * A thread computes CUDA_POINTWISE_VECTOR neighbouring elements of the result. How inputs are read is part of
 * the code; sizes are arguments, so one kernel serves all shapes of a form. Where the inner dim is no
 * multiple of the vector, these elements may lie in several of its lines: such a form is uneven. */
#ifndef GRT_BACKENDS_CUDA_POINTWISE_SOURCE_H
#define GRT_BACKENDS_CUDA_POINTWISE_SOURCE_H

#include "backends/kernel.h"
#include "src/base/pointwise_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_POINTWISE_INPUTS = 8,
    CUDA_POINTWISE_VECTOR = 8,
    CUDA_POINTWISE_BLOCK = 128,
    CUDA_POINTWISE_DIMS = 5
};
#define CUDA_POINTWISE_KERNEL "pointwise" /* the name of the function */

/* The result is seen as [outer, middle, inner]: its dims, joined where every input either has or repeats all
 * of them. Which of these dims an input has; along the others its elements are repeated. There are up to two
 * dims more between outer and middle, as where two inputs have every other dim each; then bit k is dim k from
 * the last. */
enum {
    CUDA_PLACE_ONE = 0, /* there is one for all */
    CUDA_PLACE_INNER = 1,
    CUDA_PLACE_MIDDLE = 2,
    CUDA_PLACE_OUTER = 4,
    CUDA_PLACE_OWN = 7 /* at the same place as the result's */
};

/* Of an input that is a part of several ranges (graphrt::PointwiseParts), its dims within a range are those
 * below `cut`, and ranges are `pitch` apart. */
typedef struct cuda_pointwise_form {
    int32_t n_in;
    grt_dtype in_dtype[CUDA_POINTWISE_INPUTS], out_dtype;
    uint8_t place[CUDA_POINTWISE_INPUTS], cut[CUDA_POINTWISE_INPUTS];
    uint32_t pitch[CUDA_POINTWISE_INPUTS]; /* vectors, or elements where it is read by elements */
    int32_t dims;                          /* 3 or more */
    bool uneven;
    int32_t joined; /* inputs that the first operand is joined of (graphrt::PointwiseConcat); 1: it is one */
    uint32_t n, inner,
        middle;        /* vectors in the result and in its inner dim (uneven: elements); the middle dim */
    uint32_t elements; /* of the result */
    uint32_t further[CUDA_POINTWISE_DIMS - 3]; /* dims behind the middle one, but the outermost */
} cuda_pointwise_form;

/* What a kernel is called with. */
typedef struct cuda_pointwise_args {
    const void *in[CUDA_POINTWISE_INPUTS];
    void *out;
    uint32_t n, inner, middle, further[CUDA_POINTWISE_DIMS - 3], elements, pitch[CUDA_POINTWISE_INPUTS];
    const void *part[PW_MOST_JOINED]; /* of the first operand */
    uint32_t ends[PW_MOST_JOINED];    /* of these along its last dim, in vectors */
    uint32_t joined;
} cuda_pointwise_args;

/* False: no kernel is generated for such shapes. */
bool cuda_pointwise_form_of(const pw_part_view *in, int32_t n_in, const grt_tensor *out,
                            cuda_pointwise_form *form);
/* Makes the form that of a group whose first operand is joined of these inputs. False: there is no kernel for
 * them. ends: as in the arguments. */
bool cuda_pointwise_join(const grt_tensor *const *in, int32_t joined, cuda_pointwise_form *form,
                         uint32_t *ends);
/* True if an input is a part of several ranges. */
bool cuda_pointwise_is_cut(const cuda_pointwise_form *form);
/* True if input i is read by whole vectors, so that it must be aligned to one. */
bool cuda_pointwise_reads_vectors(const cuda_pointwise_form *form, int32_t i);
/* Sizes for a call; the caller adds the data, where parts begin. */
void cuda_pointwise_sizes(const cuda_pointwise_form *form, cuda_pointwise_args *args);
/* The parts of a key that tell the kernel from others; behind grt_device_algo_key. */
void cuda_pointwise_key(const grt_op_desc *desc, const cuda_pointwise_form *form, grt_text *key);
/* CUDA C++ without headers. The desc is a valid program (grt_pointwise_check). */
void cuda_pointwise_source(const grt_op_desc *desc, const cuda_pointwise_form *form, grt_text *source);

#ifdef __cplusplus
}
#endif
#endif
