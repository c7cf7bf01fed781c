/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/custom.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(grt_custom_entry *) entries;

const grt_custom_entry *grt_custom_find_in(const grt_custom_entry *list, const char *domain, const char *name)
{
    while (list && (strcmp(list->op.name, name) != 0 || strcmp(list->op.domain, domain) != 0))
        list = list->next;
    return list;
}

const grt_custom_entry *grt_custom_find(const char *domain, const char *name)
{
    return grt_custom_find_in(atomic_load_explicit(&entries, memory_order_acquire), domain, name);
}

void grt_custom_publish(grt_custom_entry *first, grt_custom_entry *last)
{
    last->next = atomic_load_explicit(&entries, memory_order_relaxed);
    atomic_store_explicit(&entries, first, memory_order_release);
}

static grt_custom_view *custom_view_of(const grt_custom_node *node)
{
    return (grt_custom_view *)(uintptr_t)node->internal;
}

static const grt_attr *custom_attribute(const grt_custom_node *node, const char *name, grt_attr_kind kind)
{
    const grt_attr *a = name ? grt_attr_find(custom_view_of(node)->desc, name) : NULL;
    return a && a->kind == kind ? a : NULL;
}

static bool get_int(const grt_custom_node *node, const char *name, int64_t *out)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_INT);
    if (a)
        *out = a->i;
    return a != NULL;
}

static bool get_float(const grt_custom_node *node, const char *name, float *out)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_FLOAT);
    if (a)
        *out = a->f;
    return a != NULL;
}

static bool get_string(const grt_custom_node *node, const char *name, grt_string *out)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_STRING);
    if (a)
        *out = a->s;
    return a != NULL;
}

static bool get_tensor(const grt_custom_node *node, const char *name, grt_tensor *out)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_TENSOR);
    if (a)
        *out = *a->t;
    return a != NULL;
}

static bool get_ints(const grt_custom_node *node, const char *name, const int64_t **out, size_t *out_n)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_INTS);
    if (a) {
        *out = a->ints.v;
        *out_n = a->ints.n;
    }
    return a != NULL;
}

static bool get_floats(const grt_custom_node *node, const char *name, const float **out, size_t *out_n)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_FLOATS);
    if (a) {
        *out = a->floats.v;
        *out_n = a->floats.n;
    }
    return a != NULL;
}

static bool get_strings(const grt_custom_node *node, const char *name, const grt_string **out, size_t *out_n)
{
    const grt_attr *a = custom_attribute(node, name, GRT_ATTR_STRINGS);
    if (a) {
        *out = a->strings.v;
        *out_n = a->strings.n;
    }
    return a != NULL;
}

static grt_status fail_node(const grt_custom_node *node, grt_status status, const char *message)
{
    custom_view_of(node)->told = true;
    return grt_fail_op(custom_view_of(node)->desc, status, "%s", message ? message : "");
}

/* Outside a shape rule there is nothing that a dim could be part of. */
static grt_dim custom_known(const grt_custom_node *node, grt_custom_dim dim)
{
    const grt_dims *dims = custom_view_of(node)->dims;
    return dims && dim >= 0 && dim < grt_dims_count(dims) ? dim : GRT_DIM_NONE;
}

static grt_custom_dim dim_constant(const grt_custom_node *node, int64_t size)
{
    grt_dims *dims = custom_view_of(node)->dims;
    return dims ? grt_dim_const(dims, size) : GRT_DIM_NONE;
}

static bool custom_dim_value(const grt_custom_node *node, grt_custom_dim dim, int64_t *out)
{
    return custom_known(node, dim) >= 0 && grt_dim_is_const(custom_view_of(node)->dims, dim, out);
}

static grt_custom_dim dim_compute(const grt_custom_node *node, char operation, grt_custom_dim a,
                                  grt_custom_dim b)
{
    static const struct {
        char sign;
        grt_dim_op op;
    } operations[] = {{'+', GRT_DIM_ADD}, {'*', GRT_DIM_MUL}, {'/', GRT_DIM_FLOORDIV}, {'%', GRT_DIM_MOD},
                      {'>', GRT_DIM_MAX}, {'<', GRT_DIM_MIN}, {'^', GRT_DIM_CEILDIV}};
    if (custom_known(node, a) < 0 || custom_known(node, b) < 0)
        return GRT_DIM_NONE;
    grt_dims *dims = custom_view_of(node)->dims;
    if (operation == '-')
        return grt_dim_sub(dims, a, b);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].sign == operation)
            return grt_dim_make(dims, operations[i].op, a, b);
    return GRT_DIM_NONE;
}

static const grt_custom_host host = {.struct_size = sizeof host,
                                     .get_int = get_int,
                                     .get_float = get_float,
                                     .get_string = get_string,
                                     .get_tensor = get_tensor,
                                     .get_ints = get_ints,
                                     .get_floats = get_floats,
                                     .get_strings = get_strings,
                                     .fail_node = fail_node,
                                     .dim_constant = dim_constant,
                                     .dim_value = custom_dim_value,
                                     .dim_compute = dim_compute};

grt_custom_node grt_custom_show(grt_custom_view *view, int32_t n_in, int32_t n_out)
{
    return (grt_custom_node){.struct_size = sizeof(grt_custom_node),
                             .name = view->desc->name,
                             .n_inputs = (size_t)n_in,
                             .n_outputs = (size_t)n_out,
                             .host = &host,
                             .internal = view};
}

grt_status grt_custom_status(const grt_custom_view *view, grt_status status)
{
    if (status == GRT_OK || (view->told && (unsigned)status <= GRT_STATUS_BUSY))
        return status;
    return grt_fail_op(view->desc, GRT_STATUS_INTERNAL,
                       "a function of this custom operator failed with status %d and no message",
                       (int)status);
}
