/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files out: the same plan gives the same bytes, and a file is there whole or not at all. */
#include "src/plan/format.h"

#include "src/base/checked.h"
#include "src/base/output.h"
#include "src/base/hash.h"
#include "src/plan/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where weights go ---- */

typedef struct stored {
    struct {
        uint64_t hash, size;
    } key;
    int32_t weight;      /* that has these bytes */
    struct stored *next; /* same key, other bytes */
    UT_hash_handle hh;
} stored;

typedef struct layout {
    grt_arena *arena;
    uint64_t *offsets; /* per weight */
    bool *first;       /* per weight: its bytes are written (not those of an equal one before) */
    uint64_t size;
} layout;

/* Offset of equal bytes stored before, or a new one at the end. */
static bool write_place(layout *l, stored **table, const grt_plan *plan, int32_t i)
{
    const grt_tensor *w = &plan->weights[i];
    size_t size = grt_plan_packing(plan, i).bytes;
    stored *fresh = GRT_ARENA_NEW(l->arena, stored), *found = NULL;
    if (!fresh)
        return false;
    fresh->key.hash = XXH3_64bits(w->data, size);
    fresh->key.size = size;
    fresh->weight = i;
    HASH_FIND(hh, *table, &fresh->key, sizeof fresh->key, found);
    for (stored *s = found; s; s = s->next)
        if (memcmp(plan->weights[s->weight].data, w->data, size) == 0) {
            l->offsets[i] = l->offsets[s->weight];
            return true;
        }
    if (found) {
        fresh->next = found->next;
        found->next = fresh;
    } else {
        HASH_ADD(hh, *table, key, sizeof fresh->key, fresh);
        if (!GRT_HASH_HAS(fresh))
            return false;
    }
    l->first[i] = true;
    l->offsets[i] = grt_align_up(l->size, PLAN_TENSOR_ALIGNMENT);
    l->size = l->offsets[i] + size;
    return true;
}

static bool write_lay_out(layout *l, const grt_plan *plan)
{
    stored *table = NULL;
    l->arena = grt_arena_create();
    if (!l->arena)
        return false;
    l->offsets = GRT_ARENA_ARRAY(l->arena, uint64_t, plan->n_weights + 1);
    l->first = GRT_ARENA_ARRAY(l->arena, bool, plan->n_weights + 1);
    bool ok = l->offsets && l->first;
    for (int32_t i = 0; ok && i < plan->n_weights; i++)
        if (plan->weights[i].dtype != GRT_DTYPE_STRING && grt_tensor_bytes(&plan->weights[i]) > 0)
            ok = write_place(l, &table, plan, i);
    HASH_CLEAR(hh, table);
    return ok;
}

/* ---- files ---- */

/* Weights may take long to write: `cancel` is asked before each. */
static grt_status write_weights(grt_output *o, const grt_plan *plan, const layout *l,
                                const grt_cancel *cancel, uint64_t *out_checksum)
{
    static const char zeros[PLAN_TENSOR_ALIGNMENT];
    plan_hasher hasher;
    if (!plan_hasher_begin(&hasher))
        return grt_fail_memory(sizeof hasher);
    uint64_t at = 0;
    grt_status status = GRT_OK;
    for (int32_t i = 0; status == GRT_OK && i < plan->n_weights; i++) {
        if (!l->first[i])
            continue;
        size_t padding = (size_t)(l->offsets[i] - at), size = grt_plan_packing(plan, i).bytes;
        status = grt_cancel_check(cancel);
        if (status != GRT_OK)
            break;
        plan_hasher_add(&hasher, zeros, padding);
        plan_hasher_add(&hasher, plan->weights[i].data, size);
        status = grt_output_zeros(o, padding);
        if (status == GRT_OK)
            status = grt_output_write(o, plan->weights[i].data, size);
        at = l->offsets[i] + size;
    }
    *out_checksum = plan_hasher_end(&hasher);
    return status;
}

static grt_status write_header(grt_output *o, const plan_section *sections, uint32_t n)
{
    union {
        plan_header header;
        char page[PLAN_PAGE];
    } u;
    memset(&u, 0, sizeof u);
    memcpy(u.header.magic, PLAN_MAGIC, sizeof u.header.magic);
    u.header.version = PLAN_VERSION;
    u.header.file_size = o->size;
    u.header.n_sections = n;
    memcpy(u.header.sections, sections, n * sizeof *sections);
    u.header.checksum = plan_header_checksum(u.page);
    return grt_output_overwrite(o, u.page, sizeof u.page);
}

/* On a page of its own. */
static grt_status next_section(grt_output *o, plan_section *section, plan_section_kind kind, uint64_t length)
{
    GRT_TRY(grt_output_zeros(o, grt_align_up(o->size, PLAN_PAGE) - o->size));
    *section = (plan_section){.kind = kind, .offset = o->size, .length = length};
    return GRT_OK;
}

static grt_status write_tuning(grt_output *o, const grt_plan *plan, plan_section *section)
{
    void *data;
    size_t size;
    GRT_TRY(plan_choices_encode(plan->choices, plan->n_choices, &data, &size));
    grt_status status = next_section(o, section, PLAN_TUNING, size);
    if (status == GRT_OK)
        status = plan_checksum(data, size, &section->checksum) ? GRT_OK : grt_fail_memory(size);
    if (status == GRT_OK)
        status = grt_output_write(o, data, size);
    free(data);
    return status;
}

static grt_status write_file(grt_output *o, const grt_plan *plan, const layout *l,
                             const plan_external *external, const grt_cancel *cancel)
{
    plan_section sections[3] = {{.kind = PLAN_META, .offset = PLAN_PAGE}};
    uint32_t n = 1;
    size_t size = 0;
    void *meta = plan_encode(plan, l->offsets, external, &size);
    if (!meta)
        return grt_fail_memory(size);
    sections[0].length = size;
    grt_status status = plan_checksum(meta, size, &sections[0].checksum) ? GRT_OK : grt_fail_memory(size);
    if (status == GRT_OK)
        status = grt_output_zeros(o, PLAN_PAGE);
    if (status == GRT_OK)
        status = grt_output_write(o, meta, size);
    free(meta);
    GRT_TRY(status);
    if (!external && l->size > 0) {
        plan_section *weights = &sections[n++];
        GRT_TRY(next_section(o, weights, PLAN_WEIGHTS, l->size));
        GRT_TRY(write_weights(o, plan, l, cancel, &weights->checksum));
    }
    if (plan->n_choices) /* last: it is the section that may be replaced */
        GRT_TRY(write_tuning(o, plan, &sections[n++]));
    GRT_TRY(write_header(o, sections, n));
    return grt_output_commit(o);
}

static grt_status write_plan(const grt_plan *plan, const char *path, const layout *l,
                             const plan_external *external, const grt_cancel *cancel)
{
    grt_output o;
    grt_status status = grt_output_open(&o, path);
    if (status == GRT_OK)
        status = write_file(&o, plan, l, external, cancel);
    grt_output_close(&o);
    return status;
}

/* Weights first, so that a plan never names a missing file. The lock keeps other writers from removing them
 * in between.
 */
static grt_status put_both(grt_output *weights, const grt_plan *plan, const char *path, const layout *l,
                           uint64_t checksum, const grt_cancel *cancel)
{
    char name[PLAN_MAX_NAME];
    if (!plan_weights_name(path, checksum, name))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: not usable as a file name", path);
    const plan_external external = {name, l->size, checksum};
    GRT_TRY(grt_output_rename(weights, name));
    const int lock = grt_output_lock_directory(path);
    grt_status status = grt_output_commit(weights);
    if (status == GRT_OK)
        status = write_plan(plan, path, l, &external, cancel);
    if (status == GRT_OK && lock >= 0)
        plan_weights_tidy(path, name);
    if (lock >= 0)
        close(lock);
    return status;
}

static grt_status write_both(const grt_plan *plan, const char *path, const layout *l,
                             const grt_cancel *cancel)
{
    uint64_t checksum = 0;
    grt_output weights;
    grt_status status = grt_output_open(&weights, path);
    if (status == GRT_OK)
        status = write_weights(&weights, plan, l, cancel, &checksum);
    if (status == GRT_OK)
        status = put_both(&weights, plan, path, l, checksum, cancel);
    grt_output_close(&weights);
    return status;
}

grt_status grt_plan_write(const grt_plan *plan, const char *path, bool external_weights,
                          const grt_cancel *cancel)
{
    /* A plan that could not be read must not replace one that can. */
    if (plan_check(path, plan) != GRT_OK)
        return grt_fail_context(GRT_STATUS_INTERNAL, "the compiler made a plan that breaks its own rules");
    layout l = {0};
    grt_status status = write_lay_out(&l, plan) ? GRT_OK : grt_fail_memory(sizeof(stored));
    if (status == GRT_OK)
        status =
            external_weights ? write_both(plan, path, &l, cancel) : write_plan(plan, path, &l, NULL, cancel);
    grt_arena_release(l.arena);
    return status;
}
