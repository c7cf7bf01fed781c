/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm of integers, whose sums wrap: no library has them. A block computes a tile of the output
 * from tiles of the inputs in shared memory. */
#include "backends/cuda/each.cuh"

namespace
{

enum { TILE = 16 };

struct matrix_state {
    bool gemm, trans_a, trans_b;
    float alpha, beta;
};

struct matrix_shape {
    int64_t m, n, k, batch;
    int64_t row_a, col_a, row_b, col_b;                           /* strides of an element's row and column */
    int32_t lead;                                                 /* leading dims of the output */
    int64_t dims[GRT_MAX_RANK], a[GRT_MAX_RANK], b[GRT_MAX_RANK]; /* strides in matrices */
    int64_t c_row, c_col;
};

grt_status cuda_matmul_exact_create(const grt_kernel_node *node, void **out_state)
{
    matrix_state *s;
    GRT_TRY(cuda_state(&s));
    s->gemm = grt_op_is(node->desc, "", "Gemm");
    s->trans_a = s->gemm && grt_attr_int(node->desc, "transA", 0) != 0;
    s->trans_b = s->gemm && grt_attr_int(node->desc, "transB", 0) != 0;
    s->alpha = s->gemm ? grt_attr_float(node->desc, "alpha", 1.0f) : 1.0f;
    s->beta = s->gemm ? grt_attr_float(node->desc, "beta", 1.0f) : 1.0f;
    *out_state = s;
    return GRT_OK;
}

bool cuda_matmul_exact_supports(const grt_kernel_node *node, grt_text *why)
{
    if (node->n_in < 2 || node->in[0].dtype == node->in[1].dtype)
        return true;
    if (why)
        grt_text_add(why, "both matrices must be of one type");
    return false;
}

bool cuda_matmul_exact_fit(const grt_reshape *r, matrix_shape *s)
{
    const matrix_state *state = (const matrix_state *)r->state;
    const grt_tensor *a = r->in[0], *b = r->in[1], *c = r->n_in > 2 ? r->in[2] : NULL, *y = r->out[0];
    if (a->rank < 1 || b->rank < 1 || (state->gemm && (a->rank != 2 || b->rank != 2)))
        return false;
    const int64_t rows_a = a->rank > 1 ? a->dims[a->rank - 2] : 1, cols_a = a->dims[a->rank - 1];
    const int64_t rows_b = b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0],
                  cols_b = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    s->m = state->trans_a ? cols_a : rows_a;
    s->k = state->trans_a ? rows_a : cols_a;
    s->n = state->trans_b ? rows_b : cols_b;
    s->row_a = state->trans_a ? 1 : cols_a;
    s->col_a = state->trans_a ? cols_a : 1;
    s->row_b = state->trans_b ? 1 : cols_b;
    s->col_b = state->trans_b ? cols_b : 1;
    const int32_t lead_a = a->rank > 1 ? a->rank - 2 : 0, lead_b = b->rank > 1 ? b->rank - 2 : 0;
    if ((state->trans_b ? cols_b : rows_b) != s->k ||
        !grt_dims_broadcast(a->dims, lead_a, b->dims, lead_b, s->dims, &s->lead))
        return false;
    grt_broadcast_strides(a->dims, lead_a, s->lead, s->a);
    grt_broadcast_strides(b->dims, lead_b, s->lead, s->b);
    s->batch = grt_dims_product(s->dims, 0, s->lead);
    if (c) {
        const int64_t c_rows = c->rank > 1 ? c->dims[c->rank - 2] : 1,
                      c_cols = c->rank > 0 ? c->dims[c->rank - 1] : 1;
        if (c->rank > 2 || (c_rows != 1 && c_rows != s->m) || (c_cols != 1 && c_cols != s->n))
            return false;
        s->c_row = c_rows > 1 ? c_cols : 0;
        s->c_col = c_cols > 1 ? 1 : 0;
    }
    return grt_tensor_elements(y) == s->batch * s->m * s->n;
}

grt_status cuda_matmul_exact_reshape(grt_reshape *r)
{
    matrix_shape *s;
    char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
    GRT_TRY(cuda_state(&s));
    r->shape = s;
    if (cuda_matmul_exact_fit(r, s))
        return GRT_OK;
    free(s);
    r->shape = NULL;
    return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                       "A is %s and B %s; expected as many columns of A as rows of B, batch dims that "
                       "broadcast, and a bias that broadcasts to the result",
                       grt_tensor_text(r->in[0], a), grt_tensor_text(r->in[1], b));
}

/* Where the matrices of an item of the batch begin, in matrices. */
__device__ void matrices_of(const matrix_shape &s, int64_t item, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int32_t k = s.lead - 1; k >= 0; k--) {
        *a += item % s.dims[k] * s.a[k];
        *b += item % s.dims[k] * s.b[k];
        item /= s.dims[k];
    }
}

template <typename T>
__global__ void __launch_bounds__(TILE *TILE)
    product_kernel(const __grid_constant__ matrix_shape s, matrix_state how, const T *a, const T *b,
                   cuda_any c, cuda_any y)
{
    __shared__ T tile_a[TILE][TILE + 1], tile_b[TILE][TILE + 1];
    const int64_t tiles_m = (s.m + TILE - 1) / TILE, tiles_n = (s.n + TILE - 1) / TILE,
                  tiles = s.batch * tiles_m * tiles_n;
    const int row = threadIdx.x / TILE, col = threadIdx.x % TILE;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t i = tile / tiles_n % tiles_m * TILE + row, j = tile % tiles_n * TILE + col,
                      item = tile / tiles_n / tiles_m;
        int64_t at_a, at_b;
        T sum = 0;
        matrices_of(s, item, &at_a, &at_b);
        for (int64_t k = 0; k < s.k; k += TILE) {
            tile_a[row][col] =
                i < s.m && k + col < s.k ? a[at_a * s.m * s.k + i * s.row_a + (k + col) * s.col_a] : 0;
            tile_b[row][col] =
                j < s.n && k + row < s.k ? b[at_b * s.k * s.n + (k + row) * s.row_b + j * s.col_b] : 0;
            __syncthreads();
            for (int x = 0; x < TILE; x++)
                sum += tile_a[row][x] * tile_b[x][col];
            __syncthreads();
        }
        if (i >= s.m || j >= s.n)
            continue;
        const int64_t out = (item * s.m + i) * s.n + j, from = i * s.c_row + j * s.c_col;
        const bool adds = c && how.beta != 0;
        if (adds && how.alpha == 1 && how.beta == 1) /* exact */
            sum += ((const T *)c.data)[from];
        ((T *)y.data)[out] = sum;
        if (how.alpha != 1 || (adds && how.beta != 1))
            y.put(out, (double)how.alpha * y.get(out) + (adds ? (double)how.beta * c.get(from) : 0));
    }
}

template <typename T> grt_status product(const grt_run *r, const matrix_shape *s)
{
    const int64_t tiles = s->batch * ((s->m + TILE - 1) / TILE) * ((s->n + TILE - 1) / TILE);
    product_kernel<T><<<cuda_grid(tiles, 1), TILE * TILE, 0, cuda_stream(r)>>>(
        *s, *(const matrix_state *)r->state, (const T *)r->in[0]->data, (const T *)r->in[1]->data,
        cuda_any_in(r, 2), cuda_any_out(r, 0));
    CUDA_LAUNCHED();
    return GRT_OK;
}

/* Unsigned arithmetic serves the signed types as well: the bits of a wrapped product are the same. */
grt_status cuda_matmul_exact_run(const grt_run *r)
{
    const matrix_shape *s = (const matrix_shape *)r->shape;
    if (s->batch * s->m * s->n <= 0)
        return GRT_OK;
    return grt_dtype_size(r->out[0]->dtype) == 4 ? product<uint32_t>(r, s) : product<uint64_t>(r, s);
}

#define INTS (GRT_BIT(INT32) | GRT_BIT(INT64) | GRT_BIT(UINT32) | GRT_BIT(UINT64))
#define LIFE                                                                                     \
    .supports = cuda_matmul_exact_supports, .create = cuda_matmul_exact_create, .destroy = free, \
    .reshape = cuda_matmul_exact_reshape, .release_shape = free, .run = cuda_matmul_exact_run
const grt_kernel_row rows[] = {
    {.domain = "", .op = "MatMul", .types = {INTS, INTS}, LIFE},
    {.domain = "", .op = "Gemm", .types = {INTS, INTS, INTS}, LIFE},
};

} // namespace
CUDA_KERNELS(matmul_exact, rows);
