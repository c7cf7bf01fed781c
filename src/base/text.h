/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string, for messages, reports and generated code. */
#ifndef GRT_BASE_TEXT_H
#define GRT_BASE_TEXT_H

#include "src/base/status.h"

#pragma GCC visibility push(default) /* for backend modules; see src/graphrt.map */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct grt_text {
    char *data; /* always 0-terminated once something was added; NULL before */
    size_t size, capacity;
    bool failed; /* out of memory happened; further additions do nothing */
} grt_text;

/* text NULL: does nothing. */
void grt_text_add(grt_text *text, const char *format, ...) GRT_PRINTF(2, 3);
/* As grt_printable says. */
void grt_text_add_printable(grt_text *text, const char *of_others);
/* "2x?x8"; "scalar" for rank 0; "unknown rank" for -1. */
void grt_text_add_dims(grt_text *text, const int64_t *dims, int32_t rank);
const char *grt_text_get(const grt_text *text); /* "" when empty */
void grt_text_release(grt_text *text);

/* A node may have thousands of inputs: messages show so many. */
enum { GRT_SHOWN_INPUTS = 8 };
/* Puts " (inputs: ...)" behind the calling thread's message, which says what does not fit. */
grt_status grt_fail_inputs(grt_status status, const grt_text *inputs);
/* "float32[2x3]" in a buffer of the caller's: for messages. Returns buffer. */
enum { GRT_TYPE_TEXT_SIZE = 400 };
const char *grt_tensor_text(const grt_tensor *tensor, char buffer[GRT_TYPE_TEXT_SIZE]);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
