/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that were enqueued: the order among them, and memory that graphs of the caller's point at.
 *
 * All runs of a context share its memory. A run behind which nobody has waited is in flight: whatever touches
 * that memory next, on another stream or on the host, comes behind it. Runs that the caller captured are
 * ordered by the caller, and what their graph points at stays until the context's release. */
#ifndef GRT_SRC_EXEC_IN_FLIGHT_H
#define GRT_SRC_EXEC_IN_FLIGHT_H

#include "backends/backend.h"

typedef struct grt_in_flight {
    grt_device *device;
    void *fence;                  /* behind the last enqueued run; NULL: there was none */
    bool any;                     /* nobody has waited for it */
    uint64_t stream;              /* id of the stream that it is on */
    struct grt_kept_memory *kept; /* arenas and workspaces that graphs of the caller's point at */
} grt_in_flight;

/* What is enqueued on the stream from now on comes behind the run in flight. */
grt_status grt_in_flight_follow(grt_in_flight *flight, void *stream);
/* A run was enqueued on the stream: it is the one in flight. */
grt_status grt_in_flight_launched(grt_in_flight *flight, void *stream);
/* Nothing is in flight, as a stream was waited for that followed it. */
void grt_in_flight_landed(grt_in_flight *flight);
/* Wait for the run in flight: memory that it uses is about to be given back. */
grt_status grt_in_flight_settle(grt_in_flight *flight);
/* Something failed: wait for what was enqueued before, which may still read and write memory of the caller's.
 * Errors are not reported; the message of the failure stays. */
void grt_in_flight_abandon(grt_in_flight *flight, void *stream);
/* Give memory of the device back, now or, if a graph of the caller's points at it, with the context. */
grt_status grt_in_flight_drop(grt_in_flight *flight, void *memory, bool captured);
/* With the context. */
void grt_in_flight_release(grt_in_flight *flight);

#endif
