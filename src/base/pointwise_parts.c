/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/pointwise_parts.h"

enum { AXIS, START, SIZE, NUMBERS };

static bool pointwise_parts_is_one(const int64_t *numbers)
{
    return numbers[AXIS] >= 1 && numbers[AXIS] <= GRT_MAX_RANK && numbers[START] >= 0 &&
           numbers[SIZE] >= PW_LEAST_PART && numbers[SIZE] <= INT64_MAX - numbers[START];
}

grt_status grt_pointwise_check_parts(const grt_op_desc *desc, int32_t n_in)
{
    size_t n;
    const int64_t *parts = grt_attr_ints(desc, "parts", &n);
    if (n != (size_t)NUMBERS * (size_t)n_in)
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                           "attribute parts has %zu numbers; it must have %d for each of %d inputs", n,
                           NUMBERS, n_in);
    for (int32_t i = 0; i < n_in; i++) {
        const int64_t *numbers = parts + NUMBERS * i;
        const bool whole = !numbers[AXIS] && !numbers[START] && !numbers[SIZE];
        if (!whole && !pointwise_parts_is_one(numbers))
            return grt_fail_op(
                desc, GRT_STATUS_INVALID_MODEL,
                "attribute parts: input %d is read from %lld, %lld elements, along axis -%lld; "
                "a part has an axis, and %d elements or more",
                i, (long long)numbers[START], (long long)numbers[SIZE], (long long)numbers[AXIS],
                PW_LEAST_PART);
    }
    return GRT_OK;
}

pw_part grt_pointwise_part(const grt_op_desc *desc, int32_t i)
{
    size_t n;
    const int64_t *parts = grt_attr_ints(desc, "parts", &n);
    if (!grt_op_is(desc, "graphrt", "PointwiseParts") || n < (size_t)NUMBERS * ((size_t)i + 1))
        return (pw_part){0, 0, 0};
    parts += NUMBERS * i;
    return (pw_part){parts[AXIS], parts[START], parts[SIZE]};
}

grt_status grt_pointwise_view_part(const grt_op_desc *desc, int32_t i, const grt_tensor *whole,
                                   pw_part_view *out_view)
{
    const pw_part part = grt_pointwise_part(desc, i);
    *out_view = (pw_part_view){.part = *whole};
    out_view->part.data = NULL;
    if (!part.axis)
        return GRT_OK;
    const int32_t axis = (int32_t)(whole->rank - part.axis);
    if (axis < 0 || part.start + part.size > whole->dims[axis])
        return grt_fail_op(
            desc, GRT_STATUS_INVALID_ARGUMENT,
            "input %d is read from %lld to %lld along axis -%lld; it has rank %d and size %lld "
            "there",
            i, (long long)part.start, (long long)(part.start + part.size), (long long)part.axis, whole->rank,
            (long long)(axis < 0 ? 0 : whole->dims[axis]));
    const int64_t inner = grt_dims_product(whole->dims, axis + 1, whole->rank);
    out_view->part.dims[axis] = part.size;
    out_view->offset = part.start * inner;
    out_view->axis = axis;
    if (grt_dims_product(whole->dims, 0, axis) != 1)
        out_view->pitch = whole->dims[axis] * inner;
    return GRT_OK;
}

void grt_pointwise_view_strides(const pw_part_view *view, int32_t rank, int64_t *out_strides)
{
    const grt_tensor *part = &view->part;
    grt_broadcast_strides(part->dims, part->rank, rank, out_strides);
    if (!view->pitch)
        return;
    int64_t stride = view->pitch;
    for (int32_t k = view->axis - 1; k >= 0; k--) {
        out_strides[rank - part->rank + k] = part->dims[k] == 1 ? 0 : stride;
        stride *= part->dims[k];
    }
}

int32_t grt_pointwise_joined(const grt_op_desc *desc)
{
    const int64_t joined =
        grt_op_is(desc, "graphrt", "PointwiseConcat") ? grt_attr_int(desc, "joined", 1) : 1;
    return joined >= 1 && joined <= PW_MOST_JOINED ? (int32_t)joined : 1;
}

grt_status grt_pointwise_check_joined(const grt_op_desc *desc, int32_t n_in)
{
    const int64_t joined = grt_attr_int(desc, "joined", 0);
    if (joined >= 2 && joined <= PW_MOST_JOINED && joined <= n_in)
        return GRT_OK;
    return grt_fail_op(
        desc, GRT_STATUS_INVALID_MODEL,
        "attribute joined is %lld; it must lie in [2, %d], and there must be as many inputs, not %d",
        (long long)joined, PW_MOST_JOINED, n_in);
}

grt_status grt_pointwise_check_operands(const grt_op_desc *desc, int32_t n_in)
{
    if (grt_op_is(desc, "graphrt", "PointwiseParts"))
        return grt_pointwise_check_parts(desc, n_in);
    return grt_op_is(desc, "graphrt", "PointwiseConcat") ? grt_pointwise_check_joined(desc, n_in) : GRT_OK;
}

grt_status grt_pointwise_join(const grt_op_desc *desc, const grt_tensor *const *in, int32_t joined,
                              grt_tensor *out_whole)
{
    *out_whole = *in[0];
    out_whole->data = NULL;
    const int32_t last = out_whole->rank - 1;
    for (int32_t i = 1; i < joined; i++) {
        bool fits = last >= 0 && in[i]->rank == out_whole->rank && in[i]->dtype == out_whole->dtype;
        for (int32_t k = 0; fits && k < last; k++)
            fits = in[i]->dims[k] == out_whole->dims[k];
        if (!fits || in[i]->dims[last] > INT64_MAX - out_whole->dims[last])
            return grt_fail_op(desc, GRT_STATUS_INVALID_ARGUMENT,
                               "input %d cannot be joined with the inputs before it along the last axis", i);
        out_whole->dims[last] += in[i]->dims[last];
    }
    return GRT_OK;
}
