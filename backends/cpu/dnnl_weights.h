/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of convolution weights, by name. For dnnl.c. */
#ifndef GRT_BACKENDS_CPU_DNNL_WEIGHTS_H
#define GRT_BACKENDS_CPU_DNNL_WEIGHTS_H

#include "backends/cpu/dnnl_compat.h"
#include "backends/cpu/dnnl_filter.h"

/* ONNX's order, seen with oneDNN's dims. */
typedef struct dnnl_weights {
    int rank, spatial;
    dnnl_dims_t dims, strides;
} dnnl_weights;

dnnl_weights dnnl_weights_describe(const grt_dnnl_filter *filter);
/* The library's own name of a layout, such as "ABcd8b8a"; NULL if it has none. Tries all names. */
const char *dnnl_weights_format(const dnnl_weights *weights, md_view layout);
/* The layout is what that name describes: some names describe the same one. */
bool dnnl_weights_have_format(const dnnl_weights *weights, const char *format, md_view layout);
/* NULL as a format or layout: ONNX's order. `bytes` are those of `from`. */
dnnl_status_t dnnl_weights_reorder(dnnl_engine_t engine, const dnnl_weights *weights, const char *format,
                                   const void *from, size_t bytes, md_view layout, void *to);

#endif
