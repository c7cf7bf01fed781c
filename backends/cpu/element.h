/* SPDX-License-Identifier: Apache-2.0 */
/* See backends/shared/element.h, which the CPU's and the CUDA backend's kernels share. */
#ifndef GRT_BACKENDS_CPU_ELEMENT_H
#define GRT_BACKENDS_CPU_ELEMENT_H

#include "backends/shared/element.h"

#endif
