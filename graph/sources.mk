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
graph_SOURCES += graph/ops/pointwise.h graph/ops/pointwise_rules.h graph/ops/pointwise_rules.c
graph_ops_SOURCES += graph/ops/pointwise.c graph/ops/pointwise_group.c graph/ops/elementwise.c
