/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as a model that is run: import, passes, a session on the CPU, two runs with wild inputs. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_try(data, size);
    return 0;
}
