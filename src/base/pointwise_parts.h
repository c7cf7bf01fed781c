/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of element-wise groups that are not inputs as they are.
 *
 * Inputs of graphrt::PointwiseParts that are parts: a range along one axis of a larger tensor, read where it
 * lies. The attribute `parts` has three numbers for each input: the axis counted from the end (1: the last),
 * where the range begins, its size. All are 0 for an input that is read whole. */
#ifndef GRT_BASE_POINTWISE_PARTS_H
#define GRT_BASE_POINTWISE_PARTS_H

#include "src/base/op_desc.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

/* Neighbours within a part are neighbours in memory, so a part has more than one element along its axis. */
enum { PW_LEAST_PART = 2 };

typedef struct pw_part {
    int64_t axis, start, size; /* axis 0: the whole tensor */
} pw_part;

/* What a kernel reads of a tensor: dims as the part has them, and where its elements lie. */
typedef struct pw_part_view {
    grt_tensor part; /* without data */
    int64_t offset;  /* of its first element, in elements */
    int64_t pitch;   /* elements from one range to the next; 0: it is read whole, or is one range */
    int32_t axis;    /* of the part, if it has a pitch */
} pw_part_view;

/* graphrt::PointwiseConcat: its first operand is the Concat of its first inputs along their last axis, so
 * many of them; 1 for other ops. */
enum { PW_MOST_JOINED = 64 };
int32_t grt_pointwise_joined(const grt_op_desc *desc);
/* INVALID_MODEL if so many inputs are too few, or the attribute is out of range. */
grt_status grt_pointwise_check_joined(const grt_op_desc *desc, int32_t n_in);
/* What the first `joined` inputs are as one tensor, without data. INVALID_ARGUMENT if their dims do not fit.
 */
grt_status grt_pointwise_join(const grt_op_desc *desc, const grt_tensor *const *in, int32_t joined,
                              grt_tensor *out_whole);

/* INVALID_MODEL if the attribute does not fit n_in inputs. */
grt_status grt_pointwise_check_parts(const grt_op_desc *desc, int32_t n_in);
/* The check that the op has, if any. Kernels ask: plans may be forged. */
grt_status grt_pointwise_check_operands(const grt_op_desc *desc, int32_t n_in);
/* Of a checked instance: what input i is. Whole of other ops. */
pw_part grt_pointwise_part(const grt_op_desc *desc, int32_t i);
/* INVALID_ARGUMENT if the tensor, whose dims are known, has no such part. */
grt_status grt_pointwise_view_part(const grt_op_desc *desc, int32_t i, const grt_tensor *whole,
                                   pw_part_view *out_view);
/* Strides of the view broadcast to `rank` axes, as grt_broadcast_strides. */
void grt_pointwise_view_strides(const pw_part_view *view, int32_t rank, int64_t *out_strides);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
