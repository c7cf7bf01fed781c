/* Attention, and the rotary embedding of its queries and keys. */
#include "tests/differential/makers.h"

void make_rotary(node *n)
{
    int64_t dims[4] = {draw(1, 3), draw(1, 5), draw(1, 9), 2 * draw(1, 16)},
            cache[3] = {dims[0], dims[2], dims[3] / 2};
    n->out = draw_float();
    add_input(n, n->out, 4, dims);
    add_input(n, n->out, 3, cache);
    add_input(n, n->out, 3, cache);
    set_int(n, "interleaved", draw(0, 1));
}

/* Sizes that the fast kernels take and others; few queries with many keys, which are split. */
void make_attention(node *n)
{
    static const int64_t sizes[] = {32, 64, 96, 128, 128, 8, 20},
                         queries[] = {1, 1, 2, 5, 16, 17, 33, 70, 130},
                         lengths[] = {1, 7, 64, 65, 130, 600, 1300};
    const int64_t batch = draw(1, 2), kv_heads = draw(1, 3), heads = kv_heads * draw(1, 4),
                  size = sizes[draw(0, 6)], q_len = queries[draw(0, 8)], kv_len = lengths[draw(0, 6)],
                  past = draw(0, 2) ? 0 : lengths[draw(0, 6)];
    const bool packed = draw(0, 1), masked = draw(0, 2) == 0;
    n->out = draw_float();
    for (int i = 0; i < 3; i++) {
        const int64_t h = i ? kv_heads : heads, length = i ? kv_len : q_len;
        add_input(n, n->out, packed ? 3 : 4,
                  packed ? (int64_t[]){batch, length, h * size} : (int64_t[]){batch, h, length, size});
    }
    if (masked)
        add_input(n, draw(0, 1) ? n->out : GRT_DTYPE_BOOL, 2,
                  (int64_t[]){draw(0, 3) ? q_len : 1, past + kv_len});
    else if (past)
        n->omitted[n->n_in++] = true;
    for (int i = 0; past && i < 2; i++)
        add_input(n, n->out, 4, (int64_t[]){batch, kv_heads, past, size});
    set_int(n, "is_causal", draw(0, 1));
    if (packed) {
        set_int(n, "q_num_heads", heads);
        set_int(n, "kv_num_heads", kv_heads);
    }
    if (n->out == GRT_DTYPE_FLOAT && draw(0, 1))
        n->precision = "tf32";
}
