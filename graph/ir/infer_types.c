/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of inputs: each is one that the operator's schema allows there, and inputs of one type parameter
 * have one dtype (input_types.h). Kernels of a plan say themselves what they take, and passes mix dtypes
 * where a kernel takes that; but a model that breaks the standard means what one can only guess. So a node is
 * asked once, when inference first knows the dtypes of its inputs, and only if the model has it. */
#include "graph/ir/dtype_set.h"
#include "graph/ir/infer.h"
#include "graph/ir/input_types.h"

#include <string.h>

static grt_status type_not_allowed(const ir_node *node, int32_t i, grt_dtype_set allowed)
{
    const ir_value *value = node->in[i].value;
    grt_text wanted = {0};
    dtype_set_add_to(&wanted, allowed);
    const grt_status status =
        grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                    "input %d, '%s', is %s; allowed are %s; cast it, or export the model again", i,
                    value->name, grt_dtype_name(value->type.dtype), grt_text_get(&wanted));
    grt_text_release(&wanted);
    return status;
}

static grt_status types_differ(const ir_node *node, const char *parameter, int32_t first, int32_t i)
{
    const ir_value *a = node->in[first].value, *b = node->in[i].value;
    return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                       "input %d, '%s', is %s; it must be %s like input %d, '%s', as both are of the type "
                       "parameter %s; cast one of them, or export the model again",
                       i, b->name, grt_dtype_name(b->type.dtype), grt_dtype_name(a->type.dtype), first,
                       a->name, parameter);
}

/* The schema's input that input i of a node is; the number of them if it is none. */
static int32_t place_in_schema(const input_types *types, int32_t i)
{
    return i >= types->n && types->inputs[types->n - 1].repeated ? types->n - 1 : i < types->n ? i : types->n;
}

/* The first of the schema's inputs that is of this one's type parameter. */
static int32_t first_of_parameter(const input_types *types, int32_t place)
{
    int32_t first = 0;
    while (strcmp(types->inputs[first].parameter, types->inputs[place].parameter) != 0)
        first++;
    return first;
}

/* known[k]: the first input with a dtype of the type parameter that the schema's input k was the first of; -1
 * for none so far. */
static grt_status infer_types_check(const ir_node *node, const input_types *types, int32_t i, int32_t *known)
{
    const int32_t place = place_in_schema(types, i);
    const ir_type *type = &node->in[i].value->type;
    if (place == types->n)
        return GRT_OK;
    const input_type *wanted = &types->inputs[place];
    if (type->kind == GRT_KIND_TENSOR && wanted->dtypes && !grt_dtype_in(type->dtype, wanted->dtypes))
        return type_not_allowed(node, i, wanted->dtypes);
    if (!*wanted->parameter)
        return GRT_OK;
    int32_t *first = &known[first_of_parameter(types, place)];
    if (*first < 0)
        *first = i;
    return node->in[*first].value->type.dtype == type->dtype
               ? GRT_OK
               : types_differ(node, wanted->parameter, *first, i);
}

grt_status infer_types(ir_node *node)
{
    int32_t known[MAX_INPUT_TYPES];
    bool again = false;
    const input_types *types =
        node->check_types && node->row ? input_types_find(node->row->domain, node->row->name) : NULL;
    for (size_t k = 0; types && k < MAX_INPUT_TYPES; k++)
        known[k] = -1;
    for (int32_t i = 0; types && i < node->n_in; i++) {
        const ir_value *value = node->in[i].value;
        if (value && value->type.dtype)
            GRT_TRY(infer_types_check(node, types, i, known));
        again |= value && !value->type.dtype;
    }
    node->check_types = again;
    return GRT_OK;
}
