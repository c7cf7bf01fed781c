/* SPDX-License-Identifier: Apache-2.0 */
/* Binary heaps in arrays. */
#ifndef GRT_BASE_HEAP_H
#define GRT_BASE_HEAP_H

#include <stdint.h>

/* Defines name(heap, n, i): element i moves down until none below it comes before it, as before(a, b) says.
 */
#define GRT_DEFINE_SIFT(name, type, before)                                 \
    static void name(type *heap, int64_t n, int64_t i)                      \
    {                                                                       \
        const type moving = heap[i];                                        \
        for (int64_t child; (child = 2 * i + 1) < n; i = child) {           \
            child += child + 1 < n && before(heap[child + 1], heap[child]); \
            if (!before(heap[child], moving))                               \
                break;                                                      \
            heap[i] = heap[child];                                          \
        }                                                                   \
        heap[i] = moving;                                                   \
    }

#endif
