/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a compile. */
#include "graph/ir/budget.h"

#include "src/base/checked.h"
#include "src/base/value.h"

#include <stdlib.h>

/* The header states the bound that follows for grt_compile; tests/unit/test_budget.c holds it there.
 * Operations are elementary steps of kernels, a nanosecond to some ten of them each. */
enum { FREE_BYTES = 16 << 20, BYTES_PER_BYTE = 3 };
static const double free_operations = 1 << 27, operations_per_byte = 16;

size_t budget_bytes(size_t size)
{
    size_t bytes;
    return grt_mul_size(size, BYTES_PER_BYTE, &bytes) && grt_add_size(bytes, FREE_BYTES, &bytes) ? bytes
                                                                                                 : SIZE_MAX;
}

void budget_start(compile_budget *budget, size_t size)
{
    budget->bytes = budget_bytes(size);
    budget->operations = free_operations + operations_per_byte * (double)size;
}

bool budget_allows(const compile_budget *budget, size_t bytes, double operations)
{
    return budget->used <= budget->bytes && bytes <= budget->bytes - budget->used &&
           operations <= budget->operations;
}

void budget_work(compile_budget *budget, double operations)
{
    budget->operations -= operations;
}

void budget_release(compile_budget *budget)
{
    for (made_constant *made = budget->made; made; made = made->next)
        grt_buffer_release(made->buffer);
    budget->made = NULL;
}
