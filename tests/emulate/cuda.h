/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's threads on the host: what the sources of generated kernels need, for a C++ compiler.
 *
 * Each thread of a block has a stack of its own (ucontext), and is run in rising or falling order, each warp
 * as far as it comes without the others: what is read or written before the barrier that should precede it
 * shows. Asynchronous copies are made when they are waited for: no sooner, and never if they are not. Blocks
 * run one by one. The test includes this in front of translated kernels (translate.h), once in a shared
 * object. */
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

#undef INFINITY
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__   static
#define __align__(n) alignas(n)
#define threadIdx    (emulated::self->at)

namespace emulated
{

struct dim3 {
    unsigned x, y, z;
};

struct copy {
    void *to;
    const void *from;
    size_t size;
};

enum waiting { NOT, FOR_WARP, FOR_BLOCK, ENDED };

constexpr size_t STACK = 64 << 10, WARP = 32, ZONE = 256;

struct thread {
    ucontext_t context;  /* for its first run: to switch by it takes system calls */
    void *resumes_at[5]; /* for those after that */
    bool begun;
    std::unique_ptr<char[]> stack;
    dim3 at;
    waiting wants;
    std::vector<std::vector<copy>> groups; /* of copies; the last one is still open */
    /* What other lanes of the warp can read: in turns, so that one is written while the other may still be
     * read. */
    unsigned char value[2][8];
    bool turn;
};

static thread *self;
static dim3 block_at, block_size, grid_size;
static void *scheduler_at[5];
static std::vector<thread> threads;
static std::vector<unsigned char> shared;
static const void *arguments;
static void (*body)(const void *);

/* A function that stays a frame of its own, as these jumps want it. */
#define EMULATED_JUMP __attribute__((noinline)) static void

EMULATED_JUMP leave()
{
    __builtin_longjmp(scheduler_at, 1);
}

EMULATED_JUMP wait(waiting what)
{
    self->wants = what;
    if (__builtin_setjmp(self->resumes_at) == 0)
        leave();
}

/* A thread of one block after the other. */
static void begin()
{
    for (;;) {
        body(arguments);
        wait(ENDED);
    }
}

EMULATED_JUMP enter()
{
    if (self->begun)
        __builtin_longjmp(self->resumes_at, 1);
    self->begun = true;
    setcontext(&self->context);
}

/* Until the thread waits. */
EMULATED_JUMP resume(thread &t)
{
    self = &t;
    if (__builtin_setjmp(scheduler_at) == 0)
        enter();
}

/* Lets those go on who wait for the same barrier, once all of them are there; false: none can. */
static bool release(size_t from, size_t to, waiting what)
{
    bool any = false;
    for (size_t i = from; i < to; i++) {
        if (threads[i].wants != what && threads[i].wants != ENDED)
            return false;
        any |= threads[i].wants == what;
    }
    for (size_t i = from; i < to; i++)
        if (threads[i].wants == what)
            threads[i].wants = NOT;
    return any;
}

/* One warp goes as far as it can without the others, a lane as far as it can without the other lanes. */
static void run_warp(size_t from, size_t to, bool falling)
{
    do {
        for (size_t k = from; k < to; k++) {
            thread &t = threads[falling ? to - 1 - (k - from) : k];
            if (t.wants == NOT)
                resume(t);
        }
    } while (release(from, to, FOR_WARP));
}

/* False: threads wait for each other at different barriers. */
static bool run_block(bool falling)
{
    const size_t n = threads.size(), warps = (n + WARP - 1) / WARP;
    do {
        for (size_t k = 0; k < warps; k++) {
            const size_t w = falling ? warps - 1 - k : k;
            run_warp(w * WARP, (w + 1) * WARP < n ? (w + 1) * WARP : n, falling);
        }
    } while (release(0, n, FOR_BLOCK));
    for (const thread &t : threads)
        if (t.wants != ENDED)
            return false;
    return true;
}

static void prepare(thread &t, unsigned index)
{
    t.at = {index % block_size.x, index / block_size.x, 0};
    t.wants = NOT;
    t.turn = false;
    t.groups.assign(1, {});
    if (t.begun)
        return;
    if (!t.stack)
        t.stack.reset(new char[STACK]);
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = t.stack.get();
    t.context.uc_stack.ss_size = STACK;
    makecontext(&t.context, begin, 0);
}

/* They begin anew: some are in the middle of what failed. */
static void forget_threads()
{
    for (thread &t : threads)
        t.begun = false;
}

/* NULL, or what went wrong. Shared memory is filled with NaN, and so is what follows it, which must stay. */
static const char *launch(void (*kernel)(const void *), const void *args, const unsigned *grid,
                          const unsigned *block, size_t shared_bytes, bool falling)
{
    body = kernel;
    arguments = args;
    block_size = {block[0], block[1], 1};
    grid_size = {grid[0], grid[1], 1};
    if (threads.size() < (size_t)block[0] * block[1])
        forget_threads(); /* they move */
    threads.resize((size_t)block[0] * block[1]);
    for (unsigned y = 0; y < grid[1]; y++)
        for (unsigned x = 0; x < grid[0]; x++) {
            block_at = {x, y, 0};
            shared.assign(shared_bytes + ZONE, 0xff);
            for (unsigned i = 0; i < threads.size(); i++)
                prepare(threads[i], i);
            if (!run_block(falling)) {
                forget_threads();
                return "threads wait at different barriers";
            }
            for (size_t i = 0; i < ZONE; i++)
                if (shared[shared_bytes + i] != 0xff)
                    return "a thread wrote behind its block's shared memory";
        }
    return nullptr;
}

static void finish_copies(size_t left)
{
    while (self->groups.size() - 1 > left) {
        for (const copy &c : self->groups.front())
            memcpy(c.to, c.from, c.size);
        self->groups.erase(self->groups.begin());
    }
}

static float (*half_to_float)(uint16_t);
static uint16_t (*float_to_half)(float);
static uint16_t (*float_to_bfloat16)(float);

} // namespace emulated

extern "C" void emulated_use(float (*half_to_float)(uint16_t), uint16_t (*float_to_half)(float),
                             uint16_t (*float_to_bfloat16)(float))
{
    emulated::half_to_float = half_to_float;
    emulated::float_to_half = float_to_half;
    emulated::float_to_bfloat16 = float_to_bfloat16;
}

/* ---- what kernels call ---- */

[[maybe_unused]] static const emulated::dim3 &blockIdx = emulated::block_at, &blockDim = emulated::block_size,
                                             &gridDim = emulated::grid_size;

static void *emulated_shared()
{
    return emulated::shared.data();
}
[[maybe_unused]] static void __syncthreads()
{
    emulated::wait(emulated::FOR_BLOCK);
}
[[maybe_unused]] static void __syncwarp()
{
    emulated::wait(emulated::FOR_WARP);
}
/* What all lanes of the warp give, seen by each: lanes(k) is that of lane k. */
template <class V> struct emulated_exchange {
    const bool turn = emulated::self->turn;

    explicit emulated_exchange(V v)
    {
        static_assert(sizeof v <= sizeof emulated::self->value[0], "a register or two");
        memcpy(emulated::self->value[turn], &v, sizeof v);
        emulated::self->turn = !turn;
        emulated::wait(emulated::FOR_WARP);
    }
    V operator()(size_t lane) const
    {
        V v;
        const size_t first = emulated_thread() / emulated::WARP * emulated::WARP;
        memcpy(&v, emulated::threads[first + lane].value[turn], sizeof v);
        return v;
    }
    static size_t emulated_thread()
    {
        return (size_t)(emulated::self - emulated::threads.data());
    }
    static size_t lane()
    {
        return emulated_thread() % emulated::WARP;
    }
};
template <class V> static V __shfl_xor_sync(unsigned, V v, int mask)
{
    const emulated_exchange<V> lanes(v);
    return lanes(lanes.lane() ^ (size_t)mask);
}
template <class V> static V __shfl_up_sync(unsigned, V v, unsigned by)
{
    const emulated_exchange<V> lanes(v);
    return lanes(lanes.lane() < by ? lanes.lane() : lanes.lane() - by);
}
[[maybe_unused]] static unsigned __ballot_sync(unsigned, bool is)
{
    const emulated_exchange<bool> lanes(is);
    unsigned all = 0;
    for (size_t k = 0; k < emulated::WARP; k++)
        all |= (unsigned)lanes(k) << k;
    return all;
}
[[maybe_unused]] static int __reduce_add_sync(unsigned, int v)
{
    const emulated_exchange<int> lanes(v);
    int all = 0;
    for (size_t k = 0; k < emulated::WARP; k++)
        all += lanes(k);
    return all;
}
[[maybe_unused]] static int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
static float __int_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
[[maybe_unused]] static float __uint_as_float(unsigned bits)
{
    return __int_as_float(bits);
}
/* Its offset there. */
[[maybe_unused]] static size_t __cvta_generic_to_shared(const void *p)
{
    return (size_t)((const unsigned char *)p - emulated::shared.data());
}
[[maybe_unused]] static unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}
using std::copysign;

/* ---- instructions in assembly, by their names ---- */

[[maybe_unused]] static void asm_cvt_f32_f16(float &y, uint16_t x)
{
    y = emulated::half_to_float(x);
}
[[maybe_unused]] static void asm_cvt_rn_f16_f32(uint16_t &y, float x)
{
    y = emulated::float_to_half(x);
}
[[maybe_unused]] static void asm_cvt_rn_bf16_f32(uint16_t &y, float x)
{
    y = emulated::float_to_bfloat16(x);
}
[[maybe_unused]] static void asm_cp_async_ca_shared_global(unsigned to, const void *from, size_t size)
{
    emulated::self->groups.back().push_back({emulated::shared.data() + to, from, size});
}
[[maybe_unused]] static void asm_cp_async_cg_shared_global(unsigned to, const void *from, size_t size)
{
    asm_cp_async_ca_shared_global(to, from, size);
}
[[maybe_unused]] static void asm_cp_async_commit_group()
{
    emulated::self->groups.emplace_back();
}
[[maybe_unused]] static void asm_cp_async_wait_group(size_t left)
{
    emulated::finish_copies(left);
}
[[maybe_unused]] static void asm_cp_async_wait_all()
{
    asm_cp_async_commit_group();
    emulated::finish_copies(0);
}
