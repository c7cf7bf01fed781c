/* SPDX-License-Identifier: Apache-2.0 */
/* libgraphrt: run ONNX models on CPUs and GPUs.
 *
 * This header includes its parts; a program includes this one. Open a model and create a session on a device (session.h),
 * create a context and run (context.h). value.h has values that are not plain tensors, info.h what models and sessions tell,
 * pool.h many runs at once, state.h what stays between runs, compile.h plans that are made offline, tune.h the cache of
 * algorithms, custom.h operators of one's own, memory.h limits and memory of devices, weights.h weights that are replaced, trace.h
 * messages and what runs do. Include by name, where you use them: quantize.h (8 and 4 bits), watch.h (each tensor that a step makes),
 * processes.h (sessions in processes of their own), faults.h (what is lost with a device that fails).
 *
 * Rules for every function, unless its comment says otherwise:
 *
 * Errors. A function that can fail returns grt_status. On failure it writes no out-parameter and leaks nothing, and
 *   grt_last_error() has the calling thread's message: node, op, tensor, what was expected and what was found. NULL for an
 *   object, an out_* parameter or a required callback is INVALID_ARGUMENT; functions that return no status then do nothing
 *   and return 0, false or NULL. Every function that creates something may also fail with OUT_OF_MEMORY. "Errors:" in a
 *   comment lists the others.
 * Ownership. An object obtained through an out_* parameter belongs to the caller, who releases it with exactly one grt_<noun>_release().
 *   Releasing NULL does nothing. Objects keep alive what they need: a session may outlive the caller's model. Strings and arrays that
 *   are passed in are copied before the function returns. Strings and arrays that are returned (const char *, const T **) belong to the
 *   object that returned them and live as long as it does; those passed to a callback are valid until the callback returns.
 * Threads. "Threads: any" means that any number of threads may call the function at once, with the same objects too.
 *   "Threads: one a context" means that calls with the same context must not overlap; it need not always be the same thread.
 *   A release must not overlap any other use of that object. Callbacks are called on the calling thread, and must not call
 *   back into the objects of the call, unless stated otherwise.
 * Cancellation. A thread cancelled (pthread_cancel) in a call that submits, runs, takes or awaits requests of a pool returns from it first; no other call allows it.
 * Stacks. A thread needs 128 KiB for any call, 192 KiB to open models nested as deep as import allows. The library's threads have the system's default.
 * Exit. exit() waits for what threads of the library do unasked, and a second for requests of pools, then cancels them (docs/services.md).
 * Units. Dims are int64_t, sizes are bytes, times are milliseconds. Tensors are dense and row-major.
 *
 * How structs grow. A program that was compiled with an older header works with a newer library of the same GRT_ABI_VERSION.
 *  - A struct that is passed alone begins with struct_size. Zero the struct, set struct_size = sizeof, then set what you need:
 *    every member that is zero means its default. The library reads and fills no more than struct_size bytes. A struct_size
 *    that is not set is INVALID_ARGUMENT; an option that is set but unknown to this library is UNSUPPORTED. In structs that a
 *    callback receives, the library sets struct_size: what lies behind it does not exist.
 *  - A struct that is the element of an array (grt_tensor, grt_input_shape, grt_device_description, grt_cache_row, grt_phase,
 *    grt_step_time) never changes its size. It ends with `reserved` words, which must be zero: zero the struct before you set
 *    its members. A reserved word that is not zero is UNSUPPORTED.
 *  - Enumerations may get new values at their ends; GRT_MAX_RANK and grt_string do not change.
 *
 * The library never prints, exits or aborts on user data. It does not change the locale, signal handlers or OpenMP's settings.
 * The calling thread's current CUDA device or context is the same after a call as before.
 * A process may fork() while no other thread of it is inside the library. The child may go on with CPU sessions and contexts,
 * but must not use GPUs that the parent has opened. Pools stay with the parent, whose threads they have: in the child they and
 * requests that are not done are INVALID_ARGUMENT, and their release does nothing.
 * The environment variable GRAPHRT_CPU_ISA (base, avx2, avx512 or amx) limits the instruction set of CPU kernels, oneDNN's too. It is
 * read once per process; the default is all that the processor has. Another value makes session creation fail with
 * INVALID_ARGUMENT.
 * Linux: the first 8-bit product of a process at level amx asks the system for AMX's tiles. From then on sigaltstack refuses stacks
 * below getauxval(AT_MINSIGSTKSZ); while a thread has such a stack, tiles are not used.
 */
#ifndef GRAPHRT_GRAPHRT_H
#define GRAPHRT_GRAPHRT_H

#define GRT_VERSION_MAJOR 0
#define GRT_VERSION_MINOR 1
#define GRT_VERSION_PATCH 0

/* Number of the binary interface: libgraphrt.so.1. It changes only when programs have to be compiled again. */
#define GRT_ABI_VERSION 1

#include <graphrt/compile.h> /* IWYU pragma: export */
#include <graphrt/context.h> /* IWYU pragma: export */
#include <graphrt/custom.h>  /* IWYU pragma: export */
#include <graphrt/info.h>    /* IWYU pragma: export */
#include <graphrt/memory.h>  /* IWYU pragma: export */
#include <graphrt/pool.h>    /* IWYU pragma: export */
#include <graphrt/session.h> /* IWYU pragma: export */
#include <graphrt/state.h>   /* IWYU pragma: export */
#include <graphrt/status.h>  /* IWYU pragma: export */
#include <graphrt/tensor.h>  /* IWYU pragma: export */
#include <graphrt/trace.h>   /* IWYU pragma: export */
#include <graphrt/tune.h>    /* IWYU pragma: export */
#include <graphrt/value.h>   /* IWYU pragma: export */
#include <graphrt/weights.h> /* IWYU pragma: export */
#endif
