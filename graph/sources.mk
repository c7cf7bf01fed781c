graph_SOURCES = \
	graph/ir.h graph/ir.c \
	graph/op.h graph/op.c \
	graph/infer.c \
	graph/pass.h graph/compile.h
# One line per file, so that adding an op is one line.
graph_ops_SOURCES =
graph_ops_SOURCES += graph/ops/identity.c
graph_ops_SOURCES += graph/ops/control.c
graph_ops_SOURCES += graph/ops/loss.c
graph_ops_SOURCES += graph/ops/attention.c
graph_ops_SOURCES += graph/ops/flex_attention.c
graph_ops_SOURCES += graph/ops/sequence.c
graph_ops_SOURCES += graph/ops/string.c
graph_ops_SOURCES += graph/ops/ml.c
