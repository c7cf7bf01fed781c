/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: X[n,4] -> Conv-like kernel with every attribute kind -> view -> If with two bodies, one of which
 * captures a value and holds a Loop; a string weight, two equal weights, an empty one, a scalar and a default
 * of an input; and two choices of algorithms. */
#include "tests/unit/plan_sample.h"

#include "src/algos/db.h"

#include <string.h>

static const float ramp[4] = {0, 1, 2, 3};
static const float ramp_copy[4] = {0, 1, 2, 3};
static const int64_t forty_two = 42;
static const bool yes = true;
static const grt_string words[2] = {{"hello", 5}, {"a\0b", 3}};
static const int64_t ints[3] = {-1, 0, INT64_MAX};
static const float floats[2] = {0.5f, -0.0f};

enum { DIM_1, DIM_2, DIM_4, DIM_N, DIM_4N, DIM_0, DIMS };
static const grt_dim_expr dims[DIMS] = {
    [DIM_1] = {GRT_DIM_CONST, -1, -1, 1},      [DIM_2] = {GRT_DIM_CONST, -1, -1, 2},
    [DIM_4] = {GRT_DIM_CONST, -1, -1, 4},      [DIM_N] = {GRT_DIM_SYMBOL, -1, -1, 0},
    [DIM_4N] = {GRT_DIM_MUL, DIM_4, DIM_N, 0}, [DIM_0] = {GRT_DIM_CONST, -1, -1, 0},
};
static const char *const symbols[] = {"batch"};

enum { W_RAMP, W_COPY, W_SCALAR, W_EMPTY, W_WORDS, W_YES, WEIGHTS };
static const grt_tensor weights[WEIGHTS] = {
    [W_RAMP] = {GRT_DTYPE_FLOAT, 1, {4}, (void *)ramp, 0, 0},
    [W_COPY] = {GRT_DTYPE_FLOAT, 2, {1, 4}, (void *)ramp_copy, 0, 0},
    [W_SCALAR] = {GRT_DTYPE_INT64, 0, {0}, (void *)&forty_two, 0, 0},
    [W_EMPTY] = {GRT_DTYPE_FLOAT, 2, {0, 4}, NULL, 0, 0},
    [W_WORDS] = {GRT_DTYPE_STRING, 1, {2}, (void *)words, 0, 0},
    [W_YES] = {GRT_DTYPE_BOOL, 0, {0}, (void *)&yes, 0, 0},
};

static const int32_t dims_n4[] = {DIM_N, DIM_4}, dims_flat[] = {DIM_4N}, dims_4[] = {DIM_4},
                     dims_14[] = {DIM_1, DIM_4}, dims_04[] = {DIM_0, DIM_4}, dims_2[] = {DIM_2};

#define TENSOR(name, role, dtype, rank, dims, weight, is_static)                                           \
    {                                                                                                      \
        name, GRT_VALUE_##role, GRT_KIND_TENSOR, GRT_KIND_TENSOR, GRT_DTYPE_##dtype, GRT_DTYPE_NONE, rank, \
            dims, weight, is_static                                                                        \
    }

enum { X, FLAG, RAMP, COPY, EMPTY, WORDS, HIDDEN, FLAT, Y, VALUES };
static const grt_plan_value main_values[VALUES] = {
    [X] = TENSOR("x", INPUT, FLOAT, 2, dims_n4, -1, true),
    [FLAG] = TENSOR("flag", INPUT, BOOL, 0, NULL, W_YES, true),
    [RAMP] = TENSOR("ramp", CONST, FLOAT, 1, dims_4, W_RAMP, true),
    [COPY] = TENSOR("copy", CONST, FLOAT, 2, dims_14, W_COPY, true),
    [EMPTY] = TENSOR("empty", CONST, FLOAT, 2, dims_04, W_EMPTY, true),
    [WORDS] = TENSOR("words", CONST, STRING, 1, dims_2, W_WORDS, true),
    [HIDDEN] = TENSOR("hidden", STEP, FLOAT, 2, dims_n4, -1, true),
    [FLAT] = TENSOR("flat", STEP, FLOAT, 1, dims_flat, -1, true),
    [Y] = {"y", GRT_VALUE_STEP, GRT_KIND_OPTIONAL, GRT_KIND_SEQUENCE, GRT_DTYPE_FLOAT, GRT_DTYPE_NONE, -1,
           NULL, -1, false},
};

static const grt_attr attributes[] = {
    {.name = "i", .kind = GRT_ATTR_INT, .i = INT64_MIN},
    {.name = "f", .kind = GRT_ATTR_FLOAT, .f = 1.5f},
    {.name = "s", .kind = GRT_ATTR_STRING, .s = {"x\0y", 3}},
    {.name = "t", .kind = GRT_ATTR_TENSOR, .t = &weights[W_RAMP]},
    {.name = "words", .kind = GRT_ATTR_TENSOR, .t = &weights[W_WORDS]},
    {.name = "ints", .kind = GRT_ATTR_INTS, .ints = {ints, 3}},
    {.name = "floats", .kind = GRT_ATTR_FLOATS, .floats = {floats, 2}},
    {.name = "strings", .kind = GRT_ATTR_STRINGS, .strings = {words, 2}},
    {.name = "none", .kind = GRT_ATTR_INTS, .ints = {NULL, 0}},
    {.name = "type", .kind = GRT_ATTR_TYPE, .type = {GRT_KIND_SEQUENCE, GRT_DTYPE_FLOAT16}},
};
static const grt_attr branches[] = {{.name = "then_branch", .kind = GRT_ATTR_GRAPH, .body = 1},
                                    {.name = "else_branch", .kind = GRT_ATTR_GRAPH, .body = 2}};
static const grt_attr loop_body[] = {{.name = "body", .kind = GRT_ATTR_GRAPH, .body = 3}};

static const int32_t kernel_in[] = {X, -1, RAMP, COPY, EMPTY, WORDS}, kernel_out[] = {HIDDEN, -1},
                     view_in[] = {HIDDEN}, view_out[] = {FLAT}, if_in[] = {FLAG}, if_out[] = {Y},
                     if_bodies[] = {1, 2};
static const grt_plan_step main_steps[] = {
    {GRT_STEP_KERNEL,
     {"graphrt", "Sample", "conv1+relu1", attributes, 10},
     6,
     2,
     0,
     kernel_in,
     kernel_out,
     NULL,
     true,
     1e9},
    {GRT_STEP_VIEW, {"", "Flatten", "flatten1", NULL, 0}, 1, 1, 0, view_in, view_out, NULL, true, 0},
    {GRT_STEP_IF, {"", "If", "if1", branches, 2}, 1, 1, 2, if_in, if_out, if_bodies, false, 0},
};
static const int32_t main_inputs[] = {X, FLAG}, main_outputs[] = {Y, X};

/* Body 1 captures `flat`; body 2 has a loop (body 3). */
static const grt_plan_value then_values[] = {TENSOR("flat", CAPTURE, FLOAT, 1, dims_flat, -1, true)};
static const int32_t captures_outer[] = {FLAT}, zero[] = {0}, one[] = {1}, three[] = {3};
static const grt_plan_value else_values[] = {
    TENSOR("trips", CONST, INT64, 0, NULL, W_SCALAR, true),
    {"carried", GRT_VALUE_STEP, GRT_KIND_TENSOR, GRT_KIND_TENSOR, GRT_DTYPE_FLOAT, GRT_DTYPE_NONE, -1, NULL,
     -1, false},
};
static const int32_t loop_in[] = {0, -1};
static const grt_plan_step else_steps[] = {
    {GRT_STEP_LOOP, {"", "Loop", "loop1", loop_body, 1}, 2, 1, 1, loop_in, one, three, false, 0}};
static const grt_plan_value loop_values[] = {TENSOR("i", INPUT, INT64, 0, NULL, -1, true),
                                             TENSOR("go", INPUT, BOOL, 0, NULL, -1, true)};
static const char *const main_output_names[] = {"y", "x"}, *const loop_output_names[] = {"a", "b"};
static const char *const branch_output_names[] = {"result"};
static const int32_t loop_inputs[] = {0, 1}, loop_outputs[] = {1, 0};

static const grt_plan_body bodies[] = {
    {"main", VALUES, 3, 2, 2, 0, main_values, main_steps, main_inputs, main_outputs, main_output_names, NULL,
     NULL, -1},
    {"then", 1, 0, 0, 1, 1, then_values, NULL, NULL, zero, branch_output_names, captures_outer, zero, 0},
    {"else", 2, 1, 0, 1, 0, else_values, else_steps, NULL, one, branch_output_names, NULL, NULL, 0},
    {"loop", 2, 0, 2, 2, 0, loop_values, NULL, loop_inputs, loop_outputs, loop_output_names, NULL, NULL, 2},
};

static const grt_choice tuning[] = {
    {.key = "op=Conv;gpu=NVIDIA H200;sm=90;driver=0;cudnn=91900;n=1;",
     .data = "1 \0 two",
     .size = 7,
     .source = 1},
    {.key = "op=Conv;gpu=NVIDIA H200;sm=90;driver=0;cudnn=91900;n=2;",
     .data = "",
     .source = 2,
     .cost_ms = 0.25},
};

grt_plan *plan_sample(void)
{
    grt_arena *arena = grt_arena_create();
    grt_plan *plan = arena ? GRT_ARENA_NEW(arena, grt_plan) : NULL;
    if (!plan) {
        grt_arena_release(arena);
        return NULL;
    }
    *plan = (grt_plan){.arena = arena,
                       .n_bodies = 4,
                       .n_weights = WEIGHTS,
                       .n_dims = DIMS,
                       .n_symbols = 1,
                       .bodies = bodies,
                       .weights = weights,
                       .dims = dims,
                       .symbols = symbols,
                       .target = "cpu",
                       .producer = "test 1.0",
                       .opset = 28,
                       .source_nodes = 5,
                       .parameters = 12,
                       .arena_bytes = 4096,
                       .flops = 1e9,
                       .choices = tuning,
                       .n_choices = 2,
                       .options = "level=2"};
    return plan;
}

void plan_reseal(void *bytes, size_t size)
{
    if (size < PLAN_PAGE)
        return;
    plan_header header;
    memcpy(&header, bytes, sizeof header);
    for (uint32_t i = 0; i < header.n_sections && i < PLAN_MAX_SECTIONS; i++) {
        plan_section *s = &header.sections[i];
        if (s->offset <= size && s->length <= size - s->offset)
            (void)plan_checksum((const char *)bytes + s->offset, (size_t)s->length, &s->checksum);
    }
    memcpy(bytes, &header, sizeof header);
    header.checksum = plan_header_checksum(bytes);
    memcpy(bytes, &header, sizeof header);
}
