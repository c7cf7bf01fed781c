/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that begin before the one in front of them in the stream has ended (Hopper and newer). Until
 * `overlap_wait` has returned they may read nothing but constants, and write nothing; one that lets the next
 * begin is not done for it. Both mean nothing in kernels that are launched as usual. */
#ifndef GRT_BACKENDS_CUDA_OVERLAP_CUH
#define GRT_BACKENDS_CUDA_OVERLAP_CUH

__device__ __forceinline__ void overlap_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void overlap_let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static inline cudaLaunchConfig_t overlap_config(bool overlaps, dim3 grid, dim3 block, size_t shared,
                                                cudaStream_t stream, cudaLaunchAttribute *early)
{
    *early = {};
    early->id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early->val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = early;
    config.numAttrs = overlaps ? 1 : 0;
    return config;
}

template <class... P, class... A>
static cudaError_t overlap_launch(bool overlaps, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                  cudaStream_t stream, const A &...args)
{
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config = overlap_config(overlaps, grid, block, shared, stream, &early);
    return cudaLaunchKernelEx(&config, kernel, args...);
}

/* A kernel that was loaded. */
static inline cudaError_t overlap_launch_code(bool overlaps, cudaKernel_t kernel, dim3 grid, dim3 block,
                                              size_t shared, cudaStream_t stream, void **args)
{
    cudaLaunchAttribute early;
    const cudaLaunchConfig_t config = overlap_config(overlaps, grid, block, shared, stream, &early);
    return cudaLaunchKernelExC(&config, (const void *)kernel, args);
}

#endif
