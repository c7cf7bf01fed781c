/* SPDX-License-Identifier: Apache-2.0 */
/* graphc inspect --html: what each step was made of, what it computes and moves, and where time is likely to
 * go. */
#include "tools/html.h"
#include "tools/inspect.h"
#include "tools/prediction.h"
#include "tools/report.h"
#include "tools/whole_file.h"

#include <stdlib.h>
#include <string.h>

/* FLOPs that a processor does while it moves a byte, about: of CPUs, and of GPUs in half precision. */
enum { CPU_BALANCE = 20, GPU_BALANCE = 300 };

typedef struct weighed_step {
    grt_step_info info;
    double bytes;
    double cost; /* bytes, or what the FLOPs are worth of them: whatever is more */
} weighed_step;

/* Bytes of "float32[2xNx8]"; what is no number counts as 1. */
static double bytes_of_type(const char *type)
{
    double elements = 1;
    size_t bits = 0;
    const char *at = strchr(type, '[');
    const size_t name = at ? (size_t)(at - type) : strlen(type);
    for (int dtype = 1; dtype < GRT_DTYPE_COUNT; dtype++)
        if (strlen(grt_dtype_name((grt_dtype)dtype)) == name &&
            !strncmp(grt_dtype_name((grt_dtype)dtype), type, name))
            bits = grt_dtype_bits((grt_dtype)dtype);
    while (at && *at && *at != ']') {
        char *end;
        const double dim = strtod(++at, &end);
        if (end != at && (*end == 'x' || *end == ']'))
            elements *= dim;
        at = strpbrk(at, "x]");
    }
    return elements * (double)bits / 8;
}

static double bytes_of_values(const grt_model *model, const int32_t *values, size_t n)
{
    double bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name;
        char type[256];
        if (values[i] >= 0 && grt_model_value(model, values[i], &name, type, sizeof type) == GRT_OK)
            bytes += bytes_of_type(type);
    }
    return bytes;
}

static double weigh_steps(const grt_model *model, weighed_step *steps, size_t n, double balance)
{
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        weighed_step *s = &steps[i];
        s->info.struct_size = sizeof s->info;
        if (grt_model_step(model, i, &s->info) != GRT_OK)
            return -1;
        s->bytes = bytes_of_values(model, s->info.inputs, s->info.n_inputs) +
                   bytes_of_values(model, s->info.outputs, s->info.n_outputs);
        const double flops = s->info.flops / balance;
        s->cost = flops > s->bytes ? flops : s->bytes;
        all += s->cost;
    }
    return all;
}

/* "conv1+bn1+relu1", a node a line. */
static void put_nodes(FILE *f, const char *names)
{
    while (*names) {
        const size_t size = strcspn(names, "+");
        char *one = strndup(names, size);
        if (one)
            html_put(f, one);
        free(one);
        names += size;
        if (*names == '+' && *++names)
            fputs("<br>", f);
    }
}

static void put_results(FILE *f, const grt_model *model, const grt_step_info *step)
{
    for (size_t i = 0; i < step->n_outputs; i++) {
        const char *name;
        char type[256];
        if (step->outputs[i] < 0 ||
            grt_model_value(model, step->outputs[i], &name, type, sizeof type) != GRT_OK)
            continue;
        fputs(i ? "<br>" : "", f);
        html_put(f, type);
    }
}

static void put_step(FILE *f, const grt_model *model, size_t number, const weighed_step *s, double all,
                     double balance)
{
    char flops[FIGURE_SIZE], bytes[FIGURE_SIZE];
    const double share = all > 0 ? 100 * s->cost / all : 0;
    fprintf(f, "<tr><td>%zu</td><td class=l>", number);
    html_put(f, s->info.op);
    fputs("</td><td class=l>", f);
    put_nodes(f, s->info.name);
    fputs("</td><td class=l>", f);
    html_put(f, s->info.detail);
    fputs("</td><td class=l>", f);
    put_results(f, model, &s->info);
    fprintf(f,
            "</td><td>%s</td><td>%s</td><td>%s</td><td class=l><svg width=\"120\" height=\"12\"><rect "
            "width=\"%.1f\" height=\"12\" fill=\"%s\"/></svg> %.1f %%</td></tr>\n",
            figure_count(s->info.flops, flops), figure_bytes(s->bytes, bytes),
            s->info.flops / balance > s->bytes ? "compute" : "memory", 1.2 * share,
            s->info.flops / balance > s->bytes ? "#fd8d3c" : "#6baed6", share);
}

static void put_summary(FILE *f, const grt_model *model, const grt_model_info *info,
                        const input_specs *shapes, double balance)
{
    char count[FIGURE_SIZE], bytes[FIGURE_SIZE], session[FIGURE_SIZE];
    prediction p;
    prediction_make((grt_model *)model, shapes, &p);
    fprintf(f, "<p>%lld nodes became %lld steps, for ", (long long)info->nodes, (long long)info->steps);
    html_put(f, info->target);
    fprintf(f, ". %s parameters, %s of weights, ", figure_count((double)info->parameters, count),
            figure_bytes((double)info->weights_bytes, bytes));
    fprintf(f, "%s FLOPs a run. ", figure_count(info->flops, count));
    if (*p.device)
        fprintf(f, "A session on %s has %s. ", p.device, figure_bytes((double)p.memory.total_bytes, session));
    fprintf(f,
            "Dims that are not fixed count as 1. Shares are of the time that a processor would need that "
            "does %g FLOPs "
            "while it moves a byte: an estimate of where to look, not a measurement.</p>\n",
            balance);
}

static void put_near_misses(FILE *f, const json_t *near_misses)
{
    size_t i;
    const json_t *miss;
    if (json_array_size(near_misses))
        fputs("<h3>Near misses</h3><table><tr><th class=l>op</th><th class=l>node</th><th "
              "class=l>why</th></tr>\n",
              f);
    json_array_foreach(near_misses, i, miss)
    {
        static const char *const columns[] = {"op", "node", "message"};
        fputs("<tr>", f);
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            const char *text = json_string_value(json_object_get(miss, columns[k]));
            fputs("<td class=l>", f);
            html_put(f, text ? text : "");
            fputs("</td>", f);
        }
        fputs("</tr>\n", f);
    }
    fputs(json_array_size(near_misses) ? "</table>\n" : "", f);
}

static void inspect_html_put_page(FILE *f, const char *path, const grt_model *model,
                                  const grt_model_info *info, const input_specs *shapes,
                                  const json_t *near_misses, const weighed_step *steps, double all,
                                  double balance)
{
    html_begin(f, path);
    put_summary(f, model, info, shapes, balance);
    put_near_misses(f, near_misses);
    fputs("<table><tr><th>step</th><th class=l>op</th><th class=l>made of</th><th class=l>with</th><th "
          "class=l>results</th><th>FLOPs</th><th>bytes</th><th>bound by</th><th class=l>share</th></tr>\n",
          f);
    for (size_t i = 0; i < (size_t)info->steps; i++)
        put_step(f, model, i, &steps[i], all, balance);
    fputs("</table>\n", f);
    html_end(f);
}

bool inspect_html(const char *path, const char *to, const grt_model *model, const input_specs *shapes,
                  const json_t *near_misses)
{
    grt_model_info info = {.struct_size = sizeof info};
    whole_file file;
    if (grt_model_get_info(model, &info) != GRT_OK)
        return tool_fail() == EXIT_GOOD;
    const double balance = strncmp(info.target, "cpu", 3) ? GPU_BALANCE : CPU_BALANCE;
    weighed_step *steps = calloc((size_t)info.steps + 1, sizeof *steps);
    const double all = steps ? weigh_steps(model, steps, (size_t)info.steps, balance) : -1;
    bool ok = all >= 0;
    if (!ok)
        tool_fail();
    ok = ok && whole_file_begin(&file, to);
    if (ok) {
        inspect_html_put_page(file.f, path, model, &info, shapes, near_misses, steps, all, balance);
        ok = whole_file_end(&file, true);
    }
    free(steps);
    return ok;
}
