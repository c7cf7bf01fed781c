/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of spans: grt_now_ms, from the processor's counter where the system's clock is made of it, which
 * takes a third of the time. */
#ifndef GRT_BASE_SPAN_CLOCK_H
#define GRT_BASE_SPAN_CLOCK_H

double grt_span_clock_ms(void);

#endif
