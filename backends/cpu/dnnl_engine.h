/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN and its engine, on first use. For the files dnnl*. */
#ifndef GRT_BACKENDS_CPU_DNNL_ENGINE_H
#define GRT_BACKENDS_CPU_DNNL_ENGINE_H

#include "backends/cpu/dnnl_calls.h"
#include "src/base/status.h"

/* NULL until dnnl_engine_need has succeeded. */
extern const dnnl_calls *onednn;

/* Any thread; failures as grt_dnnl_conv_create's. */
grt_status dnnl_engine_need(char *err, size_t n);
/* The engine then. It lives as long as the process: primitives cached by oneDNN refer to it. */
dnnl_engine_t dnnl_engine_get(void);

#endif
