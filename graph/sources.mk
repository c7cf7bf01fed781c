graph_SOURCES = \
	graph/ir.h graph/ir.c graph/verify.c \
	graph/op.h graph/op.c \
	graph/infer.h graph/infer.c graph/infer_bodies.c \
	graph/pass.h graph/compile.h graph/compile.c \
	graph/flops.h graph/flops.c \
	graph/lower.c
	graph/pass.h graph/compile.h
graph_SOURCES += graph/import/import.h graph/import/import.c
graph_SOURCES += graph/import/names.h graph/import/names.c
graph_SOURCES += graph/import/problem.c graph/import/scope.c
graph_SOURCES += graph/import/types.c graph/import/tensors.c graph/import/external.c
graph_SOURCES += graph/import/attrs.c graph/import/node.c graph/import/graph.c graph/import/functions.c
# One line per pass.
graph_SOURCES += graph/passes/passes.h graph/passes/passes.c
graph_SOURCES += graph/passes/rewrite.c
graph_SOURCES += graph/passes/branches.c
graph_SOURCES += graph/passes/cse.c
graph_SOURCES += graph/passes/dce.c
graph_SOURCES += graph/passes/fold.c
graph_SOURCES += graph/passes/legalise.c
graph_SOURCES += graph/passes/shapes.c
graph_SOURCES += graph/passes/simplify.c
graph_SOURCES += graph/plan_write.c
# One line per file, so that adding an op is one line.
graph_ops_SOURCES =
graph_ops_SOURCES += graph/ops/identity.c
graph_SOURCES += graph/ops/pointwise.h graph/ops/pointwise_rules.h graph/ops/pointwise_rules.c
graph_ops_SOURCES += graph/ops/pointwise.c graph/ops/pointwise_group.c graph/ops/elementwise.c graph/ops/cast.c
graph_SOURCES += graph/ops/moves.h graph/ops/moves.c
graph_ops_SOURCES += graph/ops/reshape.c
graph_ops_SOURCES += graph/ops/shape.c
graph_ops_SOURCES += graph/ops/expand.c
graph_ops_SOURCES += graph/ops/transpose.c
graph_ops_SOURCES += graph/ops/concat.c
graph_ops_SOURCES += graph/ops/slice.c
graph_ops_SOURCES += graph/ops/gather.c
graph_ops_SOURCES += graph/ops/reduce.c
graph_ops_SOURCES += graph/ops/control.c
graph_ops_SOURCES += graph/ops/loss.c
graph_ops_SOURCES += graph/ops/attention.c
graph_ops_SOURCES += graph/ops/flex_attention.c
graph_ops_SOURCES += graph/ops/sequence.c
