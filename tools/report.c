/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* vasprintf */
#include "tools/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 16384 };

static void put_lines(FILE *to, size_t n)
{
    while (n-- > 0)
        fputc('\n', to);
}

static size_t count_line_ends(const char *text)
{
    size_t n = 0;
    for (size_t length = strlen(text); n < length && text[length - n - 1] == '\n';)
        n++;
    return n;
}

/* The format's own line ends, and between them what is to be shown. */
static void put_printable(FILE *to, const char *format, va_list args)
{
    char few[LINE], shown[LINE], *text = few;
    const size_t before = strspn(format, "\n"), after = format[before] ? count_line_ends(format) : 0;
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(few, sizeof few, format, args);
    if (length >= LINE && vasprintf(&text, format, again) < 0)
        text = few;
    va_end(again);
    const size_t size = strlen(text);
    put_lines(to, before);
    if (size > before + after) {
        grt_printable(text + before, size - before - after, shown, sizeof shown);
        fputs(shown, to);
    }
    put_lines(to, after);
    if (text != few)
        free(text);
}

void tool_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_printable(stdout, format, args);
    va_end(args);
}

void tool_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", tool_name);
    put_printable(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

int tool_fail(void)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", tool_name, grt_last_error());
    return EXIT_BAD;
}

double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

const char *figure_bytes(double bytes, char out[FIGURE_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024 && u + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, FIGURE_SIZE, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return out;
}

const char *figure_count(double count, char out[FIGURE_SIZE])
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    size_t u = 0;
    while (count >= 1000 && u + 1 < sizeof units / sizeof *units) {
        count /= 1000;
        u++;
    }
    snprintf(out, FIGURE_SIZE, u ? "%.2f%s" : "%.0f%s", count, units[u]);
    return out;
}

static size_t append_text(char *out, size_t size, size_t at, const char *text)
{
    size_t room = at < size ? size - at : 0;
    int n = snprintf(room ? out + at : NULL, room, "%s", text);
    return at + (size_t)n;
}

const char *figure_shape(const grt_tensor *t, char *out, size_t size)
{
    if (t->rank <= 0) {
        snprintf(out, size, "%s", t->rank == 0 ? "scalar" : "unknown rank");
        return out;
    }
    size_t at = 0;
    for (int32_t i = 0; i < t->rank; i++) {
        char dim[32];
        snprintf(dim, sizeof dim, t->dims[i] < 0 ? "%s?" : "%s%" PRId64, i ? "x" : "", t->dims[i]);
        at = append_text(out, size, at, dim);
    }
    return out;
}

const char *figure_io(const grt_io_info *info, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    if (info->kind == GRT_KIND_OPTIONAL)
        at = append_text(out, size, at, "optional ");
    if (info->kind == GRT_KIND_SEQUENCE ||
        (info->kind == GRT_KIND_OPTIONAL && info->element_kind == GRT_KIND_SEQUENCE))
        at = append_text(out, size, at, "sequence of ");
    if (info->kind == GRT_KIND_MAP || info->element_kind == GRT_KIND_MAP) {
        at = append_text(out, size, at, info->kind == GRT_KIND_MAP ? "map to " : "maps to ");
        append_text(out, size, at, grt_dtype_name(info->dtype));
        return out;
    }
    at = append_text(out, size, at, grt_dtype_name(info->dtype));
    if (info->rank < 0) {
        append_text(out, size, at, " of unknown rank");
        return out;
    }
    at = append_text(out, size, at, "[");
    for (int32_t i = 0; i < info->rank; i++) {
        char dim[64];
        if (i)
            at = append_text(out, size, at, "x");
        snprintf(dim, sizeof dim, "%" PRId64, info->dims[i]);
        at = append_text(out, size, at, info->dims[i] >= 0 ? dim : info->symbols[i] ? info->symbols[i] : "?");
    }
    append_text(out, size, at, "]");
    return out;
}

const char *report_place(const grt_finding *finding, char *out, size_t size)
{
    char opset[48] = "";
    if (finding->op[0] && finding->opset)
        snprintf(opset, sizeof opset, "(opset %lld) ", (long long)finding->opset);
    const bool named = finding->node[0] || finding->op[0];
    snprintf(out, size, "%s%s%s%s%s%s%s", finding->op, finding->op[0] ? " " : "", opset,
             finding->node[0] ? "node '" : "", finding->node, finding->node[0] ? "'" : "", named ? ": " : "");
    return out;
}

json_t *report_finding_json(const char *kind, const grt_finding *finding)
{
    json_t *object = json_object();
    json_object_set_new(object, "status", json_string(kind));
    json_object_set_new(object, "node", json_text(finding->node));
    json_object_set_new(object, "op", json_text(finding->op));
    json_object_set_new(object, "opset", json_integer(finding->opset));
    json_object_set_new(object, "message", json_text(finding->message));
    return object;
}

json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char *copy = strdup(text); /* not UTF-8 */
    for (char *c = copy; c && *c; c++)
        if (*c & 0x80)
            *c = '?';
    string = json_string(copy ? copy : "");
    free(copy);
    return string;
}

json_t *json_shape(const grt_tensor *t)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->dims[i]));
    return shape;
}

json_t *json_io(const grt_io_info *info)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional", "map"};
    json_t *io = json_object();
    json_object_set_new(io, "name", json_text(info->name));
    json_object_set_new(io, "kind", json_string(kinds[info->kind]));
    if (info->kind == GRT_KIND_OPTIONAL ||
        (info->kind == GRT_KIND_SEQUENCE && info->element_kind == GRT_KIND_MAP))
        json_object_set_new(io, "element_kind", json_string(kinds[info->element_kind]));
    json_object_set_new(io, "dtype", json_string(grt_dtype_name(info->dtype)));
    json_t *shape = info->rank < 0 ? json_null() : json_array();
    for (int32_t i = 0; i < info->rank; i++)
        json_array_append_new(shape, info->dims[i] >= 0 ? json_integer(info->dims[i])
                                     : info->symbols[i] ? json_text(info->symbols[i])
                                                        : json_null());
    json_object_set_new(io, "shape", shape);
    json_object_set_new(io, "has_default", json_boolean(info->has_default));
    return io;
}

static void report_add_phases(json_t *object, const grt_phase *phases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double ms = phases[i].end_ms - phases[i].begin_ms;
        json_object_set_new(object, phases[i].name,
                            json_real(json_number_value(json_object_get(object, phases[i].name)) + ms));
    }
}

json_t *json_phases(const grt_model *model, const grt_session *session, double total_ms)
{
    json_t *object = json_object();
    const grt_phase *phases;
    size_t n = grt_model_phases(model, &phases);
    report_add_phases(object, phases, n);
    n = session ? grt_session_phases(session, &phases) : 0;
    report_add_phases(object, phases, n);
    json_object_set_new(object, "total", json_real(total_ms));
    return object;
}

bool json_print(json_t *object)
{
    bool ok = object &&
              json_dumpf(object, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) == 0;
    json_decref(object);
    if (!ok)
        tool_error("cannot print the JSON report");
    putchar('\n');
    return ok && fflush(stdout) == 0;
}
