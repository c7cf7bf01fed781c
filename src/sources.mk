# SPDX-License-Identifier: Apache-2.0
# The runtime's rooms, lowest first; one line a noun.
src_SOURCES =

src_SOURCES += src/base/arena.h src/base/arena.c
src_SOURCES += src/base/cancel.h
src_SOURCES += src/base/checked.h
src_SOURCES += src/base/choice.h
src_SOURCES += src/base/cores.h src/base/cores.c
src_SOURCES += src/base/custom.h src/base/custom.c
src_SOURCES += src/base/oversubscription.h src/base/oversubscription.c
src_SOURCES += src/base/device_traits.h
src_SOURCES += src/base/dim.h src/base/dim.c
src_SOURCES += src/base/einsum.h src/base/einsum.c
src_SOURCES += src/base/element.h
src_SOURCES += src/base/failures.h src/base/failures.c
src_SOURCES += src/base/file_map.h src/base/file_map.c
src_SOURCES += src/base/float.h
src_SOURCES += src/base/grow.h src/base/grow.c
src_SOURCES += src/base/hash.h
src_SOURCES += src/base/heap.h
src_SOURCES += src/base/names.h src/base/names.c
src_SOURCES += src/base/op_desc.h src/base/op_desc.c
src_SOURCES += src/base/openmp.h src/base/openmp.c
src_SOURCES += src/base/output.h src/base/output.c
src_SOURCES += src/base/packing.h
src_SOURCES += src/base/pointwise.def src/base/pointwise.h src/base/pointwise.c
src_SOURCES += src/base/pointwise_program.c
src_SOURCES += src/base/pointwise_text.c
src_SOURCES += src/base/activation.h src/base/activation.c
src_SOURCES += src/base/printable.c
src_SOURCES += src/base/status.h src/base/status.c
src_SOURCES += src/base/structs.h src/base/structs.c
src_SOURCES += src/base/tensor.h src/base/tensor.c
src_SOURCES += src/base/text.h src/base/text.c
src_SOURCES += src/base/value.h src/base/value.c
src_SOURCES += src/base/value_map.h src/base/value_map.c

src_SOURCES += src/onnx/pb.h src/onnx/pb.c
src_SOURCES += src/onnx/pb_file.c
src_SOURCES += src/onnx/pb_tensor.c

src_SOURCES += src/plan/check.c
src_SOURCES += src/plan/choices.h src/plan/choices.c
src_SOURCES += src/plan/decode.c
src_SOURCES += src/plan/dims.h src/plan/dims.c
src_SOURCES += src/plan/format.h src/plan/format.c
src_SOURCES += src/plan/memory_plan.h src/plan/memory_plan.c
src_SOURCES += src/plan/plan.h src/plan/plan.c
src_SOURCES += src/plan/read.c
src_SOURCES += src/plan/signature.h src/plan/signature.c
src_SOURCES += src/plan/source.h src/plan/source.c
src_SOURCES += src/plan/trust.h src/plan/trust.c
src_SOURCES += src/plan/weights.c
src_SOURCES += src/plan/weights_check.h src/plan/weights_check.c
src_SOURCES += src/plan/write.c

src_SOURCES += src/algos/cache.h src/algos/cache.c
src_SOURCES += src/algos/db.h src/algos/db.c
src_SOURCES += src/algos/file_store.h src/algos/file_store.c
src_SOURCES += src/algos/plan_store.h src/algos/plan_store.c
src_SOURCES += src/algos/store.h

src_SOURCES += src/call/op_call.h src/call/op_call.c

src_SOURCES += src/target/choose.h src/target/choose.c
src_SOURCES += src/target/measure.h src/target/measure.c
src_SOURCES += src/target/pack.h src/target/pack.c
src_SOURCES += src/target/target.h src/target/target.c

src_SOURCES += src/session/devices.h src/session/devices.c
src_SOURCES += src/session/group.c
src_SOURCES += src/session/host_weights.h src/session/host_weights.c
src_SOURCES += src/session/model.h src/session/model.c
src_SOURCES += src/session/phases.h src/session/phases.c
src_SOURCES += src/session/resident.h src/session/resident.c
src_SOURCES += src/session/runtime.c
src_SOURCES += src/session/session.h src/session/session.c
src_SOURCES += src/session/upload.h src/session/upload.c

src_SOURCES += src/exec/binding.h src/exec/binding.c
src_SOURCES += src/exec/context.h src/exec/context.c
src_SOURCES += src/exec/control_flow.h src/exec/control_flow.c
src_SOURCES += src/exec/device_value.h src/exec/device_value.c
src_SOURCES += src/exec/draft.h
src_SOURCES += src/exec/execute.h src/exec/execute.c
src_SOURCES += src/exec/executor.h src/exec/executor.c
src_SOURCES += src/exec/frame.h src/exec/frame.c
src_SOURCES += src/exec/frame_cache.h src/exec/frame_cache.c
src_SOURCES += src/exec/frame_memory.h src/exec/frame_memory.c
src_SOURCES += src/exec/hoist.h src/exec/hoist.c
src_SOURCES += src/exec/in_flight.h src/exec/in_flight.c
src_SOURCES += src/exec/instructions.h src/exec/instructions.c
src_SOURCES += src/exec/io.c
src_SOURCES += src/exec/place.h
src_SOURCES += src/exec/prepare.h src/exec/prepare.c
src_SOURCES += src/exec/program.h src/exec/program.c
src_SOURCES += src/exec/replay.h src/exec/replay.c
src_SOURCES += src/exec/run.h src/exec/run.c
src_SOURCES += src/exec/steps.h src/exec/steps.c
src_SOURCES += src/exec/stop.h src/exec/stop.c
src_SOURCES += src/exec/timing.h src/exec/timing.c
src_SOURCES += src/exec/transfer.h src/exec/transfer.c
src_SOURCES += src/exec/warm_up.h src/exec/warm_up.c

src_SOURCES += src/pool/answer.h src/pool/answer.c
src_SOURCES += src/pool/batch.h src/pool/batch.c
src_SOURCES += src/pool/clock.h src/pool/clock.c
src_SOURCES += src/pool/histogram.h src/pool/histogram.c
src_SOURCES += src/pool/keeper.h src/pool/keeper.c
src_SOURCES += src/pool/lane.h src/pool/lane.c
src_SOURCES += src/pool/parts.h
src_SOURCES += src/pool/pool.c
src_SOURCES += src/pool/queue.h src/pool/queue.c
src_SOURCES += src/pool/request.h src/pool/request.c
src_SOURCES += src/pool/schedule.h src/pool/schedule.c
src_SOURCES += src/pool/worker.h src/pool/worker.c

src_SOURCES += src/api/cache.c
src_SOURCES += src/api/compile.c
src_SOURCES += src/api/custom.c
src_SOURCES += src/api/sign.c
src_SOURCES += src/api/step_bench.h src/api/step_bench.c
src_SOURCES += src/api/tune.c
src_SOURCES += src/api/value.c
