/* SPDX-License-Identifier: Apache-2.0 */
/* Expansions of inputs of any dtype: each says what is wrong with them, or leaves simpler ops. One whose
 * result is to be expanded again, without an end, is an error of the library and never of the model. */
#include "tests/unit/ir_text.h"
#include "tests/unit/suite.h"
#include "graph/ir/infer.h"

#include <check.h>
#include <string.h>

#define TREE                                                                                           \
    "nodes_treeids=0,0,0 nodes_nodeids=0,1,2 nodes_featureids=0,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF " \
    "nodes_values=0.5,0,0 nodes_truenodeids=1,0,0 nodes_falsenodeids=2,0,0"

/* Inputs of one dtype change it together. Those that may differ have different ones here, so that each can
 * have any beside the others. */
static const struct {
    const char *op, *text;
} samples[] = {
    {"Attention", "in q f32 2,2,3,4\nin k f32 2,2,5,4\nin v f16 2,2,5,4\nin m i64 3,5\n"
                  "y = Attention q k v m\nout y\n"},
    {"Attention", "in q f32 2,2,3,4\nin m i64 3,3\ny = Attention q q q m\nout y\n"},
    {"Attention", "in q f32 b,s,8\nin m i64 s,s\n"
                  "y = Attention q q q m q_num_heads=2 kv_num_heads=2\nout y\n"},
    {"FlexAttention",
     "in q f32 2,4,3,8\nin k f32 2,2,5,8\ny = ai.onnx.preview::FlexAttention q k k\nout y\n"},
    {"RotaryEmbedding", "in x f32 2,4,2,8\nin c f32 1,2,4\ny = RotaryEmbedding x c c\nout y\n"},
    {"RotaryEmbedding", "in x f32 b,s,32\nin c f32 1,s,4\ny = RotaryEmbedding x c c num_heads=4\nout y\n"},
    {"RotaryEmbedding", "in x f32 2,4,2,8\nin c f32 9,4\nin i i64 2,2\n"
                        "y = RotaryEmbedding x c c i\nout y\n"},
    {"Einsum", "in x f32 2,3\ny = Einsum x equation=ij->j\nout y\n"},
    {"Einsum", "in x f32 2,3\nin w f32 3,4\ny = Einsum x w equation=ij,jk->ik\nout y\n"},
    {"Einsum", "in x f32 1,3\nin w f32 b,3\ny = Einsum x w equation=bi,bi->b\nout y\n"},
    {"Einsum", "in x f32 3\nin w f32 4\ny = Einsum x w equation=i,j->ij\nout y\n"},
    {"Einsum", "in x f32 b,3\nin w f32 3,4\nin v f32 4,5\ny = Einsum x w v equation=ij,jk,kl->il\nout y\n"},
    {"Einsum", "in x f32 3,3\nin w f32 3,4\nin v f32 4\ny = Einsum x w v equation=ii,...k,k->...\nout y\n"},
    {"DynamicQuantizeLSTM",
     "in x f32 s,1,3\nin w u8 1,3,16\nin r u8 1,4,16\nin l i32 1\nin scale f32 1\nin zero u8 1\n"
     "y,h,c = com.microsoft::DynamicQuantizeLSTM x w r _ l _ _ _ scale zero scale zero hidden_size=4\n"
     "out y\n"},
    {"CastMap", "in x map:f32 -\ny = ai.onnx.ml::CastMap x cast_to=TO_FLOAT\nout y\n"},
    {"CastMap", "in x map:f32 -\ny = ai.onnx.ml::CastMap x cast_to=TO_INT64\nout y\n"},
    {"CastMap",
     "in x map:f32 -\ny = ai.onnx.ml::CastMap x cast_to=TO_STRING map_form=SPARSE max_map=4\nout y\n"},
    {"TreeEnsembleClassifier",
     "in x f32 n,2\ny,z = ai.onnx.ml::TreeEnsembleClassifier x " TREE
     " class_treeids=0,0 class_nodeids=1,2 class_ids=0,1 class_weights=1,2 classlabels_int64s=0,1\nout y\n"},
    {"TreeEnsembleRegressor", "in x f32 n,2\ny = ai.onnx.ml::TreeEnsembleRegressor x " TREE
                              " target_treeids=0,0 target_nodeids=1,2 target_ids=0,0 target_weights=1,2\n"
                              "out y\n"},
    {"FeatureVectorizer", "in x f32 n,2\nin z f32 n,3\ny = ai.onnx.ml::FeatureVectorizer x z "
                          "inputdimensions=2,3\nout y\n"},
    {"Imputer", "in x f32 n,2\n"
                "y = ai.onnx.ml::Imputer x imputed_value_floats=1,2 imputed_value_int64s=1,2\nout y\n"},
    {"LinearClassifier", "in x f32 n,2\ny,z = ai.onnx.ml::LinearClassifier x coefficients=1,2,3,4 "
                         "intercepts=1,2 classlabels_ints=0,1\nout y\n"},
    {"LinearRegressor", "in x f32 n,2\ny = ai.onnx.ml::LinearRegressor x coefficients=1,2\nout y\n"},
    {"Normalizer", "in x f32 n,2\ny = ai.onnx.ml::Normalizer x norm=L2\nout y\n"},
    {"OneHotEncoder", "in x i64 n\ny = ai.onnx.ml::OneHotEncoder x cats_int64s=3,4\nout y\n"},
    {"OneHotEncoder", "in x str n\ny = ai.onnx.ml::OneHotEncoder x cats_strings=a,b zeros=0\nout y\n"},
    {"Scaler", "in x f32 n,2\ny = ai.onnx.ml::Scaler x offset=1,2 scale=3,4\nout y\n"},
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

START_TEST(rows_with_an_expansion_have_samples)
{
    const op_row *row;
    for (size_t i = 0; (row = op_at(i)); i++) {
        bool found = !row->expand;
        for (size_t k = 0; k < N_SAMPLES; k++)
            found |= !strcmp(samples[k].op, row->name);
        ck_assert_msg(found, "%s::%s has an expansion and no sample", row->domain, row->name);
    }
}
END_TEST

/* The CPU without kernels for the sample's op, which is target->user. */
static bool supports_others(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                            int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    const grt_target cpu = ir_text_target();
    return strcmp(desc->op, target->user) != 0 && cpu.supports(&cpu, desc, in, n_in, out, n_out, why);
}

static bool supports_none(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in,
                          int32_t n_in, const grt_tensor *out, int32_t n_out, grt_text *why)
{
    (void)(target && desc && in && n_in && out && n_out && why);
    return false;
}

typedef struct variant {
    grt_dtype of, dtype; /* inputs that the text gives dtype `of` have this one */
    grt_dtype others;    /* NONE: as the text says */
    bool no_ranks;       /* inputs are of any rank */
    bool no_kernels;
} variant;

static void vary(ir_module *m, const variant *v)
{
    for (int32_t i = 0; i < m->main->n_inputs; i++) {
        ir_type *type = &m->main->inputs[i]->type;
        const grt_dtype other = v->others ? v->others : type->dtype;
        type->dtype = type->dtype == v->of ? v->dtype : other;
        type->rank = v->no_ranks ? -1 : type->rank;
    }
    IR_FOR_EACH_NODE (node, m->main)
        node->check_types = true;
}

/* False if the model is refused before. */
static bool legalise_variant(size_t sample, const variant *v)
{
    ir_module *m = ir_text_read(samples[sample].text);
    grt_target target = ir_text_target();
    target.supports = v->no_kernels ? supports_none : supports_others;
    target.user = (char *)samples[sample].op;
    pass_context context = {.module = m, .target = &target};
    vary(m, v);
    const bool valid = ir_infer(m) == GRT_OK;
    const grt_status status = valid ? pass_legalise(&context) : GRT_OK;
    if (status == GRT_OK && valid)
        ck_assert_msg(ir_verify(m) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(status == GRT_OK || status == GRT_STATUS_INVALID_MODEL || status == GRT_STATUS_UNSUPPORTED,
                  "%s%s of %s, others of %s: %s", samples[sample].text, v->no_ranks ? "without ranks, " : "",
                  grt_dtype_name(v->dtype), grt_dtype_name(v->others), grt_last_error());
    ir_module_release(m);
    return valid;
}

/* Inputs of dtype `of` have each dtype, all others their own or each. */
static void try_all(size_t sample, grt_dtype of)
{
    for (int dtype = 1; dtype < GRT_DTYPE_COUNT; dtype++)
        for (int others = GRT_DTYPE_NONE; others < GRT_DTYPE_COUNT; others++)
            for (int form = 0; form < 4; form++)
                legalise_variant(sample,
                                 &(variant){of, (grt_dtype)dtype, (grt_dtype)others, form & 1, form & 2});
}

START_TEST(expansions_of_any_dtype_end)
{
    ir_module *m = ir_text_read(samples[_i].text);
    for (int of = 1; of < GRT_DTYPE_COUNT; of++) {
        bool has = false;
        for (int32_t i = 0; i < m->main->n_inputs; i++)
            has |= m->main->inputs[i]->type.dtype == (grt_dtype)of;
        if (has)
            try_all((size_t)_i, (grt_dtype)of);
    }
    ir_module_release(m);
}
END_TEST

/* The samples themselves are valid: what the others vary is not refused for another reason. */
START_TEST(samples_are_accepted)
{
    ck_assert_msg(legalise_variant((size_t)_i, &(variant){0}), "%s%s", samples[_i].text, grt_last_error());
}
END_TEST

Suite *suite_test_pass_legalise_dtypes(void);
Suite *suite_test_pass_legalise_dtypes(void)
{
    Suite *suite = suite_create("pass_legalise_dtypes");
    TCase *all = tcase_create("all");
    tcase_add_test(all, rows_with_an_expansion_have_samples);
    tcase_add_loop_test(all, samples_are_accepted, 0, N_SAMPLES);
    tcase_add_loop_test(all, expansions_of_any_dtype_end, 0, N_SAMPLES);
    suite_add_tcase(suite, all);
    return suite;
}
