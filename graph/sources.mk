graph_SOURCES = \
	graph/ir.h graph/ir.c \
	graph/op.h graph/op.c \
	graph/infer.c \
	graph/pass.h graph/compile.h \
	graph/flops.h graph/flops.c \
	graph/lower.c
# One line per file, so that adding an op is one line.
graph_ops_SOURCES =
graph_ops_SOURCES += graph/ops/identity.c
graph_SOURCES += graph/ops/moves.h graph/ops/moves.c
graph_ops_SOURCES += graph/ops/reshape.c
graph_ops_SOURCES += graph/ops/shape.c
graph_ops_SOURCES += graph/ops/expand.c
graph_ops_SOURCES += graph/ops/transpose.c
graph_ops_SOURCES += graph/ops/concat.c
graph_ops_SOURCES += graph/ops/slice.c
graph_ops_SOURCES += graph/ops/gather.c
graph_ops_SOURCES += graph/ops/reduce.c
