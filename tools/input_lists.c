/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/input_lists.h"

#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool input_lists_is_directory(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool list_files(const char *directory, file_list *out)
{
    struct dirent **entries = NULL;
    const int n = scandir(directory, &entries, is_visible, alphasort);
    bool ok = n > 0;
    if (!ok)
        tool_error("inputs: directory %s: %s", directory, n < 0 ? strerror(errno) : "has no files");
    out->paths = ok ? calloc((size_t)n, sizeof *out->paths) : NULL;
    for (int i = 0; i < n; i++) {
        const size_t size = strlen(directory) + strlen(entries[i]->d_name) + 2;
        char *path = out->paths ? malloc(size) : NULL;
        if (path) {
            snprintf(path, size, "%s/%s", directory, entries[i]->d_name);
            out->paths[out->n++] = path;
        }
        free(entries[i]);
    }
    free(entries);
    if (ok && out->n < (size_t)n) {
        tool_error("out of memory");
        ok = false;
    }
    return ok;
}

static bool input_lists_add_path(file_list *list, const char *path, size_t size)
{
    char **grown = realloc(list->paths, (list->n + 1) * sizeof *grown);
    if (grown)
        list->paths = grown;
    char *copy = grown ? strndup(path, size) : NULL;
    if (copy)
        list->paths[list->n++] = copy;
    else
        tool_error("out of memory");
    return copy != NULL;
}

/* One path a line; empty lines are none. */
static bool input_lists_read_list(const char *path, file_list *out)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool ok = f != NULL;
    if (!f)
        tool_error("list of inputs: %s: %s", path, strerror(errno));
    for (ssize_t size; ok && (size = getline(&line, &room, f)) > 0;) {
        size -= line[size - 1] == '\n';
        ok = !size || input_lists_add_path(out, line, (size_t)size);
    }
    if (ok && !out->n) {
        tool_error("%s: has no lines", path);
        ok = false;
    }
    free(line);
    if (f)
        fclose(f);
    return ok;
}

static bool is_list(const char *source)
{
    return source && source[0] == '@';
}

bool input_lists_open(input_lists *l, const input_specs *specs)
{
    *l = (input_lists){.specs = specs, .lists = calloc(specs->n + 1, sizeof *l->lists)};
    if (!l->lists)
        tool_error("out of memory");
    for (size_t i = 0; l->lists && i < specs->n; i++) {
        const char *source = specs->items[i].source;
        if (!is_list(source) && !input_lists_is_directory(source))
            continue;
        if (is_list(source) ? !input_lists_read_list(source + 1, &l->lists[i])
                            : !list_files(source, &l->lists[i]))
            return false;
        if (l->n_files && l->lists[i].n != l->n_files) {
            tool_error("%s has %zu files, another input's directory %zu", specs->items[i].source,
                       l->lists[i].n, l->n_files);
            return false;
        }
        l->n_files = l->lists[i].n;
    }
    return l->lists != NULL;
}

void input_lists_release(input_lists *l)
{
    for (size_t i = 0; l->lists && i < l->specs->n; i++) {
        for (size_t k = 0; k < l->lists[i].n; k++)
            free(l->lists[i].paths[k]);
        free(l->lists[i].paths);
    }
    free(l->lists);
    free(l->numbers);
    *l = (input_lists){0};
}

static void keep_paths(file_list *list, const size_t *numbers, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++)
        if (kept < n && numbers[kept] == i)
            list->paths[kept++] = list->paths[i];
        else
            free(list->paths[i]);
    list->n = kept;
}

bool input_lists_keep(input_lists *l, size_t index, size_t count, const bool *done)
{
    size_t n = 0;
    l->numbers = calloc(l->n_files + 1, sizeof *l->numbers);
    if (!l->numbers) {
        tool_error("out of memory");
        return false;
    }
    for (size_t i = index; i < l->n_files; i += count)
        if (!done[i])
            l->numbers[n++] = i;
    for (size_t i = 0; i < l->specs->n; i++)
        keep_paths(&l->lists[i], l->numbers, n);
    l->n_files = n;
    return true;
}

size_t input_lists_number(const input_lists *l, size_t index)
{
    return l->numbers && l->n_files ? l->numbers[index % l->n_files] : index;
}

const char *input_lists_file(const input_lists *l, size_t index)
{
    for (size_t i = 0; l->n_files && i < l->specs->n; i++)
        if (l->lists[i].n)
            return l->lists[i].paths[index % l->n_files];
    return NULL;
}

bool input_lists_create(const input_lists *l, const grt_model *model, size_t index, uint64_t seed,
                        grt_value **values, const char **sources)
{
    const size_t n = l->specs->n;
    input_specs chosen = {.n = n, .items = calloc(n + 1, sizeof *chosen.items)};
    if (!chosen.items)
        tool_error("out of memory");
    for (size_t i = 0; chosen.items && i < n; i++) {
        chosen.items[i] = l->specs->items[i];
        if (l->lists[i].n)
            chosen.items[i].source = l->lists[i].paths[index % l->n_files];
    }
    const bool ok = chosen.items && inputs_create(model, &chosen, seed, values, sources);
    free(chosen.items);
    return ok;
}
