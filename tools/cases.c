/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tools/cases.h"

#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_regular_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static char *join_path(const char *directory, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

/* The last component of a path; malloc'ed. */
static char *base_name(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return strndup(path + begin, n - begin);
}

static test_case *append_case(test_cases *cases)
{
    test_case *grown = realloc(cases->items, (cases->n + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    cases->items = grown;
    grown[cases->n] = (test_case){0};
    return &grown[cases->n++];
}

/* A light model lies two directories up, in light/, with its output beside it. */
static void find_light(test_case *c, const char *url)
{
    const char *name = strrchr(url, '/'), *dot = strrchr(url, '.');
    if (!name || !dot || dot < name || !strstr(url, "light/"))
        return;
    name++;
    if (asprintf(&c->model, "%s/../../light/%s", c->directory, name) < 0)
        c->model = NULL;
    if (asprintf(&c->reference, "%s/../../light/%.*s_output_0.pb", c->directory, (int)(dot - name), name) < 0)
        c->reference = NULL;
}

static void read_data_json(test_case *c, tolerance given)
{
    char *path = join_path(c->directory, "data.json");
    json_t *data = path ? json_load_file(path, 0, NULL) : NULL, *number;
    if (given.rtol < 0 && json_is_number(number = json_object_get(data, "rtol")))
        c->tolerance.rtol = json_number_value(number);
    if (given.atol < 0 && json_is_number(number = json_object_get(data, "atol")))
        c->tolerance.atol = json_number_value(number);
    const char *url = json_string_value(json_object_get(data, "url"));
    if (!c->model && url)
        find_light(c, url);
    json_decref(data);
    free(path);
}

static bool add_case(test_cases *cases, const char *directory, const char *model, tolerance given)
{
    test_case *c = append_case(cases);
    if (!c) {
        tool_error("out of memory");
        return false;
    }
    c->name = base_name(directory);
    c->directory = strdup(directory);
    c->model = model ? strdup(model) : join_path(directory, "model.onnx");
    c->tolerance =
        (tolerance){.rtol = given.rtol < 0 ? 1e-3 : given.rtol, .atol = given.atol < 0 ? 1e-7 : given.atol};
    if (!c->name || !c->directory || !c->model) {
        tool_error("out of memory");
        return false;
    }
    if (!model && !is_regular_file(c->model)) {
        free(c->model);
        c->model = NULL;
    }
    read_data_json(c, given);
    return true;
}

/* True if it has what a case has. */
static bool is_case(const char *directory)
{
    char *model = join_path(directory, "model.onnx"), *data = join_path(directory, "data.json");
    bool found = model && data && (is_regular_file(model) || is_regular_file(data));
    free(model);
    free(data);
    return found;
}

bool cases_add(test_cases *cases, const char *directory, const char *model, tolerance given)
{
    struct dirent **entries;
    if (model || is_case(directory))
        return add_case(cases, directory, model, given);
    int n = scandir(directory, &entries, NULL, alphasort);
    if (n < 0) {
        tool_error("directory of cases: %s: %s", directory, strerror(errno));
        return false;
    }
    size_t before = cases->n;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char *inner = ok && entries[i]->d_name[0] != '.' ? join_path(directory, entries[i]->d_name) : NULL;
        if (inner && is_case(inner))
            ok = add_case(cases, inner, NULL, given);
        free(inner);
        free(entries[i]);
    }
    free(entries);
    if (ok && cases->n == before)
        tool_error(
            "%s holds no case: it has neither model.onnx nor data.json, and none of its directories has",
            directory);
    return cases->n > before;
}

void cases_release(test_cases *cases)
{
    for (size_t i = 0; i < cases->n; i++) {
        free(cases->items[i].name);
        free(cases->items[i].directory);
        free(cases->items[i].model);
        free(cases->items[i].reference);
    }
    free(cases->items);
    *cases = (test_cases){0};
}

/* Trim blanks at both ends, in place. */
static char *trim_blanks(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        text[--n] = 0;
    return text;
}

static bool add_expectation(expectations *list, char *line, const char *path, int number)
{
    char *colon = strchr(line, ':');
    if (colon)
        *colon = 0;
    char *name = trim_blanks(line), *reason = colon ? trim_blanks(colon + 1) : NULL;
    if (!*name || !reason || !*reason) {
        tool_error("%s:%d: expected 'name: reason'", path, number);
        return false;
    }
    expectation *grown = realloc(list->items, (list->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->items = grown;
    grown[list->n++] = (expectation){strdup(name), strdup(reason)};
    return grown[list->n - 1].name && grown[list->n - 1].reason;
}

bool expectations_read(expectations *list, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        tool_error("--expect: %s: %s", path, strerror(errno));
        return false;
    }
    char *line = NULL;
    size_t capacity = 0;
    bool ok = true;
    for (int number = 1; ok && getline(&line, &capacity, f) >= 0; number++) {
        char *text = trim_blanks(line);
        if (*text && *text != '#')
            ok = add_expectation(list, text, path, number);
    }
    free(line);
    fclose(f);
    return ok;
}

const char *expectations_find(const expectations *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->items[i].name, name))
            return list->items[i].reason;
    return NULL;
}

void expectations_release(expectations *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].name);
        free(list->items[i].reason);
    }
    free(list->items);
    *list = (expectations){0};
}
