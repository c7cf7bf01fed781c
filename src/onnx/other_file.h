/* SPDX-License-Identifier: Apache-2.0 */
/* What is found in the place of a model often enough to be told. */
#ifndef GRT_SRC_ONNX_OTHER_FILE_H
#define GRT_SRC_ONNX_OTHER_FILE_H

#include <stddef.h>

/* What these bytes are instead of a message of protobuf, and what to do: "a pointer of Git LFS ...". NULL:
 * not known. Only for files that did not decode: a message may begin like another kind of file. */
const char *grt_other_file(const void *bytes, size_t size);

#endif
