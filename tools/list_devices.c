/* SPDX-License-Identifier: Apache-2.0 */
/* graphc devices: the kinds of devices, the GPUs of this machine, and those that are described. */
#include "tools/list_devices.h"

#include "tools/descriptions.h"
#include "tools/devices.h"
#include "tools/report.h"
#include "tools/whole_file.h"

#include <stdio.h>
#include <string.h>

typedef struct devices_request {
    const char *device, *file;
    bool dump, json;
} devices_request;

static bool take_dump(void *user, const char *value)
{
    devices_request *r = user;
    r->dump = true;
    r->file = value && !strcmp(value, "-") ? NULL : value;
    return true;
}

/* --dump FILE, as well as --dump=FILE */
static bool take_dump_file(void *user, const char *value)
{
    devices_request *r = user;
    const bool ok = r->dump && !r->file;
    if (!ok)
        tool_error("devices: no argument is wanted: %s", value);
    r->file = strcmp(value, "-") ? value : NULL;
    return ok;
}

const tool_option devices_options[] = {
    OPTION_TAKE(take_dump, "--dump", "[=FILE]",
                "describe the GPU named by --device, for machines that lack it"),
    OPTION_TEXT(devices_request, device, "--device", "DEVICE",
                "which one --dump describes (default: the first GPU)"),
    OPTION_FLAG(devices_request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

/* What a description's file holds; released by the caller. */
static json_t *file_of(const grt_device_description *d, const char *device, const char *source)
{
    const size_t kind = strcspn(device, ":");
    json_error_t error;
    json_t *object = json_object(), *properties = json_loads(d->properties, 0, &error);
    json_object_set_new(object, "format", json_integer(DESCRIPTION_FORMAT));
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

static int dump_device(const char *device, const char *file)
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

typedef struct found_name {
    int32_t sm;
    char name[256];
} found_name;

static void list_devices_take_name(void *user, const grt_device_description *d)
{
    found_name *f = user;
    f->sm = d->sm;
    snprintf(f->name, sizeof f->name, "%s", d->name);
}

/* One line or object; a GPU that cannot be opened says why in place of its name. */
static void list_gpu(const char *kind, int32_t index, json_t *array)
{
    char device[DEVICE_KIND_SIZE + 16];
    found_name f = {0, ""};
    snprintf(device, sizeof device, "%s:%d", kind, index);
    if (grt_device_describe(device, list_devices_take_name, &f) != GRT_OK)
        snprintf(f.name, sizeof f.name, "%.250s", grt_last_error());
    if (!array) {
        tool_print("%-10s %s%s", device, f.name, f.sm ? "" : "\n");
        if (f.sm)
            tool_print(", sm_%d\n", f.sm);
        return;
    }
    json_t *object = json_object();
    json_object_set_new(object, "device", json_text(device));
    json_object_set_new(object, "name", json_text(f.name));
    json_object_set_new(object, "sm", f.sm ? json_integer(f.sm) : json_null());
    json_array_append_new(array, object);
}

/* GPUs of this machine; none is no failure. */
static void list_gpus(json_t *array)
{
    for (size_t k = 0; k < grt_device_kind_count(); k++) {
        grt_device_kind_info kind = {.struct_size = sizeof kind};
        int32_t n = 0;
        if (grt_device_kind(k, &kind) != GRT_OK || !kind.accelerator || kind.test_only)
            continue;
        if (grt_device_count(kind.name, &n) != GRT_OK)
            n = 0;
        if (n == 0 && !array) /* the message is printable, and of several lines */
            fprintf(stdout, "%s: no GPU here: %s\n", kind.name, grt_last_error());
        for (int32_t i = 0; i < n; i++)
            list_gpu(kind.name, i, array);
    }
}

/* What --device and --target take. */
static void list_kinds(json_t *array)
{
    for (size_t i = 0; i < grt_device_kind_count(); i++) {
        grt_device_kind_info kind = {.struct_size = sizeof kind};
        if (grt_device_kind(i, &kind) != GRT_OK)
            continue;
        if (!array) {
            tool_print("%s%s%s", i ? ", " : "kinds of devices: ", kind.name,
                       kind.test_only ? " (for tests)" : "");
            continue;
        }
        json_array_append_new(array, json_pack("{s:s,s:b,s:b}", "name", kind.name, "accelerator",
                                               (int)kind.accelerator, "test_only", (int)kind.test_only));
    }
    if (!array)
        tool_print("\n");
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

static int list_all(bool json)
{
    descriptions all;
    if (!descriptions_load(&all))
        return EXIT_BAD;
    json_t *kinds = json ? json_array() : NULL, *gpus = json ? json_array() : NULL,
           *described = json ? json_array() : NULL;
    int code = EXIT_GOOD;
    list_kinds(kinds);
    list_gpus(gpus);
    list_descriptions(&all, described);
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "kinds", kinds);
        json_object_set_new(object, "gpus", gpus);
        json_object_set_new(object, "described", described);
        code = json_print(object) ? EXIT_GOOD : EXIT_BAD;
    }
    descriptions_release(&all);
    return code;
}

int devices_command(const tool_command *command, int argc, char **argv)
{
    devices_request r = {0};
    int code;
    if (!options_parse(command, argc, argv, &r, take_dump_file, &code))
        return code;
    if (r.device && !r.dump) {
        tool_error("devices: --device is for --dump; without it, all devices are listed");
        return EXIT_BAD;
    }
    char first[DEVICE_KIND_SIZE];
    snprintf(first, sizeof first, "%s:0", devices_accelerator());
    return r.dump ? dump_device(r.device ? r.device : first, r.file) : list_all(r.json);
}
