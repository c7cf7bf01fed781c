/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun check: models against recorded outputs, as the official ONNX test runner does it. */
#define _GNU_SOURCE
#include "tools/case_run.h"
#include "tools/commands.h"
#include "tools/devices.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/targets.h"
#include "tools/verdicts.h"
#include "tools/workers.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct check {
    /* what was asked for */
    const char *model, *expect;
    const char **directories;
    size_t n;
    double rtol, atol;     /* negative: not given */
    const char *precision; /* NULL: the models' own */
    const char *device, *fallback;
    targets targets; /* of no kind: models are compiled for the device */
    int64_t jobs, threads;
    double timeout;
    /* what is known by now */
    test_cases cases;
    expectations expected;
    verdicts verdicts;
} check;

static bool take_plan_target(void *request, const char *value)
{
    return targets_add(&((check *)request)->targets, "--plan", value);
}

static bool take_directory(void *request, const char *value)
{
    check *k = request;
    k->directories[k->n++] = value;
    return true;
}

const tool_option check_options[] = {
    OPTION_TEXT(check, device, "--device", "DEVICE",
                "KIND or KIND:NUMBER, as graphc devices lists them (default: cpu)"),
    OPTION_TEXT(check, fallback, "--fallback", "cpu",
                "run ops that the device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(check, jobs, 1, 256, "--jobs", "N",
               "cases at a time, in processes of their own (default: one per CPU)"),
    OPTION_NUMBER(check, rtol, 0, "--rtol", "X",
                  "relative tolerance (default: the case's data.json, else 1e-3)"),
    OPTION_NUMBER(check, atol, 0, "--atol", "X",
                  "absolute tolerance (default: the case's data.json, else 1e-7)"),
    OPTION_TEXT(check, expect, "--expect", "FILE",
                "cases that are expected to fail, one `name: reason` a line; these count as skipped,\n"
                "and as failed when they pass"),
    OPTION_TEXT(check, model, "--model", "FILE",
                "run FILE (.onnx or .grt) instead of model.onnx; only with one DIR"),
    OPTION_INT(check, threads, 0, 1024, "--threads", "N",
               "CPU threads of one operator (default: 1 if several cases run at a time)"),
    OPTION_NUMBER(check, timeout, 0.001, "--timeout", "SECONDS",
                  "a case that takes longer has failed (default: 120)"),
    OPTION_TAKE(take_plan_target, "--plan", "KIND|GPU",
                "write each model's plan for this kind of device or GPU (see graphc optimize\n"
                "--target) to a file, and run that; may be repeated"),
    OPTION_TEXT(check, precision, "--precision", "P",
                "compile each model so (tf32, fp16, bf16, exact: graphc optimize); allow what it costs"),
    OPTION_FLAG(check, verdicts.verbose, "--verbose", "a line for every case, not only for failures"),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(check, verdicts.json, "--json", "report as JSON on standard output"),
    OPTION_FILE(check, verdicts.junit, "--junit", "FILE", "write a report in JUnit's XML, too"),
    OPTION_TABLE_END,
};

/* A file that nobody else can have made; malloc'ed. NULL: `why` says why not. */
static char *temporary_plan(char *why, size_t size)
{
    static const char name[] = "/graphrun-XXXXXX", ending[] = ".grt";
    const char *directory = secure_getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", directory ? directory : "/tmp", name, ending) < 0) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    const int fd = mkstemps(path, sizeof ending - 1);
    if (fd >= 0) {
        close(fd);
        return path;
    }
    snprintf(why, size, "%s: %s", path, strerror(errno));
    free(path);
    return NULL;
}

/* Nothing stays behind: the file is mapped, and its name goes at once. */
static bool open_plan(loaded *l, const check *k, const char *model, char *why, size_t size)
{
    char *path = temporary_plan(why, size);
    if (!path)
        return false;
    grt_compile_options options = {.struct_size = sizeof options, .precision = k->precision};
    targets_set(&k->targets, &options);
    l->status = grt_compile(model, &options, path);
    bool ok = l->status == GRT_OK &&
              loaded_open(l, path, k->device, k->fallback, (int32_t)k->threads, NULL) == GRT_OK;
    if (!ok)
        snprintf(why, size, "%s", grt_last_error());
    unlink(path);
    free(path);
    return ok;
}

/* The null device's outputs are zeros of the right type. */
static bool computes_nothing(const char *device)
{
    return device && strcspn(device, ":") == 4 && !strncmp(device, "null", 4);
}

static bool open_case(loaded *l, const check *k, const char *model, char *why, size_t size)
{
    if (k->targets.kind || k->precision)
        return open_plan(l, k, model, why, size);
    if (loaded_open(l, model, k->device, k->fallback, (int32_t)k->threads, NULL) == GRT_OK)
        return true;
    snprintf(why, size, "%s", grt_last_error());
    return false;
}

/* What a plan's precision costs at least: units in the last place of its numbers, and, as results near zero
 * are differences of large ones, a part of 1. */
static tolerance widened_tolerance(const loaded *l, tolerance t)
{
    static const struct {
        const char *precision;
        tolerance least;
    } costs[] = {{"precision tf32", {1e-2, 5e-3, false}},
                 {"precision fp16", {1e-2, 1e-2, false}},
                 {"precision bf16", {6e-2, 6e-2, false}}};
    grt_model_info info = {.struct_size = sizeof info};
    for (size_t i = 0;
         l->model && grt_model_get_info(l->model, &info) == GRT_OK && i < sizeof costs / sizeof *costs; i++)
        if (strstr(info.options, costs[i].precision)) {
            t.rtol = t.rtol > costs[i].least.rtol ? t.rtol : costs[i].least.rtol;
            t.atol = t.atol > costs[i].least.atol ? t.atol : costs[i].least.atol;
        }
    return t;
}

/* What a case's process returns. */
enum { GOOD_CASE = 0, BAD_CASE = 1, BAD_USE = 2 };

/* A case that could not be opened since none can be: an option's value is wrong, there is no such device, or
 * no module for the plan. */
static bool is_bad_use(const check *k, grt_status status)
{
    int32_t n;
    if (status != GRT_STATUS_DEVICE)
        return status == GRT_STATUS_INVALID_ARGUMENT;
    return !devices_has(k->device) || (k->targets.kind && grt_device_count(k->targets.kind, &n) != GRT_OK);
}

static void used_tolerance(const test_case *c, char *out, size_t size)
{
    if (c->tolerance.types_only)
        snprintf(out, size, "types and shapes alone are compared");
    else
        snprintf(out, size, "rtol %g, atol %g", c->tolerance.rtol, c->tolerance.atol);
}

/* The report: why it failed, if so, and the tolerance. */
static int run_case(void *user, size_t i, int fd)
{
    const check *k = user;
    test_case used = k->cases.items[i], *c = &used;
    char why[4096] = "", used_how[64], text[sizeof why + sizeof used_how + 2];
    loaded l = {0};
    bool ok = false, bad_use = false;
    used.tolerance.types_only = computes_nothing(k->device);
    if (!c->model)
        snprintf(why, sizeof why, "%s has no model.onnx", c->directory);
    else if (!open_case(&l, k, c->model, why, sizeof why))
        bad_use = is_bad_use(k, l.status);
    else {
        if (k->rtol < 0 && k->atol < 0)
            used.tolerance = widened_tolerance(&l, used.tolerance);
        ok = case_run(&l, c, why, sizeof why);
    }
    /* After a wrong result or an error in a run, the device's state in this process is not to be trusted. */
    const int ends = !ok && l.context ? WORKER_ENDS : 0;
    loaded_release(&l);
    used_tolerance(c, used_how, sizeof used_how);
    snprintf(text, sizeof text, "%s%s%s", why, *why && !bad_use ? "; " : "", bad_use ? "" : used_how);
    if (write(fd, text, strlen(text)) < 0)
        return BAD_CASE | ends;
    return (ok ? GOOD_CASE : bad_use ? BAD_USE : BAD_CASE) | ends;
}

static void one_line(char *text)
{
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ';' : 0;
}

static bool case_done(void *user, size_t i, const worker_result *result)
{
    check *k = user;
    const test_case *c = &k->cases.items[i];
    const char *reason = expectations_find(&k->expected, c->name);
    bool passed = result->code == GOOD_CASE;
    char code[32], text[8192];
    snprintf(code, sizeof code, "exit status %d", result->code);
    progress_clear();
    one_line(result->text);
    if (result->code == BAD_USE) {
        tool_error("%s", result->text);
        return false;
    }
    const char *why = result->text[0] ? result->text : code;
    verdict found = passed ? CASE_PASSED : CASE_FAILED;
    if (reason && passed) {
        found = CASE_FAILED;
        snprintf(text, sizeof text, "passes, although it is expected to fail (%s)", reason);
    } else if (reason) {
        found = CASE_SKIPPED;
        snprintf(text, sizeof text, "expected to fail (%s): %s", reason, why);
    }
    const bool ok = verdicts_add(&k->verdicts, c->name, found, reason ? text : why);
    progress_show((double)(i + 1) / (double)k->cases.n, c->name);
    return ok;
}

static int count_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static bool is_complete(const check *k)
{
    if (k->n == 0)
        tool_error("no directory with test data is given; see %s check --help", tool_name);
    if (k->model && k->n > 1)
        tool_error("--model goes with one directory only");
    const bool readable = !k->model || access(k->model, R_OK) == 0;
    if (!readable)
        tool_error("--model: %s: %s", k->model, strerror(errno));
    return k->n > 0 && !(k->model && k->n > 1) && readable;
}

/* Processes of their own cost little there; on other devices each would start a driver, which takes longer
 * than most cases. */
static bool is_host(const char *device)
{
    return !device || !strncmp(device, "cpu", 3) || !strncmp(device, "null", 4);
}

static int check_all(check *k)
{
    if (k->expect && !expectations_read(&k->expected, k->expect))
        return EXIT_BAD;
    for (size_t i = 0; i < k->n; i++)
        if (!cases_add(&k->cases, k->directories[i], k->model, (tolerance){.rtol = k->rtol, .atol = k->atol}))
            return EXIT_BAD;
    if (k->threads < 0)
        k->threads = k->jobs > 1 && k->cases.n > 1 ? 1 : 0;
    const worker_options workers = {(int)k->jobs, k->timeout, !is_host(k->device)};
    if (!workers_run(k->cases.n, &workers, run_case, case_done, k))
        return EXIT_BAD;
    progress_clear();
    if (!verdicts_end(&k->verdicts))
        return EXIT_BAD;
    return k->verdicts.counts[CASE_FAILED] ? EXIT_CHECK : EXIT_GOOD;
}

int check_command(const tool_command *command, int argc, char **argv)
{
    check k = {.jobs = count_cpus(),
               .threads = -1,
               .timeout = 120,
               .rtol = -1,
               .atol = -1,
               .directories = calloc((size_t)argc + 1, sizeof(char *))};
    int code = EXIT_BAD;
    if (k.directories && options_parse(command, argc, argv, &k, take_directory, &code) && is_complete(&k))
        code = check_all(&k);
    cases_release(&k.cases);
    verdicts_release(&k.verdicts);
    expectations_release(&k.expected);
    targets_release(&k.targets);
    free(k.directories);
    return code;
}
