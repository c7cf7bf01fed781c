/* SPDX-License-Identifier: Apache-2.0 */
/* One op, evaluated by the CPU backend as the compiler does it for constants. */
#ifndef GRT_TESTS_EVALUATE_H
#define GRT_TESTS_EVALUATE_H

#include "src/base/op_desc.h"
#include "src/base/value.h"

/* An input without a dtype is left out. The caller clears *out. */
grt_status evaluate(const char *domain, const char *op, const grt_attr *attrs, size_t n_attrs,
                    const grt_tensor *in, int32_t n_in, grt_value *out);
/* An op of ai.onnx without attributes, which must be possible. */
void evaluate_ok(const char *op, const grt_tensor *in, int32_t n_in, grt_value *out);
grt_tensor vector_of(grt_dtype dtype, int64_t n, const void *data);

#endif
