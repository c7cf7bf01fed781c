/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/runtime.h"

#include <stdlib.h>

grt_runtime *runtime;
const char *const devices[N_DEVICES] = {"cpu", "mirror:0"};

void runtime_open(void)
{
    setenv("GRAPHRT_ALGO_CACHE", "off", 1);
    ck_assert_int_eq(grt_runtime_create(&runtime), GRT_OK);
}

void runtime_close(void)
{
    grt_runtime_release(runtime);
}
