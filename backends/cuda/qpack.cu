/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/qpack.h"

#include "backends/cuda/walk.h"

namespace
{

/* 16 bytes from any address on, by aligned words: up to three bytes on either side are read, too. */
__device__ __forceinline__ uint4 load_unaligned(const uint8_t *from)
{
    const uint32_t *words = (const uint32_t *)((uintptr_t)from & ~(uintptr_t)3);
    const uint32_t bits = (uint32_t)((uintptr_t)from & 3) * 8;
    uint32_t w[5];
#pragma unroll
    for (int i = 0; i < 5; i++)
        w[i] = words[i];
    return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits),
                      __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits));
}

/* What a chunk of 16 bytes is made of: the taps from `tap` on, of a line that begins at `line`. */
__device__ __forceinline__ uint4 gather_taps(const cuda_qlines &l, const uint8_t *line, int64_t first,
                                             int tap, int channel, uint8_t outside)
{
    alignas(16) uint8_t bytes[CUDA_QCHUNK];
#pragma unroll
    for (int k = 0; k < CUDA_QCHUNK; k++) {
        const int64_t column = first + tap * l.dilation;
        const bool there = tap < l.taps && column >= 0 && column < l.in;
        bytes[k] = there ? line[column * l.step_pixel + channel * l.step_channel] : outside;
        if (++channel == l.channels) {
            channel = 0;
            tap++;
        }
    }
    return *(const uint4 *)bytes;
}

/* The first `width` bytes of v, and `outside` behind them. */
__device__ __forceinline__ uint4 cut_taps(uint4 v, int width, uint8_t outside)
{
    const uint32_t others = outside * 0x01010101u;
    uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int left = width - k * 4;
        const uint32_t mask = left >= 4 ? 0xFFFFFFFFu : left <= 0 ? 0 : (1u << (left * 8)) - 1;
        w[k] = (w[k] & mask) | (others & ~mask);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* end: behind x, where numbers of a row lie side by side. */
__global__ void __launch_bounds__(CUDA_BLOCK)
    copy_rows(const __grid_constant__ cuda_qrows r, int64_t n, const uint8_t *from, const uint8_t *end,
              const uint8_t *fill, uint4 *to)
{
    const int64_t chunks = (r.width + CUDA_QCHUNK - 1) / CUDA_QCHUNK;
    const uint8_t behind = fill ? *fill : 0;
    const bool in_runs = r.step[3] == 1;
    CUDA_ITEMS (i, n) {
        const int64_t chunk = i % chunks, row = i / chunks, c = row % r.count[2],
                      b = row / r.count[2] % r.count[1], a = row / r.count[2] / r.count[1];
        const uint8_t *at = from + a * r.step[0] + b * r.step[1] + c * r.step[2];
        if (in_runs && at + (chunk + 1) * CUDA_QCHUNK + 3 <= end) {
            to[i] = cut_taps(load_unaligned(at + chunk * CUDA_QCHUNK),
                             (int)min(r.width - chunk * CUDA_QCHUNK, (int64_t)CUDA_QCHUNK), behind);
            continue;
        }
        alignas(16) uint8_t bytes[CUDA_QCHUNK];
#pragma unroll
        for (int k = 0; k < CUDA_QCHUNK; k++) {
            const int64_t d = chunk * CUDA_QCHUNK + k;
            bytes[k] = d < r.width ? at[d * r.step[3]] : behind;
        }
        to[i] = *(const uint4 *)bytes;
    }
}

/* end: behind x. In runs, the taps of a line lie side by side in memory. I: what counts all chunks. */
template <class I>
__global__ void __launch_bounds__(CUDA_BLOCK)
    unfold_lines(const __grid_constant__ cuda_qlines l, I n, bool in_runs, const uint8_t *from,
                 const uint8_t *end, const uint8_t *fill, uint4 *to)
{
    const int channels = (int)l.channels, width = (int)(l.taps * l.channels),
              chunks = (width + CUDA_QCHUNK - 1) / CUDA_QCHUNK;
    const uint8_t outside = fill ? *fill : 0;
    for (I i = (I)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += (I)gridDim.x * CUDA_BLOCK) {
        const I pixel = i / (I)chunks, line = pixel / (I)l.out, image = line / (I)l.per_image;
        const int begin = (int)(i - pixel * (I)chunks) * CUDA_QCHUNK;
        const int64_t first = (int64_t)(pixel - line * (I)l.out) * l.stride - l.begin;
        const uint8_t *at = from + image * l.step_image +
                            (int64_t)(line - image * (I)l.per_image) * l.step_line,
                      *run = at + first * channels + begin;
        const bool inside = first >= 0 && first + l.taps <= l.in && run + CUDA_QCHUNK + 3 <= end;
        to[i] = in_runs && inside ? cut_taps(load_unaligned(run), width - begin, outside)
                                  : gather_taps(l, at, first, begin / channels, begin % channels, outside);
    }
}

enum { PACKED = 64 /* filters, and numbers of each, that a block turns at once */ };

/* How filters of a matrix lie: numbers of each side by side, or numbers of all, and in aligned chunks. */
enum pack_form { PACK_BYTES, PACK_ROWS, PACK_COLUMNS };

/* Where a thread's sixteen bytes come from. Addresses are of what is there, so that nothing waits for a
 * branch. */
template <int FORM>
__device__ __forceinline__ uint4 read_filters(const cuda_qrows &r, const uint8_t *at, int left, int64_t begin,
                                              uint8_t *turned)
{
    enum { LINE = PACKED + 4, THREADS = 4 * PACKED }; /* a word more: lanes write to different banks */
    const int line = threadIdx.x / 4, chunk = threadIdx.x % 4 * CUDA_QCHUNK;
    const uint4 none = make_uint4(0, 0, 0, 0);
    const int64_t step = r.step[3], width = r.width;
    if constexpr (FORM == PACK_ROWS) {
        return line < left && begin + chunk < width ? *(const uint4 *)(at + line * r.step[1] + begin + chunk)
                                                    : none;
    }
    __syncthreads(); /* those before were read */
    if constexpr (FORM == PACK_COLUMNS) {
        const bool there = begin + line < width && chunk < left;
        const uint4 v = there ? *(const uint4 *)(at + (begin + line) * step + chunk) : none;
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < CUDA_QCHUNK; k++)
            turned[(chunk + k) * LINE + line] = (uint8_t)(w[k / 4] >> k % 4 * 8);
    } else {
        const bool in_rows = step == 1;
        const int last_filter = left - 1, last = (int)min((int64_t)PACKED, width - begin) - 1;
        uint8_t v[PACKED * PACKED / THREADS];
#pragma unroll
        for (int k = 0; k < PACKED * PACKED / THREADS; k++) {
            const int i = k * THREADS + (int)threadIdx.x, f = in_rows ? i / PACKED : i % PACKED,
                      d = in_rows ? i % PACKED : i / PACKED;
            v[k] = at[min(f, last_filter) * r.step[1] + (begin + min(d, last)) * step];
            v[k] = f <= last_filter && d <= last ? v[k] : 0;
        }
#pragma unroll
        for (int k = 0; k < PACKED * PACKED / THREADS; k++) {
            const int i = k * THREADS + (int)threadIdx.x;
            turned[in_rows ? i / PACKED * LINE + i % PACKED : i % PACKED * LINE + i / PACKED] = v[k];
        }
    }
    __syncthreads();
    const uint32_t *words = (const uint32_t *)(turned + line * LINE + chunk);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* A block lays out PACKED filters of a matrix, which are turned on their way through shared memory where they
 * lie side by side. flip: of bytes. */
template <int FORM>
__global__ void __launch_bounds__(4 * PACKED)
    pack_columns(const __grid_constant__ cuda_qrows r, const uint8_t *from, uint32_t flip, uint8_t *to,
                 int32_t *sums)
{
    __shared__ alignas(4) uint8_t turned[PACKED * (PACKED + 4)];
    const int64_t row_bytes = (r.width + CUDA_QCHUNK - 1) / CUDA_QCHUNK * CUDA_QCHUNK;
    const int blocks = (int)((r.count[1] + PACKED - 1) / PACKED), matrix = (int)blockIdx.x / blocks,
              first = (int)blockIdx.x % blocks * PACKED, filter = threadIdx.x / 4,
              chunk = threadIdx.x % 4 * CUDA_QCHUNK;
    const int left = (int)min((int64_t)PACKED, r.count[1] - first);
    const uint8_t *at = from + matrix * r.step[0] + first * r.step[1];
    uint8_t *mine = to + (matrix * r.count[1] + first + filter) * row_bytes + chunk;
    int32_t sum = 0;
    for (int64_t begin = 0; begin < row_bytes; begin += PACKED) {
        uint4 all = read_filters<FORM>(r, at, left, begin, turned);
        uint32_t *w = &all.x;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int some = (int)min(r.width - begin - chunk - 4 * k, (int64_t)4); /* not padding */
            w[k] ^= some <= 0 ? 0 : flip >> (4 - some) * 8;
            sum = __dp4a((int32_t)w[k], 0x01010101, sum);
        }
        if (filter < left && begin + chunk < row_bytes)
            *(uint4 *)(mine + begin) = all;
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (filter < left && threadIdx.x % 4 == 0)
        sums[matrix * r.count[1] + first + filter] = sum;
}

/* How a matrix of filters can be read. */
pack_form pack_form_of(const cuda_qrows *r, const void *from)
{
    const int64_t across = r->step[3] == 1 ? r->step[1] : r->step[3];
    if (!cuda_aligned(from, CUDA_QCHUNK) || r->step[0] % CUDA_QCHUNK || across % CUDA_QCHUNK)
        return PACK_BYTES;
    if (r->step[3] == 1 && r->width % CUDA_QCHUNK == 0)
        return PACK_ROWS;
    return r->step[1] == 1 && r->count[1] % CUDA_QCHUNK == 0 ? PACK_COLUMNS : PACK_BYTES;
}

} // namespace

grt_status cuda_qrows_copy(const cuda_qrows *rows, const void *from, const void *fill, void *to,
                           cudaStream_t stream)
{
    const int64_t n =
        rows->count[0] * rows->count[1] * rows->count[2] * cuda_qrow_bytes(rows->width) / CUDA_QCHUNK;
    if (n <= 0)
        return GRT_OK;
    const uint8_t *end = (const uint8_t *)from + rows->width;
    for (int i = 0; i < 3; i++)
        end += (rows->count[i] - 1) * rows->step[i];
    copy_rows<<<cuda_grid(n), CUDA_BLOCK, 0, stream>>>(*rows, n, (const uint8_t *)from, end,
                                                       (const uint8_t *)fill, (uint4 *)to);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_qlines_unfold(const cuda_qlines *lines, const void *from, const void *fill, void *to,
                              cudaStream_t stream)
{
    const int64_t n =
        lines->lines * lines->out * cuda_qrow_bytes(lines->taps * lines->channels) / CUDA_QCHUNK;
    if (n <= 0)
        return GRT_OK;
    const bool in_runs = lines->step_channel == 1 && lines->step_pixel == lines->channels &&
                         lines->dilation == 1 && cuda_aligned(from, sizeof(uint32_t));
    const uint8_t *x = (const uint8_t *)from, *z = (const uint8_t *)fill,
                  *end = x + lines->lines / lines->per_image * lines->step_image;
    if (n < INT32_MAX / 2)
        unfold_lines<uint32_t>
            <<<cuda_grid(n), CUDA_BLOCK, 0, stream>>>(*lines, (uint32_t)n, in_runs, x, end, z, (uint4 *)to);
    else
        unfold_lines<int64_t>
            <<<cuda_grid(n), CUDA_BLOCK, 0, stream>>>(*lines, n, in_runs, x, end, z, (uint4 *)to);
    CUDA_LAUNCHED();
    return GRT_OK;
}

void cuda_qweights_pack(const cuda_qrows *rows, const void *from, bool is_signed, void *to, int32_t *sums)
{
    const int64_t row_bytes = cuda_qrow_bytes(rows->width);
    const uint8_t *bytes = (const uint8_t *)from, flip = is_signed ? 0 : 0x80;
    uint8_t *out = (uint8_t *)to;
    for (int64_t filter = 0; filter < rows->count[0] * rows->count[1]; filter++) {
        const uint8_t *first =
            bytes + filter / rows->count[1] * rows->step[0] + filter % rows->count[1] * rows->step[1];
        int32_t sum = 0;
        for (int64_t c = 0; c < rows->count[2]; c++, out += row_bytes)
            for (int64_t d = 0; d < rows->width; d++) {
                out[d] = first[c * rows->step[2] + d * rows->step[3]] ^ flip;
                sum += (int8_t)out[d];
            }
        sums[filter] = sum;
    }
}

grt_status cuda_qweights_enqueue(const cuda_qrows *rows, const void *from, bool is_signed, void *to,
                                 int32_t *sums, cudaStream_t stream)
{
    const int64_t filters = rows->count[0] * rows->count[1];
    if (filters <= 0)
        return GRT_OK;
    const pack_form form = pack_form_of(rows, from);
    const auto kernel = form == PACK_ROWS      ? pack_columns<PACK_ROWS>
                        : form == PACK_COLUMNS ? pack_columns<PACK_COLUMNS>
                                               : pack_columns<PACK_BYTES>;
    kernel<<<(unsigned)(rows->count[0] * ((rows->count[1] + PACKED - 1) / PACKED)), 4 * PACKED, 0, stream>>>(
        *rows, (const uint8_t *)from, is_signed ? 0 : 0x80808080u, (uint8_t *)to, sums);
    CUDA_LAUNCHED();
    return GRT_OK;
}
