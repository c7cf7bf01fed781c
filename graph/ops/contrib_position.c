/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: rotations by several positions (MRotaryEmbedding) and by given angles
 * (GemmaRotaryEmbedding). */
#include "graph/ops/foreign.h"

static const op_attr multi_attrs[] = {
    {"interleaved", GRT_ATTR_INT, false},  {"is_packed_batching", GRT_ATTR_INT, false},
    {"mrope_layout", GRT_ATTR_INT, false}, {"mrope_section", GRT_ATTR_INTS, true},
    {"num_heads", GRT_ATTR_INT, false},    {"rotary_embedding_dim", GRT_ATTR_INT, false},
    {"scale", GRT_ATTR_FLOAT, false},      {0},
};

enum { STREAMS = 3 }; /* positions of a token: time, height, width */

/* The stream that element k of a row of the caches is taken from. Interleaved, height and width take every
 * third element as long as they have some left. */
static int stream_of(const int64_t section[STREAMS], bool interleaved, int64_t k)
{
    if (!interleaved)
        return k < section[0] ? 0 : k < section[0] + section[1] ? 1 : 2;
    const int stream = (int)(k % STREAMS);
    return stream && k < STREAMS * section[stream] ? stream : 0;
}

/* bool [half]: the elements that stream `which` gives. */
static ir_value *contrib_position_elements_of(ir_node *node, const int64_t section[STREAMS], bool interleaved,
                                              int64_t half, int which)
{
    grt_arena *arena = node->graph->module->arena;
    bool *taken = grt_arena_calloc(arena, (size_t)half + 1, sizeof *taken);
    const grt_tensor mask = {.dtype = GRT_DTYPE_BOOL, .rank = 1, .dims = {half}, .data = taken};
    for (int64_t k = 0; taken && k < half; k++)
        taken[k] = stream_of(section, interleaved, k) == which;
    const grt_tensor *kept = taken ? grt_arena_memdup(arena, &mask, sizeof mask) : NULL;
    return kept ? ir_constant(node->graph, NULL, kept) : NULL;
}

/* [batch, sequence, half]: each element by the position that it belongs to. */
static ir_value *angles(ir_node *node, ir_value *cache, const int64_t section[STREAMS], int64_t half)
{
    const bool interleaved = grt_attr_int(&node->desc, "mrope_layout", 0) == 1;
    ir_value *y = NULL;
    for (int i = 0; i < STREAMS; i++) {
        ir_value *own = put2(node, "Gather", cache, put_item(node, ir_in(node, 1), 0, i));
        y = y ? put3(node, "Where", contrib_position_elements_of(node, section, interleaved, half, i), own, y)
              : own;
    }
    return y;
}

/* (input, position_ids [3, batch, sequence], cos_cache, sin_cache) */
static grt_status rewrite_multi_rotary(ir_node *node)
{
    size_t n;
    int64_t half, hidden;
    const int64_t *section = grt_attr_ints(&node->desc, "mrope_section", &n),
                  layout = grt_attr_int(&node->desc, "mrope_layout", 0);
    GRT_TRY(foreign_need_rank(node, 0, "input"));
    const int32_t rank = foreign_rank(node, 0);
    if (n != STREAMS || !foreign_dim(ir_in(node, 2), -1, &half) ||
        section[0] + section[1] + section[2] != half || layout < 0 || layout > 1)
        return foreign_invalid(
            node, "mrope_section must have three entries whose sum is the caches' width, which must "
                  "be known to the compiler, and mrope_layout must be 0 or 1");
    if (grt_attr_int(&node->desc, "is_packed_batching", 0) || grt_attr_float(&node->desc, "scale", 1) != 1)
        return foreign_unsupported(node, "is_packed_batching, and a scale other than 1, are not supported");
    if (rank != 3 && rank != 4)
        return foreign_invalid(node, "input has rank %d; it must be 3 or 4", rank);
    ir_value *y = put3(node, "RotaryEmbedding", ir_in(node, 0), angles(node, ir_in(node, 2), section, half),
                       angles(node, ir_in(node, 3), section, half));
    with_int(with_int(y, "rotary_embedding_dim", 2 * half), "interleaved",
             grt_attr_int(&node->desc, "interleaved", 0));
    int64_t heads = grt_attr_int(&node->desc, "num_heads", 0);
    if (rank == 3 && heads < 1 &&
        (!foreign_dim(ir_in(node, 0), -1, &hidden) || half < 1 || hidden % (2 * half)))
        return foreign_unsupported(node, "num_heads is not given, and the hidden size does not tell it");
    if (rank == 3)
        with_int(y, "num_heads", heads > 0 ? heads : hidden / (2 * half));
    return foreign_done1(node, y);
}

/* (angles [batch, sequence, size], q, q turned, k, k turned): each times the cosine plus its turned one times
 * the sine. */
static grt_status rewrite_gemma_rotary(ir_node *node)
{
    static const int64_t heads[] = {1};
    GRT_TRY(foreign_need(node, 1, "q"));
    const grt_dtype dtype = ir_in(node, 1)->type.dtype;
    if (!dtype)
        return foreign_unsupported(node, "the dtype of input 1 (q) must be known to the compiler");
    ir_value *out[2], *by[2];
    for (int i = 0; i < 2; i++)
        by[i] = put_unsqueeze(
            node, with_int(put1(node, "Cast", put1(node, i ? "Sin" : "Cos", ir_in(node, 0))), "to", dtype),
            heads, 1);
    for (int i = 0; i < 2; i++)
        out[i] = put2(node, "Add", put2(node, "Mul", ir_in(node, 1 + 2 * i), by[0]),
                      put2(node, "Mul", ir_in(node, 2 + 2 * i), by[1]));
    return foreign_done(node, 2, out);
}

static const op_row rows[] = {
    FOREIGN(MS, "MRotaryEmbedding", 4, 4, 1, 1, multi_attrs, rewrite_multi_rotary),
    FOREIGN(MS, "GemmaRotaryEmbedding", 5, 5, 2, 2, NULL, rewrite_gemma_rotary),
};
OP_TABLE(contrib_position, rows);
