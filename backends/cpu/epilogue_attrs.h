/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue attributes of fused nodes (domain graphrt): activation, alpha, beta, layout. */
#ifndef GRT_BACKENDS_CPU_EPILOGUE_ATTRS_H
#define GRT_BACKENDS_CPU_EPILOGUE_ATTRS_H

#include "backends/cpu/act.h"
#include "src/base/op_desc.h"
#include "src/base/text.h"

/* One value. */
float cpu_act_scalar(grt_act act, float x);

#endif
