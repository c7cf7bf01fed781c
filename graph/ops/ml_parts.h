/* SPDX-License-Identifier: Apache-2.0 */
/* What ai.onnx.ml's operators share: shape rules, and expansions of the older ones, which are written with
 * ordinary ones. */
#ifndef GRT_GRAPH_OPS_ML_PARTS_H
#define GRT_GRAPH_OPS_ML_PARTS_H

#include "graph/ir/ir.h"

/* Builders put a node in front of `before` and return its output; NULL in, NULL out. */
ir_value *ml_node(ir_node *before, const char *op, int32_t n_in, ir_value *const *in);
ir_value *ml_cast(ir_node *before, ir_value *x, grt_dtype to);
/* A constant of float32, or of another float type with the same values. data NULL: left for the caller. */
ir_value *ml_floats(ir_graph *graph, grt_dtype dtype, int32_t rank, const int64_t *dims, const float *data);
/* An operator along the last dim that keeps it. */
ir_value *ml_reduce(ir_node *before, const char *op, ir_value *x);

/* Fails unless the attribute post_transform is one that is known. */
grt_status ml_check_transform(const grt_op_desc *desc);
ir_value *ml_transform(ir_node *before, ir_value *scores, const char *transform);

/* Numbers or words that a classifier gives its classes. */
typedef struct ml_labels {
    const int64_t *ints;
    const grt_string *strings;
    int64_t n;
} ml_labels;
ml_labels ml_labels_of(const grt_op_desc *desc);
ir_value *ml_labels_constant(ir_graph *graph, const ml_labels *labels);
/* Outputs of a classifier: labels [N] of the class with the highest of `scores` [N, classes], or of a single
 * score that is above `threshold` or not, and what becomes of the scores. */
grt_status ml_classify(ir_node *node, ir_value *scores, int64_t n_scores, double threshold, bool mirrored);

/* Shape rules. The input is samples x features; a rank that is known and is not 2 is refused. */
grt_status ml_check_samples(const infer *inf);
/* Output 0 is [N, n_scores]; the input has been checked. */
void ml_infer_scores(infer *inf, grt_dtype dtype, int64_t n_scores);
/* Of ensembles of trees, whose attribute n_targets is the number of scores. */
grt_status ml_infer_targets(infer *inf, grt_dtype dtype);
/* Of both outputs of a classifier. */
grt_status ml_infer_classifier(infer *inf, int64_t n_scores);

/* Put `made` in the place of output 0. */
void ml_become(ir_node *node, int32_t output, ir_value *made);

#endif
