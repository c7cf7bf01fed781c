/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/attention_plan.h"

#include <stddef.h>

int cuda_attention_columns(int64_t size, int64_t v_size)
{
    static const int columns[] = {32, 64, 80, 96, 128, 160, 192, 256};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (size <= columns[i] && v_size <= columns[i])
            return columns[i];
    return 0;
}

int cuda_attention_groups(int64_t heads, int64_t rows, int multiprocessors)
{
    const int64_t units = (rows + CUDA_ATTENTION_ROWS - 1) / CUDA_ATTENTION_ROWS;
    if (units <= multiprocessors / (heads > 0 ? heads : 1))
        return 1; /* all at once, for more blocks */
    return units > 1 ? CUDA_ATTENTION_GROUPS : 0;
}
