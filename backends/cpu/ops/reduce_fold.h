/* SPDX-License-Identifier: Apache-2.0 */
/* Template of the folding loops, included by reduce.c once per type. The includer defines
 *   FOLD_NAME(name)  names of the functions
 *   T, A             type of elements and of accumulators
 *   FOLD_ABS_OF(x), FOLD_EXP_OF(x, shift), FOLD_NAN
 * No include guard: it is included several times. */

#ifndef FOLD_ROWS_ONLY
/* A loop, as a vector reduction may begin with the greatest finite number instead of infinity. */
static T FOLD_NAME(greatest_plain)(const T *v, int64_t m)
{
    T s = v[0];
    for (int64_t i = 1; i < m; i++)
        s = v[i] > s ? v[i] : s;
    return s;
}
static T FOLD_NAME(least_plain)(const T *v, int64_t m)
{
    T s = v[0];
    for (int64_t i = 1; i < m; i++)
        s = v[i] < s ? v[i] : s;
    return s;
}

/* Fold n numbers into one; `shift` is what FOLD_EXP subtracts first. Sums are formed in strips of T, then in
 * A. */
static A FOLD_NAME(fold_run)(fold how, A acc, const T *x, int64_t n, A shift)
{
    (void)shift;
    for (int64_t at = 0; at < n; at += STRIP) {
        const T *v = x + at;
        int64_t m = n - at < STRIP ? n - at : STRIP;
        T s = how == FOLD_MAX || how == FOLD_MIN ? v[0] : 0;
        int odd = 0; /* a NaN was seen: it wins every comparison */
        switch (how) {
        case FOLD_SUM:
#pragma omp simd reduction(+ : s)
            for (int64_t i = 0; i < m; i++)
                s += v[i];
            acc += (A)s;
            break;
        case FOLD_ABS:
#pragma omp simd reduction(+ : s)
            for (int64_t i = 0; i < m; i++)
                s += FOLD_ABS_OF(v[i]);
            acc += (A)s;
            break;
        case FOLD_SQUARE:
#pragma omp simd reduction(+ : s)
            for (int64_t i = 0; i < m; i++)
                s += v[i] * v[i];
            acc += (A)s;
            break;
        case FOLD_PROD:
            for (int64_t i = 0; i < m; i++)
                acc *= (A)v[i];
            break;
        case FOLD_MAX:
#pragma omp simd reduction(max : s) reduction(| : odd)
            for (int64_t i = 0; i < m; i++) {
                s = v[i] > s ? v[i] : s;
                odd |= v[i] != v[i];
            }
            s = (double)s <= (double)-FLT_MAX ? FOLD_NAME(greatest_plain)(v, m) : s;
            acc = odd ? (A)FOLD_NAN : (A)s > acc ? (A)s : acc;
            break;
        case FOLD_MIN:
#pragma omp simd reduction(min : s) reduction(| : odd)
            for (int64_t i = 0; i < m; i++) {
                s = v[i] < s ? v[i] : s;
                odd |= v[i] != v[i];
            }
            s = (double)s >= (double)FLT_MAX ? FOLD_NAME(least_plain)(v, m) : s;
            acc = odd ? (A)FOLD_NAN : (A)s < acc ? (A)s : acc;
            break;
        case FOLD_EXP:
            for (int64_t i = 0; i < m; i++)
                acc += FOLD_EXP_OF(v[i], shift);
            break;
        }
    }
    return acc;
}
#endif

/* Fold a row of m numbers into m accumulators. */
static void FOLD_NAME(fold_row)(fold how, A *restrict acc, const T *restrict v, int64_t m, const A *shift)
{
    (void)shift;
    switch (how) {
    case FOLD_SUM:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] += (A)v[i];
        break;
    case FOLD_ABS:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] += (A)FOLD_ABS_OF(v[i]);
        break;
    case FOLD_SQUARE:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] += (A)v[i] * (A)v[i];
        break;
    case FOLD_PROD:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] *= (A)v[i];
        break;
    case FOLD_MAX:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] = (A)v[i] > acc[i] || v[i] != v[i] ? (A)v[i] : acc[i];
        break;
    case FOLD_MIN:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] = (A)v[i] < acc[i] || v[i] != v[i] ? (A)v[i] : acc[i];
        break;
    case FOLD_EXP:
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            acc[i] += FOLD_EXP_OF(v[i], shift[i]);
        break;
    }
}

#undef FOLD_NAME
#undef T
#undef A
#undef FOLD_ABS_OF
#undef FOLD_EXP_OF
#undef FOLD_NAN
