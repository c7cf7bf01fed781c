/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of GPUs between this package and those that arrays come from: DLPack's rule is that the producer
 * makes the consumer's stream wait for what it has enqueued. */
#ifndef GRAPHRT_PYTHON_STREAMS_H
#define GRAPHRT_PYTHON_STREAMS_H

#include "status.h"

/* The cudaStream_t of what a user calls a stream: its address as an int (0 and 1: the legacy default stream,
 * 2: the calling thread's), or an object that has one: `__cuda_stream__()`, `cuda_stream` (torch) or `ptr`
 * (CuPy). NULL for None. */
void *stream_of(nb::handle object);

/* What to import instead of `object`: if its memory is a GPU's, a DLPack capsule that was asked for with
 * `stream`, so that it waits for the producer's stream; else the object itself. What the producer raises is
 * thrown. */
nb::object with_stream(nb::handle object, void *stream);

#endif
