src_SOURCES = \
	src/base/status.h src/base/status.c \
	src/base/checked.h src/base/float.h \
	src/base/arena.h src/base/arena.c \
	src/base/text.h src/base/text.c \
	src/base/tensor.h src/base/tensor.c \
	src/base/value.h src/base/value.c \
	src/base/op_desc.h src/base/op_desc.c \
	src/base/dim.h src/base/dim.c \
	src/plan.h
src_SOURCES += src/base/pb.h src/base/pb.c src/base/pb_tensor.c src/base/pb_file.c
src_SOURCES =
src_SOURCES += src/base/status.h src/base/status.c
src_SOURCES += src/base/checked.h src/base/float.h
src_SOURCES += src/base/arena.h src/base/arena.c
src_SOURCES += src/base/text.h src/base/text.c
src_SOURCES += src/base/tensor.h src/base/tensor.c
src_SOURCES += src/base/value.h src/base/value.c
src_SOURCES += src/base/op_desc.h src/base/op_desc.c
src_SOURCES += src/base/dim.h src/base/dim.c
src_SOURCES += src/plan.h
src_SOURCES += src/phases.h src/phases.c
src_SOURCES += src/runtime.c
src_SOURCES += src/model.h src/model.c
src_SOURCES += src/compile.c src/plan_measure.h src/plan_measure.c
src_SOURCES += src/target.h src/target.c
src_SOURCES += src/session.h src/session.c
src_SOURCES += src/memory_plan.h src/memory_plan.c
src_SOURCES += src/op_call.h src/op_call.c
src_SOURCES += src/context.h src/context.c
src_SOURCES += src/frame.c src/execute.c src/control_flow.c
src_SOURCES += src/value.c
src_SOURCES += src/base/pointwise.def src/base/pointwise.h src/base/pointwise.c
src_SOURCES += src/base/pb.h src/base/pb.c src/base/pb_tensor.c
src_SOURCES += src/plan_format.h src/plan.c src/plan_check.c src/plan_decode.c src/plan_read.c
