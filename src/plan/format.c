/* SPDX-License-Identifier: Apache-2.0 */
/* The checksums of a plan file. */
#include "src/plan/format.h"

#include "src/base/openmp.h"

#include <stdlib.h>
#include <string.h>

uint64_t plan_header_checksum(const void *page)
{
    char copy[PLAN_PAGE];
    memcpy(copy, page, PLAN_PAGE);
    memset(copy + offsetof(plan_header, checksum), 0, sizeof(uint64_t));
    return XXH3_64bits(copy, PLAN_PAGE);
}

bool plan_checksum(const void *data, size_t size, uint64_t *out_checksum)
{
    int64_t n = (int64_t)(size / PLAN_LEAF + (size % PLAN_LEAF != 0));
    uint64_t few[16], *leaves = n <= 16 ? few : malloc((size_t)n * sizeof *leaves);
    if (!leaves)
        return false;
    const int32_t team = n > 16 ? grt_team_possible(grt_team_default()) : 1;
    (void)team; /* without OpenMP */
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t i = 0; i < n; i++) {
        size_t begin = (size_t)i * PLAN_LEAF;
        size_t length = size - begin < PLAN_LEAF ? size - begin : PLAN_LEAF;
        leaves[i] = XXH3_64bits((const char *)data + begin, length);
    }
    *out_checksum = XXH3_64bits(leaves, (size_t)n * sizeof *leaves);
    if (leaves != few)
        free(leaves);
    return true;
}

bool plan_hasher_begin(plan_hasher *hasher)
{
    *hasher = (plan_hasher){.leaf = XXH3_createState(), .top = XXH3_createState()};
    if (!hasher->leaf || !hasher->top) {
        XXH3_freeState(hasher->leaf);
        XXH3_freeState(hasher->top);
        return false;
    }
    XXH3_64bits_reset(hasher->leaf);
    XXH3_64bits_reset(hasher->top);
    return true;
}

static void finish_leaf(plan_hasher *hasher)
{
    uint64_t digest = XXH3_64bits_digest(hasher->leaf);
    XXH3_64bits_update(hasher->top, &digest, sizeof digest);
    XXH3_64bits_reset(hasher->leaf);
    hasher->in_leaf = 0;
}

void plan_hasher_add(plan_hasher *hasher, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        size_t room = PLAN_LEAF - hasher->in_leaf, n = size < room ? size : room;
        XXH3_64bits_update(hasher->leaf, p, n);
        hasher->in_leaf += n;
        p += n;
        size -= n;
        if (hasher->in_leaf == PLAN_LEAF)
            finish_leaf(hasher);
    }
}

uint64_t plan_hasher_end(plan_hasher *hasher)
{
    if (hasher->in_leaf)
        finish_leaf(hasher);
    uint64_t digest = XXH3_64bits_digest(hasher->top);
    XXH3_freeState(hasher->leaf);
    XXH3_freeState(hasher->top);
    return digest;
}
