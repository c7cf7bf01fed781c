/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/content.h"

#include "tests/differential/draw.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

int64_t telling_int(void)
{
    static const int64_t telling[] = {
        0,         0,         1,         1,         -1,        -1,
        2,         -2,        3,         7,         -9,        16,
        17,        100,       65536,     INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1,
        1LL << 32, 1LL << 40, 1LL << 62, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    return telling[draw(0, COUNT(telling) - 1)];
}

float telling_float(void)
{
    static const float telling[] = {0,       -0.0f,    1,       -1,     0.5f,  NAN,    INFINITY, -INFINITY,
                                    FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f, 1e10f, -1e10f, 3e9f,     255.5f};
    return telling[draw(0, COUNT(telling) - 1)];
}

static void fill_int(size_t size, void *at, bool wild)
{
    const int64_t v = wild && !draw(0, 7) ? telling_int() : draw(-1, 4);
    memcpy(at, &v, size); /* little-endian, as the files are */
}

static void fill_real(grt_dtype dtype, void *at, bool wild)
{
    static const uint16_t halves[] = {0, 0x3c00, 0xbc00, 0x4000, 0x3800, 0x4200};
    static const uint16_t bfloats[] = {0, 0x3f80, 0xbf80, 0x4000, 0x3f00, 0x4040};
    const double v = wild && !draw(0, 7) ? (double)telling_float() : (double)draw(-8, 12) / 4;
    const float f = (float)v;
    uint16_t h = dtype == GRT_DTYPE_FLOAT16 ? halves[draw(0, 5)] : bfloats[draw(0, 5)];
    if (wild && !draw(0, 7))
        h = (uint16_t)draw(0, UINT16_MAX);
    if (dtype == GRT_DTYPE_DOUBLE)
        memcpy(at, &v, sizeof v);
    else if (dtype == GRT_DTYPE_FLOAT)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &h, sizeof h);
}

static void fill_element(grt_dtype dtype, size_t size, char *at, bool wild)
{
    switch (dtype) {
    case GRT_DTYPE_FLOAT:
    case GRT_DTYPE_DOUBLE:
    case GRT_DTYPE_FLOAT16:
    case GRT_DTYPE_BFLOAT16:
        fill_real(dtype, at, wild);
        break;
    case GRT_DTYPE_COMPLEX64:
    case GRT_DTYPE_COMPLEX128:
        for (size_t part = 0; part < 2; part++)
            fill_real(size == 8 ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE, at + part * (size / 2), wild);
        break;
    case GRT_DTYPE_BOOL:
        *at = (char)(wild && !draw(0, 7) ? draw(0, 255) : draw(0, 1));
        break;
    default:
        fill_int(size, at, wild);
    }
}

void fill(grt_dtype dtype, int64_t elements, void *data, bool wild)
{
    const size_t bits = grt_dtype_bits(dtype), size = bits / 8;
    if (elements <= 0)
        return;
    if (bits < 8) {
        for (size_t i = 0; i < ((size_t)elements * bits + 7) / 8; i++)
            ((char *)data)[i] = (char)draw(0, 255);
        return;
    }
    if (!draw(0, 3)) {
        memset(data, 0, (size_t)elements * size);
        return;
    }
    for (int64_t i = 0; i < elements; i++)
        fill_element(dtype, size, (char *)data + (size_t)i * size, wild);
}
