/* SPDX-License-Identifier: Apache-2.0 */
/* Status of a call, the message of the last failure, printable text, version. Part of <graphrt/graphrt.h>, whose rules
 * hold. */
#ifndef GRAPHRT_STATUS_H
#define GRAPHRT_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GRT_API __attribute__((visibility("default")))
#define GRT_MUST_USE __attribute__((warn_unused_result))
#else
#define GRT_API
#define GRT_MUST_USE
#endif

/* X(name, text): every status with its one-line meaning. */
#define GRT_STATUS_LIST(X)                                                                                             \
    X(OK, "success")                                                                                                   \
    X(INVALID_ARGUMENT, "a parameter is wrong: a NULL, a name, a dtype, a shape or a size that does not fit")          \
    X(INVALID_MODEL, "the ONNX model breaks a rule of the ONNX specification")                                         \
    X(INVALID_PLAN, "the plan file is truncated, corrupt or of a newer format")                                        \
    X(UNSUPPORTED, "valid, but this build or backend has no implementation for it")                                    \
    X(IO, "a file could not be read or written")                                                                       \
    X(OUT_OF_MEMORY, "an allocation on the host or the device failed")                                                 \
    X(DEVICE, "a device is missing, lost or reported an error")                                                        \
    X(CANCELLED, "the caller asked to stop")                                                                           \
    X(INTERNAL, "a bug in libgraphrt: please report it with the message")                                              \
    X(UNTRUSTED, "the plan is not signed by a key that the caller trusts, or was changed since")                       \
    X(DEADLINE_EXCEEDED, "the time that the caller gave was over before the work was done")                            \
    X(BUSY, "not now: a queue is full, or what is waited for is not done yet; the same call may succeed later")

typedef enum grt_status {
#define X(name, text) GRT_STATUS_##name,
    GRT_STATUS_LIST(X)
#undef X
} grt_status;
#define GRT_OK GRT_STATUS_OK

/* One-line meaning of a status; never NULL. The text is static. Threads: any. */
GRT_API const char *grt_status_text(grt_status status);

/* The calling thread's message for its last failed call, "" if none has failed. A call that succeeds does not change
 * it. Valid until the thread's next failing call. The text is printable as grt_printable makes it; further lines are
 * indented.
 * Threads: any; each has its own message. */
GRT_API const char *grt_last_error(void);

/* Make untrusted text, such as names and strings of a model, safe for terminals and logs. Writes to `out`,
 * 0-terminated, ending in "..." where out_size is too small. Printable characters of every language and backslashes
 * stay as they are. Control characters, characters that reorder or hide other text, and bytes that are not UTF-8 become
 * \n, \t, \r, \x1b, \u202e or \U000e0001. Applying it twice gives the same text as once. Returns the length written;
 * with out NULL or out_size 0 it does nothing.
 * Threads: any. */
GRT_API size_t grt_printable(const char *text, size_t size, char *out, size_t out_size);

/* "MAJOR.MINOR.PATCH" of the library that is running; static. Threads: any. */
GRT_API const char *grt_version(void);

#ifdef __cplusplus
}
#endif
#endif
