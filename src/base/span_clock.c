/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/span_clock.h"

#include "src/base/clock.h"

#if defined(__x86_64__)

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* READ_TICKS: a look at both clocks that takes longer was interrupted. The rate is that of the time between
 * two looks of at least RATE_MS, so that it is right to 1e-5; a look is good for LOOK_MS, in which that makes
 * 10 ns. */
enum { READ_TICKS = 250, TRIES = 4, RATE_MS = 10, LOOK_MS = 1 };

/* Of a thread: what the clocks showed at one time. */
typedef struct look {
    uint64_t ticks; /* 0: none yet */
    double ms;
} look;

static _Thread_local struct reading {
    look last;           /* times are counted from here */
    look base;           /* the rate is */
    double ms_per_tick;  /* 0: not known yet */
    uint64_t most_ticks; /* since `last`; 0: it is time for a look */
    double ms;           /* that were told: time does not go back */
} reading;

static pthread_once_t counter_once = PTHREAD_ONCE_INIT;
static bool counter_is_clock;

/* The system has found out that all processors count alike, and without a pause. */
static void look_for_counter(void)
{
    char name[16] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (!f)
        return;
    counter_is_clock = fgets(name, sizeof name, f) && !strcmp(name, "tsc\n");
    fclose(f);
}

static bool look_at_both(look *out)
{
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = __builtin_ia32_rdtsc();
        out->ms = grt_now_ms();
        const uint64_t ticks = __builtin_ia32_rdtsc() - before;
        out->ticks = before + ticks / 2;
        if (ticks <= READ_TICKS)
            return true;
    }
    return false;
}

static double look_again(struct reading *r)
{
    look now;
    (void)pthread_once(&counter_once, look_for_counter);
    if (!counter_is_clock || !look_at_both(&now)) {
        r->most_ticks = 0;
        return grt_now_ms();
    }
    const bool has_rate = r->base.ticks && now.ticks > r->base.ticks && now.ms - r->base.ms >= RATE_MS;
    if (has_rate)
        r->ms_per_tick = (now.ms - r->base.ms) / (double)(now.ticks - r->base.ticks);
    if (has_rate || !r->base.ticks)
        r->base = now;
    r->last = now;
    r->most_ticks = r->ms_per_tick > 0 ? (uint64_t)(LOOK_MS / r->ms_per_tick) : 0;
    return now.ms;
}

double grt_span_clock_ms(void)
{
    struct reading *r = &reading;
    const uint64_t since = __builtin_ia32_rdtsc() - r->last.ticks;
    const double ms = since < r->most_ticks ? r->last.ms + (double)since * r->ms_per_tick : look_again(r);
    return r->ms = ms > r->ms ? ms : r->ms;
}

#else

double grt_span_clock_ms(void)
{
    return grt_now_ms();
}

#endif
