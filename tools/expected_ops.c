/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/expected_ops.h"

#include "tools/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool expected_ops_add(expected_ops *ops, const char *text)
{
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    const long long steps = equals ? strtoll(equals + 1, &end, 10) : -1;
    const bool at_most = equals && equals > text && equals[-1] == '<';
    const size_t length = equals ? (size_t)(equals - text) - at_most : 0;
    if (!length || length >= sizeof ops->items->op || end == equals + 1 || *end || steps < 0) {
        tool_error(
            "--expect '%s': an op and its number of steps are wanted, as in Attention=12 or Transpose<=3",
            text);
        return false;
    }
    expected_op *grown = realloc(ops->items, (ops->n + 1) * sizeof *grown);
    if (!grown) {
        tool_error("out of memory");
        return false;
    }
    ops->items = grown;
    ops->items[ops->n] = (expected_op){.steps = steps, .at_most = at_most};
    memcpy(ops->items[ops->n++].op, text, length);
    return true;
}

/* The steps of one op, or of all; -1 after an error. */
static int64_t count_steps(const grt_model *model, const char *op)
{
    grt_model_info info = {.struct_size = sizeof info};
    int64_t n = 0;
    if (grt_model_get_info(model, &info) != GRT_OK)
        return -1;
    for (int64_t i = 0; i < info.steps; i++) {
        grt_step_info step = {.struct_size = sizeof step};
        if (grt_model_step(model, (size_t)i, &step) != GRT_OK)
            return -1;
        n += !strcmp(op, "*") || !strcmp(step.op, op);
    }
    return n;
}

int expected_ops_check(const expected_ops *ops, const grt_model *model)
{
    int code = EXIT_GOOD;
    for (size_t i = 0; i < ops->n; i++) {
        const expected_op *e = &ops->items[i];
        const int64_t found = count_steps(model, e->op);
        if (found < 0)
            return tool_fail();
        if (found == e->steps || (e->at_most && found < e->steps))
            continue;
        tool_error("expected %s%" PRId64 " steps of %s, found %" PRId64, e->at_most ? "at most " : "",
                   e->steps, e->op, found);
        code = EXIT_CHECK;
    }
    return code;
}

void expected_ops_release(expected_ops *ops)
{
    free(ops->items);
    *ops = (expected_ops){0};
}
