/* SPDX-License-Identifier: Apache-2.0 */
#include "src/plan/source.h"

#include "src/base/checked.h"
#include "src/base/output.h"
#include "src/plan/choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static grt_status source_open_once(plan_source *s)
{
    GRT_TRY(grt_file_map_open(s->path, &s->map));
    if (!s->map.size)
        return grt_fail(GRT_STATUS_IO, "'%s' is empty", s->path);
    return grt_plan_read(s->path, s->map.data, s->map.size, &s->plan);
}

static void close_once(plan_source *s)
{
    grt_plan_release(s->plan);
    grt_file_map_close(&s->map);
    *s = (plan_source){.path = s->path, .lock = s->lock};
}

/* Under the lock, weights that the plan names are not taken for those of one that was replaced. */
grt_status plan_source_open(const char *path, plan_source *out_source)
{
    *out_source = (plan_source){.path = path, .lock = -1};
    GRT_TRY(source_open_once(out_source));
    if (!out_source->plan->weights_owner)
        return GRT_OK;
    close_once(out_source);
    out_source->lock = grt_output_lock_directory(path);
    return source_open_once(out_source);
}

void plan_source_close(plan_source *source)
{
    close_once(source);
    if (source->lock >= 0)
        close(source->lock);
    source->lock = -1;
}

static bool same_directory(const char *a, const char *b)
{
    const char *paths[2] = {a, b};
    struct stat st[2];
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(paths[i], '/');
        char *directory = slash ? strndup(paths[i], (size_t)(slash - paths[i]) + 1) : strdup(".");
        ok = ok && directory && stat(directory, &st[i]) == 0;
        free(directory);
    }
    return ok && st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

/* On a page of its own. */
static grt_status add_section(grt_output *o, plan_header *h, plan_section section, const void *data)
{
    if (h->n_sections == PLAN_MAX_SECTIONS)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: has no room for another section", o->path);
    GRT_TRY(grt_output_zeros(o, grt_align_up(o->size, PLAN_PAGE) - o->size));
    section.offset = o->size;
    h->sections[h->n_sections++] = section;
    return grt_output_write(o, data, (size_t)section.length);
}

static grt_status copy_others(grt_output *o, const plan_source *s, plan_section_kind kind, plan_header *h)
{
    const plan_header *old = (const plan_header *)s->map.data;
    for (uint32_t i = 0; i < old->n_sections; i++) {
        const plan_section *section = &old->sections[i];
        if (section->kind != kind && section->kind != PLAN_SIGNATURE)
            GRT_TRY(add_section(o, h, *section, s->map.data + section->offset));
    }
    return GRT_OK;
}

static grt_status write_all(grt_output *o, const plan_source *s, plan_section_kind kind, const void *data,
                            size_t size)
{
    union {
        plan_header header;
        char page[PLAN_PAGE];
    } u;
    memcpy(u.page, s->map.data, sizeof u.page);
    u.header.n_sections = 0;
    memset(u.header.sections, 0, sizeof u.header.sections);
    GRT_TRY(grt_output_zeros(o, PLAN_PAGE));
    GRT_TRY(copy_others(o, s, kind, &u.header));
    if (size) {
        plan_section section = {.kind = kind, .length = size};
        if (!plan_checksum(data, size, &section.checksum))
            return grt_fail_memory(size);
        GRT_TRY(add_section(o, &u.header, section, data));
    }
    u.header.file_size = o->size;
    u.header.checksum = plan_header_checksum(u.page);
    GRT_TRY(grt_output_overwrite(o, u.page, sizeof u.page));
    return grt_output_commit(o);
}

grt_status plan_source_write(const plan_source *source, const char *out_path, plan_section_kind kind,
                             const void *data, size_t size)
{
    if (source->plan->weights_owner && !same_directory(source->path, out_path))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "the weights of '%s' are in a file beside it: '%s' has to be in the same directory",
                        source->path, out_path);
    grt_output o;
    grt_status status = grt_output_open(&o, out_path);
    if (status == GRT_OK)
        (void)fchmod(o.fd, source->map.info.st_mode & 07777); /* some file systems have no modes */
    if (status == GRT_OK)
        status = write_all(&o, source, kind, data, size);
    grt_output_close(&o);
    return status;
}

grt_status plan_source_write_choices(const char *plan_path, const char *out_path, const grt_choice *rows,
                                     size_t n)
{
    if (!plan_path || !out_path || (n && !rows))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "plan_source_write_choices: a NULL");
    plan_source s;
    grt_choice *merged = NULL;
    size_t n_merged = 0, size = 0;
    void *tuning = NULL;
    grt_status status = plan_source_open(plan_path, &s);
    if (status == GRT_OK)
        status = grt_choices_merge(s.plan->choices, s.plan->n_choices, rows, n, &merged, &n_merged);
    if (status == GRT_OK && n_merged)
        status = plan_choices_encode(merged, n_merged, &tuning, &size);
    if (status == GRT_OK)
        status = plan_source_write(&s, out_path, PLAN_TUNING, tuning, size);
    free(tuning);
    free(merged);
    plan_source_close(&s);
    return status;
}
