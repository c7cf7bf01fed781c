/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals: their items share memory where they can, so that growing a list does not copy its
 * tensors. */
#include "backends/cpu/cpu.h"
#include "src/base/checked.h"

#include <stdlib.h>
#include <string.h>

typedef struct sequence_state {
    int64_t axis;
    bool keep;       /* SplitToSequence: keepdims */
    bool new_axis;   /* ConcatFromSequence */
    grt_dtype dtype; /* SequenceEmpty, Optional without input */
} sequence_state;

static grt_status sequence_create(const grt_kernel_node *node, void **out_state)
{
    sequence_state *state = calloc(1, sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    const grt_attr *type = grt_attr_find(node->desc, "type");
    state->axis = grt_attr_int(node->desc, "axis", 0);
    state->keep = grt_attr_int(node->desc, "keepdims", 1) != 0;
    state->new_axis = grt_attr_int(node->desc, "new_axis", 0) != 0;
    state->dtype = (grt_dtype)grt_attr_int(node->desc, "dtype", GRT_DTYPE_FLOAT);
    if (type && type->kind == GRT_ATTR_TYPE)
        state->dtype = type->type.dtype;
    *out_state = state;
    return GRT_OK;
}

static const grt_value *in_value(const grt_run *run, int32_t i)
{
    return i < run->n_in ? (const grt_value *)run->in[i] : NULL;
}

static grt_value *out_value(const grt_run *run)
{
    return (grt_value *)run->out[0];
}

/* True if it is a tensor of one integer. */
static bool is_number(const grt_tensor *t)
{
    return ((const grt_value *)t)->kind == GRT_KIND_TENSOR && grt_dtype_in(t->dtype, GRT_SET_INTS) &&
           grt_tensor_elements(t) == 1;
}

/* The position that input i names among n, counted from the back if negative. */
static grt_status position(const grt_run *run, int32_t i, int64_t n, int64_t *out)
{
    const grt_tensor *t = run->in[i];
    if (!is_number(t))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "the position must be one number");
    int64_t p = grt_tensor_int(t, 0);
    if (p < -n || p >= n)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "position %lld is outside [%lld, %lld)",
                           (long long)p, (long long)-n, (long long)n);
    *out = p < 0 ? p + n : p;
    return GRT_OK;
}

static grt_status sequence_append(grt_value *sequence, const grt_value *value)
{
    grt_value *item;
    GRT_TRY(grt_value_insert(sequence, sequence->n, &item));
    return grt_value_share(item, value);
}

static grt_status sequence_scalar(grt_value *out, grt_dtype dtype, int64_t value)
{
    GRT_TRY(grt_value_alloc(out, dtype, 0, NULL));
    if (dtype == GRT_DTYPE_BOOL)
        *(uint8_t *)out->t.data = value != 0;
    else
        *(int64_t *)out->t.data = value;
    return GRT_OK;
}

static grt_status empty_run(const grt_run *run)
{
    const sequence_state *state = run->state;
    *out_value(run) = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = state->dtype};
    return GRT_OK;
}

static grt_status construct_run(const grt_run *run)
{
    *out_value(run) = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = run->in[0]->dtype};
    for (int32_t i = 0; i < run->n_in; i++)
        GRT_TRY(sequence_append(out_value(run), in_value(run, i)));
    return GRT_OK;
}

static grt_status insert_run(const grt_run *run)
{
    const grt_value *sequence = in_value(run, 0);
    int64_t at = (int64_t)sequence->n;
    grt_value *item;
    if (in_value(run, 2) && !(is_number(run->in[2]) && grt_tensor_int(run->in[2], 0) == at))
        GRT_TRY(position(run, 2, at, &at)); /* the position behind the last item is allowed too */
    GRT_TRY(grt_value_share(out_value(run), sequence));
    GRT_TRY(grt_value_insert(out_value(run), (size_t)at, &item));
    return grt_value_share(item, in_value(run, 1));
}

static grt_status erase_run(const grt_run *run)
{
    const grt_value *sequence = in_value(run, 0);
    int64_t at = (int64_t)sequence->n - 1;
    if (in_value(run, 1))
        GRT_TRY(position(run, 1, (int64_t)sequence->n, &at));
    else if (at < 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the sequence is empty: nothing can be erased");
    *out_value(run) = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = sequence->t.dtype};
    for (int64_t i = 0; i < (int64_t)sequence->n; i++)
        if (i != at)
            GRT_TRY(sequence_append(out_value(run), &sequence->items[i]));
    return GRT_OK;
}

static grt_status at_run(const grt_run *run)
{
    const grt_value *sequence = in_value(run, 0);
    int64_t at;
    GRT_TRY(position(run, 1, (int64_t)sequence->n, &at));
    return grt_value_share(out_value(run), &sequence->items[at]);
}

static grt_status length_run(const grt_run *run)
{
    return sequence_scalar(out_value(run), GRT_DTYPE_INT64, (int64_t)in_value(run, 0)->n);
}

/* Copy `rows` blocks of `bytes` between places that are `step` bytes apart. */
static void sequence_copy_blocks(char *dst, size_t dst_step, const char *src, size_t src_step, size_t bytes,
                                 int64_t rows)
{
    for (int64_t i = 0; bytes && i < rows; i++)
        memcpy(dst + (size_t)i * dst_step, src + (size_t)i * src_step, bytes);
}

/* Elements [from, from + n) of x along axis, as a new item. */
static grt_status add_piece(grt_value *sequence, const grt_tensor *x, int32_t axis, int64_t from, int64_t n,
                            bool keep)
{
    grt_value *item;
    int64_t dims[GRT_MAX_RANK], outer = grt_dims_product(x->dims, 0, axis);
    size_t inner = (size_t)grt_dims_product(x->dims, axis + 1, x->rank) * grt_dtype_size(x->dtype);
    int32_t rank = 0;
    for (int32_t k = 0; k < x->rank; k++)
        if (k != axis || keep)
            dims[rank++] = k == axis ? n : x->dims[k];
    GRT_TRY(grt_value_insert(sequence, sequence->n, &item));
    GRT_TRY(grt_value_alloc(item, x->dtype, rank, dims));
    sequence_copy_blocks(item->t.data, (size_t)n * inner, (const char *)x->data + (size_t)from * inner,
                         (size_t)x->dims[axis] * inner, (size_t)n * inner, outer);
    return x->dtype == GRT_DTYPE_STRING ? grt_value_copy_tensor(item, &item->t)
                                        : GRT_OK; /* string bytes of its own */
}

static grt_status check_lengths(const grt_run *run, const grt_tensor *split, int64_t size)
{
    int64_t sum = 0;
    char text[GRT_TYPE_TEXT_SIZE];
    if (split->rank != 1)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "split is %s; it must be a scalar or a list", grt_tensor_text(split, text));
    for (int64_t i = 0; i < grt_tensor_elements(split); i++) {
        int64_t n = grt_tensor_int(split, i);
        if (n < 0 || n > size - sum)
            return grt_fail_op(
                run->desc, GRT_STATUS_INVALID_ARGUMENT,
                "element %lld of split is %lld; the parts must be positive and add up to the dim, %lld",
                (long long)i, (long long)n, (long long)size);
        sum += n;
    }
    if (sum != size)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "split adds up to %lld; the dim is %lld",
                           (long long)sum, (long long)size);
    return GRT_OK;
}

/* Empty pieces use memory without bound in the input: their number is limited. */
static grt_status sequence_check_count(const grt_run *run, const grt_tensor *x, int64_t n)
{
    enum { MOST_EMPTY = 1 << 20 };
    if (n <= MOST_EMPTY || grt_tensor_elements(x) > 0)
        return GRT_OK;
    char text[GRT_TYPE_TEXT_SIZE];
    return grt_fail_op(run->desc, GRT_STATUS_UNSUPPORTED,
                       "%s would be split into %lld items without elements; at most %d are supported",
                       grt_tensor_text(x, text), (long long)n, (int)MOST_EMPTY);
}

static grt_status sequence_split_run(const grt_run *run)
{
    const sequence_state *state = run->state;
    const grt_tensor *x = run->in[0], *split = run->n_in > 1 ? run->in[1] : NULL;
    int64_t axis = grt_axis(state->axis, x->rank), from = 0, step = 1;
    if (((const grt_value *)x)->kind != GRT_KIND_TENSOR ||
        (split &&
         (((const grt_value *)split)->kind != GRT_KIND_TENSOR || !grt_dtype_in(split->dtype, GRT_SET_INTS))))
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the input must be a tensor, and split integers");
    if (axis < 0)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %lld does not exist in an input of rank %d", (long long)state->axis,
                           x->rank);
    int64_t size = x->dims[axis];
    *out_value(run) = (grt_value){.kind = GRT_KIND_SEQUENCE, .t.dtype = x->dtype};
    if (split && split->rank > 0) {
        GRT_TRY(check_lengths(run, split, size));
        for (int64_t i = 0; i < split->dims[0]; from += grt_tensor_int(split, i++))
            GRT_TRY(add_piece(out_value(run), x, (int32_t)axis, from, grt_tensor_int(split, i), true));
        return GRT_OK;
    }
    if (split)
        step = grt_tensor_int(split, 0);
    if (step < 1)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT, "split is %lld; it must be positive",
                           (long long)step);
    GRT_TRY(sequence_check_count(run, x, size / step + (size % step != 0)));
    for (int64_t n; from < size; from += n) {
        n = size - from < step ? size - from : step;
        GRT_TRY(add_piece(out_value(run), x, (int32_t)axis, from, n, split || state->keep));
    }
    return GRT_OK;
}

/* The result's dims: those of the first item, with `axis` summed up or added. */
static grt_status joined_dims(const grt_run *run, const grt_value *sequence, bool new_axis, int64_t *axis,
                              int64_t *dims, int32_t *rank)
{
    const grt_tensor *first = sequence->n ? &sequence->items[0].t : NULL;
    if (!first)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the sequence is empty: there is nothing to join");
    *rank = first->rank + new_axis;
    int64_t normal = grt_axis(*axis, *rank);
    if (normal < 0 || *rank > GRT_MAX_RANK)
        return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %lld does not exist in a result of rank %d", (long long)*axis, *rank);
    *axis = normal;
    for (int32_t k = 0, from = 0; k < *rank; k++)
        dims[k] = new_axis && k == normal ? 0 : first->dims[from++];
    dims[normal] = 0;
    for (size_t i = 0; i < sequence->n; i++) {
        const grt_tensor *t = &sequence->items[i].t;
        bool fits =
            sequence->items[i].kind == GRT_KIND_TENSOR && t->rank == first->rank && t->dtype == first->dtype;
        for (int32_t k = 0; fits && k < t->rank; k++)
            fits = t->dims[k] == first->dims[k] || (!new_axis && k == normal);
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        if (!fits)
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "item %zu, %s, cannot be joined with item 0, %s", i, grt_tensor_text(t, a),
                               grt_tensor_text(first, b));
        if (!grt_add_i64(dims[normal], new_axis ? 1 : t->dims[normal], &dims[normal]))
            return grt_fail_op(run->desc, GRT_STATUS_INVALID_ARGUMENT,
                               "the items' dims %lld add up to more than a dim can be", (long long)normal);
    }
    return GRT_OK;
}

static grt_status sequence_concat_run(const grt_run *run)
{
    const sequence_state *state = run->state;
    const grt_value *sequence = in_value(run, 0);
    grt_value *out = out_value(run);
    int64_t dims[GRT_MAX_RANK], axis = state->axis;
    int32_t rank = 0;
    GRT_TRY(joined_dims(run, sequence, state->new_axis, &axis, dims, &rank));
    grt_dtype dtype = sequence->items[0].t.dtype;
    GRT_TRY(grt_value_alloc(out, dtype, rank, dims));
    size_t inner = (size_t)grt_dims_product(dims, (int32_t)axis + 1, rank) * grt_dtype_size(dtype), at = 0;
    for (size_t i = 0; i < sequence->n; i++) {
        const grt_tensor *t = &sequence->items[i].t;
        size_t bytes = (size_t)(state->new_axis ? 1 : t->dims[axis]) * inner;
        sequence_copy_blocks((char *)out->t.data + at, (size_t)dims[axis] * inner, t->data, bytes, bytes,
                             grt_dims_product(dims, 0, (int32_t)axis));
        at += bytes;
    }
    return dtype == GRT_DTYPE_STRING ? grt_value_copy_tensor(out, &out->t) : GRT_OK;
}

static grt_status optional_run(const grt_run *run)
{
    const sequence_state *state = run->state;
    const grt_value *value = in_value(run, 0);
    *out_value(run) =
        (grt_value){.kind = GRT_KIND_OPTIONAL, .t.dtype = value ? value->t.dtype : state->dtype};
    return value ? sequence_append(out_value(run), value) : GRT_OK;
}

static grt_status has_element_run(const grt_run *run)
{
    const grt_value *value = in_value(run, 0);
    return sequence_scalar(out_value(run), GRT_DTYPE_BOOL,
                           value && (value->kind != GRT_KIND_OPTIONAL || value->n));
}

static grt_status get_element_run(const grt_run *run)
{
    const grt_value *value = in_value(run, 0);
    if (value->kind != GRT_KIND_OPTIONAL)
        return grt_value_share(out_value(run), value);
    if (!value->n)
        return grt_fail_op(
            run->desc, GRT_STATUS_INVALID_ARGUMENT,
            "the optional is empty: test it with OptionalHasElement before taking its element");
    return grt_value_share(out_value(run), &value->items[0]);
}

#define ROW(name, run_fn)                                                                                 \
    {                                                                                                     \
        .domain = "", .op = name, .flags = GRT_KERNEL_VALUES, .create = sequence_create, .destroy = free, \
        .run = run_fn                                                                                     \
    }
static const grt_kernel_row rows[] = {
    ROW("SequenceEmpty", empty_run),
    ROW("SequenceConstruct", construct_run),
    ROW("SequenceInsert", insert_run),
    ROW("SequenceErase", erase_run),
    ROW("SequenceAt", at_run),
    ROW("SequenceLength", length_run),
    ROW("SplitToSequence", sequence_split_run),
    ROW("ConcatFromSequence", sequence_concat_run),
    ROW("Optional", optional_run),
    ROW("OptionalHasElement", has_element_run),
    ROW("OptionalGetElement", get_element_run),
};
CPU_KERNELS(sequence, rows);
