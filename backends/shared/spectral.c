/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/spectral.h"

grt_status grt_spectral_lines(const grt_reshape *r, int64_t *out_lines, int64_t *out_filters)
{
    const grt_tensor *x = r->in[0], *w = r->in[1];
    const int64_t n = grt_attr_int(r->desc, "length", 0);
    const int32_t skip = x->rank - w->rank;
    char lines[GRT_TYPE_TEXT_SIZE], spectra[GRT_TYPE_TEXT_SIZE];
    bool fit = x->rank >= 2 && w->rank >= 2 && skip >= 0 && x->dims[x->rank - 1] == 1 &&
               w->dims[w->rank - 1] == 2 && w->dims[w->rank - 2] == n / 2 + 1;
    for (int32_t i = 0; fit && i < w->rank - 2; i++)
        fit = w->dims[i] == x->dims[skip + i];
    if (!fit)
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "the lines are %s and the spectra %s; expected spectra of %lld numbers of 2 "
                           "components for the last of the lines' leading dims",
                           grt_tensor_text(x, lines), grt_tensor_text(w, spectra), (long long)(n / 2 + 1));
    *out_lines = grt_dims_product(x->dims, 0, x->rank - 2);
    *out_filters = grt_dims_product(w->dims, 0, w->rank - 2);
    return GRT_OK;
}
