/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of oneDNN's C API that may allocate, as `try_NAME` for `dnnl_NAME`: none of them throws.
 *
 * oneDNN is written in C++ and lets its exceptions out of its C API: std::bad_alloc, and std::length_error
 * where a size comes from a model. In a program in C they end the process. dnnl_calls.cc catches them right
 * at the call, so that no frame of ours is unwound, and returns dnnl_out_of_memory; see
 * docs/decisions/failures.md. C sources that include this header cannot name the originals. */
#ifndef GRT_BACKENDS_CPU_DNNL_CALLS_H
#define GRT_BACKENDS_CPU_DNNL_CALLS_H

#include <oneapi/dnnl/dnnl.h>

/* NAME, (parameters), (arguments): calls of every run */
#define DNNL_RUN_CALLS(X)                                                                           \
    X(stream_wait, (dnnl_stream_t stream), (stream))                                                \
    X(primitive_execute,                                                                            \
      (const_dnnl_primitive_t primitive, dnnl_stream_t stream, int n, const dnnl_exec_arg_t *args), \
      (primitive, stream, n, args))                                                                 \
    X(memory_set_data_handle, (dnnl_memory_t memory, void *handle), (memory, handle))

/* The same of calls that make something, in every version of the library ... */
#define DNNL_CALLS_OF_ALL(X)                                                                             \
    X(engine_create, (dnnl_engine_t * out, dnnl_engine_kind_t kind, size_t index), (out, kind, index))   \
    X(stream_create, (dnnl_stream_t * out, dnnl_engine_t engine, unsigned flags), (out, engine, flags))  \
    X(primitive_attr_create, (dnnl_primitive_attr_t * out), (out))                                       \
    X(primitive_attr_set_scratchpad_mode, (dnnl_primitive_attr_t attr, dnnl_scratchpad_mode_t mode),     \
      (attr, mode))                                                                                      \
    X(primitive_attr_set_post_ops, (dnnl_primitive_attr_t attr, const_dnnl_post_ops_t ops), (attr, ops)) \
    X(post_ops_create, (dnnl_post_ops_t * out), (out))                                                   \
    X(primitive_create, (dnnl_primitive_t * out, const_dnnl_primitive_desc_t pd), (out, pd))

/* ... and in one of them */
#if DNNL_VERSION_MAJOR >= 3
#define DNNL_CALLS_OF_VERSION(X)                                                                             \
    X(memory_create,                                                                                         \
      (dnnl_memory_t * out, const_dnnl_memory_desc_t desc, dnnl_engine_t engine, void *handle),              \
      (out, desc, engine, handle))                                                                           \
    X(memory_desc_create_with_tag,                                                                           \
      (dnnl_memory_desc_t * out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,                    \
       dnnl_format_tag_t tag),                                                                               \
      (out, rank, dims, type, tag))                                                                          \
    X(memory_desc_create_with_strides,                                                                       \
      (dnnl_memory_desc_t * out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,                    \
       const dnnl_dims_t strides),                                                                           \
      (out, rank, dims, type, strides))                                                                      \
    X(memory_desc_clone, (dnnl_memory_desc_t * out, const_dnnl_memory_desc_t from), (out, from))             \
    X(post_ops_append_sum, (dnnl_post_ops_t ops, float scale, int32_t zero_point, dnnl_data_type_t type),    \
      (ops, scale, zero_point, type))                                                                        \
    X(post_ops_append_eltwise, (dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float a, float b),                 \
      (ops, alg, a, b))                                                                                      \
    X(post_ops_append_binary, (dnnl_post_ops_t ops, dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src),      \
      (ops, alg, src))                                                                                       \
    X(reorder_primitive_desc_create,                                                                         \
      (dnnl_primitive_desc_t * out, const_dnnl_memory_desc_t src, dnnl_engine_t src_engine,                  \
       const_dnnl_memory_desc_t dst, dnnl_engine_t dst_engine, const_dnnl_primitive_attr_t attr),            \
      (out, src, src_engine, dst, dst_engine, attr))                                                         \
    X(convolution_forward_primitive_desc_create,                                                             \
      (dnnl_primitive_desc_t * out, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,        \
       const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,        \
       const_dnnl_memory_desc_t dst, const dnnl_dims_t stride, const dnnl_dims_t dilation,                   \
       const dnnl_dims_t begin, const dnnl_dims_t end, const_dnnl_primitive_attr_t attr),                    \
      (out, engine, prop, alg, src, weights, bias, dst, stride, dilation, begin, end, attr))                 \
    X(deconvolution_forward_primitive_desc_create,                                                           \
      (dnnl_primitive_desc_t * out, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,        \
       const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,        \
       const_dnnl_memory_desc_t dst, const dnnl_dims_t stride, const dnnl_dims_t dilation,                   \
       const dnnl_dims_t begin, const dnnl_dims_t end, const_dnnl_primitive_attr_t attr),                    \
      (out, engine, prop, alg, src, weights, bias, dst, stride, dilation, begin, end, attr))                 \
    X(pooling_forward_primitive_desc_create,                                                                 \
      (dnnl_primitive_desc_t * out, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,        \
       const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, const dnnl_dims_t stride,                 \
       const dnnl_dims_t kernel, const dnnl_dims_t dilation, const dnnl_dims_t begin, const dnnl_dims_t end, \
       const_dnnl_primitive_attr_t attr),                                                                    \
      (out, engine, prop, alg, src, dst, stride, kernel, dilation, begin, end, attr))                        \
    X(lrn_forward_primitive_desc_create,                                                                     \
      (dnnl_primitive_desc_t * out, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,        \
       const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, dnnl_dim_t size, float alpha, float beta, \
       float k, const_dnnl_primitive_attr_t attr),                                                           \
      (out, engine, prop, alg, src, dst, size, alpha, beta, k, attr))                                        \
    X(primitive_desc_next_impl, (dnnl_primitive_desc_t pd), (pd))
#else /* descriptors of memory and of operations are structs of the caller's */
#define DNNL_CALLS_OF_VERSION(X)                                                                          \
    X(memory_create,                                                                                      \
      (dnnl_memory_t * out, const dnnl_memory_desc_t *desc, dnnl_engine_t engine, void *handle),          \
      (out, desc, engine, handle))                                                                        \
    X(post_ops_append_sum, (dnnl_post_ops_t ops, float scale), (ops, scale))                              \
    X(post_ops_append_eltwise, (dnnl_post_ops_t ops, float scale, dnnl_alg_kind_t alg, float a, float b), \
      (ops, scale, alg, a, b))                                                                            \
    X(post_ops_append_binary, (dnnl_post_ops_t ops, dnnl_alg_kind_t alg, const dnnl_memory_desc_t *src),  \
      (ops, alg, src))                                                                                    \
    X(reorder_primitive_desc_create,                                                                      \
      (dnnl_primitive_desc_t * out, const dnnl_memory_desc_t *src, dnnl_engine_t src_engine,              \
       const dnnl_memory_desc_t *dst, dnnl_engine_t dst_engine, const_dnnl_primitive_attr_t attr),        \
      (out, src, src_engine, dst, dst_engine, attr))                                                      \
    X(primitive_desc_create,                                                                              \
      (dnnl_primitive_desc_t * out, const_dnnl_op_desc_t operation, const_dnnl_primitive_attr_t attr,     \
       dnnl_engine_t engine, const_dnnl_primitive_desc_t hint),                                           \
      (out, operation, attr, engine, hint))                                                               \
    X(primitive_desc_iterator_create,                                                                     \
      (dnnl_primitive_desc_iterator_t * out, const_dnnl_op_desc_t operation,                              \
       const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, const_dnnl_primitive_desc_t hint),         \
      (out, operation, attr, engine, hint))                                                               \
    X(primitive_desc_iterator_next, (dnnl_primitive_desc_iterator_t iterator), (iterator))
#endif
#define DNNL_MAKE_CALLS(X) \
    DNNL_CALLS_OF_ALL(X)   \
    DNNL_CALLS_OF_VERSION(X)

#ifdef __cplusplus
extern "C" {
#define DNNL_CALL_THROWS noexcept
#else
#define DNNL_CALL_THROWS
#endif

#define X(name, parameters, arguments) dnnl_status_t try_##name parameters DNNL_CALL_THROWS;
DNNL_RUN_CALLS(X)
DNNL_MAKE_CALLS(X)
#undef X

/* Around all that makes an operation, from its descriptor to its primitive; not to be nested. Meanwhile no
 * other thread's failure empties oneDNN's cache of primitives: a descriptor that came from the cache may
 * point into one that is freed, which does no harm as long as the primitive comes from the cache, too. */
void dnnl_making_begin(void) DNNL_CALL_THROWS;
void dnnl_making_end(void) DNNL_CALL_THROWS;

#ifdef __cplusplus
}
#else
#define DNNL_CALL_PRAGMA(text)         _Pragma(#text)
#define DNNL_CALL_POISON(name)         DNNL_CALL_PRAGMA(GCC poison name)
#define X(name, parameters, arguments) DNNL_CALL_POISON(dnnl_##name)
DNNL_RUN_CALLS(X)
DNNL_MAKE_CALLS(X)
#undef X
#endif

#endif
