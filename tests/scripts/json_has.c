/* SPDX-License-Identifier: Apache-2.0 */
/* json_has PATH:TYPE... < report: does a JSON report have these fields? PATH is "latency_ms.p50", "0.model",
 * ...; TYPE is string, integer, number, array, object or boolean. Exit status 1 names the first that is
 * missing. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *walk(json_t *at, char *path)
{
    for (char *part = strtok(path, "."); part && at; part = strtok(NULL, "."))
        at = json_is_array(at) ? json_array_get(at, (size_t)atol(part)) : json_object_get(at, part);
    return at;
}

static int has_type(const json_t *value, const char *type)
{
    if (!strcmp(type, "string"))
        return json_is_string(value);
    if (!strcmp(type, "integer"))
        return json_is_integer(value);
    if (!strcmp(type, "number"))
        return json_is_number(value);
    if (!strcmp(type, "array"))
        return json_is_array(value);
    if (!strcmp(type, "object"))
        return json_is_object(value);
    return !strcmp(type, "boolean") && json_is_boolean(value);
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *root = json_loadf(stdin, 0, &error);
    if (!root) {
        printf("not JSON: %s at line %d\n", error.text, error.line);
        return 1;
    }
    int code = 0;
    for (int i = 1; i < argc && !code; i++) {
        char path[256];
        const char *colon = strrchr(argv[i], ':');
        snprintf(path, sizeof path, "%.*s", colon ? (int)(colon - argv[i]) : 0, argv[i]);
        if (!colon || !has_type(walk(root, path), colon + 1)) {
            printf("missing, or of another type: %s\n", argv[i]);
            code = 1;
        }
    }
    json_decref(root);
    return code;
}
