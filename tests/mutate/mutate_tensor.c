/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in the file: inconsistent dims, dtypes and data, short data, critical values. */
#include "tests/differential/draw.h"
#include "tests/mutate/content.h"
#include "tests/mutate/mutation.h"

#include <string.h>

enum { MOST_ELEMENTS = 4096 };

static Onnx__TensorProto *draw_tensor(mutation *m)
{
    return m->n_tensors ? m->tensors[mutation_pick(m->n_tensors)] : NULL;
}

static void tell(mutation *m, const Onnx__TensorProto *t, const char *change, int64_t to)
{
    mutation_tell(m, "tensor %s: %s %lld", t->name ? t->name : "", change, (long long)to);
}

void mutation_fit(mutation *m, Onnx__TensorProto *t)
{
    grt_tensor type = {.dtype = (grt_dtype)t->data_type, .rank = (int32_t)t->n_dims};
    if (t->n_dims > GRT_MAX_RANK)
        return;
    for (size_t k = 0; k < t->n_dims; k++) {
        type.dims[k] = t->dims[k];
        if (t->dims[k] < 0)
            return;
    }
    const int64_t elements = grt_tensor_elements(&type);
    if (type.dtype == GRT_DTYPE_STRING || !grt_dtype_bits(type.dtype) || elements < 0 ||
        elements > MOST_ELEMENTS)
        return;
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data =
        t->n_string_data = 0;
    t->has_raw_data = true;
    t->raw_data.len = grt_tensor_bytes(&type);
    t->raw_data.data = grt_arena_alloc(m->arena, t->raw_data.len + 1);
    fill(type.dtype, elements, t->raw_data.data, true);
}

bool mutate_tensor_dims(mutation *m)
{
    Onnx__TensorProto *t = draw_tensor(m);
    if (!t)
        return false;
    const int64_t to = draw(0, 1) ? draw(0, 5) : telling_int(), how = draw(0, 3);
    if (how == 0 && t->n_dims)
        t->n_dims--;
    else if (how == 1 || !t->n_dims)
        MUTATION_APPEND(m, t->dims, t->n_dims, to);
    else
        t->dims[mutation_pick(t->n_dims)] = to;
    tell(m, t, "dim", to);
    if (draw(0, 2))
        mutation_fit(m, t);
    return true;
}

bool mutate_tensor_dtype(mutation *m)
{
    Onnx__TensorProto *t = draw_tensor(m);
    if (!t)
        return false;
    t->has_data_type = true;
    t->data_type = (int32_t)(draw(0, 9) ? draw(0, GRT_DTYPE_COUNT) : telling_int());
    tell(m, t, "dtype", t->data_type);
    if (draw(0, 2))
        mutation_fit(m, t);
    return true;
}

/* Less data than there should be, or none. */
bool mutate_tensor_cut(mutation *m)
{
    Onnx__TensorProto *t = draw_tensor(m);
    if (!t)
        return false;
    size_t *lists[] = {&t->n_float_data,  &t->n_int32_data,  &t->n_int64_data,
                       &t->n_double_data, &t->n_uint64_data, &t->n_string_data};
    if (draw(0, 3) == 0) {
        t->has_raw_data = false;
        t->raw_data = (ProtobufCBinaryData){0};
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            *lists[i] = 0;
        tell(m, t, "elements", 0);
        return true;
    }
    if (t->has_raw_data && t->raw_data.len) {
        t->raw_data.len = mutation_pick(t->raw_data.len);
        tell(m, t, "bytes", (int64_t)t->raw_data.len);
        return true;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (*lists[i]) {
            *lists[i] = mutation_pick(*lists[i]);
            tell(m, t, "elements", (int64_t)*lists[i]);
            return true;
        }
    return false;
}

bool mutate_tensor_values(mutation *m)
{
    Onnx__TensorProto *t = draw_tensor(m);
    if (!t)
        return false;
    mutation_fit(m, t);
    tell(m, t, "other values, bytes", (int64_t)t->raw_data.len);
    return true;
}

/* Data in a field of another type, or in two. */
bool mutate_tensor_field(mutation *m)
{
    Onnx__TensorProto *t = draw_tensor(m);
    if (!t)
        return false;
    const int64_t field = draw(0, 4);
    if (draw(0, 1))
        t->has_raw_data = false;
    if (field == 0)
        MUTATION_APPEND(m, t->float_data, t->n_float_data, telling_float());
    else if (field == 1)
        MUTATION_APPEND(m, t->int32_data, t->n_int32_data, (int32_t)telling_int());
    else if (field == 2)
        MUTATION_APPEND(m, t->int64_data, t->n_int64_data, telling_int());
    else if (field == 3)
        MUTATION_APPEND(m, t->double_data, t->n_double_data, (double)telling_float());
    else
        MUTATION_APPEND(m, t->uint64_data, t->n_uint64_data, (uint64_t)telling_int());
    tell(m, t, "one more element in field", field);
    return true;
}
