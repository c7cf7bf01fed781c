/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/shared/networks.h"

#include <stdlib.h>

static bool is_width(int64_t width)
{
    return width >= 1 && width <= GRT_NETWORKS_WIDTH;
}

static bool read_activation(const grt_op_desc *desc, int32_t layer, grt_act *out)
{
    size_t n, n_alphas, n_betas;
    const size_t l = (size_t)layer;
    const grt_string *names = grt_attr_strings(desc, "activations", &n);
    const float *alphas = grt_attr_floats(desc, "alphas", &n_alphas),
                *betas = grt_attr_floats(desc, "betas", &n_betas);
    if (l >= n || !grt_act_find(names[l].data, names[l].size, &out->kind))
        return false;
    out->a = l < n_alphas ? alphas[l] : 0;
    out->b = l < n_betas ? betas[l] : 0;
    return true;
}

static bool read_layer(const grt_kernel_node *node, int32_t l, grt_networks *out)
{
    const grt_tensor *w = &node->in[grt_networks_weights(l)];
    if (w->rank != 3 || !is_width(w->dims[0]) || !is_width(w->dims[1]) || w->dims[2] < 0)
        return false;
    out->width[l] = (int32_t)w->dims[0];
    out->width[l + 1] = (int32_t)w->dims[1];
    out->bias[l] = grt_node_has(node, grt_networks_bias(l));
    for (int32_t i = l; i <= l + 1; i++)
        out->most = out->width[i] > out->most ? out->width[i] : out->most;
    return read_activation(node->desc, l, &out->act[l]);
}

static bool read_layers(const grt_kernel_node *node, grt_networks *out)
{
    *out = (grt_networks){.n_layers = node->n_in / 2};
    if (out->n_layers < 1 || out->n_layers > GRT_NETWORKS_LAYERS)
        return false;
    for (int32_t l = 0; l < out->n_layers; l++)
        if (!read_layer(node, l, out))
            return false;
    return true;
}

bool grt_networks_supports(const grt_kernel_node *node, grt_text *why)
{
    grt_networks read;
    if (read_layers(node, &read))
        return true;
    if (why)
        grt_text_add(why, "up to %d layers of known width, up to %d, with activations of epilogues",
                     GRT_NETWORKS_LAYERS, GRT_NETWORKS_WIDTH);
    return false;
}

grt_status grt_networks_create(const grt_kernel_node *node, void **out_state)
{
    grt_networks *state = malloc(sizeof *state);
    if (!state)
        return grt_fail_memory(sizeof *state);
    if (!read_layers(node, state)) {
        free(state);
        return grt_fail_op(node->desc, GRT_STATUS_INVALID_PLAN, "its layers are not those of the plan");
    }
    *out_state = state;
    return GRT_OK;
}
