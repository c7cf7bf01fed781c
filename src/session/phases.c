/* SPDX-License-Identifier: Apache-2.0 */
/* Load phases. */
#include "src/session/phases.h"

void grt_phases_start(grt_phases *phases)
{
    *phases = (grt_phases){.start_ms = grt_now_ms()};
}

void grt_phases_next(grt_phases *phases, const char *name)
{
    double now = grt_now_ms() - phases->start_ms;
    if (phases->n && phases->list[phases->n - 1].end_ms == 0)
        phases->list[phases->n - 1].end_ms = now;
    if (name && phases->n < GRT_MAX_PHASES)
        phases->list[phases->n++] = (grt_phase){.name = name, .begin_ms = now};
}

void grt_phases_add(grt_phases *phases, const grt_phase *phase)
{
    if (phases->n < GRT_MAX_PHASES)
        phases->list[phases->n++] = *phase;
}
