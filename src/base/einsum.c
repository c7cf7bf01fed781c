/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the equations of Einsum. Blanks mean nothing; letters of both cases are labels. */
#include "src/base/einsum.h"

#include <string.h>

static grt_status einsum_fail(const grt_op_desc *desc, const char *equation, const char *what)
{
    return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL, "equation '%s': %s", equation, what);
}

static int label_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

/* The next sign from *at on: a letter, '.', ',', '>' for "->", 0 at the end; '?' for anything else. */
static char next_sign(const char **at)
{
    const char *p = *at + strspn(*at, " ");
    if (*p == 0)
        return *at = p, 0;
    if (p[0] == '-' && p[1] == '>')
        return *at = p + 2, '>';
    if (p[0] == '.' && p[1] == '.' && p[2] == '.')
        return *at = p + 3, '.';
    *at = p + 1;
    return label_of(*p) >= 0 || *p == ',' ? *p : '?';
}

/* One term, up to ',' or "->" or the end, which goes to *out_end. The ellipsis takes `fill` axes, or, if that
 * is negative, what the letters leave of `rank`. */
static grt_status read_term(const grt_op_desc *desc, const char *equation, const char **at, int32_t rank,
                            int32_t fill, int8_t *labels, int32_t *out_rank, int32_t *out_ellipsis,
                            char *out_end)
{
    const char *start = *at;
    int32_t letters = 0;
    bool ellipsis = false;
    char sign;
    while ((sign = next_sign(at)) && sign != ',' && sign != '>') {
        if (sign == '?')
            return einsum_fail(desc, equation, "expected letters, '...', ',' and '->'");
        if (sign == '.' && ellipsis)
            return einsum_fail(desc, equation, "one term has two ellipses");
        ellipsis |= sign == '.';
        letters += sign != '.';
    }
    *out_end = sign;
    int32_t wide = !ellipsis ? 0 : fill >= 0 ? fill : rank - letters;
    if (wide < 0 || letters + wide > GRT_MAX_RANK || (fill < 0 && letters + wide != rank))
        return grt_fail_op(desc, GRT_STATUS_INVALID_MODEL,
                           "equation '%s': a term names %d axes where the operand has rank %d", equation,
                           letters, rank);
    int32_t n = 0;
    const char *p = start;
    while ((sign = next_sign(&p)) && sign != ',' && sign != '>') {
        if (sign != '.')
            labels[n++] = (int8_t)label_of(sign);
        for (int32_t k = 0; sign == '.' && k < wide; k++)
            labels[n++] = (int8_t)(GRT_EINSUM_LABELS - wide + k);
    }
    *out_rank = n;
    *out_ellipsis = wide;
    return GRT_OK;
}

grt_status grt_einsum_input(const grt_op_desc *desc, int32_t i, int32_t n_in, int32_t rank,
                            int8_t out_labels[GRT_MAX_RANK], int32_t *out_ellipsis)
{
    const char *equation = grt_attr_string(desc, "equation", ""), *at = equation;
    int32_t found;
    char end = ',';
    for (int32_t k = 0; k < i; k++) {
        while ((end = next_sign(&at)) && end != ',' && end != '>')
            ;
        if (end != ',')
            return einsum_fail(desc, equation, "there are more inputs than terms");
    }
    GRT_TRY(read_term(desc, equation, &at, rank, -1, out_labels, &found, out_ellipsis, &end));
    if (i + 1 == n_in && end == ',')
        return einsum_fail(desc, equation, "there are more terms than inputs");
    return GRT_OK;
}

grt_status grt_einsum_output(const grt_op_desc *desc, int32_t ellipsis, int8_t out_labels[GRT_MAX_RANK],
                             int32_t *out_rank)
{
    const char *equation = grt_attr_string(desc, "equation", ""), *at = equation;
    int32_t count[GRT_EINSUM_ELLIPSIS] = {0}, found;
    bool seen_ellipsis = false;
    char sign;
    while ((sign = next_sign(&at)) && sign != '>') {
        if (label_of(sign) >= 0)
            count[label_of(sign)]++;
        seen_ellipsis |= sign == '.';
    }
    if (sign == '>') {
        GRT_TRY(read_term(desc, equation, &at, 0, seen_ellipsis ? ellipsis : 0, out_labels, out_rank, &found,
                          &sign));
        if (sign)
            return einsum_fail(desc, equation, "there is something behind the output term");
        for (int32_t k = 0; k < *out_rank; k++) {
            if (out_labels[k] < GRT_EINSUM_ELLIPSIS && !count[out_labels[k]])
                return einsum_fail(desc, equation, "the output has a letter that no input has");
            if (memchr(out_labels, out_labels[k], (size_t)k))
                return einsum_fail(desc, equation, "the output has a letter twice");
        }
        return GRT_OK;
    }
    *out_rank = 0;
    for (int32_t k = 0; k < ellipsis; k++)
        out_labels[(*out_rank)++] = (int8_t)(GRT_EINSUM_LABELS - ellipsis + k);
    for (int32_t k = 0; k < GRT_EINSUM_ELLIPSIS; k++)
        if (count[k] == 1) {
            if (*out_rank == GRT_MAX_RANK)
                return einsum_fail(desc, equation, "the output has too many axes");
            out_labels[(*out_rank)++] = (int8_t)k;
        }
    return GRT_OK;
}
