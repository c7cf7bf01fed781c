/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "tests/differential/draw.h"
#include "tests/mutate/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* For a build with AddressSanitizer. Large allocations are refused: sizes that a small model claims must not
 * be trusted. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=64:detect_leaks=1";
}

grt_runtime *fuzz_runtime(void)
{
    static grt_runtime *runtime;
    if (!runtime && grt_runtime_create(&runtime) != GRT_OK)
        abort();
    return runtime;
}

void fuzz_try(const uint8_t *data, size_t size)
{
    const char *volatile stage = "";
    char why[1000];
    draw_from(XXH3_64bits(data, size));
    if (try_model(fuzz_runtime(), data, size, NULL, TRIAL_WILD, &stage, why, sizeof why) == TRIAL_WRONG) {
        fprintf(stderr, "the library is at fault: %s\n", why);
        abort();
    }
}
