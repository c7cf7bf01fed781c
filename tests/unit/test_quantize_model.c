/* SPDX-License-Identifier: Apache-2.0 */
/* What grt_quantize does to a model before it is written: opsets, batch normalisations, layers, statistics of
 * values in groups. */
#include "src/quantize/fold_norm.h"
#include "src/quantize/observe.h"
#include "src/quantize/opset.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static document model;

static void open_digits(void)
{
    const char *srcdir = getenv("srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/models/digits/digits.onnx", srcdir ? srcdir : "..");
    const compile_source source = {.path = path};
    ck_assert_msg(document_open(&model, &source) == GRT_OK, "%s", grt_last_error());
}

static void close_digits(void)
{
    document_release(&model);
}

/* A node of opset 12 alone in the graph; axes: as an attribute. */
static void only_node(const char *op, bool axes, size_t outputs)
{
    static int64_t list[] = {0, 1};
    model.n_nodes = 0;
    model.opset = 12;
    Onnx__NodeProto *node = document_add(&model, op, "the node");
    node_add_in(&model, node, "image");
    for (size_t i = 0; i < outputs; i++)
        node_add_out(&model, node, document_name(&model, "result", ""));
    if (!axes)
        return;
    node_set_int(&model, node, "axes", 0);
    node->attribute[0]->has_i = 0;
    node->attribute[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    node->attribute[0]->n_ints = 2;
    node->attribute[0]->ints = list;
}

/* The axes are input 1 from `version` on, and not before. */
static void check_axes(const char *op, int64_t version)
{
    only_node(op, true, 1);
    if (version > 13) {
        ck_assert(document_raise_opset(&model, 13) == GRT_OK);
        ck_assert(node_attr(model.nodes[0], "axes") && model.nodes[0]->n_input == 1);
    }
    ck_assert(document_raise_opset(&model, version) == GRT_OK);
    const document_weight *w = document_find(&model, node_in(model.nodes[0], 1));
    ck_assert(w && w->tensor.dtype == GRT_DTYPE_INT64 && w->tensor.dims[0] == 2);
    ck_assert_int_eq(((int64_t *)w->tensor.data)[1], 1);
    ck_assert(!node_attr(model.nodes[0], "axes"));
    ck_assert_int_eq(model.opset, version);
}

START_TEST(axes_become_inputs)
{
    check_axes("Squeeze", 13);
    check_axes("Unsqueeze", 13);
    check_axes("ReduceSum", 13);
    check_axes("ReduceMean", 18);
    check_axes("ReduceMax", 18);
}
END_TEST

START_TEST(a_split_says_how_many)
{
    only_node("Split", false, 3);
    ck_assert(document_raise_opset(&model, 21) == GRT_OK);
    ck_assert_int_eq(node_int(model.nodes[0], "num_outputs", 0), 3);
}
END_TEST

static void check_refused(const char *op, int64_t version, const char *word)
{
    ck_assert_int_eq(document_raise_opset(&model, version), GRT_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(grt_last_error(), op) && strstr(grt_last_error(), "the node") &&
                      strstr(grt_last_error(), word),
                  "%s", grt_last_error());
}

START_TEST(what_changed_its_meaning_is_refused)
{
    only_node("Softmax", false, 1);
    check_refused("Softmax", 13, "axis");
    node_set_int(&model, model.nodes[0], "axis", -1);
    ck_assert(document_raise_opset(&model, 21) == GRT_OK);
    only_node("GroupNormalization", false, 1);
    ck_assert(document_raise_opset(&model, 20) == GRT_OK);
    check_refused("GroupNormalization", 21, "scale");
    only_node("Relu", false, 1);
    model.opset = 10;
    ck_assert_int_eq(document_raise_opset(&model, 13), GRT_STATUS_UNSUPPORTED);
}
END_TEST

static const char *const ops[] = {"Conv", "MatMul", "Gemm", NULL};

START_TEST(norms_go_into_convolutions)
{
    size_t folded;
    ck_assert(document_fold_norms(&model, &folded) == GRT_OK);
    ck_assert_uint_eq(folded, 3);
    for (size_t i = 0; i < model.n_nodes; i++)
        ck_assert(!node_is(model.nodes[i], "BatchNormalization"));
    ck_assert(node_is(model.nodes[0], "Conv") && model.nodes[0]->n_input == 3);
}
END_TEST

START_TEST(without_folding_norms_stay_between)
{
    quant_layers l;
    const layer_rules rules = {.ops = ops};
    ck_assert(layers_find(&l, &model, &rules) == GRT_OK);
    ck_assert_uint_eq(layers_active(&l), 4);
    layers_decide(&l);
    ck_assert_ptr_eq(l.layers[0].tail, l.layers[0].out);
}
END_TEST

static bool make_ramp(void *user, size_t index, grt_value **values)
{
    float data[128];
    (void)user;
    for (int i = 0; i < 128; i++)
        data[i] = (float)((i * 7 + (int)index * 13) % 17) / 16;
    const grt_tensor t = {.dtype = GRT_DTYPE_FLOAT, .rank = 4, .dims = {2, 1, 8, 8}, .data = data};
    return grt_value_from_tensor(&t, &values[0]) == GRT_OK;
}

static void observe(quant_layers *l, const samples *s, size_t most_bytes, observed *out)
{
    ck_assert_msg(observe_values(l, s, most_bytes, out) == GRT_OK, "%s", grt_last_error());
}

START_TEST(groups_of_values_see_the_same)
{
    size_t folded;
    quant_layers l;
    observed together, apart;
    const layer_rules rules = {.ops = ops};
    const grt_quantize_options options = {.struct_size = sizeof options,
                                          .calibration = GRT_CALIBRATION_MSE,
                                          .n_samples = 3,
                                          .sample = make_ramp,
                                          .threads = 1};
    samples s = {.options = &options, .original = &model};
    ck_assert(document_fold_norms(&model, &folded) == GRT_OK);
    ck_assert(layers_find(&l, &model, &rules) == GRT_OK);
    layers_number_values(&l);
    ck_assert(grt_runtime_create(&s.runtime) == GRT_OK);
    observe(&l, &s, OBSERVED_BYTES, &together);
    observe(&l, &s, 1000, &apart); /* less than one value: each has a group of its own */
    ck_assert(together.n > 4 && together.n == apart.n);
    for (size_t i = 0; i < apart.n; i++) {
        ck_assert(apart.list[i].count > 0 && apart.list[i].count == together.list[i].count);
        /* what the optimiser fuses differs, and with it the last bits */
        ck_assert_float_eq_tol(apart.list[i].high, together.list[i].high, 1e-4f);
        ck_assert_float_eq_tol(apart.list[i].low, together.list[i].low, 1e-4f);
    }
    observed_release(&together);
    observed_release(&apart);
    grt_runtime_release(s.runtime);
}
END_TEST

UNIT_SUITE(test_quantize_model, open_digits, close_digits, axes_become_inputs, a_split_says_how_many,
           what_changed_its_meaning_is_refused, norms_go_into_convolutions,
           without_folding_norms_stay_between, groups_of_values_see_the_same)
