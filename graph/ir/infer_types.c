/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs of one type parameter have one dtype: op_row.types. Kernels of a plan say themselves what they take,
 * and passes mix dtypes where a kernel takes that; but a model that mixes them breaks the standard, and what
 * it means is a guess. So a node is asked once, when inference first knows the dtypes of its inputs, and only
 * if the model has it. */
#include "graph/ir/infer.h"

#include <string.h>

typedef struct parameter {
    const char *name;
    size_t size;   /* of its name */
    int32_t input; /* the first one of this type */
} parameter;

/* The word that *at is at, which moves to that of the next input. */
static parameter next_word(const char **at)
{
    static const char repeated[] = "...";
    const size_t size = strcspn(*at, " "), more = sizeof repeated - 1;
    const parameter found = {*at, size, 0};
    if (size > more && !strncmp(*at + size - more, repeated, more))
        return (parameter){*at, size - more, 0};
    *at += size + ((*at)[size] == ' ');
    return found;
}

/* The first input of the parameter: input i if there was none. */
static int32_t first_input(parameter *known, int32_t *n, parameter word, int32_t i)
{
    for (int32_t k = 0; k < *n; k++)
        if (known[k].size == word.size && !strncmp(known[k].name, word.name, word.size))
            return known[k].input;
    if (*n < OP_MAX_TYPES) {
        known[*n] = word;
        known[(*n)++].input = i;
    }
    return i;
}

static grt_status types_differ(const ir_node *node, parameter word, int32_t first, int32_t i)
{
    const ir_value *a = node->in[first].value, *b = node->in[i].value;
    return grt_fail_op(&node->desc, GRT_STATUS_INVALID_MODEL,
                       "input %d, '%s', is %s; it must be %s like input %d, '%s', as both are of the type "
                       "parameter %.*s; cast one of them, or export the model again",
                       i, b->name, grt_dtype_name(b->type.dtype), grt_dtype_name(a->type.dtype), first,
                       a->name, (int)word.size, word.name);
}

grt_status infer_types(ir_node *node)
{
    parameter known[OP_MAX_TYPES];
    int32_t n = 0;
    bool again = false;
    if (!node->check_types)
        return GRT_OK;
    const char *at = node->row && node->row->types ? node->row->types : "";
    for (int32_t i = 0; i < node->n_in && *at; i++) {
        const ir_value *value = node->in[i].value;
        const parameter word = next_word(&at);
        again |= value && !value->type.dtype;
        if (!value || !value->type.dtype || *word.name == '-')
            continue;
        const int32_t first = first_input(known, &n, word, i);
        if (node->in[first].value->type.dtype != value->type.dtype)
            return types_differ(node, word, first, i);
    }
    node->check_types = again;
    return GRT_OK;
}
