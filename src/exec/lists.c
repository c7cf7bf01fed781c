/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/lists.h"

#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

grt_status grt_lists_create(grt_lists *l, int32_t n)
{
    l->v = calloc((size_t)n + 1, sizeof *l->v);
    l->n = n;
    for (int32_t i = 0; l->v && i < n; i++)
        l->v[i].kind = GRT_KIND_SEQUENCE;
    return l->v ? GRT_OK : grt_fail_memory((size_t)n * sizeof *l->v);
}

void grt_lists_release(grt_lists *l)
{
    for (int32_t i = 0; l->v && i < l->n; i++)
        grt_value_clear(&l->v[i]);
    free(l->v);
}

/* Copy between a tensor of rank r+1 and its slice `index` along `axis`. */
static void copy_slice(const grt_tensor *whole, const grt_tensor *slice, int32_t axis, int64_t index,
                       bool to_whole)
{
    size_t size = grt_dtype_size(whole->dtype);
    size_t inner = (size_t)grt_dims_product(whole->dims, axis + 1, whole->rank) * size;
    int64_t outer = grt_dims_product(whole->dims, 0, axis);
    for (int64_t o = 0; inner && o < outer; o++) {
        char *w = (char *)whole->data + (size_t)(o * whole->dims[axis] + index) * inner;
        char *s = (char *)slice->data + (size_t)o * inner;
        memcpy(to_whole ? w : s, to_whole ? s : w, inner);
    }
}

static grt_status check_whole_bytes(const grt_plan_step *step, grt_dtype dtype)
{
    if (grt_dtype_size(dtype) == 0)
        return grt_fail_op(&step->desc, GRT_STATUS_UNSUPPORTED, "scanned tensors of %s are not supported",
                           grt_dtype_name(dtype));
    return GRT_OK;
}

grt_status grt_slice_take(const grt_plan_step *step, const grt_value *whole, int64_t axis, int64_t index,
                          grt_value *slot)
{
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0, k = 0; i < whole->t.rank; i++)
        if (i != axis)
            dims[k++] = whole->t.dims[i];
    GRT_TRY(check_whole_bytes(step, whole->t.dtype));
    GRT_TRY(grt_value_alloc(slot, whole->t.dtype, whole->t.rank - 1, dims));
    copy_slice(&whole->t, &slot->t, (int32_t)axis, index, false);
    return GRT_OK;
}

grt_status grt_list_stack(const grt_plan_step *step, const grt_value *list, int64_t axis, bool reverse,
                          grt_value *out)
{
    if (!list->n)
        return GRT_OK;
    const grt_tensor *first = &list->items[0].t;
    GRT_TRY(check_whole_bytes(step, first->dtype));
    int32_t rank = first->rank + 1;
    axis = grt_axis(axis, rank);
    if (axis < 0 || rank > GRT_MAX_RANK)
        return grt_fail_op(&step->desc, GRT_STATUS_INVALID_ARGUMENT, "scan output axis does not fit rank %d",
                           rank);
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0, k = 0; i < rank; i++)
        dims[i] = i == axis ? (int64_t)list->n : first->dims[k++];
    GRT_TRY(grt_value_alloc(out, first->dtype, rank, dims));
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].kind != GRT_KIND_TENSOR)
            return grt_fail_op(
                &step->desc, GRT_STATUS_INVALID_ARGUMENT,
                "a scan output must be a tensor in all iterations; it is none in iteration %zu", i);
        if (!grt_tensor_same_type(first, &list->items[i].t)) {
            char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
            return grt_fail_op(
                &step->desc, GRT_STATUS_INVALID_ARGUMENT,
                "a scan output must have one shape in all iterations: %s in the first, %s in iteration %zu",
                grt_tensor_text(first, a), grt_tensor_text(&list->items[i].t, b), i);
        }
        copy_slice(&out->t, &list->items[i].t, (int32_t)axis, (int64_t)(reverse ? list->n - 1 - i : i), true);
    }
    return GRT_OK;
}

grt_status grt_list_append(grt_value *list, const grt_value *value)
{
    grt_value *item;
    GRT_TRY(grt_value_insert(list, list->n, &item));
    return grt_value_share(item, value);
}

/* The dims that the source declares of the body's output; NULL if it says nothing. */
static const int64_t *declared_dims(const grt_op_desc *desc, int32_t output, int32_t *out_rank)
{
    size_t n, at = 0;
    const int64_t *list = grt_attr_ints(desc, GRT_ATTR_DECLARED, &n);
    for (int32_t i = 0; list && at < n; i++) {
        const int64_t rank = list[at++];
        if (rank > GRT_MAX_RANK || (rank > 0 && (size_t)rank > n - at))
            return NULL;
        if (i == output) {
            *out_rank = (int32_t)rank;
            return rank < 0 ? NULL : list + at;
        }
        at += rank > 0 ? (size_t)rank : 0;
    }
    return NULL;
}

grt_status grt_list_stack_none(grt_frame *frame, const grt_op_desc *desc, int32_t output, int64_t axis,
                               grt_value *out)
{
    const grt_plan_value *v = &frame->program->body->values[frame->program->body->outputs[output]];
    const grt_program *main = frame->executor->main->program;
    int64_t dims[GRT_MAX_RANK] = {0};
    int32_t declared_rank = -1;
    const int64_t *declared = declared_dims(desc, output, &declared_rank);
    const int32_t inner = v->rank >= 0 ? v->rank : declared_rank > 0 ? declared_rank : 0;
    if (declared_rank != inner)
        declared = NULL;
    int32_t rank = inner + 1;
    axis = grt_axis(axis, rank);
    if (axis < 0 || rank > GRT_MAX_RANK)
        axis = 0, rank = 1;
    for (int32_t i = 0, k = 0; i < rank; i++) {
        if (i == axis)
            continue;
        const int32_t dim = v->rank >= 0 ? v->dims[k] : -1;
        const bool known = dim >= 0 && main->dims_known[dim] && main->dims[dim] >= 0;
        dims[i] = known ? main->dims[dim] : declared && declared[k] > 0 ? declared[k] : 0;
        k++;
    }
    return grt_value_alloc(out, v->dtype, rank, dims);
}
