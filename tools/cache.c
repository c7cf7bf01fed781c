/* SPDX-License-Identifier: Apache-2.0 */
/* graphc cache: look into the cache of algorithms, explain it, empty it, carry it to other machines. */
#include "tools/cache.h"

#include "tools/inputs.h"
#include "tools/loaded.h"
#include "tools/piped.h"
#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct request {
    const char *action, *argument, *file, *matching, *device, *fallback;
    double days;
    bool all, json;
    input_specs shapes;
} request;

static bool take_cache_shape(void *user, const char *value)
{
    return inputs_add_shape(&((request *)user)->shapes, value);
}

/* The action, and what it acts on. */
static bool take_cache_word(void *user, const char *value)
{
    request *r = user;
    if (r->action && r->argument)
        tool_error("cache %s: one argument at a time: '%s' and '%s'", r->action, r->argument, value);
    const bool ok = !r->action || !r->argument;
    *(r->action ? &r->argument : &r->action) = value;
    return ok;
}

const tool_option cache_options[] = {
    OPTION_TEXT(request, file, "--cache", "FILE",
                "the cache's file (default: GRAPHRT_ALGO_CACHE, else the user's cache directory)"),
    OPTION_TEXT(request, matching, "--matching", "TEXT",
                "ls, prune: only rows whose key contains TEXT, for example gpu=NVIDIA"),
    OPTION_NUMBER(request, days, 0, "--older-than", "DAYS", "prune: only rows that were made longer ago"),
    OPTION_FLAG(request, all, "--all", "prune: all rows"),
    OPTION_TEXT(request, device, "--device", "DEVICE",
                "why: the device that the model runs on (default: cpu)"),
    OPTION_TEXT(request, fallback, "--fallback", "cpu",
                "why: run ops that the device has no kernel for on the CPU"),
    OPTION_TAKE(take_cache_shape, "--shape", "NAME=2x3x224", "why: shape of input NAME; may be repeated"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

typedef struct listing {
    const request *r;
    json_t *array; /* NULL: print */
    size_t n;
} listing;

static void format_date(int64_t seconds, char out[32])
{
    time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M", &tm))
        snprintf(out, 32, "?");
}

static bool is_code(const char *key)
{
    return !strncmp(key, "code=", 5);
}

static const char *cache_row_source(const grt_cache_row *row)
{
    return is_code(row->key) ? "code" : row->tuned ? "tuned" : "heuristic";
}

static void list_row(void *user, const grt_cache_row *row)
{
    listing *l = user;
    char made[32];
    if (l->r->matching && !strstr(row->key, l->r->matching))
        return;
    l->n++;
    format_date(row->made, made);
    if (!l->array) {
        char cost[32] = "-";
        if (row->cost_ms > 0)
            snprintf(cost, sizeof cost, "%.3f ms", row->cost_ms);
        tool_print("%s  %-9s %12s %7zu B  %s\n", made, cache_row_source(row), cost, row->size, row->key);
        return;
    }
    json_t *object = json_object();
    json_object_set_new(object, "key", json_text(row->key));
    json_object_set_new(object, "source", json_string(cache_row_source(row)));
    json_object_set_new(object, "cost_ms", row->cost_ms > 0 ? json_real(row->cost_ms) : json_null());
    json_object_set_new(object, "bytes", json_integer((json_int_t)row->size));
    json_object_set_new(object, "made", json_integer((json_int_t)row->made));
    json_array_append_new(l->array, object);
}

/* A file that somebody named and that cannot be there, as its directory is not: a mistake. The user's own is
 * made, with its directories, when there is something to keep. */
static bool is_cache_directory_there(const request *r)
{
    struct stat st;
    const char *set = getenv("GRAPHRT_ALGO_CACHE");
    const char *file = r->file ? r->file : set && strcmp(set, "off") != 0 && strcmp(set, "0") != 0 ? set : "";
    const char *slash = strrchr(file, '/');
    char *directory = slash && slash > file ? strndup(file, (size_t)(slash - file)) : NULL;
    const bool ok = !directory || stat(directory, &st) == 0;
    if (!ok)
        tool_error("cache %s: there is no '%s': directory '%s': %s", r->action, file, directory,
                   strerror(errno));
    free(directory);
    return ok;
}

static int list_rows(const request *r)
{
    char path[4096] = "";
    struct stat st;
    listing l = {.r = r, .array = r->json ? json_array() : NULL};
    size_t damaged = 0;
    if ((!r->file && grt_cache_path(path, sizeof path) != GRT_OK) ||
        grt_cache_each(r->file, list_row, &l, &damaged) != GRT_OK) {
        json_decref(l.array);
        return tool_fail();
    }
    const char *file = r->file ? r->file : path;
    if (r->json) {
        json_t *object = json_object();
        json_object_set_new(object, "file", json_text(file));
        json_object_set_new(object, "rows", l.array);
        json_object_set_new(object, "damaged", json_integer((json_int_t)damaged));
        return json_print(object) ? EXIT_GOOD : EXIT_BAD;
    }
    tool_print("%s: %zu rows", file, l.n);
    if (stat(file, &st) != 0)
        tool_print(": there is no such file yet");
    tool_print(damaged ? ", %zu damaged\n" : "\n", damaged);
    return EXIT_GOOD;
}

typedef struct explanation {
    json_t *array;
    size_t hits, misses;
} explanation;

static bool has_part(const char *key, const char *part, size_t size)
{
    for (const char *p = key; *p;) {
        const size_t n = strcspn(p, ";");
        if (n == size && !strncmp(p, part, n))
            return true;
        p += n + (p[n] == ';');
    }
    return false;
}

/* The parts of `key` that `other` lacks: "x=float32[8]; sm=90" */
static void key_difference(const char *key, const char *other, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (const char *p = key; *p;) {
        const size_t n = strcspn(p, ";");
        if (n && !has_part(other, p, n) && at + 1 < size)
            at += (size_t)snprintf(out + at, size - at, "%s%.*s", at ? "; " : "", (int)n, p);
        p += n + (p[n] == ';');
    }
}

static void explain_lookup(void *user, const grt_cache_lookup *lookup)
{
    explanation *e = user;
    char here[1024] = "", there[1024] = "";
    *(lookup->hit ? &e->hits : &e->misses) += 1;
    if (lookup->nearest) {
        key_difference(lookup->key, lookup->nearest, here, sizeof here);
        key_difference(lookup->nearest, lookup->key, there, sizeof there);
    }
    if (!e->array && lookup->code) {
        tool_print("code  %s (%s)\n", lookup->key, lookup->code);
        return;
    }
    if (!e->array) {
        tool_print("%s  %s\n", lookup->from_plan ? "plan" : lookup->hit ? "hit " : "miss", lookup->key);
        if (lookup->nearest)
            tool_print("      the nearest row differs: %s, there %s\n", here, there);
        else if (!lookup->hit)
            tool_print("      there is no row of this op\n");
        return;
    }
    json_t *object = json_object();
    json_object_set_new(object, "key", json_text(lookup->key));
    json_object_set_new(object, "hit", json_boolean(lookup->hit));
    json_object_set_new(object, "from_plan", json_boolean(lookup->from_plan));
    if (lookup->code)
        json_object_set_new(object, "code", json_string(lookup->code));
    if (!lookup->hit) {
        json_object_set_new(object, "nearest", lookup->nearest ? json_text(lookup->nearest) : json_null());
        json_object_set_new(object, "differs", json_text(here));
        json_object_set_new(object, "differs_there", json_text(there));
    }
    json_array_append_new(e->array, object);
}

/* Algorithms are chosen when dims are known: run the model once. */
static bool cache_run_once(loaded *l, const request *r)
{
    const size_t n = grt_model_input_count(l->model);
    grt_value **values = calloc(n + 1, sizeof *values);
    const char **sources = calloc(n + 1, sizeof *sources);
    bool ok = values && sources && inputs_bind(l->model, l->context, &r->shapes, 0, values, sources);
    if (ok && grt_context_run(l->context) != GRT_OK)
        ok = tool_fail() == EXIT_GOOD;
    inputs_release_values(values, n);
    free(sources);
    return ok;
}

static int explain_lookups(const request *r)
{
    loaded l = {0};
    explanation e = {.array = r->json ? json_array() : NULL};
    int code = EXIT_BAD;
    if (r->file)
        setenv("GRAPHRT_ALGO_CACHE", r->file, 1);
    if (loaded_open(&l, r->argument, r->device, r->fallback, 0, NULL) != GRT_OK)
        tool_fail();
    else if (cache_run_once(&l, r)) {
        if (grt_cache_lookups(l.runtime, explain_lookup, &e) != GRT_OK)
            code = tool_fail();
        else
            code = EXIT_GOOD;
    }
    if (code == EXIT_GOOD && r->json) {
        json_t *object = json_object();
        json_object_set_new(object, "model", json_text(r->argument));
        json_object_set_new(object, "device", json_text(r->device ? r->device : "cpu"));
        json_object_set_new(object, "hits", json_integer((json_int_t)e.hits));
        json_object_set_new(object, "misses", json_integer((json_int_t)e.misses));
        json_object_set_new(object, "lookups", e.array);
        e.array = NULL;
        code = json_print(object) ? EXIT_GOOD : EXIT_BAD;
    } else if (code == EXIT_GOOD)
        tool_print("%s on %s: %zu hits, %zu misses\n", r->argument, r->device ? r->device : "cpu", e.hits,
                   e.misses);
    json_decref(e.array);
    loaded_release(&l);
    return code;
}

static int print_count(const request *r, const char *name, size_t n)
{
    json_t *object = json_object();
    if (r->argument)
        json_object_set_new(object, "file", json_text(r->argument));
    json_object_set_new(object, name, json_integer((json_int_t)n));
    return json_print(object) ? EXIT_GOOD : EXIT_BAD;
}

static int prune_cache(const request *r)
{
    size_t removed;
    if (!r->all && !r->matching && r->days <= 0) {
        tool_error("cache prune: say which rows: --older-than DAYS, --matching TEXT, or --all");
        return EXIT_BAD;
    }
    if (grt_cache_prune(r->file, r->days, r->matching, &removed) != GRT_OK)
        return tool_fail();
    if (r->json)
        return print_count(r, "removed", removed);
    tool_print("%zu rows removed\n", removed);
    return EXIT_GOOD;
}

static int copy_cache(const request *r, bool export)
{
    size_t n;
    if (export && !option_is_file("cache export", r->argument))
        return EXIT_BAD;
    if (grt_cache_copy(export ? r->file : r->argument, export ? r->argument : r->file, &n) != GRT_OK)
        return tool_fail();
    if (r->json)
        return print_count(r, "copied", n);
    tool_print("%zu rows %s %s\n", n, export ? "written to" : "read from", r->argument);
    return EXIT_GOOD;
}

static int act_on_cache(request *r)
{
    static const struct {
        const char *name, *argument;
    } actions[] = {{"ls", NULL}, {"why", "MODEL"}, {"prune", NULL}, {"export", "FILE"}, {"import", "FILE"}};
    enum { N = sizeof actions / sizeof *actions };
    size_t a = 0;
    while (a < N && strcmp(r->action ? r->action : "", actions[a].name))
        a++;
    if (a == N) {
        tool_error("cache: %s%s%s; there are ls, why MODEL, prune, export FILE, import FILE",
                   r->action ? "no '" : "", r->action ? r->action : "what is to be done?",
                   r->action ? "'" : "");
        return EXIT_BAD;
    }
    if (!r->argument != !actions[a].argument) {
        tool_error("cache %s: %s%s", actions[a].name, r->argument ? "no argument is wanted: " : "which ",
                   r->argument ? r->argument : actions[a].argument);
        return EXIT_BAD;
    }
    if ((a == 0 || a == 2) && !is_cache_directory_there(r))
        return EXIT_BAD;
    switch (a) {
    case 0:
        return list_rows(r);
    case 1:
        return piped_take(&r->argument) ? explain_lookups(r) : EXIT_BAD;
    case 2:
        return prune_cache(r);
    default:
        return copy_cache(r, a == 3);
    }
}

int cache_command(const tool_command *command, int argc, char **argv)
{
    request r = {0};
    int code;
    if (options_parse(command, argc, argv, &r, take_cache_word, &code))
        code = act_on_cache(&r);
    inputs_release(&r.shapes);
    return code;
}
