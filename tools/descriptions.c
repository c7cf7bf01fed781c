/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* secure_getenv */
#include "tools/descriptions.h"

#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clear_description(description *d)
{
    free(d->file);
    free(d->id);
    free(d->kind);
    free(d->name);
    free(d->source);
    free(d->properties);
    *d = (description){0};
}

static char *descriptions_text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text && *text ? strdup(text) : NULL;
}

static bool read_description(const char *file, const char *id, description *out)
{
    json_error_t error;
    json_t *object = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        tool_error("%s:%d: %s", file, error.line, error.text);
        return false;
    }
    const json_t *properties = json_object_get(object, "properties");
    const json_int_t sm = json_integer_value(json_object_get(object, "sm"));
    const bool ours = json_integer_value(json_object_get(object, "format")) == DESCRIPTION_FORMAT;
    *out =
        (description){.file = strdup(file),
                      .id = strdup(id),
                      .kind = descriptions_text_of(object, "kind"),
                      .name = descriptions_text_of(object, "name"),
                      .source = descriptions_text_of(object, "source"),
                      .properties = json_is_object(properties) ? json_dumps(properties, JSON_COMPACT) : NULL,
                      .sm = sm > 0 && sm < 10000 ? (int32_t)sm : 0};
    json_decref(object);
    const bool ok =
        ours && out->file && out->id && out->kind && out->name && out->source && out->properties && out->sm;
    if (!ok) {
        tool_error("%s: not a description of a device: format %d, kind, name, sm, source and properties are "
                   "wanted; graphc devices --dump writes one",
                   file, DESCRIPTION_FORMAT);
        clear_description(out);
    }
    return ok;
}

static bool add_description(descriptions *all, const char *directory, const char *entry)
{
    char file[PATH_MAX], id[256];
    const size_t n = strlen(entry);
    if (n <= 5 || strcmp(entry + n - 5, ".json") != 0 || n - 5 >= sizeof id ||
        snprintf(file, sizeof file, "%s/%s", directory, entry) >= (int)sizeof file)
        return true;
    snprintf(id, sizeof id, "%.*s", (int)(n - 5), entry);
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].id, id))
            return true;
    description *grown = realloc(all->items, (all->n + 1) * sizeof *grown);
    if (!grown) {
        tool_error("out of memory");
        return false;
    }
    all->items = grown;
    if (!read_description(file, id, &all->items[all->n]))
        return false;
    all->n++;
    return true;
}

/* A directory that is not there holds none. */
static bool add_directory(descriptions *all, const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;
    bool ok = true;
    while (d && ok && (entry = readdir(d)))
        ok = add_description(all, directory, entry->d_name);
    if (d)
        closedir(d);
    return ok;
}

static bool descriptions_add_path(descriptions *all, const char *path)
{
    bool ok = true;
    while (ok && path && *path) {
        const size_t n = strcspn(path, ":");
        char directory[PATH_MAX];
        if (n && n < sizeof directory) {
            snprintf(directory, sizeof directory, "%.*s", (int)n, path);
            ok = add_directory(all, directory);
        }
        path += n + (path[n] == ':');
    }
    return ok;
}

/* bin/graphc and share/ in one directory: an installation that was moved, a bundle; or a build. */
static bool add_beside_tool(descriptions *all)
{
    char self[PATH_MAX], directory[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return true;
    self[n] = '\0';
    bool ok = true;
    for (int up = 0; ok && up < 2; up++) {
        char *slash = strrchr(self, '/');
        if (!slash)
            break;
        *slash = '\0';
        snprintf(directory, sizeof directory, "%s/share/graphrt/devices", self);
        ok = add_directory(all, directory);
    }
    return ok;
}

static int by_id(const void *a, const void *b)
{
    const description *x = a, *y = b;
    return strcmp(x->id, y->id);
}

bool descriptions_load(descriptions *out)
{
    *out = (descriptions){0};
    const bool ok = descriptions_add_path(out, secure_getenv("GRAPHRT_DEVICE_PATH")) &&
                    add_beside_tool(out) && add_directory(out, GRT_DATA_DIR "/devices");
    if (!ok)
        descriptions_release(out);
    else if (out->n)
        qsort(out->items, out->n, sizeof *out->items, by_id);
    return ok;
}

void descriptions_release(descriptions *all)
{
    for (size_t i = 0; i < all->n; i++)
        clear_description(&all->items[i]);
    free(all->items);
    *all = (descriptions){0};
}

/* True if the text looks like a GPU's name rather than a kind of devices. */
static bool descriptions_is_sm(const char *text)
{
    return !strncmp(text, "sm_", 3) && text[3] && strspn(text + 3, "0123456789") == strlen(text + 3);
}

const description *descriptions_find(const descriptions *all, const char *text)
{
    const long sm = descriptions_is_sm(text) ? strtol(text + 3, NULL, 10) : -1;
    for (size_t i = 0; i < all->n; i++)
        if (sm == all->items[i].sm || !strcmp(all->items[i].id, text))
            return &all->items[i];
    return NULL;
}
