/* SPDX-License-Identifier: Apache-2.0 */
/* Reads NumPy's .npy files, as far as the examples need them: little-endian, C order, float32 or int64. */
#ifndef EXAMPLES_NPY_H
#define EXAMPLES_NPY_H

#include <graphrt/graphrt.h>

/* On success `out` is a host tensor whose data the caller frees with free(); on failure the reason is on
 * stderr. */
bool npy_read(const char *path, grt_tensor *out);

#endif
