/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/verdicts.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <stdio.h>
#include <string.h>

static const char *const words[] = {"passed", "failed", "skipped"}, *const shouts[] = {"PASS", "FAIL",
                                                                                       "SKIP"};

bool verdicts_add(verdicts *v, const char *name, verdict found, const char *why)
{
    v->counts[found]++;
    if (!v->json && (v->verbose || found == CASE_FAILED)) {
        tool_print("%s %s: %s\n", shouts[found], name, why);
        fflush(stdout);
    }
    if (!v->json && !v->junit)
        return true;
    if (!v->cases)
        v->cases = json_array();
    json_t *object = json_object();
    json_object_set_new(object, "name", json_text(name));
    json_object_set_new(object, "verdict", json_string(words[found]));
    json_object_set_new(object, "message", json_text(why));
    const bool ok = json_array_append_new(v->cases, object) == 0;
    if (!ok)
        tool_error("out of memory");
    return ok;
}

static bool print_json_report(const verdicts *v)
{
    json_t *object = json_object();
    for (int i = CASE_PASSED; i <= CASE_SKIPPED; i++)
        json_object_set_new(object, words[i], json_integer((json_int_t)v->counts[i]));
    json_object_set(object, "cases", v->cases);
    return json_print(object);
}

/* XML has no way to write most control characters. */
static void put_xml(FILE *f, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (strchr("<>&\"", c))
            fprintf(f, "&#%d;", c);
        else
            fputc(c < ' ' ? '?' : c, f);
    }
}

static void put_case(FILE *f, const json_t *object)
{
    const char *word = json_string_value(json_object_get(object, "verdict"));
    const char *tag = !strcmp(word, words[CASE_FAILED]) ? "failure" : "skipped";
    fputs("  <testcase classname=\"graphrun check\" name=\"", f);
    put_xml(f, json_string_value(json_object_get(object, "name")));
    if (!strcmp(word, words[CASE_PASSED])) {
        fputs("\"/>\n", f);
        return;
    }
    fprintf(f, "\"><%s message=\"", tag);
    put_xml(f, json_string_value(json_object_get(object, "message")));
    fprintf(f, "\"/></testcase>\n");
}

static bool write_junit(const verdicts *v)
{
    whole_file file;
    size_t i;
    const json_t *object;
    if (!whole_file_begin(&file, v->junit))
        return false;
    fprintf(file.f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"graphrun check\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
            v->counts[CASE_PASSED] + v->counts[CASE_FAILED] + v->counts[CASE_SKIPPED], v->counts[CASE_FAILED],
            v->counts[CASE_SKIPPED]);
    json_array_foreach(v->cases, i, object) put_case(file.f, object);
    fputs("</testsuite>\n", file.f);
    return whole_file_end(&file, true);
}

bool verdicts_end(const verdicts *v)
{
    const bool ok = !v->junit || write_junit(v);
    if (v->json)
        return print_json_report(v) && ok;
    tool_print("%zu passed, %zu failed, %zu skipped\n", v->counts[CASE_PASSED], v->counts[CASE_FAILED],
               v->counts[CASE_SKIPPED]);
    return ok;
}

void verdicts_release(verdicts *v)
{
    json_decref(v->cases);
}
