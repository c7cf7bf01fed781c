/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute look-up and messages that name the node. */
#include "src/base/op_desc.h"

#include <stdio.h>
#include <string.h>

const grt_attr *grt_attr_find(const grt_op_desc *desc, const char *name)
{
    for (size_t i = 0; i < desc->n_attrs; i++)
        if (!strcmp(desc->attrs[i].name, name))
            return &desc->attrs[i];
    return NULL;
}

static const grt_attr *find_kind(const grt_op_desc *desc, const char *name, grt_attr_kind kind)
{
    const grt_attr *attr = grt_attr_find(desc, name);
    return attr && attr->kind == kind ? attr : NULL;
}

int64_t grt_attr_int(const grt_op_desc *desc, const char *name, int64_t fallback)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_INT);
    return attr ? attr->i : fallback;
}

float grt_attr_float(const grt_op_desc *desc, const char *name, float fallback)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_FLOAT);
    return attr ? attr->f : fallback;
}

const char *grt_attr_string(const grt_op_desc *desc, const char *name, const char *fallback)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_STRING);
    return attr ? attr->s.data : fallback;
}

bool grt_channels_last(const grt_op_desc *desc)
{
    return !strcmp(grt_attr_string(desc, "layout", ""), "NHWC");
}

const int64_t *grt_attr_ints(const grt_op_desc *desc, const char *name, size_t *out_n)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_INTS);
    *out_n = attr ? attr->ints.n : 0;
    return attr ? attr->ints.v : NULL;
}

const float *grt_attr_floats(const grt_op_desc *desc, const char *name, size_t *out_n)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_FLOATS);
    *out_n = attr ? attr->floats.n : 0;
    return attr ? attr->floats.v : NULL;
}

const grt_string *grt_attr_strings(const grt_op_desc *desc, const char *name, size_t *out_n)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_STRINGS);
    *out_n = attr ? attr->strings.n : 0;
    return attr ? attr->strings.v : NULL;
}

const grt_tensor *grt_attr_tensor(const grt_op_desc *desc, const char *name)
{
    const grt_attr *attr = find_kind(desc, name, GRT_ATTR_TENSOR);
    return attr ? attr->t : NULL;
}

bool grt_op_is(const grt_op_desc *desc, const char *domain, const char *op)
{
    return !strcmp(desc->op, op) && !strcmp(desc->domain, domain);
}

grt_status grt_fail_op(const grt_op_desc *desc, grt_status status, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return grt_fail(status, "%s%s%s node '%s': %s", desc->domain, *desc->domain ? "::" : "", desc->op,
                    desc->name, text);
}
