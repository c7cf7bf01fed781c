/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "tools/calibration_data.h"

#include "tools/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool calibration_data_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool calibration_data_add(calibration_data *d, const char *source)
{
    const char **grown = realloc(d->sources, (d->n_sources + 1) * sizeof *grown);
    if (!grown) {
        tool_error("out of memory");
        return false;
    }
    d->sources = grown;
    d->sources[d->n_sources++] = source;
    return true;
}

static bool add_text(calibration_data *d, const char *name, const char *directory, const char *below)
{
    char *text = NULL, **grown = realloc(d->texts, (d->n_texts + 1) * sizeof *grown);
    if (grown)
        d->texts = grown;
    if (!grown || asprintf(&text, "%s=%s%s%s", name, directory, *below ? "/" : "", below) < 0) {
        tool_error("out of memory");
        return false;
    }
    d->texts[d->n_texts++] = text;
    return inputs_add_source(&d->specs, text);
}

/* "NAME=DIR", unless there is a directory of that whole name. */
static bool names_input(const char *source)
{
    return strchr(source, '=') && !calibration_data_is_directory(source);
}

static bool has_source(const calibration_data *d, const char *name)
{
    for (size_t i = 0; i < d->specs.n; i++)
        if (!strcmp(d->specs.items[i].name, name))
            return true;
    return false;
}

/* DIR/NAME of the input; for a model with one input, DIR itself. */
static bool find_directory(calibration_data *d, const char *name, size_t n_inputs)
{
    for (size_t i = 0; i < d->n_sources; i++) {
        char *path = NULL;
        if (names_input(d->sources[i]))
            continue;
        if (asprintf(&path, "%s/%s", d->sources[i], name) < 0) {
            tool_error("out of memory");
            return false;
        }
        const bool is = calibration_data_is_directory(path);
        free(path);
        if (is)
            return add_text(d, name, d->sources[i], name);
        if (n_inputs == 1)
            return add_text(d, name, d->sources[i], "");
    }
    tool_error("input '%s' has no data: --data %s=DIR, or --data DIR with a directory '%s' in it", name, name,
               name);
    return false;
}

static bool calibration_data_find_sources(calibration_data *d)
{
    size_t wanted = 0;
    for (size_t i = 0; i < d->n_sources; i++)
        if (names_input(d->sources[i]) && !inputs_add_source(&d->specs, d->sources[i]))
            return false;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < grt_model_input_count(d->model); i++) {
            grt_io_info info = {.struct_size = sizeof info};
            if (grt_model_input(d->model, i, &info) != GRT_OK)
                return tool_fail() == EXIT_GOOD;
            if (info.has_default || has_source(d, info.name))
                continue;
            if (pass == 0)
                wanted++;
            else if (!find_directory(d, info.name, wanted))
                return false;
        }
    return true;
}

/* Names, sizes and times of all files. */
static bool describe_files(calibration_data *d)
{
    size_t size = 0;
    FILE *f = open_memstream(&d->id, &size);
    for (size_t i = 0; f && i < d->specs.n; i++)
        for (size_t k = 0; k < d->lists.lists[i].n; k++) {
            const char *path = d->lists.lists[i].paths[k];
            struct stat st = {0};
            (void)stat(path, &st); /* reading it will say what is wrong */
            fprintf(f, "%s %s %lld %lld.%09ld\n", d->specs.items[i].name, path, (long long)st.st_size,
                    (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        }
    if (f && fclose(f) == 0)
        return true;
    tool_error("out of memory");
    return false;
}

bool calibration_data_open(calibration_data *d, const char *model, bool allow_symlinks, size_t limit)
{
    const grt_compile_options options = {.struct_size = sizeof options,
                                         .optimization = GRT_OPTIMIZATION_NONE,
                                         .allow_symlinks = allow_symlinks};
    if (grt_runtime_create(&d->runtime) != GRT_OK ||
        grt_runtime_set_algo_cache(d->runtime, "off") != GRT_OK ||
        grt_model_open_with(d->runtime, model, &options, &d->model) != GRT_OK)
        return tool_fail() == EXIT_GOOD;
    if (!calibration_data_find_sources(d) || !input_lists_open(&d->lists, &d->specs))
        return false;
    if (!d->lists.n_files) {
        tool_error("--data: there are no directories of files among %s", d->sources[0]);
        return false;
    }
    d->n = limit && limit < d->lists.n_files ? limit : d->lists.n_files;
    return describe_files(d);
}

bool calibration_data_sample(calibration_data *d, size_t index, grt_value **values)
{
    const size_t n = grt_model_input_count(d->model);
    const char **sources = calloc(n + 1, sizeof *sources);
    const bool ok = sources && input_lists_create(&d->lists, d->model, index, 0, values, sources);
    free(sources);
    return ok;
}

void calibration_data_release(calibration_data *d)
{
    if (d->lists.lists)
        input_lists_release(&d->lists);
    inputs_release(&d->specs);
    for (size_t i = 0; i < d->n_texts; i++)
        free(d->texts[i]);
    free(d->texts);
    free(d->sources);
    free(d->id);
    grt_model_release(d->model);
    grt_runtime_release(d->runtime);
}
