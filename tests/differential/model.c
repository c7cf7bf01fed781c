/* SPDX-License-Identifier: Apache-2.0 */
/* See model.h. Field numbers are those of onnx.proto. */
#include "tests/differential/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    unsigned char *data;
    size_t size, capacity;
    bool failed;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    if (b->size + n > b->capacity) {
        size_t room = 2 * (b->size + n);
        unsigned char *grown = realloc(b->data, room);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->capacity = room;
    }
    if (n)
        memcpy(b->data + b->size, data, n);
    b->size += n;
}

static void varint(bytes *b, uint64_t v)
{
    for (;; v >>= 7) {
        unsigned char c = (unsigned char)(v < 128 ? v : (v & 127) | 128);
        put(b, &c, 1);
        if (v < 128)
            return;
    }
}

static void number(bytes *b, int field, int64_t v)
{
    varint(b, (uint64_t)field << 3);
    varint(b, (uint64_t)v);
}

static void blob(bytes *b, int field, const void *data, size_t n)
{
    varint(b, (uint64_t)field << 3 | 2);
    varint(b, n);
    put(b, data, n);
}

static void text(bytes *b, int field, const char *s)
{
    blob(b, field, s, strlen(s));
}

static void message(bytes *b, int field, bytes *inner)
{
    blob(b, field, inner->data, inner->size);
    b->failed |= inner->failed;
    free(inner->data);
}

/* A negative one is a symbol, the same for all dims that have it. */
static void dimension(bytes *shape, int64_t d)
{
    bytes dim = {0};
    char symbol[24];
    snprintf(symbol, sizeof symbol, "n%lld", (long long)-d);
    if (d < 0)
        text(&dim, 2, symbol);
    else
        number(&dim, 1, d);
    message(shape, 1, &dim);
}

static void value_info(bytes *graph, int field, const char *name, grt_dtype dtype, const grt_tensor *t)
{
    bytes shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (int32_t k = 0; t && k < t->rank; k++)
        dimension(&shape, t->dims[k]);
    number(&tensor, 1, dtype);
    if (t)
        message(&tensor, 2, &shape);
    message(&type, 1, &tensor);
    text(&value, 1, name);
    message(&value, 2, &type);
    message(graph, field, &value);
}

static void initializer(bytes *graph, const char *name, const grt_tensor *t)
{
    bytes tensor = {0};
    for (int32_t k = 0; k < t->rank; k++)
        number(&tensor, 1, t->dims[k]);
    number(&tensor, 2, t->dtype);
    text(&tensor, 8, name);
    blob(&tensor, 9, t->data, grt_tensor_bytes(t));
    message(graph, 5, &tensor);
}

static void add_attribute(bytes *proto, const attribute *a)
{
    bytes inner = {0};
    text(&inner, 1, a->name);
    if (a->text) {
        text(&inner, 4, a->text);
        number(&inner, 20, 3);
    } else if (a->n == -2) {
        varint(&inner, 2 << 3 | 5);
        put(&inner, &a->real, sizeof a->real);
        number(&inner, 20, 1);
    } else if (a->n < 0) {
        number(&inner, 3, a->ints[0]);
        number(&inner, 20, 2);
    } else {
        for (int i = 0; i < a->n; i++)
            number(&inner, 8, a->ints[i]);
        number(&inner, 20, 7);
    }
    message(proto, 5, &inner);
}

/* c<i>, the rows of x<i> from the last to the first. */
static void reverse_rows(bytes *graph, const node *n, int i)
{
    const int64_t rows = n->in[i].dims[0];
    char in[16], order[16], out[16];
    bytes proto = {0};
    int64_t *indices = malloc((size_t)(rows + 1) * sizeof *indices);
    graph->failed |= !indices;
    if (graph->failed)
        return;
    for (int64_t k = 0; k < rows; k++)
        indices[k] = rows - 1 - k;
    snprintf(in, sizeof in, "x%d", i);
    snprintf(order, sizeof order, "r%d", i);
    snprintf(out, sizeof out, "c%d", i);
    text(&proto, 1, in);
    text(&proto, 1, order);
    text(&proto, 2, out);
    text(&proto, 3, out);
    text(&proto, 4, "Gather");
    message(graph, 1, &proto);
    initializer(graph, order,
                &(grt_tensor){.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {rows}, .data = indices});
    free(indices);
}

static void coded_node(bytes *graph, const char *op, const char *const *in, int n_in, const char *out,
                       const attribute *attributes, int n)
{
    bytes proto = {0};
    for (int i = 0; i < n_in; i++)
        text(&proto, 1, in[i]);
    text(&proto, 2, out);
    text(&proto, 3, out);
    text(&proto, 4, op);
    for (int i = 0; i < n; i++)
        add_attribute(&proto, &attributes[i]);
    message(graph, 1, &proto);
}

/* c<i>, from w<i>, s<i> and z<i>. */
static void dequantised(bytes *graph, const coded *c, grt_dtype dtype, int i)
{
    char names[5][16];
    for (int k = 0; k < 5; k++)
        snprintf(names[k], sizeof names[k], "%c%d", "wszdc"[k], i);
    const attribute attributes[] = {{.name = "axis", .ints = {c->axis}, .n = -1},
                                    {.name = "output_dtype", .ints = {dtype}, .n = -1},
                                    {.name = "block_size", .ints = {c->block}, .n = -1}};
    const char *const in[] = {names[0], names[1], names[2]}, *const between[] = {names[3]};
    coded_node(graph, "DequantizeLinear", in, c->zero.data ? 3 : 2, names[c->turned ? 3 : 4], attributes,
               c->block ? 3 : 2);
    if (c->turned)
        coded_node(graph, "Transpose", between, 1, names[4], NULL, 0);
    if (!c->rounded)
        initializer(graph, names[0], &c->codes);
    initializer(graph, names[1], &c->scale);
    if (c->zero.data)
        initializer(graph, names[2], &c->zero);
}

static bool is_coded(const node *n, int i)
{
    return n->coded[i].codes.data || n->coded[i].rounded;
}

/* w<i>, from x<i>, s<i> and z<i>. */
static void rounded(bytes *graph, int i)
{
    char names[4][16];
    for (int k = 0; k < 4; k++)
        snprintf(names[k], sizeof names[k], "%c%d", "xszw"[k], i);
    const char *const in[] = {names[0], names[1], names[2]};
    coded_node(graph, "QuantizeLinear", in, 3, names[3], NULL, 0);
}

/* A node of the inputs; its result is the model's if it is the last one. */
static void follow(bytes *graph, const char *op, const char *const *in, int n_in, bool last, const char *out,
                   const attribute *axis)
{
    bytes proto = {0};
    for (int i = 0; i < n_in; i++)
        text(&proto, 1, in[i]);
    text(&proto, 2, last ? "y" : out);
    text(&proto, 3, op);
    text(&proto, 4, op);
    if (axis)
        add_attribute(&proto, axis);
    message(graph, 1, &proto);
}

/* c0: x0 [outer, steps, inner, width] as [steps, outer * inner, width]. */
static void move_rows(bytes *graph, const node *n)
{
    const int64_t *dims = n->in[0].dims;
    const attribute perm = {.name = "perm", .ints = {1, 0, 2, 3}, .n = 4};
    int64_t to[] = {dims[1], dims[0] * dims[2], dims[3]};
    const char *from[] = {"x0"}, *moved[] = {"m0", "d0"};
    follow(graph, "Transpose", from, 1, false, "m0", &perm);
    follow(graph, "Reshape", moved, 2, false, "c0", NULL);
    initializer(graph, "d0", &(grt_tensor){.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {3}, .data = to});
}

static void join(bytes *graph, const node *n, const char *result)
{
    const attribute axis = {.name = "axis", .ints = {n->joined_axis}, .n = -1};
    char beside[16];
    snprintf(beside, sizeof beside, "x%d", n->n_in - 1);
    const char *in[] = {n->joined_first ? beside : result, n->joined_first ? result : beside};
    follow(graph, "Concat", in, 2, true, NULL, &axis);
}

static bool is_made(const node *n, int i)
{
    return n->computed[i] || is_coded(n, i) || (i == 0 && n->around);
}

static void add_node(bytes *graph, const node *n)
{
    bytes proto = {0};
    char name[16];
    const bool last = !n->then && !n->joined;
    for (int i = 0; i < n->n_in - n->joined; i++) {
        snprintf(name, sizeof name, "%c%d", is_made(n, i) ? 'c' : 'x', i);
        text(&proto, 1, n->omitted[i] ? "" : name);
    }
    for (int i = 0; i <= n->n_more; i++) {
        snprintf(name, sizeof name, "o%d", i);
        text(&proto, 2, i == n->which && last ? "y" : name);
    }
    text(&proto, 3, n->op);
    text(&proto, 4, n->op);
    for (int i = 0; i < n->n_attributes; i++)
        add_attribute(&proto, &n->attributes[i]);
    if (n->domain)
        text(&proto, 7, n->domain);
    message(graph, 1, &proto);
    snprintf(name, sizeof name, "o%d", n->which);
    if (n->then)
        follow(graph, n->then, (const char *[]){name}, 1, !n->joined, "then", NULL);
    if (n->joined)
        join(graph, n, n->then ? "then" : name);
}

static void import(bytes *model, const char *domain, int64_t version)
{
    bytes opset = {0};
    text(&opset, 1, domain);
    number(&opset, 2, version);
    message(model, 8, &opset);
}

void *model_bytes(const node *n, size_t *out_size)
{
    bytes model = {0}, graph = {0};
    char name[16];
    for (int i = 0; i < n->n_in; i++)
        if (n->coded[i].rounded)
            rounded(&graph, i);
    for (int i = 0; i < n->n_in; i++)
        if (is_coded(n, i))
            dequantised(&graph, &n->coded[i], n->in[i].dtype, i);
        else if (i == 0 && n->around)
            move_rows(&graph, n);
        else if (n->computed[i])
            reverse_rows(&graph, n, i);
    add_node(&graph, n);
    text(&graph, 2, "one");
    for (int i = 0; i < n->n_in; i++) {
        snprintf(name, sizeof name, "x%d", i);
        if (n->coded[i].codes.data)
            continue;
        if (n->constant[i] || n->preset[i])
            initializer(&graph, name, &n->in[i]);
        if (!n->constant[i] && !n->omitted[i])
            value_info(&graph, 11, name, n->in[i].dtype, &n->in[i]);
    }
    value_info(&graph, 12, "y", n->out, NULL);
    number(&model, 1, 10);
    message(&model, 7, &graph);
    import(&model, "", 25);
    if (n->domain)
        import(&model, n->domain, 1);
    if (model.failed) {
        free(model.data);
        return NULL;
    }
    *out_size = model.size;
    return model.data;
}
