graph_SOURCES = \
	graph/ir.h graph/ir.c \
	graph/op.h graph/op.c \
	graph/infer.c \
	graph/pass.h graph/compile.h \
	graph/flops.h graph/flops.c \
	graph/lower.c
graph_SOURCES += graph/ops/window.h graph/ops/window.c
# One line per file, so that adding an op is one line.
graph_ops_SOURCES =
graph_ops_SOURCES += graph/ops/identity.c
graph_ops_SOURCES += graph/ops/conv.c
graph_ops_SOURCES += graph/ops/pool.c
graph_ops_SOURCES += graph/ops/matmul.c
graph_ops_SOURCES += graph/ops/softmax.c
graph_ops_SOURCES += graph/ops/norm.c
graph_ops_SOURCES += graph/ops/rnn.c
