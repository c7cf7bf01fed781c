/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/inputs.h"

#include "tools/element.h"
#include "tools/npy.h"
#include "tools/options.h"
#include "tools/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static input_spec *spec_named(input_specs *specs, char *name)
{
    for (size_t i = 0; i < specs->n; i++)
        if (!strcmp(specs->items[i].name, name)) {
            free(name);
            return &specs->items[i];
        }
    input_spec *grown = realloc(specs->items, (specs->n + 1) * sizeof *grown);
    if (!grown) {
        free(name);
        tool_error("out of memory");
        return NULL;
    }
    specs->items = grown;
    grown[specs->n] = (input_spec){.name = name};
    return &grown[specs->n++];
}

bool inputs_add_source(input_specs *specs, const char *text)
{
    char *name;
    const char *source;
    if (!option_pair("--input", text, &name, &source))
        return false;
    input_spec *spec = spec_named(specs, name);
    if (spec && spec->source) {
        tool_error("--input: '%s' is given twice: '%s' and '%s'", spec->name, spec->source, source);
        return false;
    }
    if (spec)
        spec->source = source;
    return spec != NULL;
}

bool inputs_add_shape(input_specs *specs, const char *text)
{
    char *name;
    const char *at;
    if (!option_pair("--shape", text, &name, &at))
        return false;
    input_spec *spec = spec_named(specs, name);
    if (!spec)
        return false;
    if (spec->has_shape) {
        tool_error("--shape: '%s' is given twice", spec->name);
        return false;
    }
    spec->has_shape = true;
    spec->rank = 0;
    if (!strcmp(at, "scalar"))
        return true;
    for (;;) {
        char *end;
        errno = 0;
        long long dim = strtoll(at, &end, 10);
        if (end == at || errno || dim < 0 || spec->rank == GRT_MAX_RANK ||
            (*end && *end != 'x' && *end != ',')) {
            tool_error("--shape: '%s' is not like NAME=2x3x224x224, with at most 16 dims", text);
            return false;
        }
        spec->dims[spec->rank++] = dim;
        if (!*end)
            return true;
        at = end + 1;
    }
}

void inputs_release(input_specs *specs)
{
    for (size_t i = 0; i < specs->n; i++)
        free(specs->items[i].name);
    free(specs->items);
    *specs = (input_specs){0};
}

/* SplitMix64: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void fill_tensor(grt_tensor *t, input_fill fill, uint64_t seed)
{
    int64_t n = grt_tensor_elements(t);
    bool fraction = dtype_is_float(t->dtype);
    memset(t->data, 0, grt_tensor_bytes(t));
    if (fill == FILL_ZEROS || t->dtype == GRT_DTYPE_STRING)
        return;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = next_random(&seed);
        double random = fraction ? (double)(bits >> 40) * 0x1p-24 : (double)(bits >> 63);
        /* computed as NumPy does: arange(n) / n in double, then rounded */
        element_set(t, i, fill == FILL_RANDOM ? random : (double)i / (double)n);
    }
}

/* Limit: the machine's memory. */
static size_t memory_size(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
}

static bool make_tensor(const grt_io_info *info, const input_spec *shape, input_fill fill, uint64_t seed,
                        grt_value **out_value)
{
    grt_tensor t = {.dtype = info->dtype, .rank = info->rank < 0 ? 0 : info->rank};
    for (int32_t i = 0; i < info->rank; i++)
        t.dims[i] = info->dims[i] < 0 ? 1 : info->dims[i];
    if (shape && shape->has_shape) {
        t.rank = shape->rank;
        memcpy(t.dims, shape->dims, sizeof t.dims);
    }
    size_t bytes = grt_tensor_bytes(&t);
    t.data = bytes < memory_size() ? malloc(bytes ? bytes : 1) : NULL;
    if (!t.data) {
        char text[256];
        tool_error("input '%s': no memory for a tensor of %s", info->name,
                   figure_shape(&t, text, sizeof text));
        return false;
    }
    fill_tensor(&t, fill, seed);
    grt_status status = grt_value_from_tensor(&t, out_value);
    free(t.data);
    if (status != GRT_OK)
        tool_error("input '%s': %s", info->name, grt_last_error());
    return status == GRT_OK;
}

static grt_status make_empty(const grt_io_info *info, grt_dtype keys, grt_value **out_value)
{
    const grt_tensor none = {.dtype = info->dtype, .rank = 1}, no_keys = {.dtype = keys, .rank = 1};
    if (info->kind == GRT_KIND_MAP)
        return grt_value_map(&no_keys, &none, out_value);
    return info->kind == GRT_KIND_SEQUENCE ? grt_value_sequence(info->dtype, NULL, 0, out_value)
                                           : grt_value_optional(info->dtype, NULL, out_value);
}

bool inputs_make(const grt_io_info *info, grt_dtype keys, const input_spec *shape, input_fill fill,
                 uint64_t seed, grt_value **out_value)
{
    if (info->kind == GRT_KIND_TENSOR)
        return make_tensor(info, shape, fill, seed, out_value);
    const grt_status status = make_empty(info, keys, out_value);
    if (status != GRT_OK)
        tool_error("input '%s': %s", info->name, grt_last_error());
    return status == GRT_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

static bool read_input_file(const grt_io_info *info, const char *path, grt_value **out_value)
{
    if (ends_with(path, ".npy")) {
        if (!npy_read(info->name, path, out_value))
            return false;
    } else if (!ends_with(path, ".pb")) {
        tool_error("input '%s': '%s' is neither FILE.npy, FILE.pb, random nor zeros", info->name, path);
        return false;
    } else if (grt_value_read_pb(path, info->kind, info->element_kind, out_value) != GRT_OK) {
        tool_error("input '%s': %s", info->name, grt_last_error());
        return false;
    }
    return true;
}

static bool make_input_value(const grt_io_info *info, grt_dtype keys, const input_spec *spec, uint64_t seed,
                             grt_value **out_value, const char **source)
{
    *source = spec && spec->source ? spec->source : "random";
    bool random = !strcmp(*source, "random");
    if (!random && strcmp(*source, "zeros") != 0) {
        if (spec->has_shape) {
            tool_error("input '%s' has the shape of '%s': --shape is for random and zeros", info->name,
                       *source);
            return false;
        }
        return read_input_file(info, *source, out_value);
    }
    return inputs_make(info, keys, spec, random ? FILL_RANDOM : FILL_ZEROS, seed, out_value);
}

static const input_spec *find_spec(const input_specs *specs, const char *name)
{
    for (size_t i = 0; i < specs->n; i++)
        if (!strcmp(specs->items[i].name, name))
            return &specs->items[i];
    return NULL;
}

/* Every name that was given must be an input's. */
static bool names_exist(const grt_model *model, const input_specs *specs)
{
    for (size_t i = 0; i < specs->n; i++) {
        bool found = false;
        char names[512] = "";
        for (size_t k = 0; k < grt_model_input_count(model); k++) {
            grt_io_info info = {.struct_size = sizeof info};
            if (grt_model_input(model, k, &info) != GRT_OK)
                continue;
            found = found || !strcmp(info.name, specs->items[i].name);
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s'%s'", used ? ", " : "", info.name);
        }
        if (!found) {
            tool_error("the model has no input '%s'; its inputs are: %s", specs->items[i].name,
                       names[0] ? names : "none");
            return false;
        }
    }
    return true;
}

/* Sizes of symbolic dims that inputs given by the user have settled: the others follow. */
typedef struct symbols {
    size_t n;
    struct {
        const char *name; /* the model's */
        int64_t value;
    } items[64];
} symbols;

static void learn_symbols(symbols *known, const grt_io_info *info, const grt_value *value)
{
    grt_tensor t;
    if (grt_value_kind(value) != GRT_KIND_TENSOR || grt_value_tensor(value, &t) != GRT_OK ||
        t.rank != info->rank)
        return;
    for (int32_t i = 0; i < t.rank; i++)
        if (info->symbols[i] && known->n < sizeof known->items / sizeof *known->items) {
            known->items[known->n].name = info->symbols[i];
            known->items[known->n++].value = t.dims[i];
        }
}

static void apply_symbols(const symbols *known, grt_io_info *info)
{
    for (int32_t i = 0; i < info->rank; i++)
        for (size_t k = 0; info->symbols[i] && k < known->n; k++)
            if (info->dims[i] < 0 && !strcmp(info->symbols[i], known->items[k].name))
                info->dims[i] = known->items[k].value;
}

static bool create_one(const grt_model *model, size_t i, const input_spec *spec, uint64_t seed,
                       symbols *known, grt_value **value, const char **source)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (grt_model_input(model, i, &info) != GRT_OK) {
        tool_fail();
        return false;
    }
    apply_symbols(known, &info);
    *source = "default";
    if (!spec && info.has_default)
        return true;
    if (!make_input_value(&info, grt_model_input_keys(model, i), spec, seed + i, value, source))
        return false;
    learn_symbols(known, &info, *value);
    return true;
}

bool inputs_create(const grt_model *model, const input_specs *specs, uint64_t seed, grt_value **values,
                   const char **sources)
{
    symbols known = {0};
    if (!names_exist(model, specs))
        return false;
    for (int pass = 0; pass < 2; pass++) /* what the user gave comes first */
        for (size_t i = 0; i < grt_model_input_count(model); i++) {
            grt_io_info info = {.struct_size = sizeof info};
            const input_spec *spec =
                grt_model_input(model, i, &info) == GRT_OK ? find_spec(specs, info.name) : NULL;
            if ((spec != NULL) == (pass == 0) &&
                !create_one(model, i, spec, seed, &known, &values[i], &sources[i]))
                return false;
        }
    return true;
}

bool inputs_bind(const grt_model *model, grt_context *context, const input_specs *specs, uint64_t seed,
                 grt_value **values, const char **sources)
{
    if (!inputs_create(model, specs, seed, values, sources))
        return false;
    for (size_t i = 0; i < grt_model_input_count(model); i++)
        if (values[i] && grt_context_set_input_value(context, i, values[i]) != GRT_OK) {
            tool_fail();
            return false;
        }
    return true;
}

void inputs_release_values(grt_value **values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        grt_value_release(values[i]);
    free(values);
}
