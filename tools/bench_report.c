/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/bench_report.h"

#include "tools/report.h"

#include <string.h>

static double number_member(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_profile(const json_t *r)
{
    const json_t *found = json_object_get(r, "profile"), *entry;
    const char *op;
    size_t i;
    json_object_foreach(json_object_get(found, "ops"), op, entry)
    {
        tool_print("  %-26s %5.0f steps %10.4f ms\n", op, number_member(entry, "steps"),
                   number_member(entry, "ms"));
    }
    json_array_foreach(json_object_get(found, "steps"), i, entry)
    {
        tool_print("    %10.4f ms  %s  %s\n", number_member(entry, "ms"),
                   json_string_value(json_object_get(entry, "op")),
                   json_string_value(json_object_get(entry, "name")));
    }
}

static void print_deadline(const json_t *deadline)
{
    const json_t *missed = json_object_get(deadline, "missed_by_ms");
    tool_print("    within %g ms  %.3f %%", number_member(deadline, "ms"),
               100 * number_member(deadline, "met"));
    if (!json_is_null(missed))
        tool_print("; late by p50 %.3f, max %.3f ms", number_member(missed, "p50"),
                   number_member(missed, "max"));
    tool_print("\n");
}

static void print_load_entry(const char *name, double number, const json_t *entry)
{
    const json_t *latency = json_object_get(entry, "latency_ms");
    tool_print("  %s", name);
    if (number > 0)
        tool_print(" %-8g", number);
    tool_print(" %10.2f runs/s  p50 %.3f  p95 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms\n",
               number_member(entry, "throughput_per_s"), number_member(latency, "p50"),
               number_member(latency, "p95"), number_member(latency, "p99"), number_member(latency, "p99_9"),
               number_member(latency, "max"));
    if (number_member(entry, "unanswered") > 0)
        tool_print(
            "    %.0f requests that were due were not answered: the rate is too high, and the latencies are "
            "those of the others\n",
            number_member(entry, "unanswered"));
    if (json_object_get(entry, "deadline"))
        print_deadline(json_object_get(entry, "deadline"));
}

static void print_load(const json_t *r)
{
    size_t i, k;
    const json_t *entry, *one;
    json_array_foreach(json_object_get(r, "load"), i, entry)
    {
        const json_t *clients = json_object_get(entry, "clients"),
                     *slices = json_object_get(entry, "of_time_slices");
        print_load_entry(clients ? "clients" : "rate   ",
                         clients ? json_number_value(clients) : number_member(entry, "rate"), entry);
        json_array_foreach(json_object_get(entry, "models"), k, one)
            print_load_entry(json_string_value(json_object_get(one, "model")), 0, one);
        if (slices)
            tool_print("    %.3f of their time-slices\n", json_number_value(slices));
    }
}

void bench_report_print_together(const json_t *r)
{
    char memory[FIGURE_SIZE];
    tool_print("%zu models together on %s, %.0f threads; clients and rates are of each\n",
               json_array_size(json_object_get(r, "models")), json_string_value(json_object_get(r, "device")),
               number_member(r, "threads"));
    print_load(r);
    tool_print("  memory      %s at its peak\n", figure_bytes(number_member(r, "peak_rss_bytes"), memory));
}

void bench_report_print(const json_t *r)
{
    const json_t *latency = json_object_get(r, "latency_ms"), *load = json_object_get(r, "load_ms"), *phase;
    const char *name;
    char memory[FIGURE_SIZE];
    tool_print("%s on %s, %.0f threads\n", json_string_value(json_object_get(r, "model")),
               json_string_value(json_object_get(r, "device")), number_member(r, "threads"));
    tool_print("  latency     min %.3f  p50 %.3f  p90 %.3f  p95 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms\n",
               number_member(latency, "min"), number_member(latency, "p50"), number_member(latency, "p90"),
               number_member(latency, "p95"), number_member(latency, "p99"), number_member(latency, "p99_9"),
               number_member(latency, "max"));
    tool_print("              mean %.3f, standard deviation %.3f ms (%.0f runs after %.0f to warm up)\n",
               number_member(latency, "mean"), number_member(latency, "standard_deviation"),
               number_member(r, "runs"), number_member(r, "warmup"));
    tool_print("  throughput  %.2f runs/s, %.3f ms of processor time a run at least\n",
               number_member(r, "throughput_per_s"), number_member(r, "processor_ms"));
    tool_print("  load        %.2f ms:", number_member(load, "total"));
    json_object_foreach((json_t *)load, name, phase) if (strcmp(name, "total") != 0)
        tool_print(" %s %.2f,", name, json_number_value(phase));
    tool_print(" first run %.3f ms\n", number_member(r, "first_run_ms"));
    tool_print("  host        %.1f us a run outside kernels\n", number_member(r, "host_us"));
    if (number_member(r, "device_ms") > 0)
        tool_print("  device      %.4f ms a run without copies in and out\n", number_member(r, "device_ms"));
    const json_t *pool = json_object_get(r, "pool");
    if (pool)
        tool_print("  pool        %.2f runs/s, %.0f contexts, copies included%s\n",
                   number_member(pool, "throughput_per_s"), number_member(pool, "contexts"),
                   json_is_true(json_object_get(pool, "pinned")) ? ", from and to page-locked memory" : "");
    print_load(r);
    tool_print("  memory      %s at its peak\n", figure_bytes(number_member(r, "peak_rss_bytes"), memory));
    print_profile(r);
}
