/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX messages from untrusted bytes, and tensors to and from them.
 *
 * protobuf-c copies every `bytes` field and recurses as deep as the file wants. So the bytes are walked
 * first: the walk checks the wire format, bounds nesting and memory, drops what no reader looks at, and cuts
 * the raw_data of tensors out. What is unpacked afterwards is small; raw_data stays where it is. */
#ifndef GRT_SRC_ONNX_PB_H
#define GRT_SRC_ONNX_PB_H

#include "proto/onnx.pb-c.h"
#include "src/base/arena.h"
#include "src/base/value.h"

/* Messages nest at most this deep (a subgraph inside a subgraph is three levels). */
enum { GRT_PB_MAX_DEPTH = 100 };

/* Unpack `size` bytes as one `descriptor` message into the arena. `bytes` must outlive the use of raw_data.
 * Errors: INVALID_MODEL with the byte offset and the field. */
grt_status grt_pb_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t size,
                         grt_arena *arena, ProtobufCMessage **out_message);

/* Where the raw_data of an unpacked tensor really is; data is NULL if the tensor has none. */
grt_string grt_pb_raw(const Onnx__TensorProto *proto);

/* dtype and dims of a tensor, checked: known dtype, rank within bounds, no negative dim, a size that can be
 * represented. Messages begin with "tensor 'name': ". */
grt_status grt_pb_tensor_type(const Onnx__TensorProto *proto, grt_tensor *out_tensor);

/* A tensor's content: exactly one value field, of exactly the right size. Data of raw_data is used in place
 * if it is aligned for its dtype, otherwise everything lies in `arena`. External data is refused: see
 * graph/import/external.c. */
grt_status grt_pb_tensor(const Onnx__TensorProto *proto, grt_arena *arena, grt_tensor *out_tensor);

/* Bytes of little-endian elements (exactly grt_tensor_bytes(t)) as t->data: in place if aligned, else copied.
 */
grt_status grt_pb_tensor_place(grt_tensor *t, const void *bytes, grt_arena *arena);

/* kind: what the bytes are. element_kind: what an OPTIONAL would hold. */
grt_status grt_pb_value(const void *bytes, size_t size, grt_kind kind, grt_kind element_kind,
                        grt_value *out_value);

#endif
