/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes of matrices whose elements are moved as bit patterns. */
#ifndef GRT_BACKENDS_CPU_FLIP_H
#define GRT_BACKENDS_CPU_FLIP_H

#include <stddef.h>
#include <stdint.h>

/* dst[r * to + c] = src[r + c * from] for r < rows, c < cols; elements of `size` bytes: 1, 2, 4, 8 or 16. */
void cpu_flip(size_t size, void *dst, int64_t to, const void *src, int64_t from, int64_t rows, int64_t cols);

/* Elements seen as bit patterns of their size: what is moved is not looked at. No alignment is assumed, as a
 * run of small elements may be moved as one bigger pattern. */
typedef uint8_t __attribute__((may_alias)) cpu_bits8;
typedef uint16_t __attribute__((may_alias, aligned(1))) cpu_bits16;
typedef uint32_t __attribute__((may_alias, aligned(1))) cpu_bits32;
typedef uint64_t __attribute__((may_alias, aligned(1))) cpu_bits64;
typedef struct __attribute__((may_alias, packed)) cpu_bits128 {
    uint64_t low, high;
} cpu_bits128;

/* Call the instance for an element size: CPU_BY_SIZE(size, row_, args) calls one of row_8, row_16 ...
 * row_128. */
#define CPU_BY_SIZE(size, name, ...) \
    do {                             \
        switch (size) {              \
        case 1:                      \
            name##8(__VA_ARGS__);    \
            break;                   \
        case 2:                      \
            name##16(__VA_ARGS__);   \
            break;                   \
        case 4:                      \
            name##32(__VA_ARGS__);   \
            break;                   \
        case 8:                      \
            name##64(__VA_ARGS__);   \
            break;                   \
        default:                     \
            name##128(__VA_ARGS__);  \
            break;                   \
        }                            \
    } while (0)

#endif
