/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's C API as a table, so that the library is opened by those who need it: `onednn->NAME` is
 * `dnnl_NAME`, and does not throw.
 *
 * oneDNN is written in C++ and lets its exceptions out of its C API: std::bad_alloc, and std::length_error
 * where a size comes from a model. In a program in C they end the process. dnnl_calls.cc catches them right
 * at the call, so that no frame of ours is unwound, and returns dnnl_out_of_memory; see
 * docs/decisions/failures.md. C sources that include this header cannot name the originals. */
#ifndef GRT_BACKENDS_CPU_DNNL_CALLS_H
#define GRT_BACKENDS_CPU_DNNL_CALLS_H

#include "config.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* Of every run; they may throw. */
#define DNNL_RUN_CALLS(X) X(stream_wait) X(primitive_execute) X(memory_set_data_handle)

/* They make something, and may throw. In every version of the library ... */
#define DNNL_MAKE_CALLS_OF_ALL(X)         \
    X(engine_create)                      \
    X(stream_create)                      \
    X(memory_create)                      \
    X(primitive_attr_create)              \
    X(primitive_attr_set_scratchpad_mode) \
    X(primitive_attr_set_post_ops)        \
    X(post_ops_create)                    \
    X(post_ops_append_sum)                \
    X(post_ops_append_eltwise)            \
    X(post_ops_append_binary)             \
    X(reorder_primitive_desc_create)      \
    X(primitive_create)

/* They do not throw. */
#define DNNL_PLAIN_CALLS_OF_ALL(X) \
    X(version)                     \
    X(set_max_cpu_isa)             \
    X(status2str)                  \
    X(fmt_tag2str)                 \
    X(post_ops_len)                \
    X(post_ops_destroy)            \
    X(primitive_attr_destroy)      \
    X(primitive_desc_query)        \
    X(primitive_desc_query_md)     \
    X(primitive_desc_destroy)      \
    X(primitive_destroy)           \
    X(memory_desc_get_size)        \
    X(memory_desc_equal)           \
    X(memory_destroy)              \
    X(stream_destroy)

/* ... and in one of them */
#if DNNL_VERSION_MAJOR >= 3
#define DNNL_MAKE_CALLS_OF_VERSION(X)              \
    X(memory_desc_create_with_tag)                 \
    X(memory_desc_create_with_strides)             \
    X(memory_desc_clone)                           \
    X(convolution_forward_primitive_desc_create)   \
    X(deconvolution_forward_primitive_desc_create) \
    X(primitive_desc_next_impl)
#define DNNL_PLAIN_CALLS_OF_VERSION(X) \
    X(memory_desc_destroy)             \
    X(memory_desc_query)
#else /* descriptors of memory and of operations are structs of the caller's */
#define DNNL_MAKE_CALLS_OF_VERSION(X) \
    X(primitive_desc_create)          \
    X(primitive_desc_iterator_create) \
    X(primitive_desc_iterator_next)
#define DNNL_PLAIN_CALLS_OF_VERSION(X)         \
    X(memory_desc_init_by_tag)                 \
    X(memory_desc_init_by_strides)             \
    X(dilated_convolution_forward_desc_init)   \
    X(dilated_deconvolution_forward_desc_init) \
    X(primitive_desc_iterator_fetch)           \
    X(primitive_desc_iterator_destroy)
#endif
#define DNNL_MAKE_CALLS(X)    \
    DNNL_MAKE_CALLS_OF_ALL(X) \
    DNNL_MAKE_CALLS_OF_VERSION(X)
#define DNNL_PLAIN_CALLS(X)    \
    DNNL_PLAIN_CALLS_OF_ALL(X) \
    DNNL_PLAIN_CALLS_OF_VERSION(X)

/* The release and the version of oneDNN that a table was compiled for. */
#define DNNL_TEXT_OF(x)  #x
#define DNNL_TEXT(x)     DNNL_TEXT_OF(x)
#define DNNL_CALLS_BUILD PACKAGE_VERSION " for oneDNN " DNNL_TEXT(DNNL_VERSION_MAJOR) ".x"

typedef struct dnnl_calls {
    const char *build;
    /* Around all that makes an operation, from its descriptor to its primitive; not to be nested. Meanwhile
     * no other thread's failure empties oneDNN's cache of primitives: a descriptor that came from the cache
     * may point into one that is freed, which does no harm as long as the primitive comes from the cache,
     * too. */
    void (*making_begin)(void);
    void (*making_end)(void);
#define X(name) __typeof__(dnnl_##name) *name;
    DNNL_RUN_CALLS(X) DNNL_MAKE_CALLS(X) DNNL_PLAIN_CALLS(X)
#undef X
} dnnl_calls;

/* Of dnnl_calls.cc. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"))) const dnnl_calls grt_dnnl_calls;

#ifndef __cplusplus
#define DNNL_CALL_PRAGMA(text) _Pragma(#text)
#define DNNL_CALL_POISON(name) DNNL_CALL_PRAGMA(GCC poison name)
#define X(name)                DNNL_CALL_POISON(dnnl_##name)
DNNL_RUN_CALLS(X)
DNNL_MAKE_CALLS(X)
DNNL_PLAIN_CALLS(X)
#undef X
#endif

#endif
