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
src_SOURCES += src/base/pb.h src/base/pb.c src/base/pb_tensor.c
src_SOURCES += src/plan_format.h src/plan.c src/plan_check.c src/plan_decode.c src/plan_read.c
