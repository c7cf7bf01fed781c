/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations that know plans: what META says changes, as tests/forge does it. Now and then bytes change. */
#include "fuzz.h"

#include "tests/differential/draw.h"
#include "tests/forge/forgery.h"

#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static forgery forged;
    size_t made = 0;
    draw_from(seed);
    if (!draw(0, 7))
        return LLVMFuzzerMutate(data, size, max);
    grt_arena *arena = grt_arena_create();
    if (arena && forge(arena, data, size, &forged) && forged.size <= max) {
        made = forged.size;
        memcpy(data, forged.bytes, made);
    }
    grt_arena_release(arena);
    return made ? made : LLVMFuzzerMutate(data, size, max);
}
