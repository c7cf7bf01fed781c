/* SPDX-License-Identifier: Apache-2.0 */
/* json_valid SCHEMA NAME < report: does a JSON report obey definition NAME of the schema? It knows the words
 * of JSON Schema that docs/reports.schema.json uses, and refuses a schema with others. Exit status 1 says
 * where and why.
 * json_valid SCHEMA: the names of all members of its reports. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct place {
    const struct place *in;
    const char *name;
} place;

static const json_t *schema_root;

static void print_place(const place *at)
{
    if (at->in)
        print_place(at->in);
    printf("/%s", at->name);
}

static bool complain(const place *at, const char *problem, const char *what)
{
    print_place(at);
    printf(": %s '%s'\n", problem, what);
    return false;
}

static bool is_of_type(const json_t *value, const char *type)
{
    static const char *const names[] = {"object", "array",   "string",  "integer",
                                        "number", "boolean", "boolean", "null"};
    const json_type found = json_typeof(value);
    return !strcmp(names[found], type) || (found == JSON_INTEGER && !strcmp(type, "number"));
}

/* One type, or an array of them. */
static bool check_type(const place *at, const json_t *value, const json_t *types)
{
    size_t i;
    json_t *type;
    bool ok = json_is_string(types) && is_of_type(value, json_string_value(types));
    json_array_foreach(types, i, type) ok = ok || is_of_type(value, json_string_value(type));
    return ok ||
           complain(at, "is not of type", json_is_string(types) ? json_string_value(types) : "any listed");
}

static bool check_enum(const place *at, const json_t *value, const json_t *words)
{
    size_t i;
    json_t *word;
    json_array_foreach(words, i, word) if (json_equal(value, word)) return true;
    return complain(at,
                    "is not a value of the list:", json_string_value(value) ? json_string_value(value) : "?");
}

static bool check(const place *at, const json_t *value, const json_t *schema);

static bool check_properties(const place *at, const json_t *value, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *name;
    json_t *member;
    bool ok = true;
    json_object_foreach((json_t *)value, name, member)
    {
        const place here = {at, name};
        const json_t *known = json_object_get(properties, name);
        if (known || json_is_object(others))
            ok = check(&here, member, known ? known : others) && ok;
        else
            ok = complain(at, "has a member that the schema does not have:", name);
    }
    return ok;
}

static bool check_required(const place *at, const json_t *value, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach(
        names, i,
        name) if (json_is_object(value) &&
                  !json_object_get(value, json_string_value(name))) return complain(at, "lacks",
                                                                                    json_string_value(name));
    return true;
}

static bool check_items(const place *at, const json_t *value, const json_t *schema)
{
    size_t i;
    json_t *item;
    bool ok = true;
    json_array_foreach(value, i, item)
    {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        const place here = {at, index};
        ok = check(&here, item, schema) && ok;
    }
    return ok;
}

static const json_t *definition(const char *name)
{
    static const char prefix[] = "#/$defs/";
    return json_object_get(json_object_get(schema_root, "$defs"),
                           strncmp(name, prefix, sizeof prefix - 1) ? name : name + sizeof prefix - 1);
}

static bool check_word(const place *at, const json_t *value, const json_t *schema, const char *word,
                       const json_t *rule)
{
    if (!strcmp(word, "$ref"))
        return check(at, value, definition(json_string_value(rule)));
    if (!strcmp(word, "type"))
        return check_type(at, value, rule);
    if (!strcmp(word, "enum"))
        return check_enum(at, value, rule);
    if (!strcmp(word, "minimum"))
        return !json_is_number(value) || json_number_value(value) >= json_number_value(rule) ||
               complain(at, "is below the", word);
    if (!strcmp(word, "required"))
        return check_required(at, value, rule);
    if (!strcmp(word, "additionalProperties"))
        return !json_is_object(value) || check_properties(at, value, schema);
    if (!strcmp(word, "items"))
        return check_items(at, value, rule);
    return !strcmp(word, "properties") || !strcmp(word, "description") ||
           complain(at, "the schema has an unknown word:", word);
}

static bool check(const place *at, const json_t *value, const json_t *schema)
{
    const char *word;
    json_t *rule;
    bool ok = schema != NULL || complain(at, "the schema has no definition for", at->name);
    json_object_foreach((json_t *)schema, word, rule) ok = check_word(at, value, schema, word, rule) && ok;
    return ok;
}

/* Names of all members in the schema, below and beside. */
static void print_members(const json_t *schema)
{
    const char *name;
    json_t *member;
    size_t i;
    json_object_foreach(json_object_get(schema, "properties"), name, member) puts(name);
    json_object_foreach((json_t *)schema, name, member) print_members(member);
    json_array_foreach(schema, i, member) print_members(member);
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *schema = argc > 1 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL;
    if (argc == 2) {
        print_members(schema);
        json_decref(schema);
        return 0;
    }
    if (argc != 3)
        return 2;
    json_t *report = schema ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!report)
        printf("%s: %s at line %d\n", schema ? "report" : argv[1], error.text, error.line);
    schema_root = schema;
    const place root = {NULL, argv[2]};
    const bool ok = report && check(&root, report, definition(argv[2]));
    json_decref(report);
    json_decref(schema);
    return ok ? 0 : 1;
}
