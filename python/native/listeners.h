/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of Python's that are told what the library does: messages and spans. */
#ifndef GRAPHRT_PYTHON_LISTENERS_H
#define GRAPHRT_PYTHON_LISTENERS_H

#include "status.h"

void listeners_bind(nb::module_ &module);

#endif
