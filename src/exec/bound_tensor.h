/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a tensor of the caller's may be bound: its type, size, memory and alignment. */
#ifndef GRT_SRC_EXEC_BOUND_TENSOR_H
#define GRT_SRC_EXEC_BOUND_TENSOR_H

#include "src/exec/executor.h"

/* As input or output `v` of the main body. INVALID_ARGUMENT names it. */
grt_status grt_executor_check_tensor(const grt_executor *executor, const grt_plan_value *v,
                                     const grt_tensor *tensor);

#endif
