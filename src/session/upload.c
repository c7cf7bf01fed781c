/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* madvise */
#include "src/session/upload.h"

#include "src/base/checked.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SLOTS = 2, /* of each reader: one is filled while the other crosses */
    MAX_READERS = 64,
    DEFAULT_READERS = 16,
    SMALLEST_CHUNK = 256 << 10,
    LARGEST_CHUNK = 8 << 20,
    WORTH_PINNING = 4 << 20,
    HUGE_PAGE = 2 << 20,
};
static const size_t default_pinned = (size_t)128 << 20;

typedef enum chunk_state { MISSING = 0, CLAIMED, ENQUEUED } chunk_state;

/* A device that came. States of its chunks are under the lock; the rest is its thread's and the readers'. */
typedef struct member {
    grt_device *device;
    char *block;
    void *from_host, *from_peer; /* streams */
    void **fences;               /* per chunk: it has arrived */
    unsigned char *chunks;       /* chunk_state */
    uint32_t *order;             /* chunks as they arrived, n_here of them */
    size_t n_here;
    pthread_cond_t changed; /* something arrived where it copies from, it is full, or the ring is another */
    int32_t island;
    int32_t source; /* who it last copied from; -1 before */
    grt_status status;
    char *error;
    grt_upload_stats stats;
} member;

struct grt_upload {
    const grt_upload_piece *pieces;
    size_t n_pieces, total, chunk, n_chunks;
    grt_upload_options options;
    grt_weights_check *check;

    pthread_mutex_t joining; /* one member at a time asks which others it can copy from */
    pthread_mutex_t lock;    /* of all that follows; not held across a call of a device */
    pthread_cond_t work;     /* for readers; members have their own */
    bool ending;
    int32_t n_members, max_members, n_islands;
    member *members;
    unsigned char *taken; /* per island and chunk: somebody there has it or will */
    size_t cursor;        /* where readers look next */
    enum { NOT_PINNED, PINNING, SETTLED } pinning;
    grt_device *pinned_by;

    char *ring;
    int32_t *ring_members; /* of the ring's slots */
    size_t ring_bytes, read_bytes;
    int32_t n_readers, n_started;
    pthread_t readers[MAX_READERS];
};

typedef struct slot {
    char *data;
    int32_t n;       /* members that copy from it ... */
    int32_t *member; /* ... which ... */
    size_t chunk;    /* ... and what */
} slot;

static bool upload_is_cancelled(const grt_upload *u)
{
    return u->options.cancel && atomic_load_explicit(u->options.cancel, memory_order_relaxed);
}

static size_t chunk_bytes(const grt_upload *u, size_t chunk)
{
    const size_t begin = chunk * u->chunk;
    return u->total - begin < u->chunk ? u->total - begin : u->chunk;
}

/* ---- remaining work; under the lock ---- */

static bool is_alive(const member *m)
{
    return m->status == GRT_OK;
}

static unsigned char *taken(grt_upload *u, int32_t island, size_t chunk)
{
    return &u->taken[(size_t)island * u->n_chunks + chunk];
}

static void wake_members(grt_upload *u)
{
    for (int32_t i = 0; i < u->n_members; i++)
        pthread_cond_signal(&u->members[i].changed);
}

/* Who copies to whom: the nearest member before this one that lives on its island, around the ring. -1 if it
 * is alone. */
static int32_t upload_source_of(const grt_upload *u, int32_t index)
{
    for (int32_t step = 1; step < u->n_members; step++) {
        const int32_t i = (index - step + u->n_members) % u->n_members;
        if (is_alive(&u->members[i]) && u->members[i].island == u->members[index].island)
            return i;
    }
    return -1;
}

/* What only this member had must come from the host again. */
static void drop_member(grt_upload *u, int32_t index, grt_status status, const char *error)
{
    member *m = &u->members[index];
    if (!is_alive(m))
        return;
    m->status = status;
    m->error = strdup(error);
    for (size_t c = 0; c < u->n_chunks; c++) {
        bool held = false;
        for (int32_t i = 0; i < u->n_members && !held; i++)
            held = is_alive(&u->members[i]) && u->members[i].island == m->island &&
                   u->members[i].chunks[c] != MISSING;
        *taken(u, m->island, c) = held;
    }
    pthread_cond_broadcast(&u->work);
    wake_members(u);
}

/* The member of an island that gets a chunk from the host: who has had least. -1 if there is none. */
static int32_t choose_owner(const grt_upload *u, int32_t island)
{
    int32_t best = -1;
    for (int32_t i = 0; i < u->n_members; i++) {
        const member *m = &u->members[i];
        if (is_alive(m) && m->island == island &&
            (best < 0 || m->stats.host_bytes < u->members[best].stats.host_bytes))
            best = i;
    }
    return best;
}

/* Claim the next chunk that some island lacks, for one member of each of these. */
static bool claim(grt_upload *u, slot *s)
{
    if (u->pinning == PINNING || u->n_members == 0)
        return false;
    for (size_t tried = 0; tried < u->n_chunks; tried++) {
        const size_t c = u->cursor;
        s->n = 0;
        for (int32_t island = 0; island < u->n_islands; island++) {
            const int32_t owner = *taken(u, island, c) ? -1 : choose_owner(u, island);
            if (owner < 0)
                continue;
            *taken(u, island, c) = 1;
            u->members[owner].chunks[c] = CLAIMED;
            u->members[owner].stats.host_bytes += chunk_bytes(u, c);
            s->member[s->n++] = owner;
        }
        u->cursor = (c + 1) % u->n_chunks;
        if (s->n) {
            s->chunk = c;
            return true;
        }
    }
    return false;
}

/* ---- readers ---- */

static void upload_fill(const grt_upload *u, size_t chunk, char *to)
{
    const size_t begin = chunk * u->chunk, end = begin + chunk_bytes(u, chunk);
    size_t low = 0, high = u->n_pieces; /* the first piece that ends behind `begin` */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (u->pieces[middle].offset + u->pieces[middle].bytes > begin)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < u->n_pieces && u->pieces[low].offset < end; low++) {
        const grt_upload_piece *p = &u->pieces[low];
        const size_t from = p->offset > begin ? p->offset : begin;
        const size_t to_end = p->offset + p->bytes < end ? p->offset + p->bytes : end;
        memcpy(to + (from - begin), (const char *)p->data + (from - p->offset), to_end - from);
    }
}

/* Record that what was enqueued on the stream is the chunk's arrival; devices without fences wait here. */
static grt_status mark(member *m, size_t chunk, void *stream)
{
    if (!grt_device_has_fences(m->device))
        return grt_device_wait(m->device, stream);
    if (!m->fences[chunk])
        GRT_TRY(grt_device_fence_create(m->device, &m->fences[chunk]));
    return grt_device_fence_record(m->device, m->fences[chunk], stream);
}

static void arrive(grt_upload *u, int32_t index, size_t chunk, grt_status status)
{
    member *m = &u->members[index];
    pthread_mutex_lock(&u->lock);
    if (status != GRT_OK)
        drop_member(u, index, status, grt_last_error());
    else {
        m->chunks[chunk] = ENQUEUED;
        m->order[m->n_here++] = (uint32_t)chunk;
        if (m->n_here == u->n_chunks)
            pthread_cond_signal(&m->changed);
        for (int32_t i = 0; i < u->n_members; i++)
            if (i != index && upload_source_of(u, i) == index)
                pthread_cond_signal(&u->members[i].changed);
    }
    pthread_mutex_unlock(&u->lock);
    if (status == GRT_OK && u->options.moved)
        u->options.moved(u->options.user, chunk_bytes(u, chunk));
}

/* Waits until no copy from the slot is in flight. */
static void drain(grt_upload *u, slot *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        member *m = &u->members[s->member[i]];
        if (m->fences[s->chunk] && grt_device_fence_wait(m->device, m->fences[s->chunk]) != GRT_OK) {
            pthread_mutex_lock(&u->lock);
            drop_member(u, s->member[i], GRT_STATUS_DEVICE, grt_last_error());
            pthread_mutex_unlock(&u->lock);
        }
    }
    s->n = 0;
}

static void serve(grt_upload *u, slot *s)
{
    upload_fill(u, s->chunk, s->data);
    for (int32_t i = 0; i < s->n; i++) {
        member *m = &u->members[s->member[i]];
        grt_status status = grt_device_upload(m->device, m->block + s->chunk * u->chunk, s->data,
                                              chunk_bytes(u, s->chunk), m->from_host);
        if (status == GRT_OK)
            status = mark(m, s->chunk, m->from_host);
        arrive(u, s->member[i], s->chunk, status);
    }
}

/* The next chunk for a reader; while there is none, the checksum. False at the end. Under the lock. */
static bool next_chunk(grt_upload *u, slot *s)
{
    bool checking = u->check != NULL;
    while (!u->ending && (upload_is_cancelled(u) || !claim(u, s))) {
        if (!checking) {
            pthread_cond_wait(&u->work, &u->lock);
            continue;
        }
        pthread_mutex_unlock(&u->lock);
        checking = grt_weights_check_help(u->check);
        pthread_mutex_lock(&u->lock);
    }
    return !u->ending;
}

static void *read_chunks(void *arg)
{
    grt_upload *u = arg;
    slot slots[SLOTS] = {{0}};
    pthread_mutex_lock(&u->lock);
    const int32_t me = u->n_started++;
    for (int32_t k = 0; k < SLOTS; k++) {
        slots[k].data = u->ring + (size_t)(me * SLOTS + k) * u->chunk;
        slots[k].member = u->ring_members + (ptrdiff_t)(me * SLOTS + k) * u->max_members;
    }
    if (u->total >= WORTH_PINNING) { /* pages that exist are pinned in a fraction of the time */
        pthread_mutex_unlock(&u->lock);
        memset(slots[0].data, 0, SLOTS * u->chunk);
        pthread_mutex_lock(&u->lock);
    }
    for (int32_t k = 0; next_chunk(u, &slots[k]); k = (k + 1) % SLOTS) {
        u->read_bytes += chunk_bytes(u, slots[k].chunk);
        pthread_mutex_unlock(&u->lock);
        serve(u, &slots[k]);
        drain(u, &slots[(k + 1) % SLOTS]);
        pthread_mutex_lock(&u->lock);
    }
    pthread_mutex_unlock(&u->lock);
    for (int32_t k = 0; k < SLOTS; k++)
        drain(u, &slots[k]);
    return NULL;
}

/* ---- members ---- */

static grt_status upload_fetch(grt_upload *u, int32_t index, int32_t source, size_t chunk)
{
    member *m = &u->members[index];
    const member *from = &u->members[source];
    if (m->source != source)
        GRT_TRY(grt_device_peer_enable(m->device, from->device));
    m->source = source;
    if (from->fences[chunk])
        GRT_TRY(grt_device_stream_wait_fence(m->device, m->from_peer, from->fences[chunk]));
    GRT_TRY(grt_device_peer_copy(m->device, m->block + chunk * u->chunk, from->device,
                                 from->block + chunk * u->chunk, chunk_bytes(u, chunk), m->from_peer));
    return mark(m, chunk, m->from_peer);
}

/* Fetch from peers until everything is on its way or something is wrong. */
static grt_status upload_gather(grt_upload *u, int32_t index)
{
    member *m = &u->members[index];
    int32_t source = -1;
    size_t seen = 0; /* of what arrived at the source */
    pthread_mutex_lock(&u->lock);
    while (is_alive(m) && m->n_here < u->n_chunks && !upload_is_cancelled(u)) {
        const int32_t now = upload_source_of(u, index);
        seen = now == source ? seen : 0;
        source = now;
        const member *from = source < 0 ? NULL : &u->members[source];
        while (from && seen < from->n_here && m->chunks[from->order[seen]] != MISSING)
            seen++;
        if (!from || seen == from->n_here) {
            pthread_cond_wait(&m->changed, &u->lock);
            continue;
        }
        const size_t at = from->order[seen++];
        m->chunks[at] = CLAIMED;
        m->stats.peer_bytes += chunk_bytes(u, at);
        pthread_mutex_unlock(&u->lock);
        grt_status status = upload_fetch(u, index, source, at);
        arrive(u, index, at, status);
        pthread_mutex_lock(&u->lock);
    }
    const grt_status status = is_alive(m) && m->n_here < u->n_chunks ? GRT_STATUS_CANCELLED : m->status;
    if (status == GRT_STATUS_CANCELLED)
        grt_fail(status, "cancelled while weights were uploaded");
    else if (status != GRT_OK)
        grt_error_set(m->error ? m->error : "the upload of weights failed");
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* The island of a device: that of the first member with which it can copy in both directions, else one of its
 * own. Peers are asked without the lock; devices join one after another. */
static int32_t find_island(grt_upload *u, grt_device *device, int32_t n)
{
    for (int32_t i = 0; i < n && !u->options.direct; i++) {
        grt_device *other = u->members[i].device;
        if (grt_device_peer_can(device, other) && grt_device_peer_can(other, device))
            return u->members[i].island;
    }
    return u->n_islands;
}

static void pin_ring(grt_upload *u, grt_device *device)
{
    const bool pinned = u->total >= WORTH_PINNING && grt_device_pin(device, u->ring, u->ring_bytes) == GRT_OK;
    pthread_mutex_lock(&u->lock);
    u->pinned_by = pinned ? device : NULL;
    u->pinning = SETTLED;
    pthread_cond_broadcast(&u->work);
    pthread_mutex_unlock(&u->lock);
}

static grt_status upload_join(grt_upload *u, grt_device *device, void *block, int32_t *out_index)
{
    member m = {.device = device, .block = block, .source = -1};
    m.fences = calloc(u->n_chunks, sizeof *m.fences);
    m.chunks = calloc(u->n_chunks, sizeof *m.chunks);
    m.order = calloc(u->n_chunks, sizeof *m.order);
    grt_status status = m.fences && m.chunks && m.order ? GRT_OK : grt_fail_memory(u->n_chunks);
    if (status == GRT_OK)
        status = grt_device_stream_create(device, 0, &m.from_host);
    if (status == GRT_OK)
        status = grt_device_stream_create(device, 0, &m.from_peer);
    if (status != GRT_OK) {
        grt_device_stream_release(device, m.from_host);
        free(m.fences);
        free(m.chunks);
        free(m.order);
        return status;
    }
    pthread_mutex_lock(&u->joining);
    m.island = find_island(u, device, u->n_members); /* only joiners change n_members */
    pthread_mutex_lock(&u->lock);
    const bool pins = u->pinning == NOT_PINNED;
    if (pins)
        u->pinning = PINNING;
    *out_index = u->n_members;
    u->members[u->n_members] = m;
    pthread_cond_init(&u->members[u->n_members++].changed, NULL);
    wake_members(u); /* the ring has changed */
    if (m.island == u->n_islands)
        u->n_islands++;
    pthread_cond_broadcast(&u->work);
    pthread_mutex_unlock(&u->lock);
    pthread_mutex_unlock(&u->joining);
    if (pins)
        pin_ring(u, device);
    return GRT_OK;
}

grt_status grt_upload_run(grt_upload *u, grt_device *device, void *block, grt_upload_stats *out_stats)
{
    int32_t index;
    *out_stats = (grt_upload_stats){0};
    if (u->total == 0)
        return GRT_OK;
    GRT_TRY(upload_join(u, device, block, &index));
    member *m = &u->members[index];
    grt_status status = upload_gather(u, index);
    if (status == GRT_OK)
        status = grt_device_wait(device, m->from_host);
    if (status == GRT_OK)
        status = grt_device_wait(device, m->from_peer);
    pthread_mutex_lock(&u->lock);
    *out_stats = m->stats;
    out_stats->read_bytes = u->read_bytes;
    out_stats->pinned_bytes = u->pinned_by ? u->ring_bytes : 0;
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* ---- beginning and end ---- */

/* Chunks small enough that a model gives every reader something to do, large enough that a copy is worth its
 * call. */
static void choose_sizes(grt_upload *u)
{
    const size_t pinned = u->options.max_pinned ? u->options.max_pinned : default_pinned;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int32_t readers = u->options.readers;
    if (readers <= 0)
        readers = cores < 1 ? 1 : cores > DEFAULT_READERS ? DEFAULT_READERS : (int32_t)cores;
    if (readers > MAX_READERS)
        readers = MAX_READERS;
    size_t chunk = grt_align_up(u->total / (size_t)(4 * readers), 4096);
    chunk = chunk < SMALLEST_CHUNK ? SMALLEST_CHUNK : chunk > LARGEST_CHUNK ? LARGEST_CHUNK : chunk;
    while (readers > 1 && (size_t)readers * SLOTS * chunk > pinned) {
        if (chunk >= 2 * SMALLEST_CHUNK)
            chunk = grt_align_up(chunk / 2, 4096);
        else
            readers--;
    }
    u->chunk = chunk;
    u->n_chunks = u->total / chunk + (u->total % chunk != 0);
    if ((size_t)readers > u->n_chunks)
        readers = u->n_chunks ? (int32_t)u->n_chunks : 1;
    u->n_readers = readers;
    u->ring_bytes = grt_align_up((size_t)readers * SLOTS * chunk, 4096);
}

static grt_status start_readers(grt_upload *u)
{
    for (int32_t i = 0; i < u->n_readers; i++)
        if (pthread_create(&u->readers[i], NULL, read_chunks, u) != 0) {
            u->n_readers = i; /* fewer will do */
            return i ? GRT_OK : grt_fail(GRT_STATUS_OUT_OF_MEMORY, "no thread can be made to read weights");
        }
    return GRT_OK;
}

grt_status grt_upload_create(const grt_upload_piece *pieces, size_t n, size_t total, int32_t max_devices,
                             grt_weights_check *check, const grt_upload_options *options,
                             grt_upload **out_upload)
{
    grt_upload *u = calloc(1, sizeof *u);
    if (!u)
        return grt_fail_memory(sizeof *u);
    *u = (grt_upload){.pieces = pieces,
                      .n_pieces = n,
                      .total = total,
                      .options = *options,
                      .check = check,
                      .max_members = max_devices};
    pthread_mutex_init(&u->lock, NULL);
    pthread_mutex_init(&u->joining, NULL);
    pthread_cond_init(&u->work, NULL);
    choose_sizes(u);
    u->members = calloc((size_t)max_devices, sizeof *u->members);
    u->taken = calloc((size_t)max_devices, u->n_chunks + 1);
    grt_status status = GRT_OK;
    if (total)
        u->ring = aligned_alloc(u->ring_bytes >= HUGE_PAGE ? HUGE_PAGE : 4096,
                                grt_align_up(u->ring_bytes, HUGE_PAGE));
    u->ring_members = calloc((size_t)u->n_readers * SLOTS * (size_t)max_devices, sizeof *u->ring_members);
    if (!u->members || !u->taken || !u->ring_members || (total && !u->ring))
        status = grt_fail_memory(u->ring_bytes);
    if (status == GRT_OK && total) {
        madvise(u->ring, u->ring_bytes, MADV_HUGEPAGE);
        status = start_readers(u);
    }
    if (status != GRT_OK) {
        u->n_readers = 0;
        grt_upload_release(u);
        return status;
    }
    *out_upload = u;
    return GRT_OK;
}

static void release_member(member *m, size_t n_chunks)
{
    for (size_t c = 0; c < n_chunks; c++)
        grt_device_fence_release(m->device, m->fences[c]);
    grt_device_stream_release(m->device, m->from_host);
    grt_device_stream_release(m->device, m->from_peer);
    free(m->fences);
    free(m->chunks);
    free(m->order);
    free(m->error);
    pthread_cond_destroy(&m->changed);
}

void grt_upload_wake(grt_upload *u)
{
    pthread_mutex_lock(&u->lock);
    wake_members(u);
    pthread_mutex_unlock(&u->lock);
}

void grt_upload_release(grt_upload *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->lock);
    u->ending = true;
    pthread_cond_broadcast(&u->work);
    pthread_mutex_unlock(&u->lock);
    for (int32_t i = 0; u->ring && i < u->n_readers; i++)
        pthread_join(u->readers[i], NULL);
    for (int32_t i = 0; i < u->n_members;
         i++) { /* a device that failed may still be read by another's copies */
        grt_device_wait(u->members[i].device, u->members[i].from_host);
        grt_device_wait(u->members[i].device, u->members[i].from_peer);
    }
    for (int32_t i = 0; i < u->n_members; i++)
        release_member(&u->members[i], u->n_chunks);
    if (u->pinned_by)
        grt_device_unpin(u->pinned_by, u->ring);
    pthread_mutex_destroy(&u->lock);
    pthread_mutex_destroy(&u->joining);
    pthread_cond_destroy(&u->work);
    free(u->members);
    free(u->taken);
    free(u->ring);
    free(u->ring_members);
    free(u);
}
