/* SPDX-License-Identifier: Apache-2.0 */
/* See descriptions.h. */
#define _GNU_SOURCE /* secure_getenv */
#include "tools/descriptions.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 1 };

/* ---- one file ---- */

static void clear(description *d)
{
    free(d->file);
    free(d->id);
    free(d->kind);
    free(d->name);
    free(d->source);
    free(d->properties);
    *d = (description){0};
}

static char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text && *text ? strdup(text) : NULL;
}

static bool read_file(const char *file, const char *id, description *out)
{
    json_error_t error;
    json_t *object = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
    if (!object) {
        tool_error("%s:%d: %s", file, error.line, error.text);
        return false;
    }
    const json_t *properties = json_object_get(object, "properties");
    const json_int_t sm = json_integer_value(json_object_get(object, "sm"));
    const bool ours = json_integer_value(json_object_get(object, "format")) == FORMAT;
    *out =
        (description){.file = strdup(file),
                      .id = strdup(id),
                      .kind = text_of(object, "kind"),
                      .name = text_of(object, "name"),
                      .source = text_of(object, "source"),
                      .properties = json_is_object(properties) ? json_dumps(properties, JSON_COMPACT) : NULL,
                      .sm = sm > 0 && sm < 10000 ? (int32_t)sm : 0};
    json_decref(object);
    const bool ok =
        ours && out->file && out->id && out->kind && out->name && out->source && out->properties && out->sm;
    if (!ok) {
        tool_error("%s: not a description of a device: format %d, kind, name, sm, source and properties are "
                   "wanted; graphc devices --dump writes one",
                   file, FORMAT);
        clear(out);
    }
    return ok;
}

/* ---- all of them ---- */

static bool add(descriptions *all, const char *directory, const char *entry)
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
    if (!read_file(file, id, &all->items[all->n]))
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
        ok = add(all, directory, entry->d_name);
    if (d)
        closedir(d);
    return ok;
}

static bool add_path(descriptions *all, const char *path)
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
    const bool ok = add_path(out, secure_getenv("GRAPHRT_DEVICE_PATH")) && add_beside_tool(out) &&
                    add_directory(out, GRT_DATA_DIR "/devices");
    if (!ok)
        descriptions_release(out);
    else if (out->n)
        qsort(out->items, out->n, sizeof *out->items, by_id);
    return ok;
}

void descriptions_release(descriptions *all)
{
    for (size_t i = 0; i < all->n; i++)
        clear(&all->items[i]);
    free(all->items);
    *all = (descriptions){0};
}

bool descriptions_is_sm(const char *text)
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

/* ---- graphc devices ---- */

typedef struct request {
    const char *device, *file;
    bool dump, json;
} request;

static bool take_dump(void *user, const char *value)
{
    request *r = user;
    r->dump = true;
    r->file = value && !strcmp(value, "-") ? NULL : value;
    return true;
}

/* --dump FILE, as well as --dump=FILE */
static bool take_file(void *user, const char *value)
{
    request *r = user;
    const bool ok = r->dump && !r->file;
    if (!ok)
        tool_error("devices: no argument is wanted: %s", value);
    r->file = strcmp(value, "-") ? value : NULL;
    return ok;
}

const tool_option devices_options[] = {
    OPTION_TAKE(take_dump, "--dump", "[=FILE]",
                "describe the GPU named by --device, for machines that lack it"),
    OPTION_TEXT(request, device, "--device", "DEVICE", "which one --dump describes (default: cuda:0)"),
    OPTION_FLAG(request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

/* What a description's file holds; released by the caller. */
static json_t *file_of(const grt_device_description *d, const char *device, const char *source)
{
    const size_t kind = strcspn(device, ":");
    json_error_t error;
    json_t *object = json_object(), *properties = json_loads(d->properties, 0, &error);
    json_object_set_new(object, "format", json_integer(FORMAT));
    json_object_set_new(object, "kind", json_stringn(device, kind));
    json_object_set_new(object, "name", json_text(d->name));
    json_object_set_new(object, "sm", json_integer(d->sm));
    json_object_set_new(object, "source", json_text(source));
    json_object_set_new(object, "properties", properties ? properties : json_object());
    return object;
}

typedef struct dumping {
    const char *device;
    json_t *object;
} dumping;

static void keep_dump(void *user, const grt_device_description *d)
{
    dumping *u = user;
    char source[128];
    snprintf(source, sizeof source, "graphc devices --dump, libgraphrt %s", grt_version());
    u->object = file_of(d, u->device, source);
}

static bool dump_to_file(const json_t *object, const char *path)
{
    whole_file file;
    return whole_file_begin(&file, path) &&
           whole_file_end(&file, json_dumpf(object, file.f, JSON_INDENT(2)) == 0);
}

static int dump(const char *device, const char *file)
{
    dumping u = {.device = device};
    if (grt_device_describe(device, keep_dump, &u) != GRT_OK)
        return tool_fail();
    const bool ok = file ? dump_to_file(u.object, file)
                         : json_dumpf(u.object, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
    if (!ok && !file)
        tool_error("standard output: cannot be written");
    json_decref(u.object);
    return ok ? EXIT_GOOD : EXIT_BAD;
}

typedef struct found {
    int32_t sm;
    char name[256];
} found;

static void take_name(void *user, const grt_device_description *d)
{
    found *f = user;
    f->sm = d->sm;
    snprintf(f->name, sizeof f->name, "%s", d->name);
}

/* GPUs of this machine, each on a line or in the array; none is no failure. */
static void list_gpus(json_t *array)
{
    int32_t n = 0;
    if (grt_device_count("cuda", &n) != GRT_OK)
        n = 0;
    if (n == 0 && !array)
        fprintf(stdout, "no GPU here: %s\n", grt_last_error()); /* printable, and of several lines */
    for (int32_t i = 0; i < n; i++) {
        char device[32];
        found f = {0, ""};
        snprintf(device, sizeof device, "cuda:%d", i);
        if (grt_device_describe(device, take_name, &f) != GRT_OK)
            snprintf(f.name, sizeof f.name, "%.250s", grt_last_error());
        if (!array) {
            tool_print("%-10s %s%s", device, f.name, f.sm ? "" : "\n");
            if (f.sm)
                tool_print(", sm_%d\n", f.sm);
            continue;
        }
        json_t *object = json_object();
        json_object_set_new(object, "device", json_text(device));
        json_object_set_new(object, "name", json_text(f.name));
        json_object_set_new(object, "sm", f.sm ? json_integer(f.sm) : json_null());
        json_array_append_new(array, object);
    }
}

static void list_descriptions(const descriptions *all, json_t *array)
{
    if (!array)
        tool_print(all->n ? "described, for graphc optimize --target:\n"
                          : "no descriptions of devices are installed\n");
    for (size_t i = 0; i < all->n; i++) {
        const description *d = &all->items[i];
        if (!array) {
            tool_print("  %-10s %s, sm_%d; %s\n", d->id, d->name, d->sm, d->source);
            continue;
        }
        json_t *object = json_object();
        json_object_set_new(object, "target", json_text(d->id));
        json_object_set_new(object, "name", json_text(d->name));
        json_object_set_new(object, "sm", json_integer(d->sm));
        json_object_set_new(object, "source", json_text(d->source));
        json_object_set_new(object, "file", json_text(d->file));
        json_array_append_new(array, object);
    }
}

static int list(bool json)
{
    descriptions all;
    if (!descriptions_load(&all))
        return EXIT_BAD;
    json_t *gpus = json ? json_array() : NULL, *described = json ? json_array() : NULL;
    int code = EXIT_GOOD;
    list_gpus(gpus);
    list_descriptions(&all, described);
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "gpus", gpus);
        json_object_set_new(object, "described", described);
        code = json_print(object) ? EXIT_GOOD : EXIT_BAD;
    }
    descriptions_release(&all);
    return code;
}

int devices_command(const tool_command *command, int argc, char **argv)
{
    request r = {0};
    int code;
    if (!options_parse(command, argc, argv, &r, take_file, &code))
        return code;
    if (r.device && !r.dump) {
        tool_error("devices: --device is for --dump; without it, all devices are listed");
        return EXIT_BAD;
    }
    return r.dump ? dump(r.device ? r.device : "cuda:0", r.file) : list(r.json);
}
