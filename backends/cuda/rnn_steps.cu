/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers step by step: all rows and directions of a step are one batched product, then one
 * element-wise kernel. For what the kernel with resident weights does not take. */
#include "backends/cuda/lt_matmul.h"
#include "backends/cuda/rnn.h"
#include "backends/cuda/rnn_cell.cuh"
#include "backends/cuda/walk.h"
#include "src/base/checked.h"

struct rnn_steps {
    rnn_layer layer;
    rnn_size size;
    grt_dtype dtype;
    int64_t gates;       /* that the first product makes: GRU's hidden gate may wait for the reset */
    cuda_lt_plan *first; /* h R^T of these gates */
    cuda_lt_plan *fresh; /* of the hidden gate, or NULL */
    size_t product_bytes;
};

namespace
{

/* In the workspace, each [directions, batch, ...]; h and reset in the data's type as they are multiplied. */
template <class T> struct step_job {
    rnn_data<T> data;
    rnn_layer layer;
    rnn_places at;
    int64_t gates;
    T *sums, *fresh, *h, *reset;
    typename cuda_wide<T>::type *c;
};

template <class T>
__device__ bool cuda_rnn_steps_place(const step_job<T> &s, int64_t item, int64_t *d, int64_t *b, int64_t *j)
{
    const rnn_size &n = s.at.n;
    *j = item % n.hidden;
    *b = item / n.hidden % n.batch;
    *d = item / n.hidden / n.batch;
    return *d < s.layer.directions;
}

template <class T> __global__ void cuda_rnn_steps_begin(const __grid_constant__ step_job<T> s)
{
    typedef typename cuda_wide<T>::type F;
    int64_t d, b, j, item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (!cuda_rnn_steps_place(s, item, &d, &b, &j))
        return;
    const int64_t from = s.at.state(d, b) + j;
    s.h[item] = s.data.h0 ? s.data.h0[from] : cuda_narrow<T, F>(0);
    s.c[item] = s.data.c0 ? cuda_widen(s.data.c0[from]) : (F)0;
}

template <class T> __global__ void end(const __grid_constant__ step_job<T> s)
{
    typedef typename cuda_wide<T>::type F;
    int64_t d, b, j, item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (!cuda_rnn_steps_place(s, item, &d, &b, &j))
        return;
    const int64_t to = s.at.state(d, b) + j;
    if (s.data.last_h)
        s.data.last_h[to] = s.h[item];
    if (s.data.last_c)
        s.data.last_c[to] = cuda_narrow<T, F>(s.c[item]);
}

/* What gate g of unit j has from the inputs, whose first gate is at `from`, and its biases; `inner`: R's
 * bias, too. */
template <class T>
__device__ typename cuda_wide<T>::type outer(const step_job<T> &s, const T *from, int64_t d, int64_t g,
                                             int64_t j, bool inner)
{
    const int64_t n = s.at.n.hidden, stacked = s.layer.gates * n;
    typename cuda_wide<T>::type v = cuda_widen(from[g * n]);
    if (s.data.bias) {
        const T *bias = s.data.bias + d * 2 * stacked + g * n + j;
        v += cuda_widen(bias[0]);
        if (inner)
            v += cuda_widen(bias[stacked]);
    }
    return v;
}

/* GRU whose reset comes before the product: reset = r * h. */
template <class T> __global__ void reset_hidden(const __grid_constant__ step_job<T> s, int64_t i)
{
    typedef typename cuda_wide<T>::type F;
    int64_t d, b, j, item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (!cuda_rnn_steps_place(s, item, &d, &b, &j))
        return;
    const int64_t length = s.at.length(s.data.lengths, b), n = s.at.n.hidden;
    if (i >= length) {
        s.reset[item] = s.h[item];
        return;
    }
    const int64_t t = s.layer.reverse || d == 1 ? length - 1 - i : i;
    const T *from = s.data.projected + s.at.projected(d, t, b) + j;
    const F sum = cuda_widen(s.sums[item / n * s.gates * n + n + j]);
    const F r = rnn_activated<F>(s.layer.act[d][0], s.layer.clip, sum + outer(s, from, d, 1, j, true));
    s.reset[item] = cuda_narrow<T, F>(r * cuda_widen(s.h[item]));
}

template <class T> __global__ void update(const __grid_constant__ step_job<T> s, int64_t i)
{
    typedef typename cuda_wide<T>::type F;
    int64_t d, b, j, item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (!cuda_rnn_steps_place(s, item, &d, &b, &j))
        return;
    const int64_t length = s.at.length(s.data.lengths, b), n = s.at.n.hidden;
    if (i >= length) { /* behind the end of the row: zeros */
        if (s.data.y)
            s.data.y[s.at.y(d, i, b) + j] = cuda_narrow<T, F>(0);
        return;
    }
    const int64_t t = s.layer.reverse || d == 1 ? length - 1 - i : i;
    const T *from = s.data.projected + s.at.projected(d, t, b) + j;
    const grt_rnn_act *act = s.layer.act[d];
    const float clip = s.layer.clip;
    const T *sums = s.sums + item / n * s.gates * n + j;
    F h = cuda_widen(s.h[item]);
    if (s.layer.kind == GRT_RNN_PLAIN) {
        h = rnn_activated<F>(act[0], clip, cuda_widen(sums[0]) + outer(s, from, d, 0, j, true));
    } else if (s.layer.kind == GRT_RNN_GRU) {
        const F keep = rnn_activated<F>(act[0], clip, cuda_widen(sums[0]) + outer(s, from, d, 0, j, true));
        F fresh;
        if (s.layer.linear_before_reset) {
            const F r = rnn_activated<F>(act[0], clip, cuda_widen(sums[n]) + outer(s, from, d, 1, j, true));
            F linear = cuda_widen(sums[2 * n]);
            if (s.data.bias)
                linear += cuda_widen(s.data.bias[d * 6 * n + 5 * n + j]);
            fresh = outer(s, from, d, 2, j, false) + r * linear;
        } else {
            fresh = outer(s, from, d, 2, j, true) + cuda_widen(s.fresh[item]);
        }
        h = (1 - keep) * rnn_activated<F>(act[1], clip, fresh) + keep * h;
    } else {
        F c = s.c[item], sum[4];
        for (int g = 0; g < 4; g++)
            sum[g] = cuda_widen(sums[g * n]) + outer(s, from, d, g, j, true);
        const T *p = s.data.peepholes ? s.data.peepholes + d * 3 * n + j : nullptr;
        const F in = rnn_activated<F>(act[0], clip, sum[0] + (p ? cuda_widen(p[0]) * c : (F)0));
        const F forget = s.layer.coupled
                             ? 1 - in
                             : rnn_activated<F>(act[0], clip, sum[2] + (p ? cuda_widen(p[2 * n]) * c : (F)0));
        c = forget * c + in * rnn_activated<F>(act[1], clip, sum[3]);
        const F out = rnn_activated<F>(act[0], clip, sum[1] + (p ? cuda_widen(p[n]) * c : (F)0));
        s.c[item] = c;
        h = out * rnn_activated<F>(act[2], clip, c);
    }
    s.h[item] = cuda_narrow<T, F>(h);
    if (s.data.y)
        s.data.y[s.at.y(d, t, b) + j] = cuda_narrow<T, F>(h);
}

/* Bytes of the parts of the workspace, each aligned for products. */
struct room {
    size_t sums, fresh, h, reset, c, all;
};

size_t aligned_bytes(int64_t n, size_t size)
{
    return grt_align_up((size_t)n * size, CUDA_LT_WORKSPACE_ALIGNMENT);
}

room room_of(const rnn_steps *s)
{
    const int64_t states = s->layer.directions * s->size.batch * s->size.hidden;
    const size_t size = grt_dtype_size(s->dtype);
    room r = {};
    r.sums = aligned_bytes(states * s->gates, size);
    r.fresh = s->fresh ? aligned_bytes(states, size) : 0;
    r.h = aligned_bytes(states, size);
    r.reset = r.fresh;
    r.c = aligned_bytes(states, sizeof(double));
    r.all = r.sums + r.fresh + r.h + r.reset + r.c + s->product_bytes + CUDA_LT_WORKSPACE_ALIGNMENT;
    return r;
}

grt_status cuda_rnn_steps_plan(cuda_device *device, const grt_op_desc *desc, rnn_steps *s, int64_t gates,
                               cuda_lt_plan **out)
{
    cuda_lt_matmul m = {};
    m.dtype = s->dtype;
    m.tf32 = s->layer.tf32;
    m.trans_b = true;
    m.m = s->size.batch;
    m.n = gates * s->size.hidden;
    m.k = s->size.hidden;
    m.batch = s->layer.directions;
    m.stride_a = m.m * m.k;
    m.stride_b = s->layer.gates * s->size.hidden * s->size.hidden;
    const int64_t size = (int64_t)grt_dtype_size(s->dtype), bits = 16 | m.k * size | m.k * m.k * size;
    m.alignment = bits & -bits;
    m.workspace_cap = (size_t)4 << 20;
    GRT_TRY(cuda_lt_plan_create(device, desc, &m, NULL, out));
    if (!*out)
        return grt_fail_op(desc, GRT_STATUS_UNSUPPORTED,
                           "cuBLASLt has no algorithm for a %s product of %lld x %lld x %lld, batch %lld",
                           grt_dtype_name(s->dtype), (long long)m.m, (long long)m.k, (long long)m.n,
                           (long long)m.batch);
    const size_t bytes = cuda_lt_plan_workspace(*out);
    s->product_bytes = bytes > s->product_bytes ? bytes : s->product_bytes;
    return GRT_OK;
}

template <class T>
grt_status cuda_rnn_steps_run_typed(const rnn_steps *s, const grt_op_desc *desc, const rnn_data<T> &data,
                                    char *memory, cudaStream_t stream)
{
    typedef typename cuda_wide<T>::type F;
    const rnn_size &n = s->size;
    const room r = room_of(s);
    step_job<T> job = {data, s->layer, rnn_places_of(&s->layer, &n), s->gates};
    job.sums = (T *)memory;
    job.fresh = (T *)(memory + r.sums);
    job.h = (T *)(memory + r.sums + r.fresh);
    job.reset = (T *)(memory + r.sums + r.fresh + r.h);
    job.c = (F *)(memory + r.sums + r.fresh + r.h + r.reset);
    void *workspace = memory + r.sums + r.fresh + r.h + r.reset + r.c;
    const unsigned blocks =
        (unsigned)((s->layer.directions * n.batch * n.hidden + CUDA_BLOCK - 1) / CUDA_BLOCK);
    const cuda_lt_args first = {1, 0, job.h, data.r, NULL, NULL, job.sums, workspace};
    const cuda_lt_args fresh = {1,    0,    job.reset, data.r + s->gates * n.hidden * n.hidden,
                                NULL, NULL, job.fresh, workspace};
    cuda_rnn_steps_begin<T><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    for (int64_t i = 0; i < n.steps; i++) {
        GRT_TRY(cuda_lt_plan_run(s->first, desc, &first, stream));
        if (s->fresh) {
            reset_hidden<T><<<blocks, CUDA_BLOCK, 0, stream>>>(job, i);
            GRT_TRY(cuda_lt_plan_run(s->fresh, desc, &fresh, stream));
        }
        update<T><<<blocks, CUDA_BLOCK, 0, stream>>>(job, i);
    }
    end<T><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    CUDA_LAUNCHED();
    return GRT_OK;
}

} // namespace

grt_status rnn_steps_create(cuda_device *device, const grt_op_desc *desc, const rnn_layer *layer,
                            const rnn_size *size, grt_dtype dtype, rnn_steps **out_steps)
{
    rnn_steps *s;
    GRT_TRY(cuda_state(&s));
    s->layer = *layer;
    s->size = *size;
    s->dtype = dtype;
    const bool waits = layer->kind == GRT_RNN_GRU && !layer->linear_before_reset;
    s->gates = waits ? 2 : layer->gates;
    grt_status status = cuda_rnn_steps_plan(device, desc, s, s->gates, &s->first);
    if (status == GRT_OK && waits)
        status = cuda_rnn_steps_plan(device, desc, s, 1, &s->fresh);
    if (status != GRT_OK) {
        rnn_steps_release(s);
        return status;
    }
    *out_steps = s;
    return GRT_OK;
}

void rnn_steps_release(rnn_steps *s)
{
    if (!s)
        return;
    cuda_lt_plan_release(s->first);
    cuda_lt_plan_release(s->fresh);
    free(s);
}

size_t rnn_steps_workspace(const rnn_steps *s)
{
    return room_of(s).all;
}

grt_status rnn_steps_run(const rnn_steps *s, const grt_op_desc *desc, const void *data, void *workspace,
                         cudaStream_t stream)
{
    char *memory = (char *)grt_align_up((uintptr_t)workspace, CUDA_LT_WORKSPACE_ALIGNMENT);
    CUDA_FOR_FLOATS(s->dtype, T,
                    return cuda_rnn_steps_run_typed<T>(s, desc, *(const rnn_data<T> *)data, memory, stream))
    return GRT_OK;
}
