/* SPDX-License-Identifier: Apache-2.0 */
#include "src/quantize/statistics.h"

#include <math.h>
#include <string.h>

void statistics_clear(statistics *s)
{
    *s = (statistics){.low = INFINITY, .high = -INFINITY};
}

/* Two bins become one: bin b of the new width has bins 2b and 2b + 1 of the old. */
static void halve_resolution(statistics *s)
{
    uint64_t bins[STATISTICS_BINS] = {0};
    const int64_t first = s->first >> 1;
    for (int64_t i = 0; i < STATISTICS_BINS; i++)
        bins[((s->first + i) >> 1) - first] += s->bins[i];
    memcpy(s->bins, bins, sizeof bins);
    s->first = first;
    s->width *= 2;
}

static void move_bins(statistics *s, int64_t first)
{
    uint64_t bins[STATISTICS_BINS] = {0};
    for (int64_t i = 0; i < STATISTICS_BINS; i++)
        if (s->bins[i])
            bins[s->first + i - first] = s->bins[i];
    memcpy(s->bins, bins, sizeof bins);
    s->first = first;
}

/* Bins for all of [low, high] and for what is counted already. */
static void cover(statistics *s, float low, float high)
{
    if (!s->width) {
        const double size = fmax((double)high - (double)low, fabs((double)high) * 1e-6);
        s->width = size > 0 ? size / (STATISTICS_BINS / 2) : 1e-30;
        s->first = (int64_t)floor((double)low / s->width);
    }
    for (;;) {
        const double most = fmax(fabs((double)low), fabs((double)high));
        if (most / s->width > 1e15) { /* no numbers of bins */
            halve_resolution(s);
            continue;
        }
        int64_t first = (int64_t)floor((double)low / s->width),
                last = (int64_t)floor((double)high / s->width);
        for (int64_t i = 0; i < STATISTICS_BINS; i++)
            if (s->bins[i]) {
                first = s->first + i < first ? s->first + i : first;
                last = s->first + i > last ? s->first + i : last;
            }
        if (last - first < STATISTICS_BINS) {
            move_bins(s, first);
            return;
        }
        halve_resolution(s);
    }
}

static void count_bins(statistics *s, const float *data, int64_t n)
{
    const double scale = 1 / s->width;
    const double offset = (double)s->first;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(data[i]))
            continue;
        /* the division that chose the bins may round to the other side of an edge than this product */
        int64_t bin = (int64_t)((double)data[i] * scale - offset);
        bin = bin < 0 ? 0 : bin < STATISTICS_BINS ? bin : STATISTICS_BINS - 1;
        s->bins[bin]++;
    }
}

/* Smallest and largest; false if any is not finite: then they are not valid. */
static bool find_extremes(const float *data, int64_t n, float *out_low, float *out_high)
{
    float low = INFINITY, high = -INFINITY, odd = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : odd)
    for (int64_t i = 0; i < n; i++) {
        low = data[i] < low ? data[i] : low;
        high = data[i] > high ? data[i] : high;
        odd += data[i] * 0; /* NaN for NaN and infinities */
    }
    *out_low = low;
    *out_high = high;
    return odd == 0;
}

static uint64_t find_finite_extremes(const float *data, int64_t n, float *out_low, float *out_high)
{
    uint64_t odd = 0;
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(data[i])) {
            odd++;
            continue;
        }
        low = fminf(low, data[i]);
        high = fmaxf(high, data[i]);
    }
    *out_low = low;
    *out_high = high;
    return odd;
}

void statistics_add(statistics *s, const float *data, int64_t n, bool histogram)
{
    float low, high;
    const uint64_t odd = find_extremes(data, n, &low, &high) ? 0 : find_finite_extremes(data, n, &low, &high);
    s->odd += odd;
    s->count += (uint64_t)n - odd;
    if (low > high)
        return;
    s->low = fminf(s->low, low);
    s->high = fmaxf(s->high, high);
    if (histogram) {
        cover(s, low, high);
        count_bins(s, data, n);
    }
}

static value_range with_zero(double low, double high)
{
    return (value_range){(float)fmin(low, 0), (float)fmax(high, 0)};
}

value_range statistics_extremes(const statistics *s)
{
    return s->low > s->high ? (value_range){0, 0} : with_zero((double)s->low, (double)s->high);
}

value_range statistics_percentile(const statistics *s, double percent)
{
    const double cut = (double)s->count * (100 - percent) / 200;
    double below = 0, above = 0;
    int64_t from = 0, to = STATISTICS_BINS - 1;
    if (!s->width)
        return statistics_extremes(s);
    while (from < to && below + (double)s->bins[from] <= cut)
        below += (double)s->bins[from++];
    while (to > from && above + (double)s->bins[to] <= cut)
        above += (double)s->bins[to--];
    /* An end is where elements are: the outermost bins may be wider than the data. */
    const double low = fmax((double)(s->first + from) * s->width, (double)s->low),
                 high = fmin((double)(s->first + to + 1) * s->width, (double)s->high);
    return with_zero(low, high);
}

/* Mean square error of the elements, times their number. Within a step the error is spread evenly; outside,
 * it is the distance to the end. */
static double square_error(const statistics *s, double low, double high, int32_t levels)
{
    const double step = (high - low) / (levels - 1), inside = step * step / 12;
    double sum = 0;
    for (int64_t i = 0; i < STATISTICS_BINS; i++) {
        if (!s->bins[i])
            continue;
        const double x = ((double)(s->first + i) + 0.5) * s->width, off = x < low    ? low - x
                                                                          : x > high ? x - high
                                                                                     : 0;
        sum += (double)s->bins[i] * (off > 0 ? off * off : inside);
    }
    return sum;
}

/* The best multiple of one end, the other or both, from 1 to 0.1 in steps of 0.01. */
static void shrink(const statistics *s, double *low, double *high, bool lower, bool upper, int32_t levels)
{
    const double from_low = *low, from_high = *high;
    double best = square_error(s, from_low, from_high, levels);
    for (int percent = 99; percent >= 10; percent--) {
        const double part = percent / 100.0, l = lower ? from_low * part : from_low,
                     h = upper ? from_high * part : from_high;
        const double error = square_error(s, l, h, levels);
        if (error < best) {
            best = error;
            *low = l;
            *high = h;
        }
    }
}

value_range statistics_least_error(const statistics *s, int32_t levels, bool symmetric)
{
    const value_range all = statistics_extremes(s);
    double low = (double)all.low, high = (double)all.high;
    if (!s->width || low == high)
        return all;
    if (symmetric) {
        high = fmax(-low, high);
        low = -high;
    }
    shrink(s, &low, &high, true, true, levels);
    if (!symmetric) {
        shrink(s, &low, &high, true, false, levels);
        shrink(s, &low, &high, false, true, levels);
    }
    return with_zero(low, high);
}
