/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores by mma.sync, fragments by ldmatrix, and asynchronous copies to shared memory. */
#ifndef GRT_BACKENDS_CUDA_TENSOR_CORE_CUH
#define GRT_BACKENDS_CUDA_TENSOR_CORE_CUH

#include "backends/cuda/lane_exchange.cuh"
#include "backends/cuda/number.cuh"

/* c += a b of 16 x DEPTH and DEPTH x 8. `operand`: 32 bits of a tensor as mma wants them. */
template <class T> struct tensor_core;

template <> struct tensor_core<__half> {
    enum { DEPTH = 16 };
    static __device__ __forceinline__ uint32_t operand(uint32_t x)
    {
        return x;
    }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ uint32_t pair(float x, float y)
    {
        const __half2 h = __floats2half2_rn(x, y);
        return *(const uint32_t *)&h;
    }
    static __device__ __forceinline__ void store(__half *y, float a, float b)
    {
        *(uint32_t *)y = pair(a, b);
    }
};

template <> struct tensor_core<__nv_bfloat16> {
    enum { DEPTH = 16 };
    static __device__ __forceinline__ uint32_t operand(uint32_t x)
    {
        return x;
    }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ uint32_t pair(float x, float y)
    {
        const __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
        return *(const uint32_t *)&h;
    }
    static __device__ __forceinline__ void store(__nv_bfloat16 *y, float a, float b)
    {
        *(uint32_t *)y = pair(a, b);
    }
};

template <> struct tensor_core<float> {
    enum { DEPTH = 8 };
    static __device__ __forceinline__ uint32_t rounded(float x)
    {
        uint32_t y;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
        return y;
    }
    static __device__ __forceinline__ uint32_t operand(uint32_t x)
    {
        return rounded(__uint_as_float(x));
    }
    static __device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b)
    {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ void store(float *y, float a, float b)
    {
        *(float2 *)y = make_float2(a, b);
    }
};

/* Four 8 x 8 matrices of 16-bit elements; lane i has the address of row i. */
static __device__ __forceinline__ void load_matrices(uint32_t *r, const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* The same, transposed. */
static __device__ __forceinline__ void load_matrices_turned(uint32_t *r, const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* 16 bytes to shared memory, zeros if there is nothing to read. */
static __device__ __forceinline__ void fetch(void *to, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

/* The same of 4 or 8 bytes. */
template <int PIECE>
static __device__ __forceinline__ void fetch_piece(void *to, const void *from, bool there)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    const int bytes = there ? PIECE : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(PIECE), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void wait_for()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

#endif
