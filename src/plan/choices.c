/* SPDX-License-Identifier: Apache-2.0 */
/* See choices.h. The section is the last one of a file, so that the rest need not move when it changes. */
#include "src/plan/choices.h"

#include "proto/plan.pb-c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *problem_of(const char *key, size_t key_size, size_t size, uint32_t source, double cost_ms)
{
    return key_size == 0 || key_size > GRT_CHOICE_MAX_KEY ? "its key is empty or longer than 64 KiB"
           : memchr(key, 0, key_size)                     ? "its key has a zero byte in it"
           : size > GRT_CHOICE_MAX_DATA                   ? "its data is longer than 1 MiB"
           : source != GRT_CHOICE_HEURISTIC && source != GRT_CHOICE_TUNED ? "its source is unknown"
           : !isfinite(cost_ms) || cost_ms < 0 ? "its cost is negative or no number"
                                               : NULL;
}

static int choices_by_key(const void *a, const void *b)
{
    const grt_choice *const *x = a, *const *y = b;
    const int order = strcmp((*x)->key, (*y)->key);
    return order ? order : *x < *y ? -1 : *x > *y; /* of one array: the later one last */
}

/* The last row of each key, in order, without those that are to go. */
static grt_status choices_sort(const grt_choice *rows, size_t n, grt_choice **out_rows, size_t *out_n)
{
    const grt_choice **order = malloc((n + 1) * sizeof *order);
    grt_choice *sorted = malloc((n + 1) * sizeof *sorted);
    size_t kept = 0;
    if (!order || !sorted) {
        free(order);
        free(sorted);
        return grt_fail_memory(n * (sizeof *order + sizeof *sorted));
    }
    for (size_t i = 0; i < n; i++)
        order[i] = &rows[i];
    if (n)
        qsort(order, n, sizeof *order, choices_by_key);
    for (size_t i = 0; i < n; i++)
        if ((i + 1 == n || strcmp(order[i]->key, order[i + 1]->key) != 0) && !order[i]->rejected)
            sorted[kept++] = *order[i];
    free(order);
    *out_rows = sorted;
    *out_n = kept;
    return GRT_OK;
}

static grt_status choices_check_rows(const grt_choice *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *key = rows[i].key ? rows[i].key : "";
        const bool no_data = rows[i].size && !rows[i].data;
        const char *problem =
            no_data ? "its data is NULL"
                    : problem_of(key, strlen(key), rows[i].size, (uint32_t)rows[i].source, rows[i].cost_ms);
        if (problem && !rows[i].rejected)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "row %zu ('%.200s') cannot be put into a plan: %s",
                            i, key, problem);
        if (!*key)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "row %zu cannot be removed from a plan: no key", i);
    }
    return GRT_OK;
}

grt_status grt_choices_merge(const grt_choice *old, size_t n_old, const grt_choice *rows, size_t n,
                             grt_choice **out_rows, size_t *out_n)
{
    GRT_TRY(choices_check_rows(rows, n));
    grt_choice *all = malloc((n_old + n + 1) * sizeof *all);
    if (!all)
        return grt_fail_memory((n_old + n) * sizeof *all);
    if (n_old)
        memcpy(all, old, n_old * sizeof *all);
    if (n)
        memcpy(all + n_old, rows, n * sizeof *all);
    grt_status status = choices_sort(all, n_old + n, out_rows, out_n);
    free(all);
    return status;
}

grt_status plan_choices_encode(const grt_choice *rows, size_t n, void **out_data, size_t *out_size)
{
    GRT_TRY(choices_check_rows(rows, n));
    Grt__Plan__Choice *choices = malloc((n + 1) * sizeof *choices), **list = malloc((n + 1) * sizeof *list);
    Grt__Plan__Tuning m = GRT__PLAN__TUNING__INIT;
    if (!choices || !list) {
        free(choices);
        free(list);
        return grt_fail_memory(n * sizeof *choices);
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = &choices[i];
        grt__plan__choice__init(&choices[i]);
        choices[i].key = (ProtobufCBinaryData){strlen(rows[i].key), (uint8_t *)rows[i].key};
        choices[i].data = (ProtobufCBinaryData){rows[i].size, (uint8_t *)rows[i].data};
        choices[i].source = (uint32_t)rows[i].source;
        choices[i].cost_ms = rows[i].cost_ms;
    }
    m.n_choices = n;
    m.choices = list;
    *out_size = grt__plan__tuning__get_packed_size(&m);
    uint8_t *bytes = malloc(*out_size ? *out_size : 1);
    if (bytes)
        grt__plan__tuning__pack(&m, bytes);
    free(choices);
    free(list);
    *out_data = bytes;
    return bytes ? GRT_OK : grt_fail_memory(*out_size);
}

/* Messages live in an arena that is dropped at once after decoding. */
static void *choices_message_alloc(void *arena, size_t size)
{
    return grt_arena_alloc(arena, size ? size : 1);
}
static void choices_message_free(void *arena, void *data)
{
    (void)arena;
    (void)data;
}

static grt_status choices_decode_rows(const char *path, const Grt__Plan__Tuning *m, grt_plan *plan)
{
    grt_choice *rows = GRT_ARENA_ARRAY(plan->arena, grt_choice, m->n_choices + 1);
    for (size_t i = 0; rows && i < m->n_choices; i++) {
        const Grt__Plan__Choice *c = m->choices[i];
        const char *problem =
            problem_of((const char *)c->key.data, c->key.len, c->data.len, c->source, c->cost_ms);
        if (problem)
            return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: section TUNING: row %zu: %s", path, i, problem);
        char *key = grt_arena_strndup(plan->arena, (const char *)c->key.data, c->key.len);
        char *data = grt_arena_alloc(plan->arena, c->data.len + 1);
        if (!key || !data)
            return grt_fail_memory(c->data.len);
        if (c->data.len)
            memcpy(data, c->data.data, c->data.len);
        if (i && strcmp(rows[i - 1].key, key) >= 0)
            return grt_fail(GRT_STATUS_INVALID_PLAN,
                            "%s: section TUNING: row %zu: its key is not above the one before", path, i);
        rows[i] = (grt_choice){.key = key,
                               .data = data,
                               .size = c->data.len,
                               .source = (int32_t)c->source,
                               .cost_ms = c->cost_ms};
    }
    if (!rows)
        return grt_fail_memory(m->n_choices * sizeof *rows);
    plan->choices = rows;
    plan->n_choices = m->n_choices;
    return GRT_OK;
}

grt_status plan_choices_decode(const char *path, const void *data, size_t size, grt_plan *plan)
{
    grt_arena *messages = grt_arena_create();
    if (!messages)
        return grt_fail_memory(sizeof(void *));
    ProtobufCAllocator allocator = {choices_message_alloc, choices_message_free, messages};
    const Grt__Plan__Tuning *m = grt__plan__tuning__unpack(&allocator, size, data);
    grt_status status = m                            ? choices_decode_rows(path, m, plan)
                        : grt_arena_failed(messages) ? grt_fail_memory(size)
                                                     : grt_fail(GRT_STATUS_INVALID_PLAN,
                                                                "%s: section TUNING (%zu bytes) is no valid "
                                                                "protobuf message",
                                                                path, size);
    grt_arena_release(messages);
    return status;
}
