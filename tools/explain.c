/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain.h"

#include "tools/html.h"
#include "tools/report.h"
#include "tools/whole_file.h"

#include <stdio.h>
#include <string.h>

static grt_load_info load_figures(const grt_session *session)
{
    grt_load_info info = {.struct_size = sizeof info, .device = "?", .warnings = "", .plan_note = ""};
    if (grt_session_get_load(session, &info) != GRT_OK)
        info.device = "?";
    return info;
}

/* False where there is nothing to tell: hosts have no graphs. */
static bool replay_of(const load_report *r, size_t i, grt_replay_info *out)
{
    *out = (grt_replay_info){.struct_size = sizeof *out};
    return r->pool && grt_pool_get_replay(r->pool, i, out) == GRT_OK && (out->supported || *out->reason);
}

static void print_replay(const char *device, const grt_replay_info *replay)
{
    if (!*replay->reason)
        tool_print("  %-10s runs: replayed as a graph; %d kept\n", device, replay->graphs);
    else if (replay->replayed)
        tool_print("  %-10s runs: %d of %d steps replayed as graphs, not the others: %s%s%s%s%s\n", device,
                   replay->replayed, replay->steps, replay->op, *replay->op ? " node '" : "", replay->node,
                   *replay->op ? "': " : "", replay->reason);
    else
        tool_print("  %-10s runs: step by step, not as a graph: %s%s%s%s%s\n", device, replay->op,
                   *replay->op ? " node '" : "", replay->node, *replay->op ? "': " : "", replay->reason);
}

static void print_phases(const char *object, double offset, const grt_phase *phases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tool_print("  %-10s %-18s %9.3f ms   from %9.3f to %9.3f\n", object, phases[i].name,
                   phases[i].end_ms - phases[i].begin_ms, offset + phases[i].begin_ms,
                   offset + phases[i].end_ms);
}

/* Nothing for devices and models that have no generated kernels. */
static void print_code(const grt_load_info *f)
{
    const struct {
        uint64_t n;
        const char *what;
    } parts[] = {{f->code_plan, "from the plan"},
                 {f->code_store, "from the cache"},
                 {f->code_compiled, "compiled"},
                 {f->code_waiting, "interpreted until they are compiled"},
                 {f->code_interpreted, "interpreted"}};
    const char *before = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].n)
            continue;
        if (!*before)
            tool_print("  %-10s generated kernels:", f->device);
        tool_print("%s %llu %s", before, (unsigned long long)parts[i].n, parts[i].what);
        before = ",";
    }
    if (*before)
        tool_print("\n");
}

static void print_each_code(void *user, const grt_cache_lookup *lookup)
{
    (void)user;
    if (lookup->code)
        tool_print("  %-11s kernel %s\n", lookup->code, lookup->key);
}

void explain_text(const load_report *r)
{
    const grt_phase *phases;
    tool_print("load:\n");
    size_t n = grt_model_phases(r->model, &phases);
    print_phases("model", 0, phases, n);
    for (size_t i = 0; i < r->n; i++) {
        const grt_load_info f = load_figures(r->sessions[i]);
        char host[FIGURE_SIZE], peer[FIGURE_SIZE], pinned[FIGURE_SIZE];
        n = grt_session_phases(r->sessions[i], &phases);
        print_phases(f.device, r->sessions_at_ms, phases, n);
        tool_print("  %-10s weights: %s from the host, %s from other devices, %s pinned\n", f.device,
                   figure_bytes((double)f.host_bytes, host), figure_bytes((double)f.peer_bytes, peer),
                   figure_bytes((double)f.pinned_bytes, pinned));
        tool_print(
            "  %-10s passes %llu, algorithms: %llu from the plan, %llu from the cache, %llu missed, %llu "
            "heuristic queries, %llu searches\n",
            f.device, (unsigned long long)f.passes, (unsigned long long)f.plan_hits,
            (unsigned long long)f.cache_hits, (unsigned long long)f.cache_misses,
            (unsigned long long)f.heuristics, (unsigned long long)f.searches);
        print_code(&f);
        if (f.rejected)
            tool_print("  %-10s %llu stored algorithms were refused by the library and chosen anew\n",
                       f.device, (unsigned long long)f.rejected);
        if (*f.plan_note)
            tool_print("  %-10s note: %s\n", f.device, f.plan_note);
        for (const char *line = f.warnings; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
            tool_print("  %-10s warning: %.*s\n", f.device, (int)strcspn(line, "\n"), line);
        grt_replay_info replay;
        if (replay_of(r, i, &replay))
            print_replay(f.device, &replay);
    }
    if (r->runtime && grt_cache_lookups(r->runtime, print_each_code, NULL) != GRT_OK)
        tool_print("  %s\n", grt_last_error());
    tool_print("  total, until contexts are ready %9.3f ms\n", r->total_ms);
}

static json_t *phases_json(double offset, const grt_phase *phases, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *phase = json_object();
        json_object_set_new(phase, "name", json_text(phases[i].name));
        json_object_set_new(phase, "begin_ms", json_real(offset + phases[i].begin_ms));
        json_object_set_new(phase, "end_ms", json_real(offset + phases[i].end_ms));
        json_array_append_new(array, phase);
    }
    return array;
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
    json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *replay_json(const load_report *r, size_t i)
{
    grt_replay_info replay;
    if (!replay_of(r, i, &replay))
        return json_null();
    json_t *object = json_object();
    set_count(object, "graphs", (uint64_t)replay.graphs);
    set_count(object, "steps", (uint64_t)replay.steps);
    set_count(object, "replayed", (uint64_t)replay.replayed);
    json_object_set_new(object, "op", json_text(replay.op));
    json_object_set_new(object, "node", json_text(replay.node));
    json_object_set_new(object, "reason", json_text(replay.reason));
    return object;
}

json_t *explain_json(const load_report *r)
{
    json_t *object = json_object(), *devices = json_array();
    const grt_phase *phases;
    size_t n = grt_model_phases(r->model, &phases);
    json_object_set_new(object, "model", phases_json(0, phases, n));
    for (size_t i = 0; i < r->n; i++) {
        const grt_load_info f = load_figures(r->sessions[i]);
        json_t *device = json_object();
        n = grt_session_phases(r->sessions[i], &phases);
        json_object_set_new(device, "device", json_text(f.device));
        json_object_set_new(device, "phases", phases_json(r->sessions_at_ms, phases, n));
        set_count(device, "passes", f.passes);
        set_count(device, "plan_rows", f.plan_rows);
        set_count(device, "plan_hits", f.plan_hits);
        set_count(device, "cache_hits", f.cache_hits);
        set_count(device, "cache_misses", f.cache_misses);
        set_count(device, "heuristics", f.heuristics);
        set_count(device, "searches", f.searches);
        set_count(device, "rejected", f.rejected);
        set_count(device, "code_plan", f.code_plan);
        set_count(device, "code_store", f.code_store);
        set_count(device, "code_compiled", f.code_compiled);
        set_count(device, "code_waiting", f.code_waiting);
        set_count(device, "code_interpreted", f.code_interpreted);
        json_object_set_new(device, "plan_note", json_text(f.plan_note));
        set_count(device, "host_bytes", f.host_bytes);
        set_count(device, "peer_bytes", f.peer_bytes);
        set_count(device, "read_bytes", f.read_bytes);
        set_count(device, "pinned_bytes", f.pinned_bytes);
        json_object_set_new(device, "warnings", json_text(f.warnings));
        json_object_set_new(device, "replay", replay_json(r, i));
        json_array_append_new(devices, device);
    }
    json_object_set_new(object, "devices", devices);
    json_object_set_new(object, "total_ms", json_real(r->total_ms));
    return object;
}

enum { LEFT = 110, WIDTH = 900, BAR = 20, TOP = 40 };

static const char *phase_colour(const char *phase)
{
    static const char *const colours[][2] = {{"map", "#9ecae1"},           {"check plan", "#6baed6"},
                                             {"check weights", "#c6dbef"}, {"compile", "#de2d26"},
                                             {"start driver", "#969696"},  {"open device", "#bdbdbd"},
                                             {"weights", "#31a354"},       {"create kernels", "#fd8d3c"}};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (!strcmp(colours[i][0], phase))
            return colours[i][1];
    return "#756bb1";
}

/* Phases that go on beside others get a row of their own below. */
static int put_row(FILE *f, const load_report *r, int y, const char *name, double offset,
                   const grt_phase *phases, size_t n)
{
    const double scale = WIDTH / (r->total_ms > 0 ? r->total_ms : 1);
    double end = -1;
    int rows = 1;
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, y + 15);
    html_put(f, name);
    fputs("</text>\n", f);
    for (size_t i = 0; i < n; i++) {
        const double x = LEFT + scale * (offset + phases[i].begin_ms);
        const double width = scale * (phases[i].end_ms - phases[i].begin_ms);
        if (phases[i].begin_ms < end - 1e-6 && rows == 1)
            rows = 2;
        fprintf(f, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"><title>", x,
                y + (rows - 1) * BAR, width > 0.5 ? width : 0.5, BAR - 3, phase_colour(phases[i].name));
        html_put(f, name);
        fputs(": ", f);
        html_put(f, phases[i].name);
        fprintf(f, ", %.3f ms, from %.3f to %.3f</title></rect>\n", phases[i].end_ms - phases[i].begin_ms,
                offset + phases[i].begin_ms, offset + phases[i].end_ms);
        if (width > 90) {
            fprintf(f, "<text x=\"%.2f\" y=\"%d\" font-size=\"11\" pointer-events=\"none\">", x + 4,
                    y + (rows - 1) * BAR + 13);
            html_put(f, phases[i].name);
            fputs("</text>\n", f);
        }
        end = phases[i].end_ms > end ? phases[i].end_ms : end;
    }
    return y + rows * BAR + 6;
}

static void put_axis(FILE *f, const load_report *r, int bottom)
{
    for (int i = 0; i <= 10; i++) {
        const double x = LEFT + WIDTH * i / 10.0;
        fprintf(
            f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" "
            "text-anchor=\"middle\">%.4g</text>\n",
            x, x, TOP - 8, bottom, x, TOP - 14, r->total_ms * i / 10);
    }
}

static void put_table(FILE *f, const load_report *r)
{
    fputs(
        "<table><tr><th>device</th><th>from the host</th><th>from devices</th><th>pinned</th><th>passes</th>"
        "<th>of the plan</th><th>cache hits</th><th>misses</th><th>heuristic "
        "queries</th><th>searches</th><th>refused</th><th>warnings</th></tr>\n",
        f);
    for (size_t i = 0; i < r->n; i++) {
        const grt_load_info s = load_figures(r->sessions[i]);
        char host[FIGURE_SIZE], peer[FIGURE_SIZE], pinned[FIGURE_SIZE];
        fputs("<tr><td>", f);
        html_put(f, s.device);
        fprintf(f,
                "</td><td>%s</td><td>%s</td><td>%s</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</"
                "td><td>%llu</td><td>%llu</td><td>%llu</td><td>",
                figure_bytes((double)s.host_bytes, host), figure_bytes((double)s.peer_bytes, peer),
                figure_bytes((double)s.pinned_bytes, pinned), (unsigned long long)s.passes,
                (unsigned long long)s.plan_hits, (unsigned long long)s.cache_hits,
                (unsigned long long)s.cache_misses, (unsigned long long)s.heuristics,
                (unsigned long long)s.searches, (unsigned long long)s.rejected);
        html_put(f, s.warnings);
        fputs("</td></tr>\n", f);
    }
    fputs("</table>\n", f);
}

static void put_page(FILE *f, const load_report *r)
{
    const int bottom = TOP + ((int)r->n + 1) * (2 * BAR + 6);
    const grt_phase *phases;
    html_begin(f, r->title);
    fprintf(f,
            "<p>Ready after %.3f ms. Milliseconds from left to right; what went on beside other phases of a "
            "device is below them.</p>\n<svg width=\"%d\" height=\"%d\">\n",
            r->total_ms, LEFT + WIDTH + 40, bottom + 8);
    put_axis(f, r, bottom);
    size_t n = grt_model_phases(r->model, &phases);
    int y = put_row(f, r, TOP, "model", 0, phases, n);
    for (size_t i = 0; i < r->n; i++) {
        n = grt_session_phases(r->sessions[i], &phases);
        y = put_row(f, r, y, load_figures(r->sessions[i]).device, r->sessions_at_ms, phases, n);
    }
    fputs("</svg>\n", f);
    put_table(f, r);
    html_end(f);
}

bool explain_html(const load_report *r, const char *path)
{
    whole_file file;
    if (!whole_file_begin(&file, path))
        return false;
    put_page(file.f, r);
    return whole_file_end(&file, true);
}
