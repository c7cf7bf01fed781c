/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/differential/node.h"

#include "tests/differential/buffer.h"
#include "tests/differential/draw.h"
#include "tools/element.h"

#include <stdio.h>
#include <string.h>

grt_tensor *add_input(node *n, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    grt_tensor *t = &n->in[n->n_in++];
    *t = (grt_tensor){.dtype = dtype, .rank = rank};
    for (int32_t k = 0; k < rank; k++)
        t->dims[k] = dims[k];
    t->data = guarded(grt_tensor_bytes(t));
    const int64_t elements = grt_tensor_elements(t);
    for (int64_t i = 0; i < elements; i++)
        element_set(t, i,
                    dtype_is_float(dtype)     ? draw_real() * 4 - 2
                    : dtype == GRT_DTYPE_BOOL ? (double)draw(0, 1)
                                              : (double)draw(-9, 9));
    return t;
}

void add_list(node *n, const int64_t *values, int64_t count)
{
    grt_tensor *t = add_input(n, GRT_DTYPE_INT64, 1, &count);
    if (count)
        memcpy(t->data, values, (size_t)count * sizeof *values);
    n->constant[n->n_in - 1] = draw(0, 1);
}

void add_number(node *n, grt_dtype dtype, double value)
{
    element_set(add_input(n, dtype, 0, NULL), 0, value);
    n->constant[n->n_in - 1] = draw(0, 1);
}

void set_int(node *n, const char *name, int64_t value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .ints = {value}, .n = -1};
}

void set_real(node *n, const char *name, double value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .real = (float)value, .n = -2};
}

void set_ints(node *n, const char *name, const int64_t *values, int count)
{
    attribute *a = &n->attributes[n->n_attributes++];
    *a = (attribute){.name = name, .n = count};
    memcpy(a->ints, values, (size_t)count * sizeof *values);
}

void set_text(node *n, const char *name, const char *value)
{
    n->attributes[n->n_attributes++] = (attribute){.name = name, .text = value};
}

void node_release(node *n)
{
    for (int i = 0; i < n->n_in; i++)
        release(n->in[i].data);
    for (int i = 0; i < n->n_in; i++) {
        release(n->coded[i].codes.data);
        release(n->coded[i].scale.data);
        release(n->coded[i].zero.data);
    }
    n->n_in = 0;
}

bool node_guards_hold(const node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (!n->omitted[i] && !guards_hold(n->in[i].data, grt_tensor_bytes(&n->in[i])))
            return false;
    return true;
}

void node_settle(const node *n, node *out)
{
    *out = *n;
    for (int i = 0; i < n->n_in; i++) {
        const size_t bytes = grt_tensor_bytes(&n->in[i]);
        const int64_t rows = n->computed[i] ? n->in[i].dims[0] : 1;
        const size_t row = bytes / (size_t)(rows ? rows : 1);
        if (n->omitted[i])
            continue;
        out->in[i].data = guarded(bytes);
        out->computed[i] = false;
        out->coded[i] = (coded){0};
        for (int64_t k = 0; k < rows; k++)
            memcpy((char *)out->in[i].data + (size_t)k * row,
                   (const char *)n->in[i].data + (size_t)(rows - 1 - k) * row, row);
    }
}

void node_widen(const node *n, node *out)
{
    *out = *n;
    memset(out->coded, 0, sizeof out->coded);
    out->out = GRT_DTYPE_FLOAT;
    for (int i = 0; i < n->n_in; i++) {
        const grt_tensor *from = &n->in[i];
        grt_tensor *to = &out->in[i];
        if (n->omitted[i])
            continue;
        if (dtype_is_float(from->dtype))
            to->dtype = GRT_DTYPE_FLOAT;
        to->data = guarded(grt_tensor_bytes(to));
        for (int64_t k = 0; k < grt_tensor_elements(from); k++)
            element_set(to, k, element_get(from, k));
    }
}

void node_describe(const node *n, char *text, size_t size)
{
    size_t at =
        (size_t)snprintf(text, size, "%s%s%s", n->op, n->then ? " then " : "", n->then ? n->then : "");
    if (n->joined && at < size)
        at +=
            (size_t)snprintf(text + at, size - at, " %s the last of", n->joined_first ? "behind" : "beside");
    for (int i = 0; i < n->n_in && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, " %s%s[",
                               n->constant[i]   ? "const "
                               : n->computed[i] ? "computed "
                                                : "",
                               n->omitted[i] ? "-" : grt_dtype_name(n->in[i].dtype));
        const coded *c = &n->coded[i];
        if (c->rounded && at < size)
            at += (size_t)snprintf(text + at, size - at, "by %s ", grt_dtype_name(c->zero.dtype));
        if (c->codes.data && at < size)
            at += (size_t)snprintf(
                text + at, size - at, "of %s%s axis %lld block %lld scale %s[%d:%lld,%lld]%s ",
                grt_dtype_name(c->codes.dtype), c->turned ? " turned" : "", (long long)c->axis,
                (long long)c->block, grt_dtype_name(c->scale.dtype), c->scale.rank,
                (long long)c->scale.dims[0], (long long)c->scale.dims[1], c->zero.data ? " zero" : "");
        for (int32_t k = 0; k < n->in[i].rank && at < size; k++)
            at += (size_t)snprintf(text + at, size - at, "%s%lld", k ? "," : "", (long long)n->in[i].dims[k]);
        if (at < size)
            at += (size_t)snprintf(text + at, size - at, "]");
    }
    for (int i = 0; i < n->n_attributes && at < size; i++)
        if (n->attributes[i].n == -2)
            at += (size_t)snprintf(text + at, size - at, " %s=%g", n->attributes[i].name,
                                   (double)n->attributes[i].real);
        else if (n->attributes[i].n < 0)
            at += (size_t)snprintf(text + at, size - at, " %s=%lld", n->attributes[i].name,
                                   (long long)n->attributes[i].ints[0]);
    if (n->precision && at < size)
        snprintf(text + at, size - at, " %s", n->precision);
}
