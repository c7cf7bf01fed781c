/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <graphrt/graphrt.h>

/* Read an array for this input, which messages name, in either memory order and byte order '<', '|' or '=';
 * numbers, booleans, complex, and text
 * ('U', 'S'). False after printing an error; else *out_value is the caller's. */
bool npy_read(const char *input, const char *path, grt_value **out_value);
/* True if .npy has a type for this dtype. */
bool npy_has(grt_dtype dtype);
/* Write a host tensor whose dtype npy_has. False after printing an error. */
bool npy_write(const char *path, const grt_tensor *tensor);

#endif
