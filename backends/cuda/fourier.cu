/* SPDX-License-Identifier: Apache-2.0 */
/* See fourier.h. A block has a few lines in shared memory, as Stockham's form of the fast transform has them:
 * each pass reads one copy and writes another, sorted, with one factor of the length. Roots of unity are
 * computed once a block, in double precision. */
#include "backends/cuda/fourier.h"

#include "backends/cuda/number.cuh"
#include "backends/cuda/shared_limit.h"

namespace
{

enum {
    FOURIER_THREADS = 256,
    LEAST_NUMBERS = 32 /* fewer are sums in double precision, which are short and right to the last bit */,
    MOST_NUMBERS = 8192,
    WANTED_NUMBERS = 2048,
    LARGEST_FACTOR = 13
};

__device__ __forceinline__ float2 times(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ void add_times(float2 *sum, float2 a, float2 b)
{
    sum->x += a.x * b.x - a.y * b.y;
    sum->y += a.x * b.y + a.y * b.x;
}

/* One pass with factor R over `numbers` numbers, lines of n; `before` is the product of the factors before.
 */
template <int R>
__device__ void fourier_pass(const float2 *from, float2 *to, const float2 *roots, int n, int numbers,
                             int before)
{
    const int part = n / R, turn = part / before;
    for (int i = (int)threadIdx.x; i < numbers / R; i += FOURIER_THREADS) {
        const int line = i / part, j = i - line * part, block = j / before, k = j - block * before;
        const float2 *x = from + line * n + j;
        float2 v[R];
        v[0] = x[0];
#pragma unroll
        for (int r = 1; r < R; r++)
            v[r] = times(x[r * part], roots[r * k * turn]);
        float2 *y = to + line * n + block * before * R + k;
        if constexpr (R == 2) {
            y[0] = make_float2(v[0].x + v[1].x, v[0].y + v[1].y);
            y[before] = make_float2(v[0].x - v[1].x, v[0].y - v[1].y);
        } else if constexpr (R == 4) {
            const float2 a = make_float2(v[0].x + v[2].x, v[0].y + v[2].y),
                         b = make_float2(v[0].x - v[2].x, v[0].y - v[2].y),
                         c = make_float2(v[1].x + v[3].x, v[1].y + v[3].y),
                         d = times(make_float2(v[1].x - v[3].x, v[1].y - v[3].y), roots[part]);
            y[0] = make_float2(a.x + c.x, a.y + c.y);
            y[before] = make_float2(b.x + d.x, b.y + d.y);
            y[2 * before] = make_float2(a.x - c.x, a.y - c.y);
            y[3 * before] = make_float2(b.x - d.x, b.y - d.y);
        } else {
#pragma unroll
            for (int q = 0; q < R; q++) {
                float2 sum = v[0];
#pragma unroll
                for (int r = 1; r < R; r++)
                    add_times(&sum, v[r], roots[r * q % R * part]);
                y[q * before] = sum;
            }
        }
    }
}

__device__ void fourier_pass_of(int factor, const float2 *from, float2 *to, const float2 *roots, int n,
                                int numbers, int before)
{
    switch (factor) {
    case 2:
        return fourier_pass<2>(from, to, roots, n, numbers, before);
    case 3:
        return fourier_pass<3>(from, to, roots, n, numbers, before);
    case 4:
        return fourier_pass<4>(from, to, roots, n, numbers, before);
    case 5:
        return fourier_pass<5>(from, to, roots, n, numbers, before);
    case 7:
        return fourier_pass<7>(from, to, roots, n, numbers, before);
    case 11:
        return fourier_pass<11>(from, to, roots, n, numbers, before);
    default:
        return fourier_pass<LARGEST_FACTOR>(from, to, roots, n, numbers, before);
    }
}

/* All passes; `from` and `to` change places with each, and `from` has the result. */
__device__ void fourier_passes(const cuda_fourier &f, float2 *&from, float2 *&to, const float2 *roots,
                               int numbers)
{
    for (int32_t at = 0, before = 1; at < f.n_factors; before *= f.factors[at], at++) {
        fourier_pass_of(f.factors[at], from, to, roots, (int)f.n, numbers, before);
        __syncthreads();
        float2 *other = from;
        from = to;
        to = other;
    }
}

__device__ __forceinline__ void fourier_roots(float2 *roots, int n, bool inverse)
{
    for (int i = (int)threadIdx.x; i < n; i += FOURIER_THREADS) {
        double s, c;
        sincospi(2.0 * i / n, &s, &c);
        roots[i] = make_float2((float)c, (float)(inverse ? s : -s));
    }
}

__device__ __forceinline__ int64_t begin_of(const cuda_fourier_lines &a, int64_t line, int64_t each)
{
    const int64_t outer = line / each;
    return outer * a.outer + (line - outer * each) * a.inner;
}

/* Number k of a line's input; what is mirrored has no imaginary part where it is its own mirror. */
template <typename S>
__device__ __forceinline__ float2 fourier_input(const cuda_fourier &f, const S *x, const S *window,
                                                int64_t begin, int k)
{
    const bool mirror = f.mirrored && k > f.n / 2;
    const int64_t from = mirror ? f.n - k : k;
    if (from >= f.in.size)
        return make_float2(0, 0);
    const S *at = x + (begin + from * f.in.step) * f.in.components;
    float2 v = make_float2(cuda_widen(at[0]), f.in.components == 2 ? cuda_widen(at[1]) : 0.0f);
    if (window) {
        const float weight = cuda_widen(window[k]);
        v = make_float2(v.x * weight, v.y * weight);
    }
    if (f.mirrored)
        v.y = from == 0 || 2 * from == f.n ? 0.0f : mirror ? -v.y : v.y;
    return v;
}

/* Which of a block's lines and which number of it thread item i moves: neighbours in memory side by side. */
__device__ __forceinline__ void fourier_item(const cuda_fourier_lines &a, int i, int size, int lines,
                                             int *line, int *k)
{
    *line = a.step == 1 ? i / size : i % lines;
    *k = a.step == 1 ? i - *line * size : i / lines;
}

template <typename S>
__global__ void __launch_bounds__(FOURIER_THREADS)
    fourier_kernel(const __grid_constant__ cuda_fourier f, const S *x, const S *window, S *y)
{
    extern __shared__ float2 fourier_shared[];
    const int n = (int)f.n;
    const int64_t first = (int64_t)blockIdx.x * f.together;
    const int lines = (int)(f.lines - first < f.together ? f.lines - first : f.together);
    float2 *roots = fourier_shared, *from = roots + n, *to = from + n * f.together;
    fourier_roots(roots, n, f.inverse);
    for (int i = (int)threadIdx.x, line, k; i < n * lines; i += FOURIER_THREADS) {
        fourier_item(f.in, i, n, lines, &line, &k);
        from[line * n + k] = fourier_input(f, x, window, begin_of(f.in, first + line, f.each), k);
    }
    __syncthreads();
    fourier_passes(f, from, to, roots, n * lines);
    const float scale = f.inverse ? 1.0f / (float)n : 1.0f;
    const int size = (int)f.out.size;
    for (int i = (int)threadIdx.x, line, k; i < size * lines; i += FOURIER_THREADS) {
        fourier_item(f.out, i, size, lines, &line, &k);
        const float2 v = from[line * n + k];
        S *out = y + (begin_of(f.out, first + line, f.each) + k * f.out.step) * f.out.components;
        out[0] = cuda_narrow<S>(v.x * scale);
        if (f.out.components == 2)
            out[1] = cuda_narrow<S>(v.y * scale);
    }
}

/* Number k of a spectrum of which half is given, that of a real filter. */
template <typename K> __device__ __forceinline__ float2 spectral_number(const K *w, int n, int k)
{
    const bool mirror = k > n / 2;
    const K *at = w + 2 * (mirror ? n - k : k);
    const float b = cuda_widen(at[1]);
    return make_float2(cuda_widen(at[0]), k == 0 || 2 * k == n ? 0.0f : mirror ? -b : b);
}

/* Two real lines of one filter are the parts of a complex one: a filter of real numbers keeps them apart. The
 * inverse is the transform of conjugates. */
template <typename S, typename K>
__global__ void __launch_bounds__(FOURIER_THREADS)
    spectral_kernel(const __grid_constant__ cuda_spectral s, const S *x, const K *w, S *y)
{
    extern __shared__ float2 fourier_shared[];
    const cuda_fourier &f = s.pairs;
    const int n = (int)f.n, size = (int)s.size;
    float2 *roots = fourier_shared, *from = roots + n, *to = from + n * f.together;
    fourier_roots(roots, n, false);
    for (int64_t first = (int64_t)blockIdx.x * f.together; first < f.lines;
         first += (int64_t)gridDim.x * f.together) {
        const int pairs = (int)(f.lines - first < f.together ? f.lines - first : f.together);
        for (int i = (int)threadIdx.x; i < n * pairs; i += FOURIER_THREADS) {
            const int pair = i / n, k = i - pair * n;
            const int64_t row = (first + pair) / s.filters, line = first + pair + row * s.filters,
                          other = line + s.filters;
            from[i] = make_float2(k < size ? cuda_widen(x[line * size + k]) : 0.0f,
                                  k < size && other < s.lines ? cuda_widen(x[other * size + k]) : 0.0f);
        }
        __syncthreads();
        fourier_passes(f, from, to, roots, n * pairs);
        for (int i = (int)threadIdx.x; i < n * pairs; i += FOURIER_THREADS) {
            const int pair = i / n, k = i - pair * n;
            const float2 v = times(
                from[i], spectral_number(w + (first + pair) % s.filters * (2 * (int64_t)(n / 2 + 1)), n, k));
            from[i] = make_float2(v.x, -v.y);
        }
        __syncthreads();
        fourier_passes(f, from, to, roots, n * pairs);
        const float scale = 1.0f / (float)n;
        for (int i = (int)threadIdx.x; i < n * pairs; i += FOURIER_THREADS) {
            const int pair = i / n, k = i - pair * n;
            const int64_t row = (first + pair) / s.filters, line = first + pair + row * s.filters,
                          other = line + s.filters;
            y[line * n + k] = cuda_narrow<S>(from[i].x * scale);
            if (other < s.lines)
                y[other * n + k] = cuda_narrow<S>(-from[i].y * scale);
        }
        __syncthreads();
    }
}

} // namespace

size_t cuda_fourier_bytes(const cuda_fourier *f)
{
    return (size_t)f->n * (size_t)(2 * f->together + 1) * sizeof(float2);
}

namespace
{

template <typename S>
grt_status fourier_launch(const cuda_fourier *f, const void *x, const void *window, void *y,
                          cudaStream_t stream)
{
    const size_t bytes = cuda_fourier_bytes(f);
    const int64_t blocks = (f->lines + f->together - 1) / f->together;
    if (bytes > 48 << 10)
        CUDA_TRY(cuda_allow_shared((const void *)fourier_kernel<S>));
    fourier_kernel<S>
        <<<(unsigned)blocks, FOURIER_THREADS, bytes, stream>>>(*f, (const S *)x, (const S *)window, (S *)y);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S, typename K>
grt_status spectral_launch(const cuda_spectral *s, const void *x, const void *w, void *y, cudaStream_t stream)
{
    enum { BLOCKS_EACH = 5 };
    const size_t bytes = cuda_fourier_bytes(&s->pairs);
    const int64_t blocks = (s->pairs.lines + s->pairs.together - 1) / s->pairs.together,
                  most = (int64_t)s->multiprocessors * BLOCKS_EACH;
    if (bytes > 48 << 10)
        CUDA_TRY(cuda_allow_shared((const void *)spectral_kernel<S, K>));
    spectral_kernel<S, K><<<(unsigned)(blocks < most ? blocks : most), FOURIER_THREADS, bytes, stream>>>(
        *s, (const S *)x, (const K *)w, (S *)y);
    CUDA_LAUNCHED();
    return GRT_OK;
}

template <typename S>
grt_status spectral_by(const cuda_spectral *s, grt_dtype w_dtype, const void *x, const void *w, void *y,
                       cudaStream_t stream)
{
    return w_dtype == GRT_DTYPE_FLOAT ? spectral_launch<S, float>(s, x, w, y, stream)
                                      : spectral_launch<S, S>(s, x, w, y, stream);
}

} // namespace

/* Fours first, as they take the fewest passes. */
bool cuda_fourier_plan(cuda_fourier *f, grt_dtype dtype)
{
    static const int32_t known[] = {4, 2, 3, 5, 7, 11, LARGEST_FACTOR};
    if ((dtype != GRT_DTYPE_FLOAT && dtype != GRT_DTYPE_FLOAT16 && dtype != GRT_DTYPE_BFLOAT16) ||
        f->n < LEAST_NUMBERS || f->n > MOST_NUMBERS || f->lines < 1 || f->lines > INT32_MAX || f->each < 1)
        return false;
    int64_t rest = f->n;
    f->n_factors = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (; rest % known[i] == 0 && f->n_factors < CUDA_FOURIER_FACTORS; rest /= known[i])
            f->factors[f->n_factors++] = known[i];
    const int64_t together = f->n < WANTED_NUMBERS ? WANTED_NUMBERS / f->n : 1;
    f->together = (int32_t)(together < f->lines ? together : f->lines);
    return rest == 1;
}

grt_status cuda_fourier_run(const cuda_fourier *f, grt_dtype dtype, const void *x, const void *window,
                            void *y, cudaStream_t stream)
{
    if (dtype == GRT_DTYPE_FLOAT)
        return fourier_launch<float>(f, x, window, y, stream);
    if (dtype == GRT_DTYPE_FLOAT16)
        return fourier_launch<__half>(f, x, window, y, stream);
    return fourier_launch<__nv_bfloat16>(f, x, window, y, stream);
}

bool cuda_spectral_plan(cuda_spectral *s, grt_dtype dtype)
{
    const int64_t rows = s->filters > 0 ? s->lines / s->filters : 0;
    s->pairs.lines = s->filters * ((rows + 1) / 2);
    s->pairs.each = 1;
    return s->size < INT32_MAX && s->lines < INT32_MAX && cuda_fourier_plan(&s->pairs, dtype);
}

grt_status cuda_spectral_run(const cuda_spectral *s, grt_dtype dtype, grt_dtype w_dtype, const void *x,
                             const void *w, void *y, cudaStream_t stream)
{
    if (dtype == GRT_DTYPE_FLOAT)
        return spectral_by<float>(s, w_dtype, x, w, y, stream);
    if (dtype == GRT_DTYPE_FLOAT16)
        return spectral_by<__half>(s, w_dtype, x, w, y, stream);
    return spectral_by<__nv_bfloat16>(s, w_dtype, x, w, y, stream);
}
