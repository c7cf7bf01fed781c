/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the public API, see docs/decisions/abi.md: a program may have been compiled with an older
 * header, whose structs are shorter, or with a newer one. */
#ifndef GRT_BASE_STRUCTS_H
#define GRT_BASE_STRUCTS_H

#include "src/base/status.h"

/* The caller's options, which may be NULL, over the `size` bytes of defaults in `out`. The name is for the
 * message. Options that only a newer library knows are refused where they are set, never ignored. */
grt_status grt_options_take(void *out, size_t size, const void *options, const char *name);
/* `size` bytes of `info` into the caller's struct, as far as that goes. Its struct_size stays. */
grt_status grt_info_give(void *out_info, const void *info, size_t size, const char *name);
/* `size` bytes of reserved words, which end an element of an array: refused unless 0. */
grt_status grt_reserved_check(const uint64_t *reserved, size_t size, const char *name);

#endif
