/* SPDX-License-Identifier: Apache-2.0 */
/* graphc inspect --dot: steps as boxes, values as edges that carry their types. */
#include "tools/inspect.h"
#include "tools/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_NAME = 60 };

static void print_quoted(const char *text)
{
    char shown[SHOWN_NAME + 4];
    grt_printable(text, strlen(text), shown, sizeof shown);
    for (const char *c = shown; *c; c++) {
        if (*c == '"' || *c == '\\')
            putchar('\\');
        putchar(*c);
    }
}

/* Who makes each value: a step, an input; -1 for constants. */
typedef struct producers {
    int32_t n;
    long *steps; /* step + 1; 0: none */
} producers;

static bool note_producer(producers *p, int32_t value, long step)
{
    if (value < 0)
        return true;
    if (value >= p->n) {
        int32_t n = 2 * (value + 1);
        long *grown = realloc(p->steps, (size_t)n * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + p->n, 0, (size_t)(n - p->n) * sizeof *grown);
        p->steps = grown;
        p->n = n;
    }
    p->steps[value] = step + 1;
    return true;
}

static void print_edge(const grt_model *model, const char *from, int32_t value, size_t to)
{
    const char *name = "";
    char type[400] = "";
    if (grt_model_value(model, value, &name, type, sizeof type) != GRT_OK)
        return;
    fprintf(stdout, "  %s -> step%zu [label=\"", from, to);
    print_quoted(type);
    fprintf(stdout, "\" tooltip=\"");
    print_quoted(name);
    fprintf(stdout, "\"];\n");
}

static void print_step(const grt_model *model, const producers *made, const grt_step_info *step, size_t index)
{
    fprintf(stdout, "  step%zu [label=\"", index);
    print_quoted(step->op);
    if (step->detail[0]) {
        putchar(' ');
        print_quoted(step->detail);
    }
    fprintf(stdout, "\" tooltip=\"");
    print_quoted(step->name);
    fprintf(stdout, "\"];\n");
    for (size_t k = 0; k < step->n_inputs; k++) {
        int32_t value = step->inputs[k];
        char from[64];
        const char *name = "";
        if (value < 0)
            continue;
        if (value < made->n && made->steps[value]) {
            snprintf(from, sizeof from, "step%ld", made->steps[value] - 1);
            print_edge(model, from, value, index);
            continue;
        }
        if (grt_model_value(model, value, &name, NULL, 0) != GRT_OK)
            continue;
        for (size_t i = 0; i < grt_model_input_count(model); i++) {
            grt_io_info info = {.struct_size = sizeof info};
            if (grt_model_input(model, i, &info) == GRT_OK && !strcmp(info.name, name)) {
                snprintf(from, sizeof from, "input%zu", i);
                print_edge(model, from, value, index);
            }
        }
    }
}

bool inspect_dot(const grt_model *model)
{
    grt_model_info info = {.struct_size = sizeof info};
    producers made = {0};
    bool ok = grt_model_get_info(model, &info) == GRT_OK;
    grt_step_info step = {.struct_size = sizeof step};
    for (int64_t i = 0; ok && i < info.steps; i++) {
        ok = grt_model_step(model, (size_t)i, &step) == GRT_OK;
        for (size_t k = 0; ok && k < step.n_outputs; k++)
            ok = note_producer(&made, step.outputs[k], (long)i);
    }
    if (!ok) {
        tool_fail();
        free(made.steps);
        return false;
    }
    fprintf(stdout, "digraph plan {\n  node [shape=box];\n");
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info io = {.struct_size = sizeof io};
        if (grt_model_input(model, i, &io) != GRT_OK)
            continue;
        fprintf(stdout, "  input%zu [shape=ellipse label=\"", i);
        print_quoted(io.name);
        fprintf(stdout, "\"];\n");
    }
    for (int64_t i = 0; i < info.steps; i++)
        if (grt_model_step(model, (size_t)i, &step) == GRT_OK)
            print_step(model, &made, &step, (size_t)i);
    fprintf(stdout, "}\n");
    free(made.steps);
    return true;
}
