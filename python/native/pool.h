/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt._core.Pool: the library's pool; graphrt.Pool gives it futures. */
#ifndef GRAPHRT_PYTHON_POOL_H
#define GRAPHRT_PYTHON_POOL_H

#include "session.h"

void pool_bind(nb::module_ &module);

#endif
