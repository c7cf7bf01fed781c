/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench_together.h"

#include "tools/bench_samples.h"
#include "tools/loaded.h"
#include "tools/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct member {
    loaded l;
    grt_value **values;
    size_t n_inputs;
} member;

static bool open_member(member *m, const member *first, const char *path, const together_options *o)
{
    const grt_status status =
        m == first ? loaded_open(&m->l, path, o->device, o->fallback, o->threads, o->trust)
                   : loaded_open_beside(&m->l, &first->l, path, o->device, o->fallback, o->threads, o->trust);
    if (status != GRT_OK) {
        tool_fail();
        return false;
    }
    m->n_inputs = grt_model_input_count(m->l.model);
    m->values = calloc(m->n_inputs + 1, sizeof(grt_value *));
    const char **sources = calloc(m->n_inputs + 1, sizeof *sources);
    const bool ok = m->values && sources && inputs_create(m->l.model, o->inputs, o->seed, m->values, sources);
    free(sources);
    return ok;
}

static void close_member(member *m)
{
    inputs_release_values(m->values, m->n_inputs);
    loaded_release(&m->l);
}

static json_t *measure_members(const member *members, const load_model *models, size_t n,
                               const together_options *o)
{
    struct rusage usage = {0};
    double load_ms = 0;
    json_t *names = json_array(), *load = load_measure(models, n, &o->load), *timeline = NULL;
    getrusage(RUSAGE_SELF, &usage);
    if (load && o->has_pictures && !(timeline = samples_timeline(models, n, o->timeline_contexts)))
        tool_fail();
    if (!load || (o->has_pictures && !timeline)) {
        json_decref(names);
        json_decref(load);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(names, json_text(models[i].name));
        load_ms += members[i].l.total_ms;
    }
    json_t *r = json_pack("{s:o,s:o,s:i,s:f,s:o,s:I}", "models", names, "device",
                          json_text(o->device ? o->device : "cpu"), "threads",
                          (int)grt_session_threads(members->l.session), "load_ms", load_ms, "load", load,
                          "peak_rss_bytes", (json_int_t)usage.ru_maxrss * 1024);
    if (r && timeline) {
        json_object_set_new(r, "timeline", timeline);
        json_object_set_new(r, "memory", samples_take_memory());
    }
    return r;
}

json_t *together_measure(const char *const *paths, size_t n, const together_options *o)
{
    member *members = calloc(n, sizeof *members);
    load_model *models = calloc(n, sizeof *models);
    bool ok = members && models;
    size_t opened = 0;
    if (!ok)
        tool_error("out of memory");
    if (ok && o->has_pictures && !samples_watch_memory())
        tool_error("memory cannot be watched: there is no thread for it");
    while (ok && opened < n) {
        member *m = &members[opened];
        ok = open_member(m, members, paths[opened], o);
        models[opened] = (load_model){paths[opened], m->l.model, m->l.session, m->values};
        opened++;
    }
    json_t *report = ok ? measure_members(members, models, n, o) : NULL;
    while (opened) /* the first has the runtime of all */
        close_member(&members[--opened]);
    free(models);
    free(members);
    return report;
}

static double per_s(const json_t *entry)
{
    return json_number_value(json_object_get(entry, "throughput_per_s"));
}

/* Of the model alone with as many clients; 0 if there is none. */
static double rate_alone(const json_t *report, const json_t *clients)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(report, "load"), i, entry)
    {
        if (json_equal(json_object_get(entry, "clients"), clients))
            return per_s(entry);
    }
    return 0;
}

void together_compare(json_t *together, const json_t *reports)
{
    json_t *entry;
    size_t i, k;
    json_array_foreach(json_object_get(together, "load"), i, entry)
    {
        const json_t *clients = json_object_get(entry, "clients"), *models = json_object_get(entry, "models"),
                     *one;
        double sum = 0;
        bool complete = clients && json_array_size(models) == json_array_size(reports);
        json_array_foreach(models, k, one)
        {
            const double alone = rate_alone(json_array_get(reports, k), clients);
            complete = complete && alone > 0;
            sum += alone > 0 ? per_s(one) / alone : 0;
        }
        if (complete)
            json_object_set_new(entry, "of_time_slices", json_real(sum));
    }
}
