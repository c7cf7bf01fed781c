/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of tests that want a runtime: one for each test, with a cache of algorithms in memory. */
#ifndef GRT_TESTS_UNIT_RUNTIME_H
#define GRT_TESTS_UNIT_RUNTIME_H

#include <graphrt/graphrt.h>

#include <check.h>
#include <string.h>

extern grt_runtime *runtime;

/* What tests of both kinds of devices loop over: with the host's memory, and with memory of its own. */
enum { N_DEVICES = 2 };
extern const char *const devices[N_DEVICES];

void runtime_open(void);
void runtime_close(void);

#define OK(call) ck_assert_msg((call) == GRT_OK, "%s", grt_last_error())
#define REFUSED_AS(status, call, text)                                         \
    do {                                                                       \
        ck_assert_int_eq(call, status);                                        \
        ck_assert_msg(strstr(grt_last_error(), text), "%s", grt_last_error()); \
    } while (0)
#define REFUSED(call, text) REFUSED_AS(GRT_STATUS_INVALID_ARGUMENT, call, text)

#endif
