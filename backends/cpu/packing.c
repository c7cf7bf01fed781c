/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: "panels16", "panels16 transposed", "bf16 pairs16", "bf16 pairs16 transposed", "onednn GROUPS
 * LAYOUT", "onednn transposed GROUPS LAYOUT". */
#include "backends/cpu/packing.h"

#include "backends/cpu/bgemm.h"
#include "backends/cpu/gemm.h"
#include "src/base/checked.h"
#include "src/base/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plain_conv[] = "onednn ", transposed_conv[] = "onednn transposed ";

const char *cpu_packing_matrix(bool trans_b)
{
    return trans_b ? "panels16 transposed" : "panels16";
}

const char *cpu_packing_narrow_matrix(bool trans_b)
{
    return trans_b ? "bf16 pairs16 transposed" : "bf16 pairs16";
}

bool cpu_packing_conv(const char *layout, int64_t groups, bool transposed, grt_packing *out)
{
    const int n = snprintf(out->format, sizeof out->format, "%s%" PRId64 " %s",
                           transposed ? transposed_conv : plain_conv, groups, layout);
    if (n < (int)sizeof out->format)
        return true;
    out->format[0] = '\0';
    return false;
}

/* What follows "onednn [transposed ]GROUPS "; NULL if the format is another. */
static const char *parse_conv(const char *format, bool *transposed, int64_t *groups)
{
    *transposed = !strncmp(format, transposed_conv, sizeof transposed_conv - 1);
    if (!*transposed && strncmp(format, plain_conv, sizeof plain_conv - 1))
        return NULL;
    char *end;
    *groups = strtoll(format + (*transposed ? sizeof transposed_conv : sizeof plain_conv) - 1, &end, 10);
    return *groups > 0 && *end == ' ' ? end + 1 : NULL;
}

const char *cpu_packing_layout(const grt_packing *packing, int64_t groups, bool transposed)
{
    int64_t found_groups;
    bool found_transposed;
    const char *layout = parse_conv(packing->format, &found_transposed, &found_groups);
    return layout && found_groups == groups && found_transposed == transposed ? layout : NULL;
}

static grt_status packing_bad(const grt_tensor *packed, const grt_packing *packing)
{
    char type[GRT_TYPE_TEXT_SIZE];
    return grt_fail(
        GRT_STATUS_INVALID_PLAN,
        "a weight, %s, is packed as '%s' in %zu bytes, which is no format of this library's; make the plan "
        "again with graphc optimize",
        grt_tensor_text(packed, type), packing->format, packing->bytes);
}

static grt_status unpack_matrices(const grt_tensor *packed, const grt_packing *packing, bool trans_b,
                                  float *out)
{
    const int64_t rows = packed->rank > 1 ? packed->dims[packed->rank - 2] : packed->dims[0],
                  cols = packed->rank > 1 ? packed->dims[packed->rank - 1] : 1, k = trans_b ? cols : rows,
                  n = trans_b ? rows : cols, matrices = grt_tensor_elements(packed) / (k * n);
    size_t floats, bytes;
    if (!grt_gemm_packed_b_floats(k, n, &floats) ||
        !grt_mul_size(floats, (size_t)matrices * sizeof *out, &bytes) || bytes != packing->bytes)
        return packing_bad(packed, packing);
    for (int64_t i = 0; i < matrices; i++)
        grt_gemm_unpack_b(k, n, (const float *)packed->data + (size_t)i * floats, trans_b, out + i * k * n);
    return GRT_OK;
}

/* A float32 tensor comes back as it was rounded. */
static grt_status unpack_narrow(const grt_tensor *packed, const grt_packing *packing, bool trans_b, void *out)
{
    const int64_t k = packed->dims[trans_b ? 1 : 0], n = packed->dims[trans_b ? 0 : 1];
    size_t bytes;
    if (!grt_bgemm_packed_bytes(k, n, &bytes) || bytes != packing->bytes)
        return packing_bad(packed, packing);
    grt_bgemm_unpack(k, n, packed->data, trans_b, packed->dtype, out);
    return GRT_OK;
}

static grt_status unpack_conv(const grt_tensor *packed, const grt_packing *packing, float *out)
{
    grt_dnnl_filter f = {.spatial = packed->rank - 2};
    const char *layout = parse_conv(packing->format, &f.transposed, &f.groups);
    if (!layout || f.spatial < 1 || f.spatial > GRT_DNNL_MAX_SPATIAL)
        return packing_bad(packed, packing);
    f.out_channels = packed->dims[f.transposed ? 1 : 0] * (f.transposed ? f.groups : 1);
    f.in_channels = packed->dims[f.transposed ? 0 : 1] * (f.transposed ? 1 : f.groups);
    for (int i = 0; i < f.spatial; i++)
        f.kernel[i] = packed->dims[2 + i];
    if (f.out_channels % f.groups || f.in_channels % f.groups)
        return packing_bad(packed, packing);
    char err[256];
    const grt_status status = grt_dnnl_unpack(&f, layout, packed->data, packing->bytes, out, err, sizeof err);
    if (status == GRT_STATUS_OUT_OF_MEMORY)
        return grt_fail(status, "%s", err);
    return status == GRT_OK || status == GRT_STATUS_DEVICE ? status : packing_bad(packed, packing);
}

grt_status cpu_packing_unpack(const grt_tensor *packed, const grt_packing *packing, void *out_data)
{
    const bool matrix = !strcmp(packing->format, cpu_packing_matrix(false)),
               transposed = !strcmp(packing->format, cpu_packing_matrix(true));
    const bool narrow = !strcmp(packing->format, cpu_packing_narrow_matrix(false)),
               narrow_transposed = !strcmp(packing->format, cpu_packing_narrow_matrix(true));
    if ((narrow || narrow_transposed) && packed->rank == 2 && grt_tensor_elements(packed) > 0 &&
        grt_dtype_in(packed->dtype, GRT_BIT(FLOAT) | GRT_BIT(BFLOAT16)))
        return unpack_narrow(packed, packing, narrow_transposed, out_data);
    if (packed->dtype != GRT_DTYPE_FLOAT || packed->rank < 1 || grt_tensor_elements(packed) <= 0)
        return packing_bad(packed, packing);
    if (matrix || transposed)
        return unpack_matrices(packed, packing, transposed, out_data);
    return unpack_conv(packed, packing, out_data);
}
