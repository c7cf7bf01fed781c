/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of deadlines and times. */
#ifndef GRT_BASE_CLOCK_H
#define GRT_BASE_CLOCK_H

double grt_now_ms(void); /* monotonic */

#endif
