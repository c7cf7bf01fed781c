/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/mutation.h"

#include "tests/differential/draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mutation_tell(mutation *m, const char *format, ...)
{
    const size_t at = strlen(m->what);
    va_list args;
    va_start(args, format);
    vsnprintf(m->what + at, sizeof m->what - at, format, args);
    va_end(args);
}

size_t mutation_pick(size_t n)
{
    return (size_t)draw(0, (int64_t)n - 1);
}

static void add(void *list, size_t *n, void *part)
{
    if (part && *n < MUTATION_PARTS)
        ((void **)list)[(*n)++] = part;
}

static void add_graph(mutation *m, Onnx__GraphProto *g);

static void add_node(mutation *m, Onnx__NodeProto *node)
{
    add(m->nodes, &m->n_nodes, node);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        add(m->tensors, &m->n_tensors, a->t);
        if (a->sparse_tensor) {
            add(m->tensors, &m->n_tensors, a->sparse_tensor->values);
            add(m->tensors, &m->n_tensors, a->sparse_tensor->indices);
        }
        if (a->g)
            add_graph(m, a->g);
    }
}

static void add_graph(mutation *m, Onnx__GraphProto *g)
{
    add(m->graphs, &m->n_graphs, g);
    for (size_t i = 0; i < g->n_node; i++)
        add_node(m, g->node[i]);
    for (size_t i = 0; i < g->n_initializer; i++)
        add(m->tensors, &m->n_tensors, g->initializer[i]);
    for (size_t i = 0; i < g->n_input; i++)
        add(m->values, &m->n_values, g->input[i]);
    for (size_t i = 0; i < g->n_output; i++)
        add(m->values, &m->n_values, g->output[i]);
    for (size_t i = 0; i < g->n_value_info; i++)
        add(m->values, &m->n_values, g->value_info[i]);
}

static void collect(mutation *m)
{
    m->n_graphs = m->n_nodes = m->n_tensors = m->n_values = 0;
    if (m->model->graph)
        add_graph(m, m->model->graph);
    for (size_t i = 0; i < m->model->n_functions; i++)
        for (size_t k = 0; k < m->model->functions[i]->n_node; k++)
            add_node(m, m->model->functions[i]->node[k]);
}

bool mutate_opset(mutation *m)
{
    if (!m->model->n_opset_import)
        return false;
    Onnx__OperatorSetIdProto *set = m->model->opset_import[mutation_pick(m->model->n_opset_import)];
    set->has_version = true;
    set->version = draw(1, 28);
    mutation_tell(m, "opset %s %lld", set->domain ? set->domain : "", (long long)set->version);
    return true;
}

/* Often: what reaches the operators' own checks. */
static mutation_change *const changes[] = {
    mutate_attribute_number, mutate_attribute_number, mutate_attribute_number,
    mutate_attribute_drop,   mutate_attribute_add,    mutate_attribute_add,
    mutate_attribute_add,    mutate_attribute_retype, mutate_attribute_list,
    mutate_attribute_list,   mutate_node_input,       mutate_node_input,
    mutate_node_output,      mutate_node_rewire,      mutate_node_op,
    mutate_node_list,        mutate_tensor_dims,      mutate_tensor_dtype,
    mutate_tensor_cut,       mutate_tensor_values,    mutate_tensor_field,
    mutate_value_dim,        mutate_value_dim,        mutate_value_rank,
    mutate_value_dtype,      mutate_value_kind,       mutate_value_known,
    mutate_value_known,      mutate_value_known,      mutate_opset,
};

bool mutate(mutation *m)
{
    bool any = false;
    m->what[0] = 0;
    for (int64_t left = draw(1, 3), tries = 0; left > 0 && tries < 50; tries++) {
        if (any)
            mutation_tell(m, "; ");
        collect(m);
        const size_t length = strlen(m->what);
        if (changes[mutation_pick(sizeof changes / sizeof *changes)](m)) {
            any = true;
            left--;
        } else if (any) {
            m->what[length > 2 ? length - 2 : 0] = 0;
        }
    }
    collect(m);
    return any;
}
