/* SPDX-License-Identifier: Apache-2.0 */
/* Strings as Triton has them: each behind its length in four bytes, the lowest first. */
#ifndef GRT_SERVING_TRITON_STRINGS_H
#define GRT_SERVING_TRITON_STRINGS_H

#include <graphrt/graphrt.h>

/* Finds n strings in `size` bytes, which they must fill; out_strings point into data. Returns false
 * otherwise. */
bool strings_find(const void *data, size_t size, int64_t n, grt_string *out_strings);
/* Size of n strings in this form; SIZE_MAX if one of them is 4 GiB or more. */
size_t strings_size(const grt_string *strings, int64_t n);
void strings_write(const grt_string *strings, int64_t n, void *out);

#endif
