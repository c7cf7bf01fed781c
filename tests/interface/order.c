/* SPDX-License-Identifier: Apache-2.0 */
/* Fences, peers, graphs and the timer. */
#include "tests/interface/interface.h"

#include <math.h>

enum { BYTES = 1 << 20, ROUNDS = 24 };

/* One stream uploads, the other copies and downloads once the fence says so; recorded again, it means the
 * last time. `to` is the other stream's device. */
static verdict pass_on(grt_device *device, grt_device *to, unsigned rounds)
{
    unsigned char *from = host_block(device, BYTES, 0), *back = host_block(to, BYTES, 0);
    unsigned char *x = device_block(device, BYTES, 1);
    void *first, *second, *filled, *read;
    EXPECT(from && back && x, "%s", grt_last_error());
    DONE(grt_device_stream_create(device, 0, &first));
    DONE(grt_device_stream_create(to, 0, &second));
    DONE(grt_device_fence_create(device, &filled));
    DONE(grt_device_fence_create(to, &read));
    DONE(grt_device_stream_wait_fence(device, first, read)); /* never recorded: nothing to wait for */
    DONE(grt_device_fence_wait(to, read));
    for (unsigned i = 1; i <= rounds; i++) {
        make_pattern(from, BYTES, i);
        DONE(grt_device_upload(device, x, from, BYTES, first));
        DONE(grt_device_fence_record(device, filled, first));
        DONE(grt_device_stream_wait_fence(to, second, filled));
        if (device == to)
            DONE(grt_device_download(to, back, x, BYTES, second));
        DONE(grt_device_fence_record(to, read, second));
        DONE(grt_device_fence_wait(to, read));
        if (device == to)
            SAME(back, BYTES, i);
    }
    grt_device_fence_release(device, filled);
    grt_device_fence_release(to, read);
    grt_device_fence_release(to, NULL);
    grt_device_stream_release(device, first);
    grt_device_stream_release(to, second);
    grt_device_free(device, x);
    grt_device_free_pinned(device, from);
    grt_device_free_pinned(to, back);
    return PASSED;
}

verdict fences_order_streams(const subject *s)
{
    void *fence;
    if (grt_device_has_fences(s->device))
        return pass_on(s->device, s->device, ROUNDS);
    REFUSED(grt_device_fence_create(s->device, &fence), GRT_STATUS_UNSUPPORTED);
    EXPECT(!fence, "there is a fence");
    return PASSED;
}

verdict fences_between_devices(const subject *s)
{
    if (!s->other || !grt_device_has_fences(s->device))
        SKIP("there is no second device, or no fences");
    return pass_on(s->device, s->other, ROUNDS);
}

verdict fences_hold_the_host(const subject *s)
{
    if (!grt_device_has_fences(s->device))
        SKIP("there are no fences");
    unsigned char *from = host_block(s->device, BYTES, 6), *to = host_block(s->device, BYTES, 0);
    unsigned char *x = device_block(s->device, BYTES, 1);
    void *stream, *fence;
    EXPECT(from && to && x, "%s", grt_last_error());
    DONE(grt_device_stream_create(s->device, 0, &stream));
    DONE(grt_device_fence_create(s->device, &fence));
    for (int i = 0; i < ROUNDS; i++)
        DONE(grt_device_upload(s->device, x, from, BYTES, stream));
    DONE(grt_device_download(s->device, to, x, BYTES, stream));
    DONE(grt_device_fence_record(s->device, fence, stream));
    DONE(grt_device_fence_wait(s->device, fence));
    SAME(to, BYTES, 6U);
    DONE(grt_device_wait(s->device, stream));
    grt_device_fence_release(s->device, fence);
    grt_device_stream_release(s->device, stream);
    grt_device_free(s->device, x);
    grt_device_free_pinned(s->device, from);
    grt_device_free_pinned(s->device, to);
    return PASSED;
}

static verdict copy_from_peer(grt_device *device, grt_device *from)
{
    unsigned char *there = device_block(from, BYTES, 8), *here = device_block(device, BYTES, 1);
    unsigned char *back = host_block(device, BYTES, 0);
    void *stream;
    EXPECT(there && here && back, "%s", grt_last_error());
    DONE(grt_device_peer_enable(device, from));
    DONE(grt_device_peer_enable(device, from)); /* may be called again */
    DONE(grt_device_stream_create(device, 0, &stream));
    DONE(grt_device_peer_copy(device, here + 5, from, there, BYTES - 5, stream));
    DONE(grt_device_download(device, back, here + 5, BYTES - 5, stream));
    DONE(grt_device_wait(device, stream));
    SAME(back, BYTES - 5, 8U);
    grt_device_stream_release(device, stream);
    grt_device_free(from, there);
    grt_device_free(device, here);
    grt_device_free_pinned(device, back);
    return PASSED;
}

verdict peers_copy(const subject *s)
{
    grt_device *host = NULL;
    DONE(grt_backend_cpu.device_open(0, &host));
    EXPECT(!grt_device_peer_can(s->device, s->device), "it is its own peer");
    EXPECT(!grt_device_peer_can(s->device, host), "the host is a peer");
    grt_device_close(host);
    if (!grt_device_has_peers(s->device))
        REFUSED(grt_device_peer_enable(s->device, s->device), GRT_STATUS_UNSUPPORTED);
    if (!grt_device_has_peers(s->device))
        return PASSED;
    if (!s->other || !grt_device_peer_can(s->device, s->other))
        SKIP("there is no peer");
    return copy_from_peer(s->device, s->other);
}

static verdict has_no_graphs(const subject *s)
{
    void *graph = &graph;
    REFUSED(grt_device_graph_begin(s->device, NULL), GRT_STATUS_UNSUPPORTED);
    REFUSED(grt_device_graph_end(s->device, NULL, &graph), GRT_STATUS_UNSUPPORTED);
    EXPECT(!graph, "there is a graph");
    return PASSED;
}

/* x -> y -> z as a graph: nothing happens while it is captured, and everything each time it is launched, on
 * whichever stream. */
verdict graphs_replay(const subject *s)
{
    if (!grt_device_has_graphs(s->device))
        return has_no_graphs(s);
    unsigned char *x = device_block(s->device, BYTES, 1), *y = device_block(s->device, BYTES, 2);
    unsigned char *z = device_block(s->device, BYTES, 3), *host = host_block(s->device, BYTES, 0);
    void *streams[2], *graph;
    EXPECT(x && y && z && host, "%s", grt_last_error());
    for (int i = 0; i < 2; i++)
        DONE(grt_device_stream_create(s->device, 0, &streams[i]));
    DONE(grt_device_graph_begin(s->device, streams[1])); /* to be thrown away */
    DONE(grt_device_copy(s->device, z, x, BYTES, streams[1]));
    DONE(grt_device_graph_end(s->device, streams[1], NULL));
    DONE(grt_device_graph_begin(s->device, streams[0]));
    EXPECT(grt_device_stream_is_captured(s->device, streams[0]), "a capture has begun");
    DONE(grt_device_copy(s->device, y, x, BYTES, streams[0]));
    DONE(grt_device_copy(s->device, z, y, BYTES, streams[0]));
    DONE(grt_device_graph_end(s->device, streams[0], &graph));
    EXPECT(!grt_device_stream_is_captured(s->device, streams[0]), "the capture has ended");
    for (unsigned i = 0; i < 6; i++) {
        void *stream = streams[i % 2];
        if (i > 0) {
            make_pattern(host, BYTES, i + 10);
            DONE(grt_device_upload(s->device, x, host, BYTES, stream));
            DONE(grt_device_graph_launch(s->device, graph, stream));
        }
        DONE(grt_device_download(s->device, host, z, BYTES, stream));
        DONE(grt_device_wait(s->device, stream));
        SAME(host, BYTES, i ? i + 10 : 3U);
    }
    grt_device_graph_release(s->device, graph);
    grt_device_graph_release(s->device, NULL);
    for (int i = 0; i < 2; i++)
        grt_device_stream_release(s->device, streams[i]);
    grt_device_free(s->device, x);
    grt_device_free(s->device, y);
    grt_device_free(s->device, z);
    grt_device_free_pinned(s->device, host);
    return PASSED;
}

/* An end without a beginning leaves no graph, and a stream that works. */
verdict graphs_that_fail(const subject *s)
{
    if (!grt_device_has_graphs(s->device))
        return has_no_graphs(s);
    unsigned char *x = device_block(s->device, 100, 4), *host = host_block(s->device, 100, 0);
    void *stream, *graph = &stream;
    EXPECT(x && host, "%s", grt_last_error());
    DONE(grt_device_stream_create(s->device, 0, &stream));
    EXPECT(grt_device_graph_end(s->device, stream, &graph) != GRT_OK && !graph, "there is a graph");
    EXPECT(*grt_last_error(), "there is no message");
    DONE(grt_device_download(s->device, host, x, 100, stream));
    DONE(grt_device_wait(s->device, stream));
    SAME(host, 100, 4U);
    grt_device_stream_release(s->device, stream);
    grt_device_free(s->device, x);
    grt_device_free_pinned(s->device, host);
    return PASSED;
}

/* Time passes, no more than by the host's clock, and what it is asked for has happened. */
verdict timer(const subject *s)
{
    void *stream, *begin, *middle, *end;
    double whole = -1, part = -1;
    if (!grt_device_has_timer(s->device)) {
        REFUSED(grt_device_event_create(s->device, &begin), GRT_STATUS_UNSUPPORTED);
        return PASSED;
    }
    unsigned char *x = device_block(s->device, BYTES, 1), *host = host_block(s->device, BYTES, 12);
    EXPECT(x && host, "%s", grt_last_error());
    DONE(grt_device_stream_create(s->device, 0, &stream));
    DONE(grt_device_event_create(s->device, &begin));
    DONE(grt_device_event_create(s->device, &middle));
    DONE(grt_device_event_create(s->device, &end));
    DONE(grt_device_event_record(s->device, begin, stream));
    for (int i = 0; i < ROUNDS; i++)
        DONE(grt_device_upload(s->device, x, host, BYTES, stream));
    DONE(grt_device_event_record(s->device, middle, stream));
    DONE(grt_device_download(s->device, host, x, BYTES, stream));
    DONE(grt_device_event_record(s->device, end, stream));
    DONE(grt_device_event_elapsed(s->device, begin, end, &whole));
    DONE(grt_device_event_elapsed(s->device, begin, middle, &part));
    EXPECT(isfinite(whole) && part > 0 && whole >= part && whole < 60e3, "%g of %g ms", part, whole);
    SAME(host, BYTES, 12U);
    grt_device_event_release(s->device, begin);
    grt_device_event_release(s->device, middle);
    grt_device_event_release(s->device, end);
    grt_device_event_release(s->device, NULL);
    grt_device_stream_release(s->device, stream);
    grt_device_free(s->device, x);
    grt_device_free_pinned(s->device, host);
    return PASSED;
}
