/* SPDX-License-Identifier: Apache-2.0 */
/* A model's messages as they are in its file, for those who edit a model instead of compiling it. */
#ifndef GRT_GRAPH_IMPORT_MESSAGES_H
#define GRT_GRAPH_IMPORT_MESSAGES_H

#include "graph/import/import.h"
#include "src/onnx/pb.h"

typedef struct import_messages import_messages;

/* Map and unpack; everything lives in `arena`, mapped files too. Errors: as grt_compile, of bytes that are no
 * model. */
grt_status import_messages_open(const compile_source *source, grt_arena *arena, import_messages **out);
Onnx__ModelProto *import_messages_model(const import_messages *messages);
/* A tensor, external data included, with import's checks. */
grt_status import_messages_tensor(import_messages *messages, const Onnx__TensorProto *proto,
                                  const grt_tensor **out_tensor);

#endif
