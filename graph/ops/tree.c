/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsemble of ai.onnx.ml, in the form that all others are rewritten to. */
#include "graph/ops/ml_parts.h"
#include <string.h>

static const op_attr tree_attrs[] = {
    {"aggregate_function", GRT_ATTR_INT, false},
    {"leaf_targetids", GRT_ATTR_INTS, true},
    {"leaf_weights", GRT_ATTR_TENSOR, true},
    {"membership_values", GRT_ATTR_TENSOR, false},
    {"n_targets", GRT_ATTR_INT, false},
    {"nodes_falseleafs", GRT_ATTR_INTS, true},
    {"nodes_falsenodeids", GRT_ATTR_INTS, true},
    {"nodes_featureids", GRT_ATTR_INTS, true},
    {"nodes_hitrates", GRT_ATTR_TENSOR, false},
    {"nodes_missing_value_tracks_true", GRT_ATTR_INTS, false},
    {"nodes_modes", GRT_ATTR_TENSOR, true},
    {"nodes_splits", GRT_ATTR_TENSOR, true},
    {"nodes_trueleafs", GRT_ATTR_INTS, true},
    {"nodes_truenodeids", GRT_ATTR_INTS, true},
    {"post_transform", GRT_ATTR_INT, false},
    {"tree_roots", GRT_ATTR_INTS, true},
    {0},
};

static grt_status infer_tree(infer *inf)
{
    return ml_infer_targets(inf, inf->in[0]->dtype);
}

static const op_row rows[] = {
    {.domain = "ai.onnx.ml",
     .name = "TreeEnsemble",
     .since = 5,
     .min_in = 1,
     .max_in = 1,
     .min_out = 1,
     .max_out = 1,
     .attrs = tree_attrs,
     .precision = OP_WIDE,
     .infer = infer_tree},
};
OP_TABLE(tree, rows);
