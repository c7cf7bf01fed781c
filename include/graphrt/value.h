/* SPDX-License-Identifier: Apache-2.0 */
/* Values: tensors, sequences, optionals, maps that own their memory. They do not change: any number of threads may read
 * one. Part of <graphrt/graphrt.h>, whose rules hold. */
#ifndef GRAPHRT_VALUE_H
#define GRAPHRT_VALUE_H

#include <graphrt/info.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copy a tensor in host memory, bytes of strings included, into a value. Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_from_tensor(const grt_tensor *tensor, grt_value **out_value);
/* A sequence of copies of `n` values; n may be 0. All must be tensors of `dtype`, sequences of such, or maps to such.
 * Threads: any.
 * Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_sequence(grt_dtype dtype, grt_value *const *items, size_t n,
                                                   grt_value **out_value);
/* An optional that holds a copy of `item`, a tensor or a sequence of `dtype`, or nothing if item is NULL.
 * Threads: any. Errors: INVALID_ARGUMENT. */
GRT_API GRT_MUST_USE grt_status grt_value_optional(grt_dtype dtype, const grt_value *item, grt_value **out_value);
GRT_API void grt_value_release(grt_value *value);

/* TENSOR for NULL. Threads: any. */
GRT_API grt_kind grt_value_kind(const grt_value *value);
/* View of a TENSOR, in memory of the value. Threads: any. Errors: INVALID_ARGUMENT if it is none. */
GRT_API GRT_MUST_USE grt_status grt_value_tensor(const grt_value *value, grt_tensor *out_tensor);
/* SEQUENCE: number of items; OPTIONAL: 0 or 1; TENSOR: 0; MAP: 2. Threads: any. */
GRT_API size_t grt_value_count(const grt_value *value);
/* Item of a sequence or optional; of a map, its keys (0) and their values (1), tensors of one dim. Belongs to `value`.
 * NULL if the index is out of range.
 * Threads: any. */
GRT_API const grt_value *grt_value_item(const grt_value *value, size_t index);

/* A map of ai.onnx.ml: keys of INT64 or STRING, each once, and one value for each. It holds copies of both tensors,
 * which lie in host memory and have one dim of one size, in the order of the keys.
 * Threads: any. Errors: INVALID_ARGUMENT (also if a key comes twice). */
GRT_API GRT_MUST_USE grt_status grt_value_map(const grt_tensor *keys, const grt_tensor *values, grt_value **out_value);
/* dtype of the keys of an input or output that is a map or a sequence of maps; NONE for all else. Threads: any. */
GRT_API grt_dtype grt_model_input_keys(const grt_model *model, size_t index);
GRT_API grt_dtype grt_model_output_keys(const grt_model *model, size_t index);

/* Bind `value` as input `index` of the following runs. It is not copied: it must stay alive while runs use it. NULL
 * unbinds.
 * Threads: one a context. Errors: INVALID_ARGUMENT; the earlier binding stays. */
GRT_API GRT_MUST_USE grt_status grt_context_set_input_value(grt_context *context, size_t index, const grt_value *value);
/* A copy of output `index`, of any kind; belongs to the caller.
 * Threads: one a context. Errors: as grt_context_get_output. */
GRT_API GRT_MUST_USE grt_status grt_context_get_output_value(grt_context *context, size_t index, grt_value **out_value);

/* Read an ONNX .pb file, which holds one TensorProto, SequenceProto, OptionalProto or MapProto: `kind` says which.
 * Threads: any. Errors: IO, INVALID_MODEL, UNSUPPORTED. */
GRT_API GRT_MUST_USE grt_status grt_value_read_pb(const char *path, grt_kind kind, grt_kind element_kind,
                                                  grt_value **out_value);
/* Write such a file, whole or not at all. Threads: any. Errors: IO. */
GRT_API GRT_MUST_USE grt_status grt_value_write_pb(const grt_value *value, const char *path);

#ifdef __cplusplus
}
#endif
#endif
