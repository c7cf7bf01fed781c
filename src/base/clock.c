/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/clock.h"

#include <graphrt/context.h>

#include <time.h>

double grt_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double grt_clock_ms(void)
{
    return grt_now_ms();
}
