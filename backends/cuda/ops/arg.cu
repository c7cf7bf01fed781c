/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax. */
#include "backends/cuda/line.cuh"

namespace
{

struct arg_state {
    int64_t axis;
    bool least, last;
};

/* NaN counts as greatest and as least. */
template <typename S>
__device__ __forceinline__ cuda_place best_of(const S *in, int64_t begin, int64_t n, int64_t step,
                                              int64_t inner, bool least, bool last)
{
    cuda_place best = {0, -1};
    for (int64_t i = begin; i < n; i += step) {
        uint64_t key = cuda_order_key<S>(in[i * inner]);
        bool odd = std::is_floating_point<typename pw_storage<S>::T>::value && key == UINT64_MAX;
        best = cuda_better(best, {least && !odd ? ~key : key, i}, last);
    }
    return best;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_thread_kernel(cuda_lines s, bool least, bool last, const S *in, int64_t *out)
{
    CUDA_ITEMS (l, s.n_lines)
        out[l] = best_of<S>(in + cuda_line_base(s, l, s.n), 0, s.n, 1, s.inner, least, last).at;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_BLOCK)
    arg_warp_kernel(cuda_lines s, bool least, bool last, const S *in, int64_t *out)
{
    int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t l = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; l < s.n_lines; l += warps) {
        cuda_place best =
            best_of<S>(in + cuda_line_base(s, l, s.n), threadIdx.x % 32, s.n, 32, s.inner, least, last);
        best = cuda_better_of_warp(best, last);
        if (threadIdx.x % 32 == 0)
            out[l] = best.at;
    }
}

template <typename S> grt_status arg(const grt_run *r)
{
    const arg_state *state = (const arg_state *)r->state;
    cuda_lines s = *(const cuda_lines *)r->shape;
    const S *in = (const S *)r->in[0]->data;
    int64_t *out = (int64_t *)r->out[0]->data;
    if (cuda_lines_by_warp(s))
        arg_warp_kernel<S><<<cuda_grid(s.n_lines, CUDA_BLOCK / 32), CUDA_BLOCK, 0, cuda_stream(r)>>>(
            s, state->least, state->last, in, out);
    else
        arg_thread_kernel<S>
            <<<cuda_grid(s.n_lines), CUDA_BLOCK, 0, cuda_stream(r)>>>(s, state->least, state->last, in, out);
    CUDA_LAUNCHED();
    return GRT_OK;
}

grt_status cuda_create_arg(const grt_kernel_node *node, void **out_state)
{
    arg_state *state;
    GRT_TRY(cuda_state(&state));
    state->axis = grt_attr_int(node->desc, "axis", 0);
    state->least = grt_op_is(node->desc, "", "ArgMin");
    state->last = grt_attr_int(node->desc, "select_last_index", 0) != 0;
    *out_state = state;
    return GRT_OK;
}

grt_status reshape_arg(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    int64_t axis = in->rank ? grt_axis(((const arg_state *)r->state)->axis, in->rank) : 0;
    cuda_lines *s;
    GRT_TRY(cuda_state(&s));
    cuda_lines_of(s, in, axis);
    if (s->n == 0 && s->n_lines > 0) {
        free(s);
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "axis %lld has size 0: there is no index to name", (long long)axis);
    }
    r->shape = s;
    return GRT_OK;
}

grt_status cuda_run_arg(const grt_run *r)
{
    if (((const cuda_lines *)r->shape)->n_lines <= 0)
        return GRT_OK;
    CUDA_RETURN_BY_NUMBER(r->in[0]->dtype, arg, r)
}

grt_status create_hardmax(const grt_kernel_node *node, void **out_state)
{
    int64_t *axis;
    GRT_TRY(cuda_state(&axis));
    *axis = grt_attr_int(node->desc, "axis", -1);
    *out_state = axis;
    return GRT_OK;
}

grt_status cuda_run_hardmax(const grt_run *r)
{
    const grt_tensor *x = r->in[0];
    cuda_lines l;
    cuda_lines_of(&l, x, grt_axis(*(const int64_t *)r->state, x->rank));
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, l.n ? l.n_lines : 0, [=] __device__(int64_t row) {
        int64_t base = cuda_line_base(l, row, l.n), at = 0;
        double best = in.get(base);
        for (int64_t i = 1; i < l.n; i++) { /* NaN counts as greatest */
            double v = in.get(base + i * l.inner);
            if (best == best && (v > best || v != v)) {
                best = v;
                at = i;
            }
        }
        for (int64_t i = 0; i < l.n; i++)
            out.put(base + i * l.inner, i == at);
    });
}

const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "ArgMax",
     .types = {GRT_SET_NUMBERS},
     .create = cuda_create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = cuda_run_arg},
    {.domain = "",
     .op = "ArgMin",
     .types = {GRT_SET_NUMBERS},
     .create = cuda_create_arg,
     .destroy = free,
     .reshape = reshape_arg,
     .release_shape = free,
     .run = cuda_run_arg},
    {.domain = "",
     .op = "Hardmax",
     .types = {GRT_SET_FLOATS},
     .create = create_hardmax,
     .destroy = free,
     .run = cuda_run_hardmax},
};

} // namespace
CUDA_KERNELS(arg, rows);
