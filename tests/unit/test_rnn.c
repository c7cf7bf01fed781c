/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN against a plain transcription of their equations in double. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 5, BATCH = 4, INNER = 2, INPUT = 6, HIDDEN = 9, MOST = 4 * HIDDEN };

/* Steps first, the batch first, or graphrt's steps between rows of the batch. */
enum { FIRST_STEPS, FIRST_BATCH, INSIDE, N_LAYOUTS };

typedef struct layer {
    const char *op, *direction;
    int gates, layout;
    bool lengths, initial, peepholes, linear, clipped, constant;
} layer;

typedef struct weights {
    float x[STEPS * BATCH * INPUT], w[2 * MOST * INPUT], r[2 * MOST * HIDDEN], b[4 * MOST];
    float h[2 * BATCH * HIDDEN], c[2 * BATCH * HIDDEN], p[6 * HIDDEN];
} weights;

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static double clip(const layer *l, double v)
{
    return l->clipped ? fmax(-0.4, fmin(0.4, v)) : v;
}

static const int32_t lengths[BATCH] = {5, 0, 3, 2};

/* Where row b of X at time t is. */
static int x_at(const layer *l, int t, int b)
{
    return l->layout == FIRST_STEPS   ? t * BATCH + b
           : l->layout == FIRST_BATCH ? b * STEPS + t
                                      : (b / INNER * STEPS + t) * INNER + b % INNER;
}

/* The gate's sum without its recurrent part. */
static double from_input(const layer *l, const weights *w, int d, int t, int b, int gate, int i)
{
    const int row = gate * HIDDEN + i, n = l->gates * HIDDEN;
    const float *x = w->x + x_at(l, t, b) * INPUT;
    double sum = (double)w->b[d * 2 * n + row];
    for (int k = 0; k < INPUT; k++)
        sum += (double)x[k] * (double)w->w[(d * n + row) * INPUT + k];
    return sum;
}

static double from_state(const layer *l, const weights *w, int d, int gate, int i, const double *h)
{
    const int row = gate * HIDDEN + i, n = l->gates * HIDDEN;
    double sum = (double)w->b[d * 2 * n + n + row];
    for (int k = 0; k < HIDDEN; k++)
        sum += h[k] * (double)w->r[(d * n + row) * HIDDEN + k];
    return sum;
}

static void step(const layer *l, const weights *w, int d, int t, int b, double *h, double *c)
{
    double next[HIDDEN], reset[HIDDEN];
#define SUM(gate)        (from_input(l, w, d, t, b, gate, i) + from_state(l, w, d, gate, i, h))
#define PEEP(gate, cell) (l->peepholes ? (double)w->p[(d * 3 + gate) * HIDDEN + i] * (cell) : 0.0)
    for (int i = 0; i < HIDDEN; i++)
        reset[i] = l->gates == 3 ? sigmoid(clip(l, SUM(1))) * h[i] : 0.0;
    for (int i = 0; i < HIDDEN; i++) {
        if (l->gates == 4) {
            const double in = sigmoid(clip(l, SUM(0) + PEEP(0, c[i]))),
                         forget = sigmoid(clip(l, SUM(2) + PEEP(2, c[i])));
            c[i] = forget * c[i] + in * tanh(clip(l, SUM(3)));
            next[i] = sigmoid(clip(l, SUM(1) + PEEP(1, c[i]))) * tanh(clip(l, c[i]));
        } else if (l->gates == 3) {
            const double update = sigmoid(clip(l, SUM(0))), gate = sigmoid(clip(l, SUM(1)));
            const double inside = from_state(l, w, d, 2, i, l->linear ? h : reset);
            const double fresh =
                tanh(clip(l, from_input(l, w, d, t, b, 2, i) + (l->linear ? gate * inside : inside)));
            next[i] = (1 - update) * fresh + update * h[i];
        } else {
            next[i] = tanh(clip(l, SUM(0)));
        }
    }
    memcpy(h, next, sizeof next);
}

static const layer *tested; /* for messages */

static void check_value(const grt_tensor *t, int64_t at, double wanted, const char *what)
{
    const double found = (double)((const float *)t->data)[at];
    ck_assert_msg(fabs(found - wanted) < 2e-6, "%s %s%s%s%s%s%s%s%s: %s[%lld]: %g, expected %g", tested->op,
                  tested->direction,
                  tested->layout == FIRST_BATCH ? " layout"
                  : tested->layout == INSIDE    ? " inside"
                                                : "",
                  tested->lengths ? " lengths" : "", tested->initial ? " initial" : "",
                  tested->clipped ? " clip" : "", tested->constant ? " constant" : "",
                  tested->peepholes ? " peepholes" : "", tested->linear ? " linear" : "", what, (long long)at,
                  found, wanted);
}

static int64_t y_at(const layer *l, int directions, int d, int t, int b)
{
    return (l->layout == FIRST_STEPS ? (t * directions + d) * BATCH + b : x_at(l, t, b) * directions + d) *
           HIDDEN;
}

static int64_t state_at(const layer *l, int directions, int d, int b)
{
    return (l->layout == FIRST_BATCH ? b * directions + d : d * BATCH + b) * HIDDEN;
}

static void check_outputs(const layer *l, const weights *w, int directions, const op_runner *r)
{
    for (int d = 0; d < directions; d++)
        for (int b = 0; b < BATCH; b++) {
            double h[HIDDEN] = {0}, c[HIDDEN] = {0};
            const int length = l->lengths ? lengths[b] : STEPS;
            const bool back = d == 1 || !strcmp(l->direction, "reverse");
            for (int i = 0; l->initial && i < HIDDEN; i++) {
                h[i] = (double)w->h[state_at(l, directions, d, b) + i];
                c[i] = (double)w->c[state_at(l, directions, d, b) + i];
            }
            for (int s = 0; s < STEPS; s++) {
                const int t = back && s < length ? length - 1 - s : s;
                if (s < length)
                    step(l, w, d, t, b, h, c);
                for (int i = 0; i < HIDDEN; i++)
                    check_value(&r->out[0].t, y_at(l, directions, d, t, b) + i, s < length ? h[i] : 0, "Y");
            }
            for (int i = 0; i < HIDDEN; i++) {
                check_value(&r->out[1].t, state_at(l, directions, d, b) + i, h[i], "Y_h");
                if (l->gates == 4)
                    check_value(&r->out[2].t, state_at(l, directions, d, b) + i, c[i], "Y_c");
            }
        }
}

static void check_layer(const layer *l)
{
    static weights w;
    tested = l;
    const int64_t directions = !strcmp(l->direction, "bidirectional") ? 2 : 1, n = l->gates * HIDDEN;
    fill_floats(w.x, STEPS * BATCH * INPUT, 1);
    fill_floats(w.w, 2 * MOST * INPUT, 2);
    fill_floats(w.r, 2 * MOST * HIDDEN, 3);
    fill_floats(w.b, 4 * MOST, 4);
    fill_floats(w.h, 2 * BATCH * HIDDEN, 5);
    fill_floats(w.c, 2 * BATCH * HIDDEN, 6);
    fill_floats(w.p, 6 * HIDDEN, 7);
    const int64_t x[] = {l->layout == FIRST_BATCH ? BATCH : STEPS, l->layout == FIRST_BATCH ? STEPS : BATCH,
                         INPUT},
                  inside[] = {BATCH / INNER, STEPS, INNER, INPUT};
    const int64_t ws[] = {directions, n, INPUT}, rs[] = {directions, n, HIDDEN}, bs[] = {directions, 2 * n},
                  batch[] = {BATCH};
    const int64_t states[] = {l->layout == FIRST_BATCH ? BATCH : directions,
                              l->layout == FIRST_BATCH ? directions : BATCH, HIDDEN};
    const int64_t peepholes[] = {directions, 3 * HIDDEN};
    op_runner r;
    op_begin(&r, l->layout == INSIDE ? "graphrt" : "", l->op);
    r.constants = l->constant ? 6 : 0;
    op_string(&r, "direction", l->direction);
    op_int(&r, "hidden_size", HIDDEN);
    if (l->layout == FIRST_BATCH)
        op_int(&r, "layout", 1);
    if (l->linear)
        op_int(&r, "linear_before_reset", 1);
    if (l->clipped)
        op_float(&r, "clip", 0.4f);
    op_add(&r, GRT_DTYPE_FLOAT, l->layout == INSIDE ? 4 : 3, l->layout == INSIDE ? inside : x, w.x);
    op_add(&r, GRT_DTYPE_FLOAT, 3, ws, w.w);
    op_add(&r, GRT_DTYPE_FLOAT, 3, rs, w.r);
    op_add(&r, GRT_DTYPE_FLOAT, 2, bs, w.b);
    if (l->lengths)
        op_add(&r, GRT_DTYPE_INT32, 1, batch, lengths);
    else
        op_omit(&r);
    if (l->initial)
        op_add(&r, GRT_DTYPE_FLOAT, 3, states, w.h);
    else
        op_omit(&r);
    if (l->initial && l->gates == 4)
        op_add(&r, GRT_DTYPE_FLOAT, 3, states, w.c);
    else if (l->gates == 4)
        op_omit(&r);
    if (l->peepholes)
        op_add(&r, GRT_DTYPE_FLOAT, 2, peepholes, w.p);
    op_run_ok(&r, l->gates == 4 ? 3 : 2);
    check_outputs(l, &w, (int)directions, &r);
    op_end(&r);
}

START_TEST(layers_follow_their_equations)
{
    static const struct {
        const char *op;
        int gates;
    } ops[] = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    for (size_t o = 0; o < 3; o++)
        for (size_t d = 0; d < 3; d++)
            for (unsigned bits = 0; bits < 32 * N_LAYOUTS; bits++) {
                const layer l = {.op = ops[o].op,
                                 .direction = directions[d],
                                 .gates = ops[o].gates,
                                 .layout = (int)bits / 32,
                                 .lengths = bits & 1,
                                 .initial = bits & 2,
                                 .clipped = bits & 4,
                                 .constant = bits & 8,
                                 .peepholes = ops[o].gates == 4 && (bits & 16),
                                 .linear = ops[o].gates == 3 && (bits & 16)};
                check_layer(&l);
            }
}
END_TEST

/* A layer wide enough that threads share its steps; 7 panels of hidden values, the last one not full. */
enum { WIDE = 104, WIDE_BATCH = 3, WIDE_STEPS = 6, WIDE_INPUT = 5, WIDE_ROWS = 2 * 4 * WIDE };

typedef struct wide_weights {
    float x[WIDE_STEPS * WIDE_BATCH * WIDE_INPUT], w[WIDE_ROWS * WIDE_INPUT], r[WIDE_ROWS * WIDE],
        b[2 * WIDE_ROWS], p[6 * WIDE];
} wide_weights;

/* Y. */
static float *run_wide(const layer *l, const wide_weights *w, int32_t threads, size_t *bytes)
{
    static const int32_t ends[WIDE_BATCH] = {6, 2, 5};
    const int64_t directions = !strcmp(l->direction, "bidirectional") ? 2 : 1, n = l->gates * WIDE;
    const int64_t x[] = {WIDE_STEPS, WIDE_BATCH, WIDE_INPUT}, ws[] = {directions, n, WIDE_INPUT},
                  rs[] = {directions, n, WIDE}, bs[] = {directions, 2 * n}, batch[] = {WIDE_BATCH},
                  ps[] = {directions, 3 * WIDE};
    op_runner r;
    op_begin(&r, "", l->op);
    r.threads = threads;
    r.constants = l->constant ? 6 : 0;
    op_string(&r, "direction", l->direction);
    op_int(&r, "hidden_size", WIDE);
    op_int(&r, "linear_before_reset", l->linear);
    op_add(&r, GRT_DTYPE_FLOAT, 3, x, w->x);
    op_add(&r, GRT_DTYPE_FLOAT, 3, ws, w->w);
    op_add(&r, GRT_DTYPE_FLOAT, 3, rs, w->r);
    op_add(&r, GRT_DTYPE_FLOAT, 2, bs, w->b);
    op_add(&r, GRT_DTYPE_INT32, 1, batch, ends);
    for (int i = 0; l->peepholes && i < 2; i++)
        op_omit(&r);
    if (l->peepholes)
        op_add(&r, GRT_DTYPE_FLOAT, 2, ps, w->p);
    op_run_ok(&r, 1);
    *bytes = (size_t)(WIDE_STEPS * directions * WIDE_BATCH * WIDE) * sizeof(float);
    float *y = malloc(*bytes);
    ck_assert_ptr_nonnull(y);
    memcpy(y, r.out[0].t.data, *bytes);
    op_end(&r);
    return y;
}

START_TEST(threads_that_share_steps_change_no_bit)
{
    static const layer layers[] = {
        {.op = "LSTM", .gates = 4, .constant = true, .peepholes = true},
        {.op = "LSTM", .gates = 4},
        {.op = "GRU", .gates = 3, .constant = true, .linear = true},
        {.op = "GRU", .gates = 3, .constant = true},
        {.op = "GRU", .gates = 3},
    };
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    static wide_weights w;
    fill_floats(w.x, sizeof w.x / sizeof *w.x, 1);
    fill_floats(w.w, sizeof w.w / sizeof *w.w, 2);
    fill_floats(w.r, sizeof w.r / sizeof *w.r, 3);
    fill_floats(w.b, sizeof w.b / sizeof *w.b, 4);
    fill_floats(w.p, sizeof w.p / sizeof *w.p, 5);
    for (size_t i = 0; i < sizeof w.r / sizeof *w.r; i++)
        w.r[i] *= 0.1f;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (size_t d = 0; d < 3; d++) {
            layer l = layers[i];
            l.direction = directions[d];
            size_t bytes;
            float *alone = run_wide(&l, &w, 1, &bytes);
            for (int32_t threads = 2; threads <= 5; threads++) {
                float *shared = run_wide(&l, &w, threads, &bytes);
                ck_assert_msg(!memcmp(alone, shared, bytes), "%s %s%s, %d threads", l.op, l.direction,
                              l.constant ? " constant" : "", threads);
                free(shared);
            }
            free(alone);
        }
}
END_TEST

/* The same of weights that are bytes; 25 blocks of columns. */
enum {
    BYTES_HIDDEN = 200,
    BYTES_STEPS = 4,
    BYTES_INPUT = 45,
    BYTES_COLUMNS = 4 * BYTES_HIDDEN,
    BYTES_Y = 2 * BYTES_STEPS * WIDE_BATCH * BYTES_HIDDEN
};

typedef struct byte_weights {
    float x[BYTES_STEPS * WIDE_BATCH * BYTES_INPUT], b[4 * BYTES_COLUMNS], scale[2 * BYTES_COLUMNS];
    uint8_t w[2 * BYTES_INPUT * BYTES_COLUMNS], r[2 * BYTES_HIDDEN * BYTES_COLUMNS], zero[2 * BYTES_COLUMNS];
} byte_weights;

typedef struct byte_layer {
    int64_t directions, steps;
    const int32_t *lengths; /* NULL: all steps */
    grt_dtype dtype;
    bool each, constant; /* scales and zero points by column; weights */
} byte_layer;

static size_t bytes_y(const byte_layer *l)
{
    return (size_t)(l->directions * l->steps * WIDE_BATCH * BYTES_HIDDEN) * sizeof(float);
}

static void run_bytes(const byte_weights *w, const byte_layer *l, int32_t threads, float *y)
{
    const int64_t directions = l->directions, batch = WIDE_BATCH;
    const int64_t x[] = {l->steps, batch, BYTES_INPUT}, ws[] = {directions, BYTES_INPUT, BYTES_COLUMNS},
                  rs[] = {directions, BYTES_HIDDEN, BYTES_COLUMNS}, bs[] = {directions, 2 * BYTES_COLUMNS},
                  columns[] = {directions, BYTES_COLUMNS};
    op_runner r;
    op_begin(&r, "com.microsoft", "DynamicQuantizeLSTM");
    r.threads = threads;
    r.constants = l->constant ? 6 : 0;
    op_string(&r, "direction", directions == 2 ? "bidirectional" : "reverse");
    op_int(&r, "hidden_size", BYTES_HIDDEN);
    op_add(&r, GRT_DTYPE_FLOAT, 3, x, w->x);
    op_add(&r, l->dtype, 3, ws, w->w);
    op_add(&r, l->dtype, 3, rs, w->r);
    op_add(&r, GRT_DTYPE_FLOAT, 2, bs, w->b);
    if (l->lengths)
        op_add(&r, GRT_DTYPE_INT32, 1, &batch, l->lengths);
    for (int i = l->lengths ? 1 : 0; i < 4; i++)
        op_omit(&r);
    for (int i = 0; i < 2; i++) {
        op_add(&r, GRT_DTYPE_FLOAT, l->each ? 2 : 1, columns, w->scale);
        op_add(&r, l->dtype, l->each ? 2 : 1, columns, w->zero);
    }
    op_run_ok(&r, 1);
    memcpy(y, r.out[0].t.data, bytes_y(l));
    op_end(&r);
}

static void fill_byte_weights(byte_weights *w)
{
    fill_floats(w->x, sizeof w->x / sizeof *w->x, 1);
    fill_floats(w->b, sizeof w->b / sizeof *w->b, 2);
    for (size_t i = 0; i < sizeof w->w; i++)
        w->w[i] = (uint8_t)(i * 37 % 251);
    for (size_t i = 0; i < sizeof w->r; i++)
        w->r[i] = (uint8_t)(i * 41 % 253);
    for (int i = 0; i < 2 * BYTES_COLUMNS; i++) {
        w->zero[i] = (uint8_t)(i % 9);
        w->scale[i] = 0.0002f + 0.00001f * (float)(i % 7);
    }
}

static byte_layer byte_layer_of(unsigned bits)
{
    return (byte_layer){.directions = bits & 1 ? 2 : 1,
                        .steps = BYTES_STEPS,
                        .dtype = bits & 2 ? GRT_DTYPE_UINT8 : GRT_DTYPE_INT8,
                        .each = bits & 4};
}

START_TEST(threads_that_share_bytes_change_no_bit)
{
    static byte_weights w;
    static float alone[BYTES_Y], shared[BYTES_Y];
    fill_byte_weights(&w);
    for (unsigned bits = 0; bits < 16; bits++) {
        byte_layer l = byte_layer_of(bits);
        l.constant = bits & 8;
        run_bytes(&w, &l, 1, alone);
        for (int32_t threads = 2; threads <= 5; threads++) {
            run_bytes(&w, &l, threads, shared);
            ck_assert_msg(!memcmp(alone, shared, bytes_y(&l)), "%s%s%s%s, %d threads",
                          grt_dtype_name(l.dtype), bits & 1 ? " both" : "", bits & 4 ? " columns" : "",
                          bits & 8 ? " constant" : "", threads);
        }
    }
}
END_TEST

/* Inputs of one step are few rows, those of all many; weights that are not constant are not packed. */
START_TEST(packed_bytes_change_no_bit)
{
    static byte_weights w;
    static float given[BYTES_Y], packed[BYTES_Y];
    static const int32_t ends[WIDE_BATCH] = {2, 1, 2};
    fill_byte_weights(&w);
    for (unsigned bits = 0; bits < 24; bits++) {
        byte_layer l = byte_layer_of(bits);
        l.steps = bits & 8 ? 1 : BYTES_STEPS;
        l.lengths = bits & 16 ? ends : NULL;
        run_bytes(&w, &l, 1, given);
        l.constant = true;
        run_bytes(&w, &l, 1, packed);
        ck_assert_msg(!memcmp(given, packed, bytes_y(&l)), "%s%s%s, %d steps%s", grt_dtype_name(l.dtype),
                      bits & 1 ? " both" : "", bits & 4 ? " columns" : "", (int)l.steps,
                      l.lengths ? ", lengths" : "");
    }
}
END_TEST

START_TEST(unknown_activations_are_refused)
{
    static const grt_string names[] = {{"Tanh", 4}, {"Sinus", 5}};
    static const float data[64];
    for (int64_t n = 1; n <= 2; n++) { /* of one direction; of the second of two */
        const int64_t x[] = {1, 1, 2}, w[] = {n, 3, 2}, rr[] = {n, 3, 3};
        op_runner r;
        op_begin(&r, "", "RNN");
        op_string(&r, "direction", n == 2 ? "bidirectional" : "forward");
        op_strings(&r, "activations", n == 2 ? names : names + 1, (size_t)n);
        op_add(&r, GRT_DTYPE_FLOAT, 3, x, data);
        op_add(&r, GRT_DTYPE_FLOAT, 3, w, data);
        op_add(&r, GRT_DTYPE_FLOAT, 3, rr, data);
        ck_assert_int_eq(op_run(&r, 2), GRT_STATUS_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(grt_last_error(), "Sinus"));
        op_end(&r);
    }
}
END_TEST

UNIT_SUITE(test_rnn, NULL, NULL, layers_follow_their_equations, threads_that_share_steps_change_no_bit,
           threads_that_share_bytes_change_no_bit, packed_bytes_change_no_bit,
           unknown_activations_are_refused)
