/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in the forms in which exporters leave it, by family: after all passes it is one node, and no move
 * is left over. */
#include "tests/unit/ir_text.h"

#include <check.h>
#include <string.h>

/* torch.nn.MultiheadAttention (torchvision's ViT): sequence first, one projection cut by Transpose and
 * Gathers of one index, heads joined with the batch on the way, the result a matrix. */
#define TORCH_MHA(batch)                 \
    "in x f32 " batch ",5,8\n"           \
    "const w f32 24,8\n"                 \
    "const wb f32 24\n"                  \
    "const o f32 8,8\n"                  \
    "const ob f32 8\n"                   \
    "const c f32 - 0.840896\n"           \
    "const i0 i64 - 0\n"                 \
    "const i1 i64 - 1\n"                 \
    "const i2 i64 - 2\n"                 \
    "const s1 i64 5 5 " batch " 1 3 8\n" \
    "const s2 i64 3 5 -1 4\n"            \
    "const s3 i64 4 " batch " 2 5 4\n"   \
    "const s4 i64 2 -1 8\n"              \
    "const s5 i64 3 5 " batch " 8\n"     \
    "const two i64 1 3\n"                \
    "t = Transpose x perm=1,0,2\n"       \
    "wt = Transpose w perm=1,0\n"        \
    "m = MatMul t wt\n"                  \
    "a = Add m wb\n"                     \
    "r = Reshape a s1\n"                 \
    "rt = Transpose r perm=3,0,1,2,4\n"  \
    "z = Squeeze rt two\n"               \
    "q1 = Gather z i0 axis=0\n"          \
    "k1 = Gather z i1 axis=0\n"          \
    "v1 = Gather z i2 axis=0\n"          \
    "q2 = Reshape q1 s2\n"               \
    "k2 = Reshape k1 s2\n"               \
    "v2 = Reshape v1 s2\n"               \
    "q3 = Transpose q2 perm=1,0,2\n"     \
    "k3 = Transpose k2 perm=1,0,2\n"     \
    "v3 = Transpose v2 perm=1,0,2\n"     \
    "q4 = Reshape q3 s3\n"               \
    "k4 = Reshape k3 s3\n"               \
    "v4 = Reshape v3 s3\n"               \
    "kt = Transpose k4 perm=0,1,3,2\n"   \
    "q5 = Mul q4 c\n"                    \
    "k5 = Mul kt c\n"                    \
    "qk = MatMul q5 k5\n"                \
    "p = Softmax qk\n"                   \
    "y = MatMul p v4\n"                  \
    "y1 = Transpose y perm=2,0,1,3\n"    \
    "y2 = Reshape y1 s4\n"               \
    "y3 = Gemm y2 o ob transB=1\n"       \
    "y4 = Reshape y3 s5\n"               \
    "y5 = Transpose y4 perm=1,0,2\n"     \
    "out y5\n"

static int nodes_of(const ir_module *module, const char *op)
{
    int found = 0;
    IR_FOR_EACH_NODE (node, module->main)
        found += !strcmp(node->desc.op, op);
    return found;
}

START_TEST(torch_sequence_first)
{
    ir_text_check(TORCH_MHA("3"), "", "graphrt::MatMul graphrt::Attention graphrt::MatMul");
    ir_text_check(TORCH_MHA("1"), "", "graphrt::MatMul graphrt::Attention graphrt::MatMul");
}
END_TEST

/* timm: one projection, heads in five dims, cut by Split and Squeeze or by Gathers. */
START_TEST(timm_packed)
{
    ir_text_check("in x f32 2,5,8\n"
                  "const w f32 8,24\n"
                  "const c f32 - 0.5\n"
                  "const s1 i64 5 2 5 3 2 4\n"
                  "const s2 i64 3 2 5 8\n"
                  "const parts i64 3 1 1 1\n"
                  "const zero i64 1 0\n"
                  "m = MatMul x w\n"
                  "r = Reshape m s1\n"
                  "t = Transpose r perm=2,0,3,1,4\n"
                  "q0,k0,v0 = Split t parts axis=0\n"
                  "q = Squeeze q0 zero\n"
                  "k = Squeeze k0 zero\n"
                  "v = Squeeze v0 zero\n"
                  "qs = Mul q c\n"
                  "kt = Transpose k perm=0,1,3,2\n"
                  "qk = MatMul qs kt\n"
                  "p = Softmax qk\n"
                  "y = MatMul p v\n"
                  "y1 = Transpose y perm=0,2,1,3\n"
                  "y2 = Reshape y1 s2\n"
                  "out y2\n",
                  "", "graphrt::MatMul graphrt::Attention");
}
END_TEST

/* BLOOM, GPT-NeoX: queries, keys and values of a head side by side. The projection's columns are sorted
 * instead. ALiBi is a term. */
START_TEST(interleaved_heads_with_alibi)
{
    ir_text_check("in x f32 2,5,8\n"
                  "const w f32 8,24\n"
                  "const wb f32 24\n"
                  "const c f32 - 0.5\n"
                  "in alibi f32 2,2,1,5\n"
                  "const s1 i64 5 2 5 2 3 4\n"
                  "const s2 i64 3 2 5 8\n"
                  "const i0 i64 - 0\n"
                  "const i1 i64 - 1\n"
                  "const i2 i64 - 2\n"
                  "m = MatMul x w\n"
                  "a = Add m wb\n"
                  "r = Reshape a s1\n"
                  "q0 = Gather r i0 axis=3\n"
                  "k0 = Gather r i1 axis=3\n"
                  "v0 = Gather r i2 axis=3\n"
                  "q = Transpose q0 perm=0,2,1,3\n"
                  "k = Transpose k0 perm=0,2,3,1\n"
                  "v = Transpose v0 perm=0,2,1,3\n"
                  "qk = MatMul q k\n"
                  "sc = Mul qk c\n"
                  "al = Add sc alibi\n"
                  "p = Softmax al\n"
                  "y = MatMul p v\n"
                  "y1 = Transpose y perm=0,2,1,3\n"
                  "y2 = Reshape y1 s2\n"
                  "out y2\n",
                  "", "graphrt::MatMul graphrt::Attention");
}
END_TEST

/* Batch and heads joined: products of three dims, a mask that is repeated for the heads. */
START_TEST(joined_batch_and_heads)
{
    ir_text_check("in a f32 2,5,8\n"
                  "in b f32 2,7,8\n"
                  "in c f32 2,7,8\n"
                  "in mask f32 2,1,5,7\n"
                  "const h i64 4 0 0 2 4\n"
                  "const f i64 3 4 -1 4\n"
                  "const e i64 4 2 2 5 7\n"
                  "const g i64 3 4 5 7\n"
                  "const i i64 4 2 2 5 4\n"
                  "const j i64 3 2 5 8\n"
                  "q0 = Reshape a h\n"
                  "k0 = Reshape b h\n"
                  "v0 = Reshape c h\n"
                  "q1 = Transpose q0 perm=0,2,1,3\n"
                  "k1 = Transpose k0 perm=0,2,1,3\n"
                  "v1 = Transpose v0 perm=0,2,1,3\n"
                  "q = Reshape q1 f\n"
                  "k = Reshape k1 f\n"
                  "v = Reshape v1 f\n"
                  "kt = Transpose k perm=0,2,1\n"
                  "qk = MatMul q kt\n"
                  "m1 = Expand mask e\n"
                  "m2 = Reshape m1 g\n"
                  "s = Add qk m2\n"
                  "p = Softmax s\n"
                  "y = MatMul p v\n"
                  "y1 = Reshape y i\n"
                  "y2 = Transpose y1 perm=0,2,1,3\n"
                  "y3 = Reshape y2 j\n"
                  "out y3\n",
                  "", "Attention");
}
END_TEST

/* Swin: windows are the batch; a bias by head, and a mask by window that is added with the batch split. */
START_TEST(windows)
{
    ir_text_check("in x f32 6,4,24\n"
                  "const c f32 - 0.5\n"
                  "const bias f32 1,2,4,4\n"
                  "const mask f32 1,3,1,4,4\n"
                  "const s1 i64 5 6 4 3 2 4\n"
                  "const s2 i64 5 2 3 2 4 4\n"
                  "const s3 i64 4 6 2 4 4\n"
                  "const s4 i64 3 6 4 8\n"
                  "const i0 i64 - 0\n"
                  "const i1 i64 - 1\n"
                  "const i2 i64 - 2\n"
                  "r = Reshape x s1\n"
                  "t = Transpose r perm=2,0,3,1,4\n"
                  "q = Gather t i0 axis=0\n"
                  "k = Gather t i1 axis=0\n"
                  "v = Gather t i2 axis=0\n"
                  "qs = Mul q c\n"
                  "kt = Transpose k perm=0,1,3,2\n"
                  "qk = MatMul qs kt\n"
                  "b = Add qk bias\n"
                  "w = Reshape b s2\n"
                  "m = Add w mask\n"
                  "u = Reshape m s3\n"
                  "p = Softmax u\n"
                  "y = MatMul p v\n"
                  "y1 = Transpose y perm=0,2,1,3\n"
                  "y2 = Reshape y1 s4\n"
                  "out y2\n",
                  "", "graphrt::Attention");
}
END_TEST

/* The same where the batch is a dim of the model's input: the mask is repeated when the model runs. */
START_TEST(windows_of_any_batch)
{
    ir_module *module = ir_text("in x f32 n,3,4,24\n"
                                "const c f32 - 0.5\n"
                                "const mask f32 1,3,1,4,4\n"
                                "const s0 i64 3 -1 4 24\n"
                                "const s1 i64 5 -1 4 3 2 4\n"
                                "const s2 i64 5 -1 3 2 4 4\n"
                                "const s3 i64 4 -1 2 4 4\n"
                                "const s4 i64 3 -1 4 8\n"
                                "const i0 i64 - 0\n"
                                "const i1 i64 - 1\n"
                                "const i2 i64 - 2\n"
                                "x0 = Reshape x s0\n"
                                "r = Reshape x0 s1\n"
                                "t = Transpose r perm=2,0,3,1,4\n"
                                "q = Gather t i0 axis=0\n"
                                "k = Gather t i1 axis=0\n"
                                "v = Gather t i2 axis=0\n"
                                "qs = Mul q c\n"
                                "kt = Transpose k perm=0,1,3,2\n"
                                "qk = MatMul qs kt\n"
                                "w = Reshape qk s2\n"
                                "m = Add w mask\n"
                                "u = Reshape m s3\n"
                                "p = Softmax u\n"
                                "y = MatMul p v\n"
                                "y1 = Transpose y perm=0,2,1,3\n"
                                "y2 = Reshape y1 s4\n"
                                "out y2\n");
    ir_text_pass(module, "");
    const ir_node *made = ir_text_node(module, "Attention", 0);
    const ir_value *mask = ir_in(made, 3);
    ck_assert_ptr_nonnull(mask);
    ck_assert(mask->type.rank == 4 && mask->type.dims[0] == made->out[0]->type.dims[0]);
    ck_assert_ptr_nonnull(ir_text_node(module, "Expand", 0));
    ir_module_release(module);
}
END_TEST

/* Masks that are selected: hidden where a bool is true, or where it is false. */
#define SELECTED(where)                      \
    "in q f32 2,2,5,4\n"                     \
    "in k f32 2,2,5,4\n"                     \
    "in v f32 2,2,5,4\n"                     \
    "const c f32 - 2\n"                      \
    "const low f32 - -1e30\n"                \
    "const edge f32 1,1,1,5 0 1 0 0 0\n"     \
    "const half f32 - 0.5\n"                 \
    "keep = Less edge half\n"                \
    "kt = Transpose k perm=0,1,3,2\n"        \
    "qk = MatMul q kt\n"                     \
    "s = Div qk c\n" where "p = Softmax w\n" \
    "y = MatMul p v\n"                       \
    "out y\n"

START_TEST(selected_masks)
{
    ir_text_check(SELECTED("w = Where keep s low\n"), "", "Attention");
    ir_text_check(SELECTED("w = Where keep low s\n"), "", "Attention");
}
END_TEST

/* A row that is hidden altogether has equal weights, by whatever number: nothing is left of its scores. */
#define HIDDEN_ROWS(type, low)               \
    "in q " type " 1,2,3,4\n"                \
    "in k " type " 1,2,3,4\n"                \
    "in v " type " 1,2,3,4\n"                \
    "const low " type " - " low "\n"         \
    "const edge f32 1,1,3,3 0 1 0 1 1 1 0\n" \
    "const half f32 - 0.5\n"                 \
    "keep = Less edge half\n"                \
    "kt = Transpose k perm=0,1,3,2\n"        \
    "qk = MatMul q kt\n"                     \
    "w = Where keep qk low\n"                \
    "p = Softmax w\n"                        \
    "y = MatMul p v\n"                       \
    "out y\n"

START_TEST(hidden_rows)
{
    ir_text_check(HIDDEN_ROWS("f32", "-1e4"), "", "Attention");
    /* What is that low does not fit into float16. */
    ir_module *module = ir_text(HIDDEN_ROWS("f16", "-65504"));
    ir_text_pass(module, "");
    const ir_value *mask = ir_in(ir_text_node(module, "Attention", 0), 3);
    ck_assert_int_eq(mask->type.dtype, GRT_DTYPE_FLOAT);
    ir_module_release(module);
}
END_TEST

/* Gemma 2: a soft cap, then a mask. */
START_TEST(soft_cap)
{
    ir_text_check("in q f32 2,2,5,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "in mask f32 2,1,5,5\n"
                  "const c f32 - 0.5\n"
                  "const cap f32 - 3\n"
                  "kt = Transpose k perm=0,1,3,2\n"
                  "qk = MatMul q kt\n"
                  "s = Mul qk c\n"
                  "d = Div s cap\n"
                  "t = Tanh d\n"
                  "u = Mul t cap\n"
                  "m = Add u mask\n"
                  "p = Softmax m\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "", "Attention");
}
END_TEST

/* A scale behind a mask holds for the mask, too. */
START_TEST(scale_behind_the_mask)
{
    ir_text_check("in q f32 2,2,5,4\n"
                  "in k f32 2,2,5,4\n"
                  "in v f32 2,2,5,4\n"
                  "in mask f32 2,1,5,5\n"
                  "const c f32 - 0.5\n"
                  "kt = Transpose k perm=0,1,3,2\n"
                  "qk = MatMul q kt\n"
                  "m = Add qk mask\n"
                  "s = Mul m c\n"
                  "p = Softmax s\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "", "Mul Attention");
}
END_TEST

/* DeBERTa: one product is the scores, what is gathered from another is a term. */
START_TEST(relative_positions)
{
    ir_text_check("in q f32 4,5,4\n"
                  "in k f32 4,5,4\n"
                  "in v f32 4,5,4\n"
                  "in r f32 4,9,4\n"
                  "const i i64 4,5,5 0 1 2 3 4 5 6 7\n"
                  "const c f32 - 3\n"
                  "kt = Transpose k perm=0,2,1\n"
                  "qk = MatMul q kt\n"
                  "s = Div qk c\n"
                  "rt = Transpose r perm=0,2,1\n"
                  "qr = MatMul q rt\n"
                  "g = GatherElements qr i axis=2\n"
                  "gs = Div g c\n"
                  "a = Add s gs\n"
                  "p = Softmax a\n"
                  "y = MatMul p v\n"
                  "out y\n",
                  "", "graphrt::MatMul GatherElements Div Reshape Reshape Reshape Attention Reshape");
}
END_TEST

/* Heads repeated for groups, with symbolic batch and sequence. */
START_TEST(groups_with_symbolic_dims)
{
    ir_text_check("in a f32 b,s,16\n"
                  "in c f32 b,s,8\n"
                  "in d f32 b,s,8\n"
                  "const h i64 4 0 0 4 4\n"
                  "const j i64 4 0 0 2 4\n"
                  "const u i64 1 2\n"
                  "const e i64 5 1 1 2 1 1\n"
                  "const g i64 4 0 4 -1 4\n"
                  "const o i64 3 0 0 16\n"
                  "q0 = Reshape a h\n"
                  "k0 = Reshape c j\n"
                  "v0 = Reshape d j\n"
                  "q = Transpose q0 perm=0,2,1,3\n"
                  "k1 = Transpose k0 perm=0,2,1,3\n"
                  "v1 = Transpose v0 perm=0,2,1,3\n"
                  "k2 = Unsqueeze k1 u\n"
                  "v2 = Unsqueeze v1 u\n"
                  "k3 = Expand k2 e\n"
                  "v3 = Expand v2 e\n"
                  "k = Reshape k3 g\n"
                  "v = Reshape v3 g\n"
                  "kt = Transpose k perm=0,1,3,2\n"
                  "qk = MatMul q kt\n"
                  "p = Softmax qk\n"
                  "y = MatMul p v\n"
                  "y1 = Transpose y perm=0,2,1,3\n"
                  "y2 = Reshape y1 o\n"
                  "out y2\n",
                  "", "Attention");
}
END_TEST

/* A mask whose columns are a size of their own, which the product by the values says to be the number of
 * keys: each size of it that the scores do not have is broadcast to theirs. */
START_TEST(mask_with_columns_of_its_own)
{
    static const char *const masks[] = {"in m f32 1,1,s,c\n", "in m f32 c\n", "in m f32 b,1,1,c\n",
                                        "in m f32 2,s,c\n"};
    static const char *const uses[] = {"e = Add qk m\n",
                                       "z = Cast m to=9\nconst h f32 - -1e30\ne = Where z qk h\n",
                                       "f = Add qk m\nconst g f32 - 0.5\nd = Mul f g\ne = Add m d\n"};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        for (size_t k = 0; k < sizeof uses / sizeof *uses; k++) {
            grt_text text = {0};
            grt_text_add(&text,
                         "in q f32 b,2,s,4\nin kt f32 b,2,4,s\nin v f32 b,2,s,4\n%sqk = MatMul q kt\n%s"
                         "p = Softmax e\ny = MatMul p v\nout y\n",
                         masks[i], uses[k]);
            ir_text_check(grt_text_get(&text), "attention", NULL);
            ir_module *module = ir_text(grt_text_get(&text));
            ir_text_pass(module, "");
            (void)ir_text_node(module, "Attention", 0);
            ir_module_release(module);
            grt_text_release(&text);
        }
}
END_TEST

/* The same where keys have the columns of their own: one score may be repeated for all values. */
START_TEST(one_score_for_all_values)
{
    ir_text_check("in q f32 b,2,s,4\nin kt f32 b,2,4,c\nin v f32 b,2,s,4\nin m f32 1,1,s,s\n"
                  "qk = MatMul q kt\ne = Add qk m\np = Softmax e\ny = MatMul p v\nout y\n",
                  "attention", "MatMul Add Softmax MatMul");
}
END_TEST

/* Sequence first, with a batch of known size: queries, keys and values get projections of their own, and the
 * batch are heads. Not where a mask would be repeated for heads, and not where the batch is a symbol. */
START_TEST(sequence_first_apart)
{
    static const char *const masks[] = {"", "const m f32 5,5\n", "in m f32 2,1,5,5\n", "in m f32 2,3,1,5\n"};
    static const int turns[] = {0, 0, 2, 0};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        grt_text text = {0};
        grt_text_add(
            &text,
            "in x0 f32 5,2,12\nconst n f32 12\nconst w f32 12,36\nconst o f32 12,12\nconst h i64 4 5 2 3 "
            "4\n%s"
            "x = LayerNormalization x0 n\nqkv = MatMul x w\nq0,k0,v0 = Split qkv axis=2 num_outputs=3\n"
            "q1 = Reshape q0 h\nk1 = Reshape k0 h\nv1 = Reshape v0 h\nq = Transpose q1 perm=1,2,0,3\n"
            "kt = Transpose k1 perm=1,2,3,0\nv = Transpose v1 perm=1,2,0,3\nqk = MatMul q kt\n%s"
            "p = Softmax e\na = MatMul p v\nat = Transpose a perm=2,0,1,3\nconst j i64 3 5 2 12\n"
            "f = Reshape at j\ny = MatMul f o\nz = Add y x0\nout z\n",
            masks[i], i ? "e = Add qk m\n" : "const half f32 - 0.5\ne = Mul qk half\n");
        ir_text_check(grt_text_get(&text), "", NULL);
        ir_module *module = ir_text(grt_text_get(&text));
        ir_text_pass(module, "");
        const int found = nodes_of(module, "Transpose");
        ck_assert_msg(found == turns[i], "mask %zu: %d Transposes: %s", i, found, ir_text_ops(module));
        ir_module_release(module);
        grt_text_release(&text);
    }
}
END_TEST

/* Who else reads the projection keeps it: it is not made twice. Who reads its dims does not. */
START_TEST(sequence_first_read_elsewhere)
{
    static const char *const reads[] = {"", "out qkv\n", "g = Relu qkv\nout g\n", "g = Shape qkv\nout g\n"};
    static const int products[] = {4, 2, 2, 4};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        grt_text text = {0};
        grt_text_add(&text,
                     "in x f32 s,2,12\nconst w f32 12,36\nconst b f32 36\nconst o f32 12,12\n"
                     "const h i64 3 -1 6 4\nqkv0 = MatMul x w\nqkv = Add qkv0 b\n"
                     "q0,k0,v0 = Split qkv axis=2 num_outputs=3\nq1 = Reshape q0 h\nk1 = Reshape k0 h\n"
                     "v1 = Reshape v0 h\nq = Transpose q1 perm=1,0,2\nkt = Transpose k1 perm=1,2,0\n"
                     "v = Transpose v1 perm=1,0,2\nqk = MatMul q kt\np = Softmax qk\na = MatMul p v\n"
                     "at = Transpose a perm=1,0,2\nconst j i64 3 -1 2 12\nf = Reshape at j\ny = MatMul f o\n"
                     "out y\n%s",
                     reads[i]);
        ir_text_check(grt_text_get(&text), "", NULL);
        ir_module *module = ir_text(grt_text_get(&text));
        ir_text_pass(module, "");
        const int found = nodes_of(module, "MatMul");
        ck_assert_msg(found == products[i], "%zu: %d products: %s", i, found, ir_text_ops(module));
        ir_module_release(module);
        grt_text_release(&text);
    }
}
END_TEST

/* What is not attention stays: a softmax over queries, weights that are an output, a scale by row. */
START_TEST(near_misses)
{
    const char *start = "in q f32 2,2,5,4\n"
                        "in k f32 2,2,5,4\n"
                        "in v f32 2,2,5,4\n"
                        "in row f32 5,1\n"
                        "kt = Transpose k perm=0,1,3,2\n"
                        "qk = MatMul q kt\n";
    const char *ends[] = {"p = Softmax qk axis=2\ny = MatMul p v\nout y\n",
                          "p = Softmax qk\ny = MatMul p v\nout y\nout p\n",
                          "s = Mul qk row\np = Softmax s\ny = MatMul p v\nout y\n"};
    const char *expected[] = {"Transpose MatMul Softmax MatMul", "Transpose MatMul Softmax MatMul",
                              "Transpose MatMul Mul Softmax MatMul"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        grt_text text = {0};
        grt_text_add(&text, "%s%s", start, ends[i]);
        ir_text_check(grt_text_get(&text), "attention", expected[i]);
        grt_text_release(&text);
    }
}
END_TEST

Suite *suite_test_attention_exports(void)
{
    Suite *suite = suite_create("attention_exports");
    TCase *tc = tcase_create("all");
    tcase_add_test(tc, torch_sequence_first);
    tcase_add_test(tc, timm_packed);
    tcase_add_test(tc, interleaved_heads_with_alibi);
    tcase_add_test(tc, joined_batch_and_heads);
    tcase_add_test(tc, windows);
    tcase_add_test(tc, windows_of_any_batch);
    tcase_add_test(tc, selected_masks);
    tcase_add_test(tc, hidden_rows);
    tcase_add_test(tc, soft_cap);
    tcase_add_test(tc, scale_behind_the_mask);
    tcase_add_test(tc, relative_positions);
    tcase_add_test(tc, groups_with_symbolic_dims);
    tcase_add_test(tc, mask_with_columns_of_its_own);
    tcase_add_test(tc, one_score_for_all_values);
    tcase_add_test(tc, sequence_first_apart);
    tcase_add_test(tc, sequence_first_read_elsewhere);
    tcase_add_test(tc, near_misses);
    suite_add_tcase(suite, tc);
    return suite;
}
