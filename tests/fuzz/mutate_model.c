/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations that know ONNX: nodes, attributes, types and data change, as tests/mutate does it, with donors
 * from the models in GRAPHRT_FUZZ_POOL (DIRECTORY/<case>/model.onnx). Without that, and now and then with it,
 * bytes change. */
#include "fuzz.h"

#include "tests/differential/draw.h"
#include "tests/mutate/mutation.h"

#include <stdlib.h>
#include <string.h>

static const pool *donors(void)
{
    static pool p;
    static bool asked;
    const char *directory = getenv("GRAPHRT_FUZZ_POOL");
    if (!asked && directory && !pool_open(directory, &p))
        exit(2);
    asked = true;
    return p.n_nodes ? &p : NULL;
}

/* 0: no model, or one that has become too large. */
static size_t mutate_model(grt_arena *arena, const pool *p, uint8_t *data, size_t size, size_t max)
{
    static mutation m;
    m.pool = p;
    m.arena = arena;
    m.model = pool_unpack(arena, data, size);
    if (!m.model || !m.model->graph || !mutate(&m))
        return 0;
    const size_t made = onnx__model_proto__get_packed_size(m.model);
    return made <= max ? onnx__model_proto__pack(m.model, data) : 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    const pool *p = donors();
    draw_from(seed);
    if (!p || !draw(0, 15))
        return LLVMFuzzerMutate(data, size, max);
    grt_arena *arena = grt_arena_create();
    const size_t made = arena ? mutate_model(arena, p, data, size, max) : 0;
    grt_arena_release(arena);
    return made ? made : LLVMFuzzerMutate(data, size, max);
}
