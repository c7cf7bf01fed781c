/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/ops/contrib_window.h"

static ir_value *one_number(const kv_window *w, int64_t number)
{
    return put_ints(w->node, &number, 1);
}

/* L of T. What does not fit is dropped in steps of C - W + 1 positions. */
static ir_value *resident(const kv_window *w, ir_value *positions)
{
    ir_node *node = w->node;
    ir_value *step = put2(node, "Sub", w->capacity, one_number(w, w->width - 1));
    ir_value *over = put2(node, "Max", put2(node, "Sub", positions, w->capacity), one_number(w, 0));
    ir_value *round_up = put2(node, "Add", over, put2(node, "Sub", step, one_number(w, 1)));
    return put2(node, "Sub", positions, put2(node, "Mul", put2(node, "Div", round_up, step), step));
}

void kv_window_init(kv_window *w, ir_value *cache, ir_value *past, ir_value *length, ir_value *all)
{
    ir_node *node = w->node;
    w->capacity = put2(node, "Max", put_dim(node, cache, 2), one_number(w, w->width));
    w->keys = put2(node, "Add", w->capacity, length);
    w->begin = resident(w, past);
    ir_value *held = put2(node, "Add", w->begin, put2(node, "Sub", all, past));
    w->drop = put2(node, "Sub", held, resident(w, all));
}

ir_value *kv_window_extend(const kv_window *w, ir_value *cache, ir_value *fresh)
{
    static const int64_t front[] = {0, 0, 0, 0, 0, 0}, back[] = {0};
    ir_node *node = w->node;
    ir_value *more = put2(node, "Sub", w->keys, put_dim(node, cache, 2));
    ir_value *pads =
        put_concat(node, 0, 3, (ir_value *[]){put_ints(node, front, 6), more, put_ints(node, back, 1)});
    ir_value *room = put2(node, "Pad", cache, pads);
    return with_int(put3(node, "TensorScatter", room, fresh, w->begin), "axis", 2);
}

/* A rotation by `drop`, whose first rows are then what stays. */
ir_value *kv_window_keep(const kv_window *w, ir_value *extended)
{
    ir_node *node = w->node;
    ir_value *shift = put2(node, "Sub", w->keys, w->drop);
    ir_value *rotated = with_int(put3(node, "TensorScatter", extended, extended, shift), "axis", 2);
    if (rotated)
        ir_attr_set_string(rotated->producer, "mode", "circular");
    return put_slice(node, rotated, 2, one_number(w, 0), w->capacity);
}
