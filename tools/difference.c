/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/difference.h"
#include "tools/element.h"

#include <math.h>
#include <string.h>

static bool same_dims(const grt_tensor *a, const grt_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* One of both has its channels last: element i of `a` is at this place of `b`. -1 for all: they are not so.
 */
static int64_t place_in_other_layout(const grt_tensor *a, const grt_tensor *b, int64_t i)
{
    int64_t spatial = 1, channels;
    if (a->rank != b->rank || a->rank < 3 || a->dims[0] != b->dims[0])
        return -1;
    const bool a_first = a->dims[1] == b->dims[b->rank - 1] &&
                         !memcmp(a->dims + 2, b->dims + 1, (size_t)(a->rank - 2) * sizeof *a->dims);
    const bool b_first = b->dims[1] == a->dims[a->rank - 1] &&
                         !memcmp(b->dims + 2, a->dims + 1, (size_t)(a->rank - 2) * sizeof *a->dims);
    if (!a_first && !b_first)
        return -1;
    const grt_tensor *first = a_first ? a : b;
    channels = first->dims[1];
    for (int32_t k = 2; k < first->rank; k++)
        spatial *= first->dims[k];
    const int64_t image = spatial * channels, n = i / image, within = i % image;
    return a_first ? n * image + within % spatial * channels + within / spatial
                   : n * image + within % channels * spatial + within / channels;
}

bool difference_measure(const grt_tensor *a, const grt_tensor *b, difference *out)
{
    const int64_t n = grt_tensor_elements(a);
    const bool same = same_dims(a, b);
    double squares = 0, errors = 0, largest = 0;
    if (!same && (n != grt_tensor_elements(b) || n == 0 || place_in_other_layout(a, b, 0) < 0))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const double x = element_get(a, i), y = element_get(b, same ? i : place_in_other_layout(a, b, i));
        double off = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (isnan(off))
            off = INFINITY;
        largest = fmax(largest, off);
        errors += off * off;
        squares += isfinite(x) ? x * x : 0;
    }
    *out = (difference){.error = errors == 0   ? 0
                                 : squares > 0 ? sqrt(errors / squares)
                                               : INFINITY,
                        .largest = largest};
    return true;
}
