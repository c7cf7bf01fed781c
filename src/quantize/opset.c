/* SPDX-License-Identifier: Apache-2.0 */
/* See opset.h. Versions 11 to 21 of ai.onnx; what is not listed here has the same meaning in all of them. */
#include "src/quantize/opset.h"

#include <inttypes.h>
#include <string.h>

enum { OLDEST = 11 };

typedef struct raising {
    document *d;
    int64_t from, to;
} raising;

/* True if the step from the version before `version` is among those to take. */
static bool crosses(const raising *r, int64_t version)
{
    return r->from < version && r->to >= version;
}

static bool is_any(const Onnx__NodeProto *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (node_is(node, *ops))
            return true;
    return false;
}

/* Attribute `name`, a list of numbers, becomes input 1. */
static void list_to_input(const raising *r, Onnx__NodeProto *node, const char *name)
{
    document *d = r->d;
    const Onnx__AttributeProto *attr = node_attr(node, name);
    if (!attr)
        return;
    const grt_tensor t = {.dtype = GRT_DTYPE_INT64,
                          .rank = 1,
                          .dims = {(int64_t)attr->n_ints},
                          .data = grt_arena_memdup(d->arena, attr->ints, attr->n_ints * sizeof *attr->ints)};
    const char *input = document_name(d, node_out(node, 0), "/");
    input = input ? document_name(d, input, name) : NULL;
    if (!input)
        return;
    document_add_weight(d, input, &t);
    node_add_in(d, node, input);
    node_drop_attr(d, node, name);
}

static const char *const axes_13[] = {"Squeeze", "Unsqueeze", "ReduceSum", NULL};
static const char *const axes_18[] = {"ReduceL1",        "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp",
                                      "ReduceMax",       "ReduceMean", "ReduceMin",    "ReduceProd",
                                      "ReduceSumSquare", NULL};
static const char *const softmaxes[] = {"Softmax", "LogSoftmax", "Hardmax", NULL};

static void rename_mode(const raising *r, Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *attr = node->attribute[i];
        const bool linear = attr->s.len == 8 && !memcmp(attr->s.data, "bilinear", 8),
                   cubic = attr->s.len == 7 && !memcmp(attr->s.data, "bicubic", 7);
        if (!attr->name || strcmp(attr->name, "mode") != 0 || (!linear && !cubic))
            continue;
        Onnx__AttributeProto *copy = grt_arena_memdup(r->d->arena, attr, sizeof *attr);
        if (copy)
            copy->s =
                (ProtobufCBinaryData){linear ? 6 : 5, (uint8_t *)(uintptr_t)(linear ? "linear" : "cubic")};
        node->attribute[i] = copy;
    }
}

/* Why the node has no form in the newer version; NULL: it has. */
static const char *no_newer_form(const raising *r, const Onnx__NodeProto *node)
{
    if (crosses(r, 13) && is_any(node, softmaxes) && node_int(node, "axis", 1) != -1)
        return "its axis means another thing from opset 13 on";
    if (crosses(r, 21) && node_is(node, "GroupNormalization"))
        return "its scale has another shape from opset 21 on";
    if (crosses(r, 20) && node_is(node, "DFT"))
        return "its axis is an input from opset 20 on";
    if (crosses(r, 18) && node_is(node, "Split") && node->n_input < 2 && !node_attr(node, "split") &&
        !node->n_output)
        return "it has no outputs";
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g || node->attribute[i]->n_graphs)
            return "the nodes of its subgraphs would have to be rewritten";
    return NULL;
}

static grt_status raise_node(const raising *r, size_t at)
{
    document *d = r->d;
    const char *problem = no_newer_form(r, d->nodes[at]);
    if (problem)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "opset %" PRId64 " has to become %" PRId64
                        " and %s '%s' keeps it from that: %s; convert "
                        "the model first, with the exporter or onnx.version_converter",
                        r->from, r->to, d->nodes[at]->op_type, node_title(d->nodes[at]), problem);
    Onnx__NodeProto *node = document_add_copy(d, d->nodes[at]);
    d->n_nodes--;
    GRT_TRY(document_check(d));
    d->nodes[at] = node;
    if (crosses(r, 13) && is_any(node, axes_13))
        list_to_input(r, node, "axes");
    if (crosses(r, 13) && node_is(node, "Split"))
        list_to_input(r, node, "split");
    if (crosses(r, 18) && is_any(node, axes_18))
        list_to_input(r, node, "axes");
    if (crosses(r, 18) && node_is(node, "Split") && node->n_input < 2)
        node_set_int(d, node, "num_outputs", (int64_t)node->n_output);
    if (crosses(r, 20) && node_is(node, "GridSample"))
        rename_mode(r, node);
    return document_check(d);
}

grt_status document_raise_opset(document *d, int64_t version)
{
    const raising r = {d, d->opset, version};
    if (d->opset >= version)
        return GRT_OK;
    if (d->opset < OLDEST || d->source->n_functions)
        return grt_fail(GRT_STATUS_UNSUPPORTED,
                        "quantisation needs opset %" PRId64 " and the model has %" PRId64
                        "%s; convert it first, "
                        "with the exporter or onnx.version_converter",
                        version, d->opset, d->source->n_functions ? " and functions" : "");
    for (size_t i = 0; i < d->n_nodes; i++)
        GRT_TRY(raise_node(&r, i));
    d->opset = version;
    return GRT_OK;
}
