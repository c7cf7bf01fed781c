/* SPDX-License-Identifier: Apache-2.0 */
/* What every device must do whatever its backend: the promises of backends/device.h, as tests. Where a device
 * lacks a table, they hold it to what callers are told about that. */
#ifndef GRT_TESTS_INTERFACE_INTERFACE_H
#define GRT_TESTS_INTERFACE_INTERFACE_H

#include "backends/backend.h"

#include <stdio.h>

/* The device, and another one of its backend; NULL if there is none. */
typedef struct subject {
    grt_device *device, *other;
} subject;

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

#define X(name) verdict name(const subject *s);
#include "tests/interface/tests.def"
#undef X

/* In a test: what must hold; otherwise the test has failed, with the reason. */
#define EXPECT(condition, ...)                                       \
    do {                                                             \
        if (!(condition)) {                                          \
            printf("  %s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                     \
            printf("\n");                                            \
            return FAILED;                                           \
        }                                                            \
    } while (0)
#define SKIP(reason)              \
    do {                          \
        printf("  %s\n", reason); \
        return SKIPPED;           \
    } while (0)
#define DONE(call) EXPECT((call) == GRT_OK, "%s", grt_last_error())
#define REFUSED(call, status)                                                           \
    do {                                                                                \
        const grt_status refused_ = (call);                                             \
        EXPECT(refused_ == (status), "status %d: %s", (int)refused_, grt_last_error()); \
        EXPECT(*grt_last_error(), "there is no message");                               \
    } while (0)
#define SAME(data, bytes, seed) EXPECT(is_pattern(data, bytes, seed), "other bytes than %u's", seed)

/* Bytes that tell from which seed they are, and from which place. */
void make_pattern(void *data, size_t bytes, unsigned seed);
bool is_pattern(const void *data, size_t bytes, unsigned seed);
/* Page-locked memory of the device with a pattern, or cleared for seed 0; NULL if there is none. */
unsigned char *host_block(grt_device *device, size_t bytes, unsigned seed);
/* Device memory with a pattern, on a stream that is waited for; NULL if that fails. */
unsigned char *device_block(grt_device *device, size_t bytes, unsigned seed);

#endif
