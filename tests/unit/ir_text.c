/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs from text, and an interpreter for them. */
#include "graph/ir/infer.h"
#include "tests/unit/ir_text.h"

#include "src/base/element.h"
#include "graph/compile.h"
#include "src/target/target.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64, MAX_VALUES = 256, SYMBOL_VALUE = 3 };

typedef struct reader {
    ir_module *module;
    char *words[MAX_WORDS];
    int n_words;
    struct {
        char name[32];
        ir_value *value;
    } values[MAX_VALUES];
    int n_values;
    unsigned seed;
} reader;

static void remember(reader *r, const char *name, ir_value *value)
{
    ck_assert_int_lt(r->n_values, MAX_VALUES);
    snprintf(r->values[r->n_values].name, sizeof r->values[0].name, "%s", name);
    r->values[r->n_values++].value = value;
}

static ir_value *find(const reader *r, const char *name)
{
    if (!strcmp(name, "_"))
        return NULL;
    for (int i = 0; i < r->n_values; i++)
        if (!strcmp(r->values[i].name, name))
            return r->values[i].value;
    ck_abort_msg("no value '%s'", name);
}

static grt_dtype dtype_of(const char *word)
{
    static const struct {
        const char *word;
        grt_dtype dtype;
    } dtypes[] = {{"f32", GRT_DTYPE_FLOAT},
                  {"f64", GRT_DTYPE_DOUBLE},
                  {"f16", GRT_DTYPE_FLOAT16},
                  {"i64", GRT_DTYPE_INT64},
                  {"i32", GRT_DTYPE_INT32},
                  {"bool", GRT_DTYPE_BOOL},
                  {"str", GRT_DTYPE_STRING},
                  {"u8", GRT_DTYPE_UINT8},
                  {"i8", GRT_DTYPE_INT8},
                  {"e4m3", GRT_DTYPE_FLOAT8E4M3FN}, /* constants are codes */
                  {"u4", GRT_DTYPE_UINT4},
                  {"i4", GRT_DTYPE_INT4},
                  {"u2", GRT_DTYPE_UINT2},
                  {"i2", GRT_DTYPE_INT2},
                  {"e5m2", GRT_DTYPE_FLOAT8E5M2},
                  {"e4m3z", GRT_DTYPE_FLOAT8E4M3FNUZ},
                  {"e5m2z", GRT_DTYPE_FLOAT8E5M2FNUZ},
                  {"e2m1", GRT_DTYPE_FLOAT4E2M1},
                  {"e8m0", GRT_DTYPE_FLOAT8E8M0}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].word, word))
            return dtypes[i].dtype;
    ck_abort_msg("no dtype '%s'", word);
}

static int split(char *text, const char *separators, char **out)
{
    int n = 0;
    for (char *save, *word = strtok_r(text, separators, &save); word;
         word = strtok_r(NULL, separators, &save)) {
        ck_assert_int_lt(n, MAX_WORDS);
        out[n++] = word;
    }
    return n;
}

static void read_input(reader *r)
{
    char *dims[MAX_WORDS];
    ir_value *value = ir_value_create(r->module->main, r->words[1]);
    const bool is_map = !strncmp(r->words[2], "map:", 4);
    int n = strcmp(r->words[3], "-") ? split(r->words[3], ",", dims) : 0;
    grt_dim *d = GRT_ARENA_ARRAY(r->module->arena, grt_dim, n);
    for (int i = 0; i < n; i++)
        d[i] = dims[i][0] >= '0' && dims[i][0] <= '9' ? grt_dim_const(r->module->dims, atoll(dims[i]))
                                                      : grt_dim_symbol(r->module->dims, dims[i]);
    value->type = (ir_type){.kind = is_map ? GRT_KIND_MAP : GRT_KIND_TENSOR,
                            .dtype = dtype_of(r->words[2] + (is_map ? 4 : 0)),
                            .rank = n,
                            .dims = d};
    ir_graph_add_input(r->module->main, value, NULL);
    remember(r, r->words[1], value);
}

static double next_random(reader *r)
{
    r->seed = r->seed * 1664525u + 1013904223u;
    return (double)(r->seed >> 8) / (1 << 24) * 2 - 1;
}

static void read_constant(reader *r)
{
    char *dims[MAX_WORDS];
    grt_tensor t = {.dtype = dtype_of(r->words[2])};
    t.rank = strcmp(r->words[3], "-") ? split(r->words[3], ",", dims) : 0;
    for (int i = 0; i < t.rank; i++)
        t.dims[i] = atoll(dims[i]);
    t.data = grt_arena_alloc(r->module->arena, grt_tensor_bytes(&t) + 1);
    memset(t.data, 0, grt_tensor_bytes(&t));
    for (int64_t i = 0; i < grt_tensor_elements(&t); i++) {
        const double x = r->n_words > 4 ? atof(r->words[4 + i % (r->n_words - 4)]) : next_random(r);
        const int bits = (int)grt_dtype_bits(t.dtype);
        if (bits < 8)
            ((uint8_t *)t.data)[i * bits / 8] |= (uint8_t)(((int)x & ((1 << bits) - 1)) << (i * bits % 8));
        else
            grt_element_put(&t, i, x);
    }
    remember(r, r->words[1],
             ir_constant(r->module->main, r->words[1], grt_arena_memdup(r->module->arena, &t, sizeof t)));
}

static void set_list(ir_node *node, const op_attr *attr, char **items, int n)
{
    int64_t ints[MAX_WORDS];
    float floats[MAX_WORDS];
    grt_string strings[MAX_WORDS];
    grt_attr list = {.name = attr->name, .kind = attr->kind};
    for (int i = 0; i < n; i++) {
        ints[i] = atoll(items[i]);
        floats[i] = (float)atof(items[i]);
        strings[i] = (grt_string){items[i], strlen(items[i])};
    }
    grt_arena *arena = node->graph->module->arena;
    if (attr->kind == GRT_ATTR_FLOATS) {
        list.floats.v = grt_arena_memdup(arena, floats, (size_t)n * sizeof *floats);
        list.floats.n = (size_t)n;
    } else if (attr->kind == GRT_ATTR_STRINGS) { /* the items lie in the arena's copy of the text */
        list.strings.v = grt_arena_memdup(arena, strings, (size_t)n * sizeof *strings);
        list.strings.n = (size_t)n;
    } else {
        ir_attr_set_ints(node, attr->name, ints, (size_t)n);
        return;
    }
    ir_attr_set(node, list);
}

static void read_attr(ir_node *node, char *text)
{
    char *value = strchr(text, '='), *items[MAX_WORDS];
    *value++ = 0;
    const op_attr *attr = node->row->attrs;
    while (attr && attr->name && strcmp(attr->name, text))
        attr++;
    ck_assert_msg(attr && attr->name, "%s has no attribute %s", node->desc.op, text);
    if (attr->kind == GRT_ATTR_INT)
        ir_attr_set_int(node, text, atoll(value));
    else if (attr->kind == GRT_ATTR_FLOAT)
        ir_attr_set_float(node, text, (float)atof(value));
    else if (attr->kind == GRT_ATTR_STRING)
        ir_attr_set_string(node, text, value);
    else
        set_list(node, attr, items, split(value, ",", items));
}

static void read_node(reader *r)
{
    char *outputs[MAX_WORDS];
    ir_value *in[MAX_WORDS];
    int n_out = split(r->words[0], ",", outputs), n_in = 0, at = 3;
    for (; at < r->n_words && !strchr(r->words[at], '='); at++)
        in[n_in++] = find(r, r->words[at]);
    const char *colons = strstr(r->words[2], "::");
    const char *domain =
        colons ? grt_arena_printf(r->module->arena, "%.*s", (int)(colons - r->words[2]), r->words[2]) : "";
    ir_node *node = ir_node_create(r->module->main, NULL, domain, colons ? colons + 2 : r->words[2],
                                   outputs[0], n_in, in, n_out);
    ck_assert_msg(node && node->row, "no op '%s'", r->words[2]);
    for (; at < r->n_words; at++)
        read_attr(node, r->words[at]);
    for (int i = 0; i < n_out; i++) {
        node->out[i]->name = grt_arena_strdup(r->module->arena, outputs[i]);
        remember(r, outputs[i], node->out[i]);
    }
}

ir_module *ir_text_read(const char *text)
{
    reader r = {.seed = 1};
    ck_assert_int_eq(ir_module_create(&r.module), GRT_OK);
    r.module->main = ir_graph_create(r.module, NULL, "main");
    char *copy = grt_arena_strdup(r.module->arena, text), *lines[MAX_VALUES];
    int n = 0;
    for (char *save, *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        lines[n++] = line;
    for (int i = 0; i < n; i++) {
        r.n_words = split(lines[i], " ", r.words);
        if (!r.n_words)
            continue;
        if (!strcmp(r.words[0], "in"))
            read_input(&r);
        else if (!strcmp(r.words[0], "const"))
            read_constant(&r);
        else if (!strcmp(r.words[0], "out"))
            ir_graph_add_output(r.module->main, find(&r, r.words[1]));
        else
            read_node(&r);
    }
    return r.module;
}

ir_module *ir_text(const char *text)
{
    ir_module *module = ir_text_read(text);
    ck_assert_msg(ir_infer(module) == GRT_OK, "%s", grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "%s", grt_last_error());
    return module;
}

bool ir_text_takes_all(const grt_target *target, const grt_op_desc *desc, const grt_tensor *in, int32_t n_in,
                       const grt_tensor *out, int32_t n_out, grt_text *why)
{
    (void)target;
    (void)desc;
    (void)in;
    (void)n_in;
    (void)out;
    (void)n_out;
    (void)why;
    return true;
}

grt_target ir_text_target(void)
{
    static grt_device_traits traits;
    grt_target target = grt_target_of(&grt_backend_cpu);
    traits = *target.traits;
    traits.merges_products = true;
    traits.half_floats = true;
    traits.joins_networks = true;
    traits.merges_small_steps = true;
    traits.splits_phases = true;
    traits.long_groups_last = true;
    target.traits = &traits;
    return target;
}

int64_t ir_text_pass(ir_module *module, const char *pass)
{
    grt_target target = ir_text_target();
    pass_context context = {.module = module, .target = &target, .level = 2};
    grt_status status = GRT_STATUS_INVALID_ARGUMENT;
    if (!*pass)
        status = pass_run_enabled(&context);
    if (!*pass && status == GRT_OK)
        status = pass_check_supported(&context);
    for (size_t i = 0; *pass && pass_at(i); i++)
        if (!strcmp(pass_at(i)->name, pass))
            status = pass_at(i)->run(&context);
    ck_assert_msg(status == GRT_OK, "pass '%s': %s", pass, grt_last_error());
    ck_assert_msg(ir_verify(module) == GRT_OK, "after pass '%s': %s", pass, grt_last_error());
    return context.changed;
}

const char *ir_text_ops(const ir_module *module)
{
    grt_text text = {0};
    IR_FOR_EACH_NODE (node, module->main)
        grt_text_add(&text, "%s%s%s%s", text.size ? " " : "", node->desc.domain,
                     *node->desc.domain ? "::" : "", node->desc.op);
    const char *kept = grt_arena_strdup(module->arena, grt_text_get(&text));
    grt_text_release(&text);
    return kept;
}

ir_node *ir_text_node(const ir_module *module, const char *op, int nth)
{
    IR_FOR_EACH_NODE (node, module->main)
        if (!strcmp(node->desc.op, op) && nth-- == 0)
            return node;
    ck_abort_msg("no such node: %s", op);
}

/* Every value's tensor, by value->mark. */
typedef struct machine {
    grt_value values[MAX_VALUES * 2];
    int64_t n;
    reader random;
} machine;

static grt_tensor *tensor_of(machine *m, ir_value *value)
{
    if (!value->producer && value->type.data)
        return (grt_tensor *)value->type.data;
    return &m->values[value->mark].t;
}

static void make_input(machine *m, const ir_module *module, ir_value *value)
{
    int64_t dims[GRT_MAX_RANK];
    for (int32_t i = 0; i < value->type.rank; i++)
        if (!grt_dim_is_const(module->dims, value->type.dims[i], &dims[i]))
            dims[i] = SYMBOL_VALUE;
    value->mark = m->n++;
    grt_value *v = &m->values[value->mark];
    ck_assert_int_eq(grt_value_alloc(v, value->type.dtype, value->type.rank, dims), GRT_OK);
    for (int64_t i = 0; i < grt_tensor_elements(&v->t); i++)
        grt_element_put(&v->t, i, next_random(&m->random));
}

/* Dims that are not known: a single one is what is left of so many elements. */
static void set_symbols(grt_tensor *t, int64_t elements)
{
    int32_t symbols = 0;
    int64_t known = 1;
    for (int32_t i = 0; i < t->rank; i++) {
        symbols += t->dims[i] < 0;
        known *= t->dims[i] < 0 ? 1 : t->dims[i];
    }
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0)
            t->dims[i] = symbols == 1 && known ? elements / known : SYMBOL_VALUE;
}

static void run_node(machine *m, ir_node *node)
{
    grt_target target = ir_text_target();
    const grt_tensor *in[MAX_WORDS];
    grt_value *out = &m->values[m->n];
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i].value ? tensor_of(m, node->in[i].value) : NULL;
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i])
            node->out[i]->mark = m->n + i;
    m->n += node->n_out;
    if (node->row->flags & OP_VIEW) {
        ck_assert_int_eq(grt_value_copy_tensor(out, in[0]), GRT_OK);
        grt_tensor t = rewrite_tensor(node->graph->module->dims, &node->out[0]->type);
        set_symbols(&t, grt_tensor_elements(in[0]));
        out->t.rank = t.rank;
        memcpy(out->t.dims, t.dims, sizeof t.dims);
        ck_assert_int_eq(grt_tensor_elements(&t), grt_tensor_elements(in[0]));
        return;
    }
    ck_assert_msg(target.evaluate(&target, &node->desc, in, node->n_in, out, node->n_out, SIZE_MAX) == GRT_OK,
                  "%s", grt_last_error());
}

static void run_module(machine *m, ir_module *module)
{
    *m = (machine){.random = {.seed = 7}};
    for (int32_t i = 0; i < module->main->n_inputs; i++)
        make_input(m, module, module->main->inputs[i]);
    IR_FOR_EACH_NODE (node, module->main)
        run_node(m, node);
}

static void compare(const grt_tensor *a, const grt_tensor *b, const char *name)
{
    ck_assert_msg(grt_tensor_same_type(a, b), "output '%s' has another type", name);
    for (int64_t i = 0; i < grt_tensor_elements(a); i++) {
        double x = grt_tensor_double(a, i), y = grt_tensor_double(b, i);
        ck_assert_msg((isnan(x) && isnan(y)) || x == y || fabs(x - y) <= 1e-5 + 1e-4 * fabs(x),
                      "output '%s', element %lld: %g became %g", name, (long long)i, x, y);
    }
}

static void release(machine *m)
{
    for (int64_t i = 0; i < m->n; i++)
        grt_value_clear(&m->values[i]);
    free(m);
}

void ir_text_compare(ir_module *plain, ir_module *rewritten)
{
    machine *before = malloc(sizeof *before), *after = malloc(sizeof *after);
    ck_assert(before && after);
    run_module(before, plain);
    run_module(after, rewritten);
    for (int32_t i = 0; i < plain->main->n_outputs; i++) {
        ir_value *a = plain->main->outputs[i].value, *b = rewritten->main->outputs[i].value;
        ck_assert_str_eq(a->name, b->name);
        compare(tensor_of(before, a), tensor_of(after, b), a->name);
    }
    release(before);
    release(after);
}

void ir_text_check(const char *text, const char *pass, const char *expected)
{
    ir_module *plain = ir_text(text), *rewritten = ir_text(text);
    ir_text_pass(rewritten, pass);
    if (expected)
        ck_assert_str_eq(ir_text_ops(rewritten), expected);
    ir_text_compare(plain, rewritten);
    ir_module_release(plain);
    ir_module_release(rewritten);
}
