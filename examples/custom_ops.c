/* SPDX-License-Identifier: Apache-2.0 */
/* A custom operator in a shared object: org.example::Window cuts every row of its input into windows of
 * `size` elements, `step` apart. Build it as a shared object of its own (it links to nothing), then
 *
 *   graphc check --custom-ops ./custom_ops.so model.onnx
 *   graphrun --custom-ops ./custom_ops.so model.onnx
 *
 * or grt_custom_ops_load in a program. */
#include <graphrt/graphrt.h>

#include <stdlib.h>
#include <string.h>

typedef struct window {
    int64_t size, step;
} window;

static grt_status read_window(const grt_custom_node *node, window *out)
{
    out->step = 1; /* what it is where the node does not say */
    (void)node->host->get_int(node, "step", &out->step);
    if (!node->host->get_int(node, "size", &out->size) || out->size < 1 || out->step < 1)
        return node->host->fail_node(node, GRT_STATUS_INVALID_MODEL, "size and step must be positive");
    return GRT_OK;
}

/* [rows, n] becomes [rows, (n - size) / step + 1, size], whether n is known yet or not. */
static grt_status infer(void *user, const grt_custom_node *node, const grt_custom_type *in,
                        grt_custom_type *out)
{
    const grt_custom_host *host = node->host;
    window w;
    int64_t n;
    (void)user;
    const grt_status status = read_window(node, &w);
    if (status != GRT_OK)
        return status;
    out[0].dtype = in[0].dtype;
    if (in[0].rank < 0)
        return GRT_OK;
    if (in[0].rank != 2)
        return host->fail_node(node, GRT_STATUS_INVALID_MODEL, "the input must have rows and columns");
    if (host->dim_value(node, in[0].dims[1], &n) && n < w.size)
        return host->fail_node(node, GRT_STATUS_INVALID_MODEL, "rows are shorter than a window");
    const grt_custom_dim size = host->dim_constant(node, w.size), step = host->dim_constant(node, w.step),
                         one = host->dim_constant(node, 1);
    out[0].rank = 3;
    out[0].dims[0] = in[0].dims[0];
    out[0].dims[1] = host->dim_compute(
        node, '+', host->dim_compute(node, '/', host->dim_compute(node, '-', in[0].dims[1], size), step),
        one);
    out[0].dims[2] = size;
    return GRT_OK;
}

static grt_status create(void *user, const grt_custom_node *node, void **out_state)
{
    (void)user;
    window *w = malloc(sizeof *w);
    if (!w)
        return node->host->fail_node(node, GRT_STATUS_OUT_OF_MEMORY, "no memory for the attributes");
    const grt_status status = read_window(node, w);
    if (status != GRT_OK)
        free(w);
    else
        *out_state = w;
    return status;
}

static void release(void *user, void *state)
{
    (void)user;
    free(state);
}

static grt_status run(void *user, void *state, const grt_custom_run *run)
{
    const window *w = state;
    const grt_tensor *x = run->inputs[0], *y = run->outputs[0];
    const float *from = x->data;
    float *to = y->data;
    (void)user;
    for (int64_t row = 0; row < y->dims[0]; row++)
        for (int64_t k = 0; k < y->dims[1]; k++, to += w->size)
            memcpy(to, from + row * x->dims[1] + k * w->step, (size_t)w->size * sizeof *to);
    return GRT_OK;
}

const grt_custom_op *graphrt_custom_ops(size_t *out_n);

GRT_API const grt_custom_op *graphrt_custom_ops(size_t *out_n)
{
    static const grt_custom_attribute attributes[] = {
        {.name = "size", .kind = GRT_ATTRIBUTE_INT, .required = true},
        {.name = "step", .kind = GRT_ATTRIBUTE_INT}};
    static const uint64_t floats[] = {1 << GRT_DTYPE_FLOAT};
    static const grt_custom_op ops[] = {{.struct_size = sizeof(grt_custom_op),
                                         .domain = "org.example",
                                         .name = "Window",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .min_outputs = 1,
                                         .max_outputs = 1,
                                         .attributes = attributes,
                                         .n_attributes = 2,
                                         .input_dtypes = floats,
                                         .n_input_dtypes = 1,
                                         .infer = infer,
                                         .create = create,
                                         .release = release,
                                         .run = run}};
    *out_n = sizeof ops / sizeof *ops;
    return ops;
}
