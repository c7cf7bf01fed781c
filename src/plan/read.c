/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files in: header, section table, checksums, then META, then where the weights are. Nothing is
 * allocated from a number before the number was checked. */
#include "src/plan/signature.h"

#include "src/base/checked.h"
#include "src/base/file_map.h"
#include "src/plan/choices.h"
#include "src/plan/weights_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct reader {
    const char *path; /* for messages if not in_file */
    bool in_file;
    const char *bytes;
    size_t size;
    plan_header header;
    const plan_section *meta, *tuning; /* tuning: NULL if there is none */
    const plan_section *weights;       /* NULL if there are none, or they lie in a file of their own */
    bool later;                        /* leave the checksum of many weights to `check` */
    grt_weights_check *check;
    grt_trust trust;
    bool is_signed;
    plan_signature signature; /* if it is signed; verified if `trust` asks for keys */
} reader;

bool grt_plan_recognize(const void *bytes, size_t size)
{
    return size >= sizeof PLAN_MAGIC - 1 && !memcmp(bytes, PLAN_MAGIC, sizeof PLAN_MAGIC - 1);
}

static const char *section_name(uint32_t kind)
{
    static const char *const names[] = {"?", "META", "WEIGHTS", "KERNELS", "TUNING", "SIGNATURE"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

#define AGAIN "make it again with graphc optimize"

static grt_status read_header(reader *r)
{
    size_t n = r->size < sizeof r->header.magic ? r->size : sizeof r->header.magic;
    if (n == 0 || memcmp(r->bytes, PLAN_MAGIC, n) != 0)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: header at offset 0: this is no plan file (wrong magic)",
                        r->path);
    if (r->size < PLAN_PAGE)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: truncated: expected at least %d bytes, found %zu; " AGAIN, r->path, PLAN_PAGE,
                        r->size);
    memcpy(&r->header, r->bytes, sizeof r->header);
    const plan_header *h = &r->header;
    if (h->version != PLAN_VERSION)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: header at offset 8: format version %" PRIu32
                        ", but libgraphrt %s reads version %d; %s",
                        r->path, h->version, grt_version(), PLAN_VERSION,
                        h->version > PLAN_VERSION ? "use a newer libgraphrt, or " AGAIN : AGAIN);
    uint64_t checksum = plan_header_checksum(r->bytes);
    if (checksum != h->checksum)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: header at offset 0: checksum expected %016" PRIx64 ", found %016" PRIx64
                        ": the file is corrupt; " AGAIN,
                        r->path, h->checksum, checksum);
    if (h->flags || h->reserved)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: header at offset 12: flags %" PRIx32 " are unknown",
                        r->path, h->flags);
    if (h->file_size != r->size)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: %s: expected %" PRIu64 " bytes, found %zu; " AGAIN,
                        r->path, h->file_size > r->size ? "truncated" : "bytes follow the plan's end",
                        h->file_size, r->size);
    if (h->n_sections == 0 || h->n_sections > PLAN_MAX_SECTIONS)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: header at offset 32: %" PRIu32 " sections, expected 1 to %d", r->path,
                        h->n_sections, PLAN_MAX_SECTIONS);
    return GRT_OK;
}

static bool all_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Sections lie one after another, each on a page of its own; *end is where the one before ended. */
static grt_status place_section(reader *r, const plan_section *s, size_t *end)
{
    const char *name = section_name(s->kind);
    size_t expected = grt_align_up(*end, PLAN_PAGE);
    if (s->kind < PLAN_META || s->kind > PLAN_SIGNATURE || s->reserved)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section of kind %" PRIu32 " at offset %" PRIu64 " is unknown", r->path, s->kind,
                        s->offset);
    if (s->offset != expected)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: section %s: offset expected %zu, found %" PRIu64,
                        r->path, name, expected, s->offset);
    if (expected > r->size || s->length > r->size - expected)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section %s at offset %" PRIu64 ": %" PRIu64 " bytes, but the file has %zu",
                        r->path, name, s->offset, s->length, r->size);
    if (!all_zero(r->bytes + *end, expected - *end))
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section %s: the padding before offset %zu is not zero: corrupt; " AGAIN, r->path,
                        name, expected);
    *end = expected + (size_t)s->length;
    return GRT_OK;
}

static grt_status verify(const char *path, const char *name, uint64_t offset, const void *data, size_t size,
                         uint64_t expected)
{
    uint64_t found;
    if (!plan_checksum(data, size, &found))
        return grt_fail_memory(size / PLAN_LEAF * sizeof found);
    if (found != expected)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section %s at offset %" PRIu64 " (%zu bytes): checksum expected %016" PRIx64
                        ", found %016" PRIx64 ": the file is corrupt; " AGAIN,
                        path, name, offset, size, expected, found);
    return GRT_OK;
}

enum { MANY = 16 << 20 };

/* Signed digest i; NULL if no signature is required. */
static const plan_digest *digest_of(const reader *r, uint32_t i)
{
    return r->trust.kind == GRT_TRUST_KEYS ? &r->signature.digests[i] : NULL;
}

static grt_status verify_digest(reader *r, const char *name, const void *data, size_t size,
                                const plan_digest *expected)
{
    plan_digest found;
    if (!expected)
        return GRT_OK;
    if (!plan_digest_of(data, size, &found))
        return grt_fail_memory(size / PLAN_LEAF * sizeof found);
    return plan_digest_compare(r->path, name, expected, &found);
}

static grt_status verify_weights(reader *r, const char *name, uint64_t offset, const void *data, size_t size,
                                 uint64_t expected, const plan_digest *digest)
{
    if (!r->later || size < MANY) {
        GRT_TRY(verify(r->path, name, offset, data, size, expected));
        return verify_digest(r, name, data, size, digest);
    }
    grt_text where = {0};
    grt_text_add(&where, "%s: section %s at offset %" PRIu64, r->path, name, offset);
    grt_status status =
        grt_weights_check_create(grt_text_get(&where), data, size, expected, digest, &r->check);
    grt_text_release(&where);
    return status;
}

static grt_status read_signature(reader *r, const plan_section *s)
{
    if (s != &r->header.sections[r->header.n_sections - 1])
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section SIGNATURE at offset %" PRIu64 " is not the last one", r->path,
                        s->offset);
    GRT_TRY(verify(r->path, "SIGNATURE", s->offset, r->bytes + s->offset, (size_t)s->length, s->checksum));
    if (!plan_signature_read(r->bytes + s->offset, (size_t)s->length, &r->signature))
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section SIGNATURE at offset %" PRIu64 " is no signature of a known form",
                        r->path, s->offset);
    r->is_signed = true;
    return GRT_OK;
}

/* Before anything else is believed: after this, the section table and the digests are the signer's. */
static grt_status check_trust(reader *r)
{
    if (r->trust.kind != GRT_TRUST_KEYS)
        return GRT_OK;
    GRT_TRY(plan_signature_verify(r->path, &r->header, r->is_signed ? &r->signature : NULL, &r->trust));
    if (r->signature.n_digests < r->header.n_sections - 1 || r->signature.n_digests > r->header.n_sections)
        return grt_fail(GRT_STATUS_UNTRUSTED, "%s: %" PRIu32 " sections were signed, of %" PRIu32, r->path,
                        r->signature.n_digests, r->header.n_sections - 1);
    return GRT_OK;
}

static grt_status verify_section(reader *r, uint32_t i)
{
    const plan_section *s = &r->header.sections[i];
    const char *name = section_name(s->kind), *data = r->bytes + s->offset;
    const size_t size = (size_t)s->length;
    if (s == r->weights)
        return verify_weights(r, name, s->offset, data, size, s->checksum, digest_of(r, i));
    GRT_TRY(verify(r->path, name, s->offset, data, size, s->checksum));
    return verify_digest(r, name, data, size, digest_of(r, i));
}

static grt_status read_sections(reader *r)
{
    size_t end = PLAN_PAGE;
    const plan_section *signature = NULL;
    for (uint32_t i = 0; i < r->header.n_sections; i++) {
        const plan_section *s = &r->header.sections[i];
        GRT_TRY(place_section(r, s, &end));
        const plan_section **slot = s->kind == PLAN_META        ? &r->meta
                                    : s->kind == PLAN_WEIGHTS   ? &r->weights
                                    : s->kind == PLAN_TUNING    ? &r->tuning
                                    : s->kind == PLAN_SIGNATURE ? &signature
                                                                : NULL;
        if (slot && *slot)
            return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: section %s at offset %" PRIu64 ": a second one",
                            r->path, section_name(s->kind), s->offset);
        if (slot)
            *slot = s;
    }
    if (end != r->size)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: sections end at offset %zu, but the file has %zu bytes",
                        r->path, end, r->size);
    if (!r->meta)
        return grt_fail(GRT_STATUS_INVALID_PLAN, "%s: section META is missing", r->path);
    if (signature)
        GRT_TRY(read_signature(r, signature));
    GRT_TRY(check_trust(r));
    for (uint32_t i = 0; i < r->header.n_sections; i++)
        if (&r->header.sections[i] != signature)
            GRT_TRY(verify_section(r, i));
    return GRT_OK;
}

static void read_unmap(void *map)
{
    grt_file_map_close(map);
}

/* Map `name`, which may only be a file in the plan's own directory: no path, no link. */
static grt_status map_beside(reader *r, const plan_external *external, grt_plan *plan, grt_file_map *m)
{
    const char *name = external->name, *slash = strrchr(r->path, '/');
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: weights file '%s' is not a file name in the plan's directory", r->path, name);
    const char *directory =
        slash ? grt_arena_strndup(plan->arena, r->path, (size_t)(slash - r->path) + 1) : ".";
    if (!directory)
        return grt_fail_memory(strlen(r->path));
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir >= 0 ? openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    int error = errno;
    if (dir >= 0)
        close(dir);
    if (fd < 0)
        return grt_fail(GRT_STATUS_IO, "%s: its weights file '%s' cannot be opened: %s", r->path, name,
                        strerror(error));
    grt_status status = grt_file_map_fd(name, fd, m);
    if (status != GRT_OK)
        status = grt_fail_context(S_ISREG(m->info.st_mode) ? status : GRT_STATUS_INVALID_PLAN,
                                  "%s: its weights file", r->path);
    else if (m->size != external->size)
        status = grt_fail(GRT_STATUS_INVALID_PLAN,
                          "%s: its weights file '%s': expected %" PRIu64 " bytes, found %zu; " AGAIN, r->path,
                          name, external->size, m->size);
    close(fd);
    return status;
}

static grt_status open_external(reader *r, const plan_external *external, grt_plan *plan,
                                const char **out_base)
{
    if (r->weights)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "%s: section WEIGHTS at offset %" PRIu64 ", although weights are in '%s'", r->path,
                        r->weights->offset, external->name);
    if (!r->in_file)
        return grt_fail(GRT_STATUS_INVALID_PLAN,
                        "a plan whose weights are in a file of their own ('%s') cannot be opened from memory",
                        external->name);
    grt_file_map *m = GRT_ARENA_NEW(plan->arena, grt_file_map);
    if (!m)
        return grt_fail_memory(sizeof *m);
    GRT_TRY(map_beside(r, external, plan, m));
    plan->release_weights = read_unmap;
    plan->weights_owner = m;
    *out_base = m->data;
    const uint32_t place = r->header.n_sections - 1; /* behind the sections' */
    if (r->trust.kind == GRT_TRUST_KEYS && r->signature.n_digests <= place)
        return grt_fail(GRT_STATUS_UNTRUSTED, "%s: its weights file '%s' was not signed", r->path,
                        external->name);
    return verify_weights(r, external->name, 0, m->data, m->size, external->checksum, digest_of(r, place));
}

static grt_status read_place_weights(reader *r, grt_plan *plan, const uint64_t *offsets, const char *base,
                                     uint64_t size)
{
    static _Alignas(64) char nothing[64]; /* what tensors without elements point at */
    grt_tensor *weights = (grt_tensor *)plan->weights;
    for (int32_t i = 0; i < plan->n_weights; i++) {
        grt_tensor *w = &weights[i];
        if (w->dtype == GRT_DTYPE_STRING)
            continue;
        size_t bytes = grt_plan_packing(plan, i).bytes;
        if (offsets[i] % PLAN_TENSOR_ALIGNMENT || offsets[i] > size || bytes > size - offsets[i])
            return grt_fail(GRT_STATUS_INVALID_PLAN,
                            "%s: section META: weight %d: offset %" PRIu64
                            " and %zu bytes, but there are %" PRIu64
                            " bytes of weights, each at a multiple of %d",
                            r->path, (int)i, offsets[i], bytes, size, PLAN_TENSOR_ALIGNMENT);
        w->data = bytes ? (void *)(base + offsets[i]) : nothing;
    }
    plan->weights_bytes = size;
    return GRT_OK;
}

static grt_status name_signer(const reader *r, grt_plan *plan)
{
    char key[GRT_KEY_SIZE] = "";
    if (r->is_signed)
        grt_key_print(false, r->signature.key, key);
    plan->signer = grt_arena_strdup(plan->arena, key);
    return plan->signer ? GRT_OK : grt_fail_memory(sizeof key);
}

static grt_status read_plan(reader *r, grt_plan *plan)
{
    const uint64_t *offsets = NULL;
    plan_external external = {0};
    GRT_TRY(read_header(r));
    GRT_TRY(read_sections(r));
    GRT_TRY(
        plan_decode(r->path, r->bytes + r->meta->offset, (size_t)r->meta->length, plan, &offsets, &external));
    GRT_TRY(plan_check(r->path, plan));
    plan->left_out = r->tuning && r->trust.kind == GRT_TRUST_NONE;
    if (r->tuning && !plan->left_out)
        GRT_TRY(plan_choices_decode(r->path, r->bytes + r->tuning->offset, (size_t)r->tuning->length, plan));
    GRT_TRY(name_signer(r, plan));
    const char *base = r->weights ? r->bytes + r->weights->offset : NULL;
    if (external.name)
        GRT_TRY(open_external(r, &external, plan, &base));
    uint64_t size = external.name ? external.size : r->weights ? r->weights->length : 0;
    plan->weights_base = base;
    return read_place_weights(r, plan, offsets, base, size);
}

static grt_status read_from(reader *r, grt_plan **out_plan)
{
    grt_arena *arena = grt_arena_create();
    grt_plan *plan = arena ? GRT_ARENA_NEW(arena, grt_plan) : NULL;
    if (!plan) {
        grt_arena_release(arena);
        return grt_fail_memory(sizeof *plan);
    }
    plan->arena = arena;
    grt_status status = read_plan(r, plan);
    if (status != GRT_OK) {
        grt_weights_check_release(r->check);
        grt_plan_release(plan);
        return status;
    }
    plan->verified = r->trust.kind == GRT_TRUST_KEYS;
    plan->content = r->header.checksum; /* covers those of the sections */
    *out_plan = plan;
    return GRT_OK;
}

grt_status grt_plan_read(const char *path, const void *bytes, size_t size, grt_plan **out_plan)
{
    reader r = {.path = path ? path : "the plan", .in_file = path != NULL, .bytes = bytes, .size = size};
    return read_from(&r, out_plan);
}

grt_status grt_plan_read_later(const char *path, const void *bytes, size_t size, const grt_trust *trust,
                               grt_weights_check **out_check, grt_plan **out_plan)
{
    reader r = {.path = path ? path : "the plan",
                .in_file = path != NULL,
                .bytes = bytes,
                .size = size,
                .later = true,
                .trust = *trust};
    GRT_TRY(read_from(&r, out_plan));
    *out_check = r.check;
    return GRT_OK;
}
