/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read, often, what is seldom written. To read costs two stores to memory of the thread; who
 * writes waits for all threads. */
#ifndef GRT_BASE_READER_H
#define GRT_BASE_READER_H

typedef struct grt_reader grt_reader;

/* From here until it leaves, the thread may use what it finds in atomics of the writer, which both access in
 * sequential order. Not nested. */
grt_reader *grt_reader_enter(void);
void grt_reader_leave(grt_reader *reader);

/* After the writer has stored something new: returns when no thread uses what was there before. */
void grt_readers_wait(void);

#endif
