/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, n-grams, trees. */
#include "tests/unit/op_runner.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

#define ML "ai.onnx.ml"

START_TEST(test_labels)
{
    const float keys[] = {1, NAN, 2, 1}, x[] = {1, 2, NAN, 3, -NAN};
    const int64_t values[] = {10, 20, 30, 40},
                  expected[] = {40, 30, 20, -5, 20}; /* of equal keys the last one counts */
    op_runner r;
    op_begin(&r, ML, "LabelEncoder");
    op_floats(&r, "keys_floats", keys, 4);
    op_ints(&r, "values_int64s", values, 4);
    op_int(&r, "default_int64", -5);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){5}, x);
    op_run_ok(&r, 1);
    ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
    op_end(&r);
}
END_TEST

START_TEST(test_labels_refuse_misfits)
{
    const float keys[] = {1, 2}, x[] = {1};
    const int64_t values[] = {10};
    op_runner r;
    op_begin(&r, ML, "LabelEncoder");
    op_floats(&r, "keys_floats", keys, 2);
    op_ints(&r, "values_int64s", values, 1);
    op_add(&r, GRT_DTYPE_FLOAT, 1, (const int64_t[]){1}, x);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    op_end(&r);
}
END_TEST

START_TEST(test_ngrams)
{
    /* unigrams 1, 2; bigrams 1 2, 2 1 */
    const int64_t pool[] = {1, 2, 1, 2, 2, 1}, counts[] = {0, 2}, columns[] = {3, 2, 1, 0}, x[] = {1, 2, 1};
    const float weights[] = {1, 2, 3, 4}, expected[] = {1 * 1, 2 * 1, 3 * 1, 4 * 2};
    op_runner r;
    op_begin(&r, "", "TfIdfVectorizer");
    op_string(&r, "mode", "TFIDF");
    op_int(&r, "min_gram_length", 1);
    op_int(&r, "max_gram_length", 2);
    op_int(&r, "max_skip_count", 0);
    op_ints(&r, "pool_int64s", pool, 6);
    op_ints(&r, "ngram_counts", counts, 2);
    op_ints(&r, "ngram_indexes", columns, 4);
    op_floats(&r, "weights", weights, 4);
    op_add(&r, GRT_DTYPE_INT64, 1, (const int64_t[]){3}, x);
    op_run_ok(&r, 1);
    ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
    op_end(&r);
}
END_TEST

/* x0 <= 0.5 ? (x1 > 2 ? leaf 0 : leaf 1) : leaf 2 */
static const int64_t features[] = {0, 1}, true_ids[] = {1, 0}, false_ids[] = {2, 1}, true_leafs[] = {0, 1},
                     false_leafs[] = {1, 1}, targets[] = {0, 1, 1}, roots[] = {0};

static void begin_tree_of(op_runner *r, const int64_t *children, const int64_t *by, int64_t n_targets)
{
    static uint8_t mode_data[] = {0, 3};
    static float split_data[] = {0.5f, 2}, weight_data[] = {10, 20, 30};
    static const grt_tensor modes = {.dtype = GRT_DTYPE_UINT8, .rank = 1, .dims = {2}, .data = mode_data};
    static const grt_tensor splits = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {2}, .data = split_data};
    static const grt_tensor weights = {.dtype = GRT_DTYPE_FLOAT, .rank = 1, .dims = {3}, .data = weight_data};
    op_begin(r, ML, "TreeEnsemble");
    op_int(r, "n_targets", n_targets);
    op_ints(r, "nodes_featureids", by, 2);
    op_ints(r, "nodes_truenodeids", children, 2);
    op_ints(r, "nodes_falsenodeids", false_ids, 2);
    op_ints(r, "nodes_trueleafs", true_leafs, 2);
    op_ints(r, "nodes_falseleafs", false_leafs, 2);
    op_ints(r, "leaf_targetids", targets, 3);
    op_ints(r, "tree_roots", roots, 1);
    op_tensor(r, "nodes_modes", &modes);
    op_tensor(r, "nodes_splits", &splits);
    op_tensor(r, "leaf_weights", &weights);
}

static void begin_tree(op_runner *r, const int64_t *children)
{
    begin_tree_of(r, children, features, 2);
}

START_TEST(test_tree)
{
    const float x[] = {0.5f, 3, 0, 2, 1, 0, NAN, 9}, expected[] = {10, 0, 0, 20, 0, 30, 0, 30};
    op_runner r;
    begin_tree(&r, true_ids);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){4, 2}, x);
    op_run_ok(&r, 1);
    ck_assert_mem_eq(r.out[0].t.data, expected, sizeof expected);
    op_end(&r);
}
END_TEST

START_TEST(test_tree_refuses_cycles_and_strays)
{
    static const int64_t cycle[] = {0, 0}, stray[] = {7, 0};
    const float x[] = {0, 0};
    for (int i = 0; i < 2; i++) {
        op_runner r;
        begin_tree(&r, i ? stray : cycle);
        op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 2}, x);
        ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
        op_end(&r);
    }
}
END_TEST

START_TEST(test_tree_refuses_few_features)
{
    const float x[] = {0};
    op_runner r;
    begin_tree(&r, true_ids);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 1}, x);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_ARGUMENT);
    op_end(&r);
}
END_TEST

START_TEST(test_tree_refuses_absurd_sizes)
{
    const float x[] = {0, 0};
    const int64_t far[] = {0, INT64_MAX};
    op_runner r;
    begin_tree_of(&r, true_ids, far, 2);
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){1, 2}, x);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_INVALID_MODEL);
    op_end(&r);
    begin_tree_of(&r, true_ids, features, INT64_MAX / 4); /* no row, so no result is too large */
    op_add(&r, GRT_DTYPE_FLOAT, 2, (const int64_t[]){0, 2}, x);
    ck_assert_int_eq(op_run(&r, 1), GRT_STATUS_OUT_OF_MEMORY);
    op_end(&r);
}
END_TEST

UNIT_SUITE(test_ml, NULL, NULL, test_labels, test_labels_refuse_misfits, test_ngrams, test_tree,
           test_tree_refuses_cycles_and_strays, test_tree_refuses_few_features,
           test_tree_refuses_absurd_sizes)
