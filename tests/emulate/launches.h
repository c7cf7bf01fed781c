/* SPDX-License-Identifier: Apache-2.0 */
/* What backends/cuda/ops/ calls of CUDA beside what kernels call (cuda.h), on the host: launches, copies, and
 * faults that kernels tell of. Stands in front of translated sources (translate.h), behind CUDA's headers. */
#undef __device__
#undef __global__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
#undef __align__
#include "tests/emulate/cuda.h"

#include <tuple>

#define INFINITY __builtin_inff()
#define __host__
#define __noinline__
#define __CUDACC__ /* device code of headers that the host shares */

namespace emulated
{

static bool falling;
static const char *wrong; /* what the first launch that failed says */

struct grid {
    unsigned blocks;
    int block;
    size_t shared;
};

template <class... A> struct call {
    grid on;
    std::tuple<A...> arguments;
};

/* on(blocks, threads, shared, stream)(arguments...): what is launched there by kernel->*call. */
struct place {
    grid on;
    template <class... A> call<A...> operator()(const A &...arguments) const
    {
        return {on, std::tuple<A...>(arguments...)};
    }
};
static place on(int64_t blocks, int64_t block, size_t shared, const void *)
{
    return {{(unsigned)blocks, (int)block, shared}};
}

template <class... P, class... A> void operator->*(void (*kernel)(P...), const call<A...> &what)
{
    typedef std::pair<void (*)(P...), std::tuple<P...>> started;
    const started begun(kernel, what.arguments);
    const unsigned blocks[] = {what.on.blocks, 1}, block[] = {(unsigned)what.on.block, 1};
    const char *why = launch(
        [](const void *p) {
            const started *s = (const started *)p;
            std::apply(s->first, s->second);
        },
        &begun, blocks, block, what.on.shared, falling);
    wrong = wrong ? wrong : why;
}

} // namespace emulated

/* ---- what kernels call ---- */

static int __syncthreads_count(int is)
{
    static int counted;
    __syncthreads();
    counted = 0;
    __syncthreads();
    counted += is != 0;
    __syncthreads();
    return counted;
}
template <class T> static T atomicAdd(T *at, T by)
{
    const T was = *at;
    *at += by;
    return was;
}
static unsigned atomicCAS(unsigned *at, unsigned expected, unsigned then)
{
    const unsigned was = *at;
    *at = was == expected ? then : was;
    return was;
}
static void __threadfence_system()
{
}
static unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* ---- what the host's side calls: done when it returns, in memory of the host ---- */

extern "C" {
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, n);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t)
{
    memset(to, value, n);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void)
{
    return emulated::wrong ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaGetDevice(int *)
{
    return cudaErrorNoDevice; /* kernels do not overlap */
}
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int)
{
    return cudaErrorNoDevice;
}
}
template <class... P, class... A>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                                      const A &...arguments)
{
    kernel->*emulated::on(config->gridDim.x, config->blockDim.x, 0, nullptr)(arguments...);
    return cudaGetLastError();
}
