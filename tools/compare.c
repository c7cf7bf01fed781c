/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/compare.h"

#include "tools/element.h"
#include "tools/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool close_enough(double found, double expected, tolerance tol)
{
    if (isnan(found) || isnan(expected))
        return isnan(found) && isnan(expected);
    if (isinf(found) || isinf(expected))
        return found == expected;
    return fabs(found - expected) <= tol.atol + tol.rtol * fabs(expected);
}

static bool close_complex(const grt_tensor *a, const grt_tensor *b, int64_t i, tolerance tol)
{
    double ar = element_get(a, i), ai = element_imaginary(a, i), br = element_get(b, i),
           bi = element_imaginary(b, i);
    if (!isfinite(ar) || !isfinite(ai) || !isfinite(br) || !isfinite(bi))
        return close_enough(ar, br, tol) && close_enough(ai, bi, tol);
    return hypot(ar - br, ai - bi) <= tol.atol + tol.rtol * hypot(br, bi);
}

/* 64-bit integers that double cannot tell apart are compared as they are. */
static bool element_close(const grt_tensor *a, const grt_tensor *b, int64_t i, tolerance tol)
{
    if (a->dtype == GRT_DTYPE_INT64 && ((const int64_t *)a->data)[i] == ((const int64_t *)b->data)[i])
        return true;
    if (a->dtype == GRT_DTYPE_COMPLEX64 || a->dtype == GRT_DTYPE_COMPLEX128)
        return close_complex(a, b, i, tol);
    return close_enough(element_get(a, i), element_get(b, i), tol);
}

/* "[1,0,3]" of flat index i */
static const char *element_position(const grt_tensor *t, int64_t i, char *out, size_t size)
{
    int64_t index[GRT_MAX_RANK];
    size_t n = 0;
    for (int32_t k = t->rank - 1; k >= 0; k--) {
        index[k] = i % t->dims[k];
        i /= t->dims[k];
    }
    out[0] = 0;
    for (int32_t k = 0; k < t->rank && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%" PRId64, k ? "," : "", index[k]);
    return out;
}

static bool compare_string_tensors(const grt_tensor *a, const grt_tensor *b, char *why, size_t size)
{
    const grt_string *x = a->data, *y = b->data;
    for (int64_t i = 0, n = grt_tensor_elements(a); i < n; i++)
        if (x[i].size != y[i].size || memcmp(x[i].data, y[i].data, x[i].size) != 0) {
            char at[256], expected[64], found[64];
            grt_printable(y[i].data, y[i].size, expected, sizeof expected);
            grt_printable(x[i].data, x[i].size, found, sizeof found);
            snprintf(why, size, "element [%s]: expected \"%s\", found \"%s\"",
                     element_position(a, i, at, sizeof at), expected, found);
            return false;
        }
    return true;
}

static bool compare_numbers(const grt_tensor *a, const grt_tensor *b, tolerance tol, char *why, size_t size)
{
    int64_t n = grt_tensor_elements(a), wrong = 0, first = -1;
    if (a->dtype == GRT_DTYPE_BFLOAT16 && tol.rtol < 0x1p-6)
        tol.rtol = 0x1p-6;
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        if (element_close(a, b, i, tol))
            continue;
        double difference = fabs(element_get(a, i) - element_get(b, i));
        if (first < 0)
            first = i;
        worst = difference > worst ? difference : worst;
        wrong++;
    }
    if (!wrong)
        return true;
    char at[256];
    snprintf(
        why, size,
        "%" PRId64 " of %" PRId64
        " elements differ, by up to %.6g; the first at [%s]: expected %.9g, found %.9g (rtol %g, atol %g)",
        wrong, n, worst, element_position(a, first, at, sizeof at), element_get(b, first),
        element_get(a, first), tol.rtol, tol.atol);
    return false;
}

static bool compare_tensors(const grt_tensor *a, const grt_tensor *b, tolerance tol, char *why, size_t size)
{
    if (a->dtype != b->dtype) {
        snprintf(why, size, "dtype: expected %s, found %s", grt_dtype_name(b->dtype),
                 grt_dtype_name(a->dtype));
        return false;
    }
    if (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) {
        char x[256], y[256];
        snprintf(why, size, "shape: expected %s, found %s", figure_shape(b, y, sizeof y),
                 figure_shape(a, x, sizeof x));
        return false;
    }
    if (tol.types_only)
        return true;
    return a->dtype == GRT_DTYPE_STRING ? compare_string_tensors(a, b, why, size)
                                        : compare_numbers(a, b, tol, why, size);
}

bool compare_values(const grt_value *found, const grt_value *expected, tolerance tol, char *why, size_t size)
{
    static const char *const kinds[] = {"a tensor", "a sequence", "an optional", "a map"};
    grt_tensor a, b;
    if (grt_value_kind(found) != grt_value_kind(expected)) {
        snprintf(why, size, "expected %s, found %s", kinds[grt_value_kind(expected)],
                 kinds[grt_value_kind(found)]);
        return false;
    }
    if (grt_value_kind(found) == GRT_KIND_TENSOR) {
        if (grt_value_tensor(found, &a) == GRT_OK && grt_value_tensor(expected, &b) == GRT_OK)
            return compare_tensors(&a, &b, tol, why, size);
        snprintf(why, size, "%s", grt_last_error());
        return false;
    }
    if (grt_value_count(found) != grt_value_count(expected)) {
        snprintf(why, size, "expected %zu items, found %zu", grt_value_count(expected),
                 grt_value_count(found));
        return false;
    }
    for (size_t i = 0; i < grt_value_count(found); i++) {
        char inner[512];
        if (!compare_values(grt_value_item(found, i), grt_value_item(expected, i), tol, inner,
                            sizeof inner)) {
            snprintf(why, size, "item %zu: %s", i, inner);
            return false;
        }
    }
    return true;
}
