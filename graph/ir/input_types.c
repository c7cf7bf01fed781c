/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ir/input_types.h"

#include <string.h>

/* The words that the table says sets of dtypes with. scripts/input_types.py reads what is in them where they
 * are defined. */
#define X(name, number, bits, text) name = GRT_BIT(name),
enum { GRT_DTYPE_LIST(X) };
#undef X
enum {
    FLOATS = GRT_SET_FLOATS,
    SIGNED = GRT_SET_SIGNED,
    UNSIGNED = GRT_SET_UNSIGNED,
    INTS = GRT_SET_INTS,
    BYTES = GRT_SET_BYTES,
    NUMBERS = GRT_SET_NUMBERS,
    FLOAT8 = GRT_SET_FLOAT8,
    SUBBYTE = GRT_SET_SUBBYTE,
    COMPLEX = GRT_SET_COMPLEX,
    PLAIN = GRT_SET_PLAIN,
    ALL = GRT_SET_ALL,
};

#define LIST(...)        \
    (const input_type[]) \
    {                    \
        __VA_ARGS__      \
    }
#define INPUT(type, set) \
    {                    \
        type, set, false \
    }
#define INPUTS(type, set) \
    {                     \
        type, set, true   \
    }
#define OPERATOR(domain, op, ...) \
    {domain, op, LIST(__VA_ARGS__), sizeof LIST(__VA_ARGS__) / sizeof(input_type)},
static const input_types table[] = {
#include "graph/ir/input_types.def"
};
#undef OPERATOR
#undef INPUTS
#undef INPUT
enum { N_OPERATORS = sizeof table / sizeof *table };

static int input_types_compare(const input_types *types, const char *domain, const char *op)
{
    const int order = strcmp(types->domain, domain);
    return order ? order : strcmp(types->op, op);
}

const input_types *input_types_find(const char *domain, const char *op)
{
    size_t from = 0, to = N_OPERATORS;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        const int order = input_types_compare(&table[middle], domain, op);
        if (!order)
            return &table[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

const input_types *input_types_at(size_t index)
{
    return index < N_OPERATORS ? &table[index] : NULL;
}
