/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: values of known content, made and read; those that passes make, and their release once nothing
 * uses them. */
#include "graph/ir/constant.h"

#include "src/base/float.h"

#include <stdlib.h>

grt_tensor *ir_constant_create(ir_module *module, grt_dtype dtype, int32_t rank, const int64_t *dims)
{
    compile_budget *budget = &module->budget;
    grt_tensor t = {.dtype = dtype, .rank = rank};
    if (rank < 0 || rank > GRT_MAX_RANK)
        return NULL;
    for (int32_t i = 0; i < rank; i++)
        t.dims[i] = dims[i];
    const size_t bytes = grt_tensor_bytes(&t);
    const double work = (double)grt_tensor_elements(&t);
    if (bytes == SIZE_MAX || !budget_allows(budget, bytes, work))
        return NULL;
    grt_buffer *buffer = grt_buffer_create(bytes);
    if (!buffer)
        return NULL;
    t.data = buffer->data;
    budget_work(budget, work);
    return ir_constant_adopt(module, buffer) ? grt_arena_memdup(module->arena, &t, sizeof t) : NULL;
}

bool ir_constant_adopt(ir_module *module, grt_buffer *buffer)
{
    compile_budget *budget = &module->budget;
    made_constant *made = budget->free ? budget->free : GRT_ARENA_NEW(module->arena, made_constant);
    if (!made) {
        grt_buffer_release(buffer);
        return false;
    }
    if (made == budget->free)
        budget->free = made->next;
    *made = (made_constant){budget->made, buffer};
    budget->made = made;
    budget->used += buffer->size;
    budget->made_since += buffer->size;
    return true;
}

enum { COLLECT_EVERY = 4 << 20 }; /* bytes made */

typedef struct span {
    const char *from, *to;
    bool live;
} span;

typedef struct collection {
    span *spans; /* in order */
    size_t n;
} collection;

static int constant_by_place(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The constant's memory that `place` lies in, or NULL. */
static span *span_at(const collection *c, const char *place)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->spans[middle].from <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low && place < c->spans[low - 1].to ? &c->spans[low - 1] : NULL;
}

/* Constants may share memory: a view of one, or one under other dims. */
static void mark_tensor(const collection *c, const grt_tensor *t)
{
    span *found = t && t->data ? span_at(c, t->data) : NULL;
    if (found)
        found->live = true;
}

static void mark_value(const collection *c, const ir_value *value)
{
    mark_tensor(c, value ? value->type.data : NULL);
}

static grt_status mark_graph(ir_graph *graph, void *user)
{
    const collection *c = user;
    for (int32_t i = 0; i < graph->n_inputs && graph->defaults; i++)
        mark_value(c, graph->defaults[i]);
    for (int32_t i = 0; i < graph->n_outputs; i++)
        mark_value(c, graph->outputs[i].value);
    IR_FOR_EACH_NODE (node, graph) {
        for (int32_t i = 0; i < node->n_in; i++)
            mark_value(c, node->in[i].value);
        for (int32_t i = 0; i < node->n_out; i++)
            mark_value(c, node->out[i]);
        for (size_t i = 0; i < node->desc.n_attrs; i++)
            if (node->desc.attrs[i].kind == GRT_ATTR_TENSOR)
                mark_tensor(c, node->desc.attrs[i].t);
    }
    return GRT_OK;
}

static void constant_sweep(compile_budget *budget, const collection *c)
{
    for (made_constant **link = &budget->made, *made; (made = *link);) {
        if (span_at(c, made->buffer->data)->live) {
            link = &made->next;
            continue;
        }
        *link = made->next;
        budget->used -= made->buffer->size;
        grt_buffer_release(made->buffer);
        *made = (made_constant){.next = budget->free};
        budget->free = made;
    }
}

grt_status ir_constants_collect(ir_module *module)
{
    compile_budget *budget = &module->budget;
    collection c = {0};
    if (budget->made_since < COLLECT_EVERY)
        return GRT_OK;
    for (const made_constant *made = budget->made; made; made = made->next)
        c.n++;
    c.spans = calloc(c.n + 1, sizeof *c.spans);
    if (!c.spans)
        return grt_fail_memory(c.n * sizeof *c.spans);
    size_t n = 0;
    for (const made_constant *made = budget->made; made; made = made->next) {
        const char *data = made->buffer->data;
        c.spans[n++] = (span){data, data + (made->buffer->size ? made->buffer->size : 1), false};
    }
    qsort(c.spans, c.n, sizeof *c.spans, constant_by_place);
    const grt_status status = ir_graph_walk(module->main, mark_graph, &c);
    if (status == GRT_OK)
        constant_sweep(budget, &c);
    free(c.spans);
    budget->made_since = 0;
    return status;
}

/* ---- values of known content ---- */

static bool set_constant(ir_value *value, const grt_tensor *tensor)
{
    ir_module *module = value->graph->module;
    grt_dim *dims = GRT_ARENA_ARRAY(module->arena, grt_dim, tensor->rank);
    if (!dims)
        return false;
    for (int32_t i = 0; i < tensor->rank; i++)
        dims[i] = grt_dim_const(module->dims, tensor->dims[i]);
    value->type = (ir_type){.dtype = tensor->dtype, .rank = tensor->rank, .dims = dims, .data = tensor};
    return true;
}

ir_value *ir_constant(ir_graph *graph, const char *name, const grt_tensor *tensor)
{
    ir_value *value = name ? ir_value_create(graph, name) : ir_value_fresh(graph, "constant");
    return value && set_constant(value, tensor) ? value : NULL;
}

static ir_value *constant_copy(ir_graph *graph, const char *hint, grt_tensor t, const void *data)
{
    grt_arena *arena = graph->module->arena;
    t.data = grt_arena_memdup(arena, data, grt_tensor_bytes(&t));
    grt_tensor *kept = grt_arena_memdup(arena, &t, sizeof t);
    ir_value *value = t.data && kept ? ir_value_fresh(graph, hint) : NULL;
    return value && set_constant(value, kept) ? value : NULL;
}

ir_value *ir_constant_ints(ir_graph *graph, const char *hint, const int64_t *values, int64_t n)
{
    return constant_copy(graph, hint, (grt_tensor){.dtype = GRT_DTYPE_INT64, .rank = 1, .dims = {n}}, values);
}

ir_value *ir_constant_int(ir_graph *graph, const char *hint, int64_t value)
{
    return constant_copy(graph, hint, (grt_tensor){.dtype = GRT_DTYPE_INT64}, &value);
}

/* The nearest int64; 0 for NaN. */
static int64_t saturated(double value)
{
    if (value >= -0x1p63 && value < 0x1p63)
        return (int64_t)value;
    return value > 0 ? INT64_MAX : value < 0 ? INT64_MIN : 0;
}

ir_value *ir_constant_scalar(ir_graph *graph, const char *hint, grt_dtype dtype, double value)
{
    union {
        double d[2]; /* the largest element there is */
        float f[2];
        uint16_t h;
        int64_t i[2];
    } u = {.i = {saturated(value)}}; /* little endian: narrower integers are its first bytes */
    switch (dtype) {
    case GRT_DTYPE_DOUBLE:
    case GRT_DTYPE_COMPLEX128:
        u.d[0] = value;
        break;
    case GRT_DTYPE_FLOAT:
    case GRT_DTYPE_COMPLEX64:
        u.f[0] = (float)value;
        u.f[1] = 0;
        break;
    case GRT_DTYPE_FLOAT16:
        u.h = grt_float_to_half((float)value);
        break;
    case GRT_DTYPE_BFLOAT16:
        u.h = grt_float_to_bfloat16((float)value);
        break;
    default:
        break;
    }
    return constant_copy(graph, hint, (grt_tensor){.dtype = dtype}, &u);
}

bool ir_const_ints(const ir_value *value, const int64_t **out_values, int64_t *out_n)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    if (!t || (t->dtype != GRT_DTYPE_INT64 && t->dtype != GRT_DTYPE_INT32))
        return false;
    *out_n = grt_tensor_elements(t);
    if (t->dtype == GRT_DTYPE_INT64) {
        *out_values = t->data;
        return true;
    }
    int64_t *wide = GRT_ARENA_ARRAY(value->graph->module->arena, int64_t, *out_n);
    for (int64_t i = 0; wide && i < *out_n; i++)
        wide[i] = grt_tensor_int(t, i);
    *out_values = wide;
    return wide != NULL;
}

bool ir_const_int(const ir_value *value, int64_t *out)
{
    const int64_t *v;
    int64_t n;
    if (!ir_const_ints(value, &v, &n) || n != 1)
        return false;
    *out = v[0];
    return true;
}

bool ir_const_float(const ir_value *value, double *out_value)
{
    const grt_tensor *t = value ? value->type.data : NULL;
    if (!t || !grt_dtype_in(t->dtype, GRT_SET_NUMBERS) || grt_tensor_elements(t) != 1)
        return false;
    *out_value = grt_tensor_double(t, 0);
    return true;
}
