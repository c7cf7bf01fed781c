/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of algorithms as tools see it. */
#include "src/base/structs.h"
#include "src/algos/code_db.h"
#include "src/algos/db.h"
#include "src/session/model.h"
#include "src/plan/source.h"

#include "backends/algos.h"
#include "src/base/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static grt_status refuse_cache_argument(const char *function, const char *what)
{
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: %s", function, what);
}

/* The file that `path` means; free() it. */
static grt_status resolve_cache_path(const char *path, char **out_path)
{
    if (path)
        return (*out_path = strdup(path)) ? GRT_OK : grt_fail_memory(strlen(path));
    GRT_TRY(grt_algo_db_default_path(out_path, NULL));
    return *out_path
               ? GRT_OK
               : grt_fail(GRT_STATUS_INVALID_ARGUMENT, "the algorithm cache is switched off "
                                                       "(GRAPHRT_ALGO_CACHE), or there is no home directory");
}

grt_status grt_runtime_set_algo_cache(grt_runtime *runtime, const char *path)
{
    if (!runtime || !path)
        return refuse_cache_argument("grt_runtime_set_algo_cache", "runtime or path is NULL");
    if (grt_devices_any(runtime->devices))
        return refuse_cache_argument("grt_runtime_set_algo_cache",
                                     "a device has been opened already: call it before the first session");
    grt_algo_cache *cache;
    GRT_TRY(grt_algo_cache_create(path, &cache));
    grt_algo_cache_release(runtime->algos);
    runtime->algos = cache;
    return GRT_OK;
}

grt_status grt_cache_path(char *out_path, size_t size)
{
    char *path;
    if (!out_path || !size)
        return refuse_cache_argument("grt_cache_path", "out_path is NULL or size 0");
    GRT_TRY(grt_algo_db_default_path(&path, NULL));
    snprintf(out_path, size, "%s", path ? path : "");
    free(path);
    return GRT_OK;
}

typedef struct walk {
    void (*each)(void *user, const grt_cache_row *row);
    void *user;
} walk;

static grt_cache_row public_row(const grt_choice *row)
{
    return (grt_cache_row){.key = row->key,
                           .data = row->data,
                           .size = row->size,
                           .tuned = row->source == GRT_CHOICE_TUNED,
                           .cost_ms = row->cost_ms,
                           .made = row->made};
}

static void show_row(void *user, const grt_choice *row)
{
    const walk *w = user;
    const grt_cache_row shown = public_row(row);
    w->each(w->user, &shown);
}

grt_status grt_cache_each(const char *path, void (*each)(void *user, const grt_cache_row *row), void *user,
                          size_t *out_damaged)
{
    walk w = {each, user};
    size_t damaged, damaged_code = 0;
    char *file;
    if (!each)
        return refuse_cache_argument("grt_cache_each", "each is NULL");
    GRT_TRY(resolve_cache_path(path, &file));
    grt_status status = grt_algo_db_read(file, show_row, &w, &damaged);
    if (status == GRT_OK)
        status = grt_code_db_read(file, show_row, &w, &damaged_code);
    free(file);
    if (status == GRT_OK && out_damaged)
        *out_damaged = damaged + damaged_code;
    return status;
}

grt_status grt_cache_prune(const char *path, double days, const char *part, size_t *out_removed)
{
    char *file;
    if (!out_removed || !(days >= 0) || days > 1e6)
        return refuse_cache_argument("grt_cache_prune",
                                     "out_removed is NULL, or days is not from 0 to 1000000");
    GRT_TRY(resolve_cache_path(path, &file));
    const int64_t before = days > 0 ? (int64_t)time(NULL) - (int64_t)(days * 86400) : 0;
    grt_status status = grt_algo_db_prune(file, before, part, out_removed);
    free(file);
    return status;
}

/* All rows at once, so that they are written in one transaction. */
typedef struct row_list {
    grt_choice *list;
    size_t n, capacity;
    grt_arena *arena;
} row_list;

static void collect_row(void *user, const grt_choice *row)
{
    row_list *r = user;
    if (!GRT_ARENA_GROW(r->arena, r->list, r->n, r->capacity))
        return;
    grt_choice copy = *row;
    copy.key = grt_arena_strdup(r->arena, row->key);
    copy.data = grt_arena_memdup(r->arena, row->data, row->size);
    r->list[r->n++] = copy;
}

static grt_status cache_copy_rows(const char *source, const char *target, row_list *choices, row_list *codes)
{
    size_t damaged;
    if (grt_algo_db_stamp(source) == 0)
        return grt_fail(GRT_STATUS_IO, "there is no algorithm cache '%s'", source);
    GRT_TRY(grt_algo_db_read(source, collect_row, choices, &damaged));
    GRT_TRY(grt_code_db_read(source, collect_row, codes, &damaged));
    if (grt_arena_failed(choices->arena))
        return grt_fail_memory(grt_arena_bytes(choices->arena));
    GRT_TRY(grt_algo_db_write(target, choices->list, choices->n));
    return codes->n ? grt_code_db_write(target, codes->list, codes->n, GRT_CODE_MAX_TOTAL) : GRT_OK;
}

grt_status grt_cache_copy(const char *from, const char *to, size_t *out_rows)
{
    char *source = NULL, *target = NULL;
    if (!out_rows)
        return refuse_cache_argument("grt_cache_copy", "out_rows is NULL");
    grt_arena *arena = grt_arena_create();
    row_list choices = {.arena = arena}, codes = {.arena = arena};
    grt_status status = arena ? resolve_cache_path(from, &source) : grt_fail_memory(0);
    if (status == GRT_OK)
        status = resolve_cache_path(to, &target);
    if (status == GRT_OK)
        status = cache_copy_rows(source, target, &choices, &codes);
    if (status == GRT_OK)
        *out_rows = choices.n + codes.n;
    grt_arena_release(arena);
    free(source);
    free(target);
    return status;
}

grt_status grt_plan_add_tuning(const char *plan_path, const char *out_path, const grt_cache_row *rows,
                               size_t n)
{
    if (!plan_path || !out_path || (n && !rows))
        return refuse_cache_argument("grt_plan_add_tuning", "plan_path, out_path or rows is NULL");
    for (size_t i = 0; i < n; i++)
        GRT_TRY(grt_reserved_check(rows[i].reserved, sizeof rows[i].reserved, "grt_cache_row"));
    grt_choice *list = calloc(n + 1, sizeof *list);
    if (!list)
        return grt_fail_memory(n * sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = (grt_choice){.key = rows[i].key,
                               .data = rows[i].data,
                               .size = rows[i].size,
                               .source = rows[i].tuned ? GRT_CHOICE_TUNED : GRT_CHOICE_HEURISTIC,
                               .cost_ms = rows[i].cost_ms};
    grt_status status = plan_source_write_choices(plan_path, out_path, list, n);
    free(list);
    return status;
}

grt_status grt_model_choices(const grt_model *model, void (*each)(void *user, const grt_cache_row *row),
                             void *user)
{
    if (!model || !each)
        return refuse_cache_argument("grt_model_choices", "model or each is NULL");
    for (size_t i = 0; i < model->plan->n_choices; i++) {
        const grt_cache_row row = public_row(&model->plan->choices[i]);
        each(user, &row);
    }
    return GRT_OK;
}

typedef struct lookups {
    void (*each)(void *user, const grt_cache_lookup *lookup);
    void *user;
} lookups;

static void show_lookup(void *user, const grt_algo_lookup *lookup)
{
    const lookups *l = user;
    const grt_cache_row row = lookup->choice ? public_row(lookup->choice) : (grt_cache_row){0};
    const grt_cache_lookup shown = {.struct_size = sizeof shown,
                                    .key = lookup->key,
                                    .hit = lookup->hit,
                                    .nearest = lookup->nearest,
                                    .from_plan = lookup->from_plan,
                                    .code = lookup->code ? grt_code_origin_name(lookup->code) : NULL,
                                    .row = lookup->choice ? &row : NULL};
    l->each(l->user, &shown);
}

grt_status grt_cache_lookups(grt_runtime *runtime, void (*each)(void *user, const grt_cache_lookup *lookup),
                             void *user)
{
    lookups l = {each, user};
    if (!runtime || !each)
        return refuse_cache_argument("grt_cache_lookups", "runtime or each is NULL");
    grt_algo_cache_lookups(runtime->algos, show_lookup, &l);
    return GRT_OK;
}
