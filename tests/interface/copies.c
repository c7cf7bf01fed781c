/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and streams: every byte arrives, in order on a stream, whatever other streams are at. */
#include "tests/interface/interface.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* To the device, within it and back, at an odd place. */
static verdict round_trip(const subject *s, void *stream, unsigned char *from, unsigned char *to,
                          size_t bytes, unsigned seed)
{
    unsigned char *a = device_block(s->device, bytes + 64, 1), *b = device_block(s->device, bytes + 64, 2);
    EXPECT(a && b, "%s", grt_last_error());
    make_pattern(from, bytes, seed);
    make_pattern(to, bytes, 0);
    DONE(grt_device_upload(s->device, a + 3, from, bytes, stream));
    DONE(grt_device_copy(s->device, b + 16, a + 3, bytes, stream));
    DONE(grt_device_download(s->device, to, b + 16, bytes, stream));
    DONE(grt_device_wait(s->device, stream));
    SAME(to, bytes, seed);
    grt_device_free(s->device, a);
    grt_device_free(s->device, b);
    return PASSED;
}

verdict copies_of_all_sizes(const subject *s)
{
    static const size_t sizes[] = {0, 1, 3, 255, 4096, 65537, ((size_t)3 << 20) + 5};
    const size_t most = ((size_t)3 << 20) + 5;
    unsigned char *from[] = {malloc(most), host_block(s->device, most, 0)};
    unsigned char *to[] = {malloc(most), host_block(s->device, most, 0)};
    void *stream;
    EXPECT(from[0] && from[1] && to[0] && to[1], "out of memory");
    DONE(grt_device_stream_create(s->device, 0, &stream));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int pinned = 0; pinned < 2; pinned++)
            if (round_trip(s, stream, from[pinned], to[pinned], sizes[i], (unsigned)i + 4) != PASSED)
                return FAILED;
    grt_device_stream_release(s->device, stream);
    grt_device_stream_release(s->device, NULL);
    free(from[0]);
    free(to[0]);
    grt_device_free_pinned(s->device, from[1]);
    grt_device_free_pinned(s->device, to[1]);
    return PASSED;
}

enum { TURNS = 16, BYTES = 1 << 18 };

/* The same device memory is written and read in turns, and nobody waits in between. */
verdict copies_in_order(const subject *s)
{
    unsigned char *from[TURNS], *to[TURNS], *block = device_block(s->device, BYTES, 1);
    void *stream;
    EXPECT(block, "%s", grt_last_error());
    DONE(grt_device_stream_create(s->device, 0, &stream));
    for (unsigned i = 0; i < TURNS; i++) {
        from[i] = host_block(s->device, BYTES, i + 1);
        to[i] = host_block(s->device, BYTES, 0);
        EXPECT(from[i] && to[i], "%s", grt_last_error());
    }
    for (int i = 0; i < TURNS; i++) {
        DONE(grt_device_upload(s->device, block, from[i], BYTES, stream));
        DONE(grt_device_download(s->device, to[i], block, BYTES, stream));
    }
    DONE(grt_device_wait(s->device, stream));
    DONE(grt_device_wait(s->device, stream)); /* it is idle: nothing to wait for */
    for (unsigned i = 0; i < TURNS; i++) {
        SAME(to[i], BYTES, i + 1);
        grt_device_free_pinned(s->device, from[i]);
        grt_device_free_pinned(s->device, to[i]);
    }
    grt_device_stream_release(s->device, stream);
    grt_device_free(s->device, block);
    return PASSED;
}

verdict copies_on_two_streams(const subject *s)
{
    unsigned char *from[2], *to[2], *block[2];
    void *stream[2];
    for (unsigned i = 0; i < 2; i++) {
        from[i] = host_block(s->device, BYTES, i + 7);
        to[i] = host_block(s->device, BYTES, 0);
        block[i] = device_block(s->device, BYTES, 1);
        EXPECT(from[i] && to[i] && block[i], "%s", grt_last_error());
        DONE(grt_device_stream_create(s->device, 0, &stream[i]));
    }
    for (size_t at = 0; at < BYTES; at += BYTES / TURNS)
        for (int i = 0; i < 2; i++) {
            DONE(grt_device_upload(s->device, block[i] + at, from[i] + at, BYTES / TURNS, stream[i]));
            DONE(grt_device_download(s->device, to[i] + at, block[i] + at, BYTES / TURNS, stream[i]));
        }
    for (unsigned i = 0; i < 2; i++) {
        DONE(grt_device_wait(s->device, stream[i]));
        SAME(to[i], BYTES, i + 7);
        grt_device_stream_release(s->device, stream[i]);
        grt_device_free_pinned(s->device, from[i]);
        grt_device_free_pinned(s->device, to[i]);
        grt_device_free(s->device, block[i]);
    }
    return PASSED;
}

typedef struct worker {
    pthread_t thread;
    const subject *s;
    unsigned seed;
    verdict found;
} worker;

static verdict work(const subject *s, unsigned seed)
{
    unsigned char *from = host_block(s->device, BYTES, 0), *to = host_block(s->device, BYTES, 0);
    void *stream;
    EXPECT(from && to, "%s", grt_last_error());
    DONE(grt_device_stream_create(s->device, 0, &stream));
    for (unsigned i = 0; i < 8; i++)
        if (round_trip(s, stream, from, to, BYTES - i, seed + i) != PASSED)
            return FAILED;
    grt_device_stream_release(s->device, stream);
    grt_device_free_pinned(s->device, from);
    grt_device_free_pinned(s->device, to);
    return PASSED;
}

static void *start(void *data)
{
    worker *w = data;
    w->found = work(w->s, w->seed);
    return NULL;
}

verdict copies_from_several_threads(const subject *s)
{
    enum { THREADS = 4 };
    worker workers[THREADS];
    verdict found = PASSED;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.s = s, .seed = 10 * i + 1};
        EXPECT(!pthread_create(&workers[i].thread, NULL, start, &workers[i]), "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        found = workers[i].found != PASSED ? FAILED : found;
    }
    return found;
}

/* Host devices have no streams, whose number is 0. */
verdict streams_have_numbers(const subject *s)
{
    enum { STREAMS = 12 };
    uint64_t ids[STREAMS];
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        DONE(grt_device_stream_create(s->device, 0, &streams[i]));
        EXPECT(!streams[i] == grt_device_is_host(s->device), "%p", streams[i]);
        EXPECT(!grt_device_stream_is_captured(s->device, streams[i]), "nobody captures");
        ids[i] = grt_device_stream_id(s->device, streams[i]);
        EXPECT(ids[i] == grt_device_stream_id(s->device, streams[i]), "it changes");
        for (int k = 0; k < i && streams[i]; k++) /* of some that are gone, too */
            EXPECT(ids[k] != ids[i], "two have number %llu", (unsigned long long)ids[i]);
        if (i % 3)
            grt_device_stream_release(s->device, streams[i]);
    }
    for (int i = 0; i < STREAMS; i += 3)
        grt_device_stream_release(s->device, streams[i]);
    return PASSED;
}

verdict current_device_nests(const subject *s)
{
    grt_device *devices[] = {s->device, s->other ? s->other : s->device, s->device};
    bool switched[3];
    for (int i = 0; i < 3; i++) {
        DONE(grt_device_enter(devices[i], &switched[i]));
        unsigned char *block = device_block(s->device, 100, 1); /* whichever device is current */
        EXPECT(block, "%s", grt_last_error());
        grt_device_free(s->device, block);
    }
    for (int i = 2; i >= 0; i--)
        grt_device_leave(devices[i], switched[i]);
    return PASSED;
}
