/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by hashing: number i of run r of a generator is a hash of (seed, r, i), the same on any
 * number of threads, on the CPU and in device code. */
#ifndef GRT_BACKENDS_SHARED_RANDOM_H
#define GRT_BACKENDS_SHARED_RANDOM_H

#include "src/base/float.h"
#include "src/base/op_desc.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

/* The finaliser of splitmix64: every bit of the input changes half of the output's. */
GRT_INLINE uint64_t grt_random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* What a run's numbers come from; runs count from 1. */
GRT_INLINE uint64_t grt_random_key(uint64_t seed, uint64_t run)
{
    return grt_random_mix(seed + grt_random_mix(run));
}

/* In [0, 1). */
GRT_INLINE double grt_random_uniform(uint64_t key, uint64_t i)
{
    return (double)(grt_random_mix(key + grt_random_mix((i + 1) * 0x9e3779b97f4a7c15u)) >> 11) * 0x1p-53;
}

/* Mean 0 and scale 1. Box and Muller's method; one number of each pair is enough. */
GRT_INLINE double grt_random_normal(uint64_t key, uint64_t i)
{
    const double radius = sqrt(-2 * log(1 - grt_random_uniform(key, 2 * i))); /* 1 - u is never 0 */
    return radius * cos(2 * M_PI * grt_random_uniform(key, 2 * i + 1));
}

/* By the attribute, else the system's. */
static inline uint64_t grt_random_seed(const grt_op_desc *desc)
{
    uint64_t seed;
    struct timespec now;
    if (grt_attr_find(desc, "seed"))
        return grt_random_mix(grt_float_to_bits(grt_attr_float(desc, "seed", 0)));
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    clock_gettime(CLOCK_REALTIME, &now);
    return grt_random_mix((uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 32);
}

#endif
