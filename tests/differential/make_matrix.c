/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, determinants, recurrences. */
#include "tests/differential/makers.h"
#include "tools/element.h"

#include <math.h>

/* By constant weights, in sizes that GPUs' kernels for tensor cores take, some with numbers that are not
 * finite. Long sums are no larger than short ones. */
static void make_matmul_of_weights(node *n)
{
    static const double numbers[] = {INFINITY, -INFINITY, NAN};
    const int64_t m = draw(1, 300), k = 4 * draw(1, 160), c = 4 * draw(1, 80);
    n->out = GRT_DTYPE_FLOAT;
    grt_tensor *x = add_input(n, n->out, 2, (int64_t[]){m, k}),
               *w = add_input(n, n->out, 2, (int64_t[]){k, c});
    n->constant[1] = true;
    for (int64_t i = 0; i < k * c; i++)
        element_set(w, i, element_get(w, i) / sqrt((double)k));
    for (int64_t i = draw(0, 3) ? 0 : draw(1, 4); i > 0; i--)
        element_set(x, draw(0, m * k - 1), numbers[draw(0, 2)]);
    for (int64_t i = draw(0, 7) ? 0 : draw(1, 2); i > 0; i--)
        element_set(w, draw(0, k * c - 1), numbers[draw(0, 2)]);
}

void make_matmul(node *n)
{
    if (draw(0, 2) == 0) {
        make_matmul_of_weights(n);
        return;
    }
    int64_t a[GRT_MAX_RANK], b[GRT_MAX_RANK], m = draw_dim(), k = draw(1, 70), c = draw_dim();
    int32_t lead = (int32_t)draw(0, 3);
    n->out = draw_float();
    for (int32_t i = 0; i < lead; i++) {
        a[i] = b[i] = draw(1, 4);
        *(draw(0, 1) ? &a[i] : &b[i]) = draw(0, 1) ? 1 : a[i];
    }
    a[lead] = m;
    a[lead + 1] = b[lead] = k;
    b[lead + 1] = c;
    add_input(n, n->out, lead + 2, a);
    add_input(n, n->out, lead + 2, b);
    n->constant[1] = draw(0, 1);
}

void make_whole_matmul(node *n)
{
    make_matmul(n);
    const grt_dtype dtype = draw_whole();
    n->out = dtype;
    for (int i = 0; i < 2; i++) {
        const grt_tensor t = n->in[i];
        release(t.data);
        n->n_in = i;
        add_input(n, dtype, t.rank, t.dims);
    }
}

void make_gemm(node *n)
{
    const int64_t m = draw_dim(), k = draw(1, 40), c = draw_dim(), rows = draw(0, 1), cols = draw(0, 1);
    const bool whole = draw(0, 1), trans_a = draw(0, 1), trans_b = draw(0, 1);
    n->out = whole ? draw_whole() : draw_float();
    add_input(n, n->out, 2, trans_a ? (int64_t[]){k, m} : (int64_t[]){m, k});
    add_input(n, n->out, 2, trans_b ? (int64_t[]){c, k} : (int64_t[]){k, c});
    n->constant[1] = draw(0, 1);
    if (draw(0, 1))
        add_input(n, n->out, 2, (int64_t[]){rows ? m : 1, cols ? c : 1});
    set_int(n, "transA", trans_a);
    set_int(n, "transB", trans_b);
    if (draw(0, 1)) {
        set_real(n, "alpha", whole ? (double)draw(-2, 2) : draw_real());
        set_real(n, "beta", whole ? (double)draw(-2, 2) : draw_real());
    }
}

void make_det(node *n)
{
    int64_t dims[GRT_MAX_RANK];
    int32_t rank = draw_dims(dims, 0, 3);
    n->out = draw(0, 1) ? GRT_DTYPE_FLOAT : GRT_DTYPE_DOUBLE;
    dims[rank] = dims[rank + 1] = draw(1, 7);
    add_input(n, n->out, rank + 2, dims);
}

/* Rows of small numbers: states neither saturate, nor do errors grow from step to step. */
static void shrink(grt_tensor *t)
{
    for (int64_t i = 0; i < grt_tensor_elements(t); i++)
        element_set(t, i, element_get(t, i) / sqrt((double)t->dims[2]));
}

static void omit_input(node *n)
{
    n->omitted[n->n_in++] = true;
}

/* Biases, lengths of rows and first states, each or none of them. */
static void add_recurrent_states(node *n, int64_t d, int64_t gates, int64_t batch, int64_t hidden,
                                 int64_t steps, bool batch_first)
{
    const int64_t states[3] = {batch_first ? batch : d, batch_first ? d : batch, hidden};
    const bool lengths = draw(0, 3) == 0, first = draw(0, 1);
    if (draw(0, 1))
        add_input(n, n->out, 2, (int64_t[]){d, 2 * gates * hidden});
    else if (lengths || first)
        omit_input(n);
    if (lengths) {
        const grt_tensor *t = add_input(n, GRT_DTYPE_INT32, 1, &batch);
        for (int64_t i = 0; i < batch; i++)
            ((int32_t *)t->data)[i] = (int32_t)draw(0, steps);
    } else if (first) {
        omit_input(n);
    }
    if (first)
        add_input(n, n->out, 3, states);
    if (first && gates == 4 && draw(0, 1))
        add_input(n, n->out, 3, states);
}

/* W, R, what follows them, outputs and attributes of n->op. */
static void add_layer(node *n, const char *direction, int64_t batch, int64_t steps, int64_t size,
                      int64_t hidden, bool batch_first)
{
    static const char *const precisions[] = {NULL, NULL, "tf32", "fp16"};
    const int64_t gates = n->op[0] == 'L' ? 4 : n->op[0] == 'G' ? 3 : 1, d = direction[0] == 'b' ? 2 : 1;
    shrink(add_input(n, n->out, 3, (int64_t[]){d, gates * hidden, size}));
    shrink(add_input(n, n->out, 3, (int64_t[]){d, gates * hidden, hidden}));
    n->precision = precisions[draw(0, 3)];
    add_recurrent_states(n, d, gates, batch, hidden, steps, batch_first);
    n->n_more = (int)draw(0, gates == 4 ? 2 : 1);
    n->which = (int)draw(0, n->n_more);
    set_int(n, "hidden_size", hidden);
    set_text(n, "direction", direction);
    if (batch_first)
        set_int(n, "layout", 1);
    if (n->op[0] == 'L')
        set_int(n, "input_forget", draw(0, 3) == 0);
    if (n->op[0] == 'G')
        set_int(n, "linear_before_reset", draw(0, 1));
}

/* Sequences of a batch, or the rows or columns of a batch of images. Inputs are wide enough for the layer to
 * read them where they lie. */
void make_recurrent_around(node *n)
{
    const bool many = draw(0, 7) == 0;
    const int64_t outer = many ? draw(20, 40) : draw(1, 4), inner = many ? draw(20, 30) : draw(1, 5),
                  steps = draw(1, many ? 3 : 6), hidden = draw(1, 20), size = draw(1, 60);
    n->op = draw_op();
    n->out = GRT_DTYPE_FLOAT;
    n->around = true;
    add_input(n, n->out, 4, (int64_t[]){outer, steps, inner, size});
    add_layer(n, PICK("forward", "reverse", "bidirectional"), outer * inner, steps, size, hidden, false);
}

void make_recurrent(node *n)
{
    /* Some layers are wide and some batches long enough to be divided among blocks of a GPU, some have more
     * rows than a GPU has blocks for eight of. */
    const bool many = draw(0, 7) == 0;
    int64_t steps = draw(1, many ? 3 : 6), batch = many         ? draw(500, 1300)
                                                   : draw(0, 3) ? draw(1, 5)
                                                                : draw(6, 40);
    int64_t size = draw(1, 20), hidden = many || draw(0, 3) ? draw(1, 40) : draw(41, 300);
    n->op = draw_op();
    n->out = GRT_DTYPE_FLOAT;
    const char *direction = PICK("forward", "reverse", "bidirectional");
    const bool batch_first = draw(0, 3) == 0;
    add_input(n, n->out, 3, batch_first ? (int64_t[]){batch, steps, size} : (int64_t[]){steps, batch, size});
    add_layer(n, direction, batch, steps, size, hidden, batch_first);
}
