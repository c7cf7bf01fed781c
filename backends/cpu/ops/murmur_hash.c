/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's MurmurHash3: the 32-bit hash of each element's bytes, in the order of a little-endian
 * machine. */
#include "backends/cpu/cpu.h"
#include "src/base/tensor.h"

#include <string.h>

static uint32_t murmur_hash_rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t murmur_hash_mix(uint32_t k)
{
    return murmur_hash_rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

/* MurmurHash3_x86_32 of Austin Appleby, by its published definition. */
static uint32_t hash(const unsigned char *data, size_t size, uint32_t seed)
{
    uint32_t h = seed, tail = 0;
    const size_t words = size / 4;
    for (size_t i = 0; i < words; i++) {
        uint32_t k;
        memcpy(&k, data + 4 * i, 4);
        h = murmur_hash_rotate(h ^ murmur_hash_mix(k), 13) * 5 + 0xe6546b64u;
    }
    for (size_t i = size % 4; i-- > 0;)
        tail = tail << 8 | data[4 * words + i];
    h ^= murmur_hash_mix(tail) ^ (uint32_t)size;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static grt_status run_hash(const grt_run *run)
{
    const grt_tensor *in = run->in[0];
    const int64_t n = grt_tensor_elements(in);
    const uint32_t seed = (uint32_t)grt_attr_int(run->desc, "seed", 0);
    const size_t size = grt_dtype_size(in->dtype);
    uint32_t *out = run->out[0]->data;
    for (int64_t i = 0; i < n; i++)
        if (in->dtype == GRT_DTYPE_STRING) {
            const grt_string *s = (const grt_string *)in->data + i;
            out[i] = hash((const unsigned char *)s->data, s->size, seed);
        } else {
            out[i] = hash((const unsigned char *)in->data + (size_t)i * size, size, seed);
        }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "MurmurHash3",
     .types = {GRT_BIT(STRING) | GRT_BIT(INT32) | GRT_BIT(UINT32) | GRT_BIT(INT64) | GRT_BIT(UINT64) |
               GRT_BIT(FLOAT) | GRT_BIT(DOUBLE)},
     .run = run_hash},
};
CPU_KERNELS(murmur_hash, rows);
