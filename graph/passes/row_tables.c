/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/passes/row_tables.h"

#include "graph/passes/rewrite.h"
#include "src/base/checked.h"

#include <string.h>

/* Of one table, and of all that a graph has: 16 MiB. WORK: steps to work them out, a quarter of a second.
 * Models have some twenty tables of the places of an image. */
enum { MOST_ROWS = 1 << 20, ROOM = 1 << 22, WORK = 1 << 26 };
/* For each row: to compare it and to look for its period. */
enum { STEPS_OF_ROW = 4 };

void row_tables_start(row_tables *t, grt_arena *arena, compile_budget *budget)
{
    static const int32_t first;
    *t = (row_tables){.arena = arena, .budget = budget, .room = ROOM, .work = WORK, .n = 1};
    t->all[ROWS_AS_THEY_ARE] = (row_table){.size = 1, .rows = &first};
}

/* Most graphs have no moves of rows. */
static bool make_room(row_tables *t)
{
    const size_t pairs = (size_t)ROW_TABLES_MOST * ROW_TABLES_MOST;
    if (!t->moves) {
        t->joined = GRT_ARENA_ARRAY(t->arena, int16_t, pairs);
        t->moves = t->joined ? GRT_ARENA_ARRAY(t->arena, row_move, ROW_TABLES_MOST) : NULL;
    }
    return t->moves && t->n_moves < ROW_TABLES_MOST;
}

/* Room for a table's rows until the next one is worked out; NULL: there is none, or they take too many steps.
 * steps: for each row. */
static int32_t *scratch_rows(row_tables *t, int64_t size, int64_t steps)
{
    const int64_t work = size > MOST_ROWS ? INT64_MAX : size * (steps + STEPS_OF_ROW);
    if (size < 1 || work > t->work || !budget_allows(t->budget, 0, (double)work))
        return NULL;
    t->work -= work;
    budget_work(t->budget, (double)work);
    if (size > t->scratch_size) {
        t->scratch_size = size > MOST_ROWS / 2 ? MOST_ROWS : 2 * size;
        t->scratch = GRT_ARENA_ARRAY(t->arena, int32_t, t->scratch_size);
        t->scratch_size = t->scratch ? t->scratch_size : 0;
    }
    return t->scratch;
}

/* True if all rows move as the first `period` do. */
static bool repeats_by(const int32_t *rows, int64_t size, int64_t period)
{
    for (int64_t i = period; i < size; i++)
        if (rows[i] != rows[i - period] + period)
            return false;
    return true;
}

/* Only behind a row that all rows before it stay in front of can a period end. */
static int64_t shortest_period(const int32_t *rows, int64_t size)
{
    enum { TRIALS = 16 };
    int64_t farthest = 0;
    for (int64_t i = 0, trials = 0; i < size - 1 && trials < TRIALS; i++) {
        farthest = rows[i] > farthest ? rows[i] : farthest;
        if (farthest == i && size % (i + 1) == 0) {
            if (repeats_by(rows, size, i + 1))
                return i + 1;
            trials++;
        }
    }
    return size;
}

static uint64_t hash_of_rows(const int32_t *rows, int64_t size)
{
    uint64_t hash = (uint64_t)size;
    for (int64_t i = 0; i < size; i++)
        hash = (hash ^ (uint64_t)rows[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

static int32_t row_of_loops(const row_loops *loops, int64_t i)
{
    int64_t row = 0;
    for (int64_t a = loops->n - 1; a >= 0; a--) {
        const int64_t at = i % loops->sizes[a] + loops->shifts[a];
        row += (at < loops->sizes[a] ? at : at - loops->sizes[a]) * loops->strides[a];
        i /= loops->sizes[a];
    }
    return (int32_t)row;
}

/* The table as loops: false if it is none. */
static bool find_loops(const row_table *table, row_loops *out)
{
    int64_t done = 1;
    *out = (row_loops){0};
    while (done < table->size) { /* from the innermost */
        int64_t n = 1;
        const int64_t stride = table->rows[done];
        while (done * n < table->size && table->rows[done * n] == stride * n)
            n++;
        if (n < 2 || table->size % (done * n) || out->n == GRT_MAX_RANK)
            return false;
        memmove(out->sizes + 1, out->sizes, (size_t)out->n * sizeof *out->sizes);
        memmove(out->strides + 1, out->strides, (size_t)out->n * sizeof *out->strides);
        out->sizes[0] = n;
        out->strides[0] = stride;
        out->n++;
        done *= n;
    }
    for (int64_t i = 0; i < table->size; i++)
        if (table->rows[i] != row_of_loops(out, i))
            return false;
    return true;
}

/* The number of a table of the rows in t->scratch. */
static int32_t number_of_rows(row_tables *t, int64_t size)
{
    const int64_t period = shortest_period(t->scratch, size);
    const uint64_t hash = hash_of_rows(t->scratch, period);
    const size_t bytes = (size_t)period * sizeof *t->scratch;
    if (period == 1)
        return ROWS_AS_THEY_ARE;
    for (int32_t i = 1; i < t->n; i++)
        if (t->all[i].hash == hash && t->all[i].size == period && !memcmp(t->all[i].rows, t->scratch, bytes))
            return i;
    const int32_t *rows =
        t->n < ROW_TABLES_MOST && period <= t->room ? grt_arena_memdup(t->arena, t->scratch, bytes) : NULL;
    if (!rows)
        return ROWS_UNKNOWN;
    row_loops loops;
    row_table *made = &t->all[t->n];
    t->room -= period;
    *made = (row_table){period, rows, hash, NULL};
    if (find_loops(made, &loops))
        made->loops = grt_arena_memdup(t->arena, &loops, sizeof loops);
    return t->n++;
}

static int32_t work_out_loops(row_tables *t, const row_loops *loops)
{
    int64_t size = 1;
    for (int64_t a = 0; a < loops->n; a++)
        size = grt_mul_saturated(size, loops->sizes[a]);
    int32_t *rows = scratch_rows(t, size, 2 * loops->n);
    for (int64_t i = 0; rows && i < size; i++)
        rows[i] = row_of_loops(loops, i);
    return rows ? number_of_rows(t, size) : ROWS_UNKNOWN;
}

static uint64_t hash_of_loops(const row_loops *loops)
{
    uint64_t hash = (uint64_t)loops->n;
    for (int64_t a = 0; a < loops->n; a++) {
        const int64_t numbers[] = {loops->sizes[a], loops->strides[a], loops->shifts[a]};
        for (int32_t i = 0; i < 3; i++)
            hash = (hash ^ (uint64_t)numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

static int32_t number_of_loops(row_tables *t, const row_loops *loops)
{
    const uint64_t hash = hash_of_loops(loops);
    for (int32_t i = 0; i < t->n_moves; i++)
        if (t->moves[i].hash == hash && !memcmp(&t->moves[i].loops, loops, sizeof *loops))
            return t->moves[i].table;
    if (!make_room(t))
        return ROWS_UNKNOWN;
    const int32_t table = work_out_loops(t, loops);
    t->moves[t->n_moves++] = (row_move){*loops, hash, table};
    return table;
}

/* True if the node's dims in front of the last one are known from `first` on, and none is 0. */
static bool loops_of_dims(const grt_dims *dims, const ir_type *type, int32_t first, row_loops *loops)
{
    int64_t stride = 1;
    *loops = (row_loops){.n = type->rank - 1 - first};
    for (int64_t a = loops->n - 1; a >= 0; a--) {
        loops->strides[a] = stride;
        if (!grt_dim_is_const(dims, type->dims[first + a], &loops->sizes[a]) || loops->sizes[a] < 1 ||
            loops->sizes[a] > MOST_ROWS)
            return false;
        stride = grt_mul_saturated(stride, loops->sizes[a]);
    }
    return stride <= MOST_ROWS;
}

static int32_t number_of_transpose(row_tables *t, const ir_node *node)
{
    const ir_type *in = &ir_in(node, 0)->type;
    row_loops from, to = {0};
    size_t n;
    int32_t first = 0;
    const int64_t *perm = grt_attr_ints(&node->desc, "perm", &n);
    if (!perm || n != (size_t)in->rank || perm[n - 1] != in->rank - 1)
        return ROWS_UNKNOWN;
    while (first < in->rank - 1 && perm[first] == first)
        first++;
    if (!loops_of_dims(node->graph->module->dims, in, first, &from))
        return ROWS_UNKNOWN;
    to.n = from.n;
    for (int64_t a = 0; a < to.n; a++) {
        to.sizes[a] = from.sizes[perm[first + a] - first];
        to.strides[a] = from.strides[perm[first + a] - first];
    }
    return number_of_loops(t, &to);
}

static int32_t number_of_roll(row_tables *t, const ir_node *node)
{
    const ir_type *in = &ir_in(node, 0)->type;
    row_loops loops;
    size_t n;
    int32_t first = 0;
    const int64_t *shifts = grt_attr_ints(&node->desc, "shifts", &n);
    if (!shifts || n != (size_t)in->rank || shifts[n - 1])
        return ROWS_UNKNOWN;
    while (first < in->rank - 1 && !shifts[first])
        first++;
    if (!loops_of_dims(node->graph->module->dims, in, first, &loops))
        return ROWS_UNKNOWN;
    memcpy(loops.shifts, shifts + first, (size_t)loops.n * sizeof *shifts);
    return number_of_loops(t, &loops);
}

int32_t row_tables_of_node(row_tables *t, const ir_node *node)
{
    const ir_value *x = ir_in(node, 0);
    const ir_type *out = node->n_out == 1 && node->out[0] ? &node->out[0]->type : NULL;
    if (!x || !out || x->type.rank < 2 || out->rank < 2 ||
        x->type.dims[x->type.rank - 1] != out->dims[out->rank - 1])
        return ROWS_UNKNOWN;
    if (rewrite_is_reshape(node))
        return ROWS_AS_THEY_ARE;
    if (rewrite_is(node, "Transpose"))
        return number_of_transpose(t, node);
    return grt_op_is(&node->desc, "graphrt", "Roll") ? number_of_roll(t, node) : ROWS_UNKNOWN;
}

/* Row i of a table, whatever its period is. */
static int64_t row_at(const row_table *table, int64_t i)
{
    const int64_t at = i % table->size;
    return i - at + table->rows[at];
}

static int32_t work_out_joined(row_tables *t, const row_table *a, const row_table *b)
{
    const int64_t size = a->size > b->size ? a->size : b->size;
    int32_t *rows = size % a->size || size % b->size ? NULL : scratch_rows(t, size, 2);
    for (int64_t i = 0; rows && i < size; i++)
        rows[i] = (int32_t)row_at(a, row_at(b, i));
    return rows ? number_of_rows(t, size) : ROWS_UNKNOWN;
}

int32_t row_tables_joined(row_tables *t, int32_t first, int32_t second)
{
    if (first < 0 || second < 0 || first == ROWS_AS_THEY_ARE)
        return first < 0 ? first : second;
    if (second == ROWS_AS_THEY_ARE)
        return first;
    int16_t *known = &t->joined[first * ROW_TABLES_MOST + second];
    if (!*known)
        *known = (int16_t)(2 + work_out_joined(t, &t->all[first], &t->all[second]));
    return *known - 2;
}

static int32_t work_out_inverse(row_tables *t, const row_table *a)
{
    int32_t *rows = scratch_rows(t, a->size, 1);
    for (int64_t i = 0; rows && i < a->size; i++)
        rows[a->rows[i]] = (int32_t)i;
    return rows ? number_of_rows(t, a->size) : ROWS_UNKNOWN;
}

int32_t row_tables_inverse(row_tables *t, int32_t table)
{
    if (table <= ROWS_AS_THEY_ARE)
        return table;
    if (!t->inverse[table])
        t->inverse[table] = (int16_t)(2 + work_out_inverse(t, &t->all[table]));
    return t->inverse[table] - 2;
}
