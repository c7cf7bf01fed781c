/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_html.h. Pictures are SVG; their colours are the page's, which has a set for light and one for
 * dark. */
#include "tools/bench_html.h"

#include "tools/html.h"
#include "tools/report.h"
#include "tools/whole_file.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 200, LEFT = 90, TOP = 14, BOTTOM = 44 };

static double field(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text_field(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* From 0 to a round number of at least `most`, in at most ten steps. */
typedef struct axis {
    double end, step;
} axis;

static axis round_axis(double most)
{
    const double rough = (most > 0 ? most : 1) / 5, power = pow(10, floor(log10(rough)));
    const double step = power * (rough / power <= 1   ? 1
                                 : rough / power <= 2 ? 2
                                 : rough / power <= 5 ? 5
                                                      : 10);
    return (axis){.end = step * ceil((most > 0 ? most : 1) / step), .step = step};
}

static double at_x(const axis *x, double value)
{
    return LEFT + WIDTH * value / x->end;
}

static double at_y(const axis *y, double value)
{
    return TOP + HEIGHT * (1 - value / y->end);
}

static void begin_picture(FILE *f, const char *title, const char *about)
{
    fprintf(f, "<h3>%s</h3><p>%s</p>\n", title, about);
}

static void put_axes(FILE *f, const axis *x, const axis *y, const char *x_name, const char *y_name)
{
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", LEFT + WIDTH + 40, TOP + HEIGHT + BOTTOM);
    for (double v = 0; v <= y->end * 1.0001; v += y->step)
        fprintf(f,
                "<line class=g x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%.6g</text>\n",
                LEFT, LEFT + WIDTH, at_y(y, v), at_y(y, v), LEFT - 8, at_y(y, v) + 4, v);
    for (double v = 0; v <= x->end * 1.0001; v += x->step)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", at_x(x, v),
                TOP + HEIGHT + 17, v);
    fprintf(f,
            "<text class=n x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><text class=n x=\"14\" y=\"%d\" "
            "text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">%s</text>\n",
            LEFT + WIDTH, TOP + HEIGHT + 36, x_name, TOP + HEIGHT / 2, TOP + HEIGHT / 2, y_name);
}

/* The last column has what is beyond the picture. */
static void put_distribution(FILE *f, const json_t *r)
{
    const json_t *columns = json_object_get(r, "distribution"), *column;
    const size_t n = json_array_size(columns);
    double most = 1, from = field(json_object_get(r, "latency_ms"), "min");
    size_t i;
    if (n < 2)
        return;
    json_array_foreach(columns, i, column) most = fmax(most, field(column, "runs"));
    const axis x = round_axis(field(json_array_get(columns, n - 2), "up_to_ms")), y = round_axis(most);
    begin_picture(f, "Latency",
                  "Single runs, one after the other, up to the 95th percentile. The line is the median.");
    put_axes(f, &x, &y, "ms", "runs");
    json_array_foreach(columns, i, column)
    {
        const double to = field(column, "up_to_ms"), runs = field(column, "runs");
        if (i < n - 1)
            fprintf(f,
                    "<rect class=a x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>%.4g to %.4g "
                    "ms: %.0f "
                    "runs</title></rect>\n",
                    at_x(&x, from), at_y(&y, runs), fmax(at_x(&x, to) - at_x(&x, from) - 0.5, 0.5),
                    TOP + HEIGHT - at_y(&y, runs), from, to, runs);
        from = to;
    }
    const double median = at_x(&x, field(json_object_get(r, "latency_ms"), "p50"));
    fprintf(f, "<line class=m x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/></svg>\n", median, median, TOP,
            TOP + HEIGHT);
}

static void put_latency_row(FILE *f, const char *name, double per_s, const json_t *latency)
{
    static const char *const columns[] = {"min", "p50", "p90", "p95", "p99", "p99_9", "max", "mean"};
    fputs("<tr><td class=l>", f);
    html_put(f, name);
    fprintf(f, "</td><td>%.2f</td>", per_s);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        fprintf(f, "<td>%.4g</td>", field(latency, columns[i]));
    fputs("</tr>\n", f);
}

static void put_latency_heads(FILE *f)
{
    fputs("<table><tr><th "
          "class=l>milliseconds</th><th>runs/s</th><th>min</th><th>p50</th><th>p90</th><th>p95</th>"
          "<th>p99</th><th>p99.9</th><th>max</th><th>mean</th></tr>\n",
          f);
}

static void load_name(const json_t *entry, char *out, size_t size)
{
    if (json_object_get(entry, "clients"))
        snprintf(out, size, "%.0f client%s", field(entry, "clients"), field(entry, "clients") > 1 ? "s" : "");
    else if (field(entry, "unanswered") > 0)
        snprintf(out, size, "%.6g a second, %.0f not answered", field(entry, "rate"),
                 field(entry, "unanswered"));
    else
        snprintf(out, size, "%.6g a second", field(entry, "rate"));
}

static void put_latencies(FILE *f, const json_t *r)
{
    const json_t *entry, *pool = json_object_get(r, "pool");
    size_t i;
    char name[64];
    put_latency_heads(f);
    put_latency_row(f, "one context", field(r, "throughput_per_s"), json_object_get(r, "latency_ms"));
    json_array_foreach(json_object_get(r, "load"), i, entry)
    {
        load_name(entry, name, sizeof name);
        put_latency_row(f, name, field(entry, "throughput_per_s"), json_object_get(entry, "latency_ms"));
    }
    if (pool)
        fprintf(f, "<tr><td class=l>pool of %.0f contexts</td><td>%.2f</td><td colspan=8></td></tr>\n",
                field(pool, "contexts"), field(pool, "throughput_per_s"));
    fputs("</table>\n", f);
}

static void put_throughput(FILE *f, const json_t *r)
{
    const json_t *load = json_object_get(r, "load"), *entry;
    double clients = 0, per_s = 0;
    size_t i, points = 0;
    json_array_foreach(load, i, entry)
    {
        points += json_object_get(entry, "clients") != NULL;
        clients = fmax(clients, field(entry, "clients"));
        per_s = fmax(per_s, json_object_get(entry, "clients") ? field(entry, "throughput_per_s") : 0);
    }
    if (points < 2)
        return;
    const axis x = round_axis(clients), y = round_axis(per_s);
    begin_picture(f, "Throughput", "Clients that ask again once they are answered.");
    put_axes(f, &x, &y, "clients", "runs a second");
    fputs("<polyline class=b points=\"", f);
    json_array_foreach(load, i, entry) if (json_object_get(entry, "clients")) fprintf(
        f, "%.2f,%.2f ", at_x(&x, field(entry, "clients")), at_y(&y, field(entry, "throughput_per_s")));
    fputs("\"/>\n", f);
    json_array_foreach(load, i, entry) if (json_object_get(entry, "clients"))
        fprintf(f,
                "<circle class=c cx=\"%.2f\" cy=\"%.2f\" r=\"4\"><title>%.0f clients: %.2f runs a "
                "second</title></circle>\n",
                at_x(&x, field(entry, "clients")), at_y(&y, field(entry, "throughput_per_s")),
                field(entry, "clients"), field(entry, "throughput_per_s"));
    fputs("</svg>\n", f);
}

static void put_memory(FILE *f, const json_t *r)
{
    enum { MIB = 1 << 20 };
    const json_t *looks = json_object_get(r, "memory"), *look;
    const size_t n = json_array_size(looks);
    double most = 0;
    size_t i;
    if (n < 2)
        return;
    json_array_foreach(looks, i, look) most = fmax(most, field(look, "rss_bytes") / MIB);
    const axis x = round_axis(field(json_array_get(looks, n - 1), "ms")), y = round_axis(most);
    begin_picture(
        f, "Memory",
        "Of the process on the host (resident), from before loading on, pages of mapped files included.");
    put_axes(f, &x, &y, "ms", "MiB");
    fputs("<polyline class=b points=\"", f);
    json_array_foreach(looks, i, look)
        fprintf(f, "%.2f,%.2f ", at_x(&x, field(look, "ms")), at_y(&y, field(look, "rss_bytes") / MIB));
    fputs("\"/></svg>\n", f);
}

/* Kinds have a colour each, by their class; run and prepare are the frame that the others lie in. */
static int bar_depth(const char *kind)
{
    return !strcmp(kind, "run") || !strcmp(kind, "copy in") || !strcmp(kind, "copy out") ? 0 : 1;
}

static void put_bar(FILE *f, const axis *x, const json_t *bar)
{
    enum { ROW = 44, HALF = 19 };
    const char *kind = text_field(bar, "kind");
    const double begin = field(bar, "begin_ms"), end = field(bar, "end_ms");
    const double width = fmax(at_x(x, end) - at_x(x, begin), 0.4);
    const double y = TOP + (field(bar, "row")) * ROW + bar_depth(kind) * HALF;
    char name[32];
    snprintf(name, sizeof name, "k-%s", kind);
    for (char *space = name; (space = strchr(space, ' '));)
        *space = '-';
    fprintf(f, "<rect class=\"k %s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>%s ", name,
            at_x(x, begin), y, width, HALF - 2, kind);
    html_put(f, text_field(bar, "name"));
    fprintf(f, ", %.3f ms, from %.3f to %.3f</title></rect>\n", end - begin, begin, end);
}

/* Threads in the order in which they come; returns their number. */
static int number_rows(json_t *bars)
{
    enum { MOST = 64 };
    int threads[MOST], n = 0;
    size_t i;
    json_t *bar;
    json_array_foreach(bars, i, bar)
    {
        int row = 0;
        const int thread = (int)field(bar, "thread");
        while (row < n && threads[row] != thread)
            row++;
        if (row == n && n < MOST)
            threads[n++] = thread;
        json_object_set_new(bar, "row", json_integer(row));
    }
    return n;
}

static void put_legend(FILE *f)
{
    static const char *const kinds[] = {"copy in", "run",      "step", "upload",
                                        "replay",  "download", "wait", "copy out"};
    fputs("<p class=legend>", f);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", kinds[i]);
        if (strchr(name, ' '))
            *strchr(name, ' ') = '-';
        fprintf(f,
                "<svg class=s viewBox=\"0 0 12 12\"><rect class=\"k k-%s\" width=\"12\" "
                "height=\"12\"/></svg> %s ",
                name, kinds[i]);
    }
    fputs("</p>\n", f);
}

static void put_timeline(FILE *f, const json_t *r)
{
    enum { ROW = 44 };
    json_t *bars = json_deep_copy(json_object_get(r, "timeline"));
    const int rows = number_rows(bars);
    double end = 0;
    size_t i;
    json_t *bar;
    json_array_foreach(bars, i, bar) end = fmax(end, field(bar, "end_ms"));
    if (!rows || end <= 0) {
        json_decref(bars);
        return;
    }
    const axis x = round_axis(end);
    begin_picture(f, "Timeline",
                  "Requests that were submitted at once, in a pool: a row for the thread of each context, by "
                  "the host's "
                  "clock. On devices <i>wait</i> is the time in which the stream computes and copies.");
    put_legend(f);
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", LEFT + WIDTH + 40, TOP + rows * ROW + 26);
    for (double v = 0; v <= x.end * 1.0001; v += x.step)
        fprintf(f,
                "<line class=g x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%.6g ms</text>\n",
                at_x(&x, v), at_x(&x, v), TOP, TOP + rows * ROW, at_x(&x, v), TOP + rows * ROW + 17, v);
    for (int row = 0; row < rows; row++)
        fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">thread %d</text>\n", LEFT - 8,
                TOP + row * ROW + 22, row + 1);
    json_array_foreach(bars, i, bar) put_bar(f, &x, bar);
    fputs("</svg>\n", f);
    json_decref(bars);
}

static void put_style(FILE *f)
{
    fputs("<style>:root{color-scheme:light "
          "dark;--page:#fff;--ink:#1f2328;--soft:#59636e;--line:#d8dee4;--a:#2f6fb3;--b:#1a7f5a;--m:#c4432b}"
          "@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e9ed;--soft:#9aa4af;--line:#"
          "363c44;--a:#6aa9e9;--b:#4cc38a;--m:#ff8f70}}"
          "body{background:var(--page);color:var(--ink);max-width:1040px}p{color:var(--soft)}td,th{border-"
          "color:var(--line)}"
          "svg{width:100%;display:block}svg "
          "text{fill:var(--soft)}.g{stroke:var(--line)}.a{fill:var(--a)}.b{fill:none;stroke:var(--b);stroke-"
          "width:2}"
          ".c{fill:var(--b)}.m{stroke:var(--m);stroke-width:1.5;stroke-dasharray:4 "
          "3}.k{fill:var(--a)}.k-run{fill:var(--line)}.k-copy-in,.k-upload{fill:#d98a1f}"
          ".k-copy-out,.k-download{fill:#a86fc9}.k-replay,.k-capture{fill:var(--b)}.k-wait{fill:var(--soft)}."
          "k-prepare{fill:var(--m)}"
          ".k-step{stroke:var(--page);stroke-width:.5}.legend "
          "svg.s{display:inline;width:12px;height:12px;vertical-align:-1px;margin-left:12px}</style>\n",
          f);
}

static void put_report(FILE *f, const json_t *r)
{
    char memory[FIGURE_SIZE];
    fputs("<h2>", f);
    html_put(f, text_field(r, "model"));
    fputs("</h2><p>", f);
    html_put(f, text_field(r, "device"));
    fprintf(f, ", %.0f thread%s. Loaded in %.3f ms, first run %.3f ms", field(r, "threads"),
            field(r, "threads") > 1 ? "s" : "", field(json_object_get(r, "load_ms"), "total"),
            field(r, "first_run_ms"));
    if (field(r, "device_ms") > 0)
        fprintf(f, ", device %.3f ms a run", field(r, "device_ms"));
    fprintf(f, ", host outside kernels %.1f us a run, peak memory %s, %.0f runs after %.0f to warm up.</p>\n",
            field(r, "host_us"), figure_bytes(field(r, "peak_rss_bytes"), memory), field(r, "runs"),
            field(r, "warmup"));
    put_latencies(f, r);
    put_distribution(f, r);
    put_throughput(f, r);
    put_timeline(f, r);
    put_memory(f, r);
}

/* Of each load a row for all requests, and one for each model. */
static void put_mixed_latencies(FILE *f, const json_t *together)
{
    const json_t *entry, *one;
    size_t i, k;
    char name[64], row[160];
    put_latency_heads(f);
    json_array_foreach(json_object_get(together, "load"), i, entry)
    {
        const double slices = field(entry, "of_time_slices");
        load_name(entry, name, sizeof name);
        const int n = snprintf(row, sizeof row, "%s of each", name);
        if (slices > 0)
            snprintf(row + n, sizeof row - (size_t)n, ", %.3f of their time-slices", slices);
        put_latency_row(f, row, field(entry, "throughput_per_s"), json_object_get(entry, "latency_ms"));
        json_array_foreach(json_object_get(entry, "models"), k, one) put_latency_row(
            f, text_field(one, "model"), field(one, "throughput_per_s"), json_object_get(one, "latency_ms"));
    }
    fputs("</table>\n", f);
}

static void put_together(FILE *f, const json_t *together)
{
    char memory[FIGURE_SIZE];
    const json_t *models = json_object_get(together, "models");
    fprintf(f, "<h2>%zu models together</h2><p>", json_array_size(models));
    html_put(f, text_field(together, "device"));
    fprintf(f,
            ", %.0f thread%s, one pool with contexts of each model. Loaded in %.3f ms, peak memory %s.</p>\n",
            field(together, "threads"), field(together, "threads") > 1 ? "s" : "", field(together, "load_ms"),
            figure_bytes(field(together, "peak_rss_bytes"), memory));
    put_mixed_latencies(f, together);
    put_throughput(f, together);
    put_timeline(f, together);
    put_memory(f, together);
}

bool bench_html(const char *path, const json_t *reports, const json_t *together)
{
    whole_file file;
    size_t i;
    const json_t *report;
    if (!whole_file_begin(&file, path))
        return false;
    html_begin(file.f, "graphrun bench");
    put_style(file.f);
    json_array_foreach(reports, i, report) put_report(file.f, report);
    if (together)
        put_together(file.f, together);
    html_end(file.f);
    return whole_file_end(&file, true);
}
