/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/differential/draw.h"

static uint64_t state;

void draw_from(uint64_t seed)
{
    state = seed;
}

static uint64_t draw_bits(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(draw_bits() % (uint64_t)(high - low + 1));
}

double draw_real(void)
{
    return (double)(draw_bits() >> 11) * 0x1p-53;
}

int64_t draw_dim(void)
{
    static const int64_t dims[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 0};
    return dims[draw(0, draw(0, 9) ? 13 : 14)];
}

int32_t draw_dims(int64_t *dims, int32_t least, int32_t most)
{
    int32_t rank = (int32_t)draw(least, most);
    int64_t total = 1;
    for (int32_t k = 0; k < rank; k++) {
        dims[k] = draw_dim();
        if (total * dims[k] > 20000)
            dims[k] = 1;
        total *= dims[k];
    }
    return rank;
}

grt_dtype draw_float(void)
{
    return draw(0, 3) ? GRT_DTYPE_FLOAT : draw(0, 1) ? GRT_DTYPE_FLOAT16 : GRT_DTYPE_DOUBLE;
}

grt_dtype draw_whole(void)
{
    return draw(0, 1) ? GRT_DTYPE_INT32 : GRT_DTYPE_INT64;
}

grt_dtype draw_number(void)
{
    return draw(0, 2) ? draw_float() : draw_whole();
}
