/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/outputs.h"

#include "tools/element.h"
#include "tools/npy.h"
#include "tools/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6, SHOWN_JSON = 16 };

static bool exact_integer(grt_dtype dtype)
{
    return dtype_is_integer(dtype) || dtype == GRT_DTYPE_BOOL;
}

static void print_element(const grt_tensor *t, int64_t i)
{
    if (t->dtype == GRT_DTYPE_STRING) {
        const grt_string *s = (const grt_string *)t->data + i;
        char shown[64];
        grt_printable(s->data, s->size, shown, sizeof shown);
        tool_print(" \"%s\"", shown);
    } else if (t->dtype == GRT_DTYPE_COMPLEX64 || t->dtype == GRT_DTYPE_COMPLEX128) {
        tool_print(" %.6g%+.6gi", element_get(t, i), element_imaginary(t, i));
    } else {
        tool_print(exact_integer(t->dtype) ? " %.0f" : " %.6g", element_get(t, i));
    }
}

static void print_range(const grt_tensor *t, int64_t n)
{
    double min = INFINITY, max = -INFINITY, sum = 0;
    int64_t nan = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = element_get(t, i);
        if (isnan(v)) {
            nan++;
            continue;
        }
        min = v < min ? v : min;
        max = v > max ? v : max;
        sum += v;
    }
    if (nan < n)
        tool_print("  min %.6g  mean %.6g  max %.6g", min, sum / (double)(n - nan), max);
    if (nan)
        tool_print("  %" PRId64 " NaN", nan);
}

static void print_tensor(const grt_tensor *t)
{
    char shape[256];
    int64_t n = grt_tensor_elements(t);
    tool_print("%s[%s]", grt_dtype_name(t->dtype), t->rank ? figure_shape(t, shape, sizeof shape) : "");
    if (n > SHOWN && t->dtype != GRT_DTYPE_STRING)
        print_range(t, n);
    tool_print(" ");
    for (int64_t i = 0; i < n && i < SHOWN; i++)
        print_element(t, i);
    tool_print(n > SHOWN ? " ...\n" : "\n");
}

static void print_map(const grt_value *map)
{
    grt_tensor keys, values;
    if (grt_value_tensor(grt_value_item(map, 0), &keys) != GRT_OK ||
        grt_value_tensor(grt_value_item(map, 1), &values) != GRT_OK)
        return;
    const int64_t n = grt_tensor_elements(&keys);
    tool_print("map of %" PRId64 " from %s to %s ", n, grt_dtype_name(keys.dtype),
               grt_dtype_name(values.dtype));
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        print_element(&keys, i);
        tool_print(":");
        print_element(&values, i);
    }
    tool_print(n > SHOWN ? " ...\n" : "\n");
}

static void print_output_value(const grt_value *value, int indent)
{
    grt_tensor t;
    if (grt_value_kind(value) == GRT_KIND_MAP) {
        print_map(value);
        return;
    }
    if (grt_value_kind(value) == GRT_KIND_TENSOR) {
        if (grt_value_tensor(value, &t) == GRT_OK)
            print_tensor(&t);
        return;
    }
    size_t n = grt_value_count(value);
    if (grt_value_kind(value) == GRT_KIND_OPTIONAL)
        tool_print(n ? "optional with\n" : "optional without a value\n");
    else
        tool_print("sequence of %zu\n", n);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        tool_print("%*s[%zu] ", indent + 2, "", i);
        print_output_value(grt_value_item(value, i), indent + 2);
    }
}

void outputs_print(const char *name, const grt_value *value)
{
    tool_print("%s: ", name);
    print_output_value(value, 0);
}

static json_t *json_element(const grt_tensor *t, int64_t i)
{
    double v = element_get(t, i);
    if (t->dtype == GRT_DTYPE_STRING) {
        const grt_string *s = (const grt_string *)t->data + i;
        char *copy = strndup(s->data, s->size);
        json_t *string = json_text(copy ? copy : "");
        free(copy);
        return string;
    }
    if (t->dtype == GRT_DTYPE_BOOL)
        return json_boolean(v != 0);
    if (t->dtype == GRT_DTYPE_INT64)
        return json_integer(((const int64_t *)t->data)[i]);
    if (exact_integer(t->dtype) && v < 0x1p63)
        return json_integer((json_int_t)v);
    if (!isfinite(v)) /* JSON has no such numbers */
        return json_string(isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    return json_real(v);
}

static void describe_value(json_t *object, const grt_value *value)
{
    static const char *const kinds[] = {"tensor", "sequence", "optional", "map"};
    grt_kind kind = grt_value_kind(value);
    grt_tensor t;
    json_object_set_new(object, "kind", json_string(kinds[kind]));
    if (kind == GRT_KIND_TENSOR && grt_value_tensor(value, &t) == GRT_OK) {
        int64_t n = grt_tensor_elements(&t);
        json_t *values = json_array();
        json_object_set_new(object, "dtype", json_string(grt_dtype_name(t.dtype)));
        json_object_set_new(object, "shape", json_shape(&t));
        for (int64_t i = 0; i < n && i < SHOWN_JSON; i++)
            json_array_append_new(values, json_element(&t, i));
        json_object_set_new(object, "values", values);
        return;
    }
    if (kind == GRT_KIND_MAP) {
        static const char *const parts[] = {"keys", "values"};
        for (size_t i = 0; i < 2; i++) {
            json_t *part = json_object();
            describe_value(part, grt_value_item(value, i));
            json_object_set_new(object, parts[i], part);
        }
        return;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < grt_value_count(value); i++) {
        json_t *item = json_object();
        describe_value(item, grt_value_item(value, i));
        json_array_append_new(items, item);
    }
    json_object_set_new(object, "items", items);
}

json_t *outputs_json(const char *name, const grt_value *value)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_text(name));
    describe_value(object, value);
    return object;
}

bool outputs_save(const char *directory, const char *name, const grt_value *value, char **out_path)
{
    grt_tensor t;
    bool npy =
        grt_value_kind(value) == GRT_KIND_TENSOR && grt_value_tensor(value, &t) == GRT_OK && npy_has(t.dtype);
    size_t size = strlen(directory) + strlen(name) + 8;
    char *path = malloc(size);
    if (!path) {
        tool_error("out of memory");
        return false;
    }
    int n = snprintf(path, size, "%s/", directory);
    for (const char *c = name; *c; c++)
        path[n++] = isalnum((unsigned char)*c) || strchr("._-", *c) ? *c : '_';
    snprintf(path + n, size - (size_t)n, npy ? ".npy" : ".pb");
    bool ok = npy ? npy_write(path, &t) : grt_value_write_pb(value, path) == GRT_OK;
    if (!ok && !npy)
        tool_fail();
    if (ok)
        *out_path = path;
    else
        free(path);
    return ok;
}
