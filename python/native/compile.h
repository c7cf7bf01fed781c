/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt.compile, check and what tells of devices and passes. */
#ifndef GRAPHRT_PYTHON_COMPILE_H
#define GRAPHRT_PYTHON_COMPILE_H

#include "status.h"

void compile_bind(nb::module_ &module);

#endif
