/* SPDX-License-Identifier: Apache-2.0 */
#include "src/target/pack.h"

#include "backends/registry.h"
#include "src/base/checked.h"
#include "src/plan/dims.h"

#include <stdlib.h>
#include <string.h>

/* Uses of one weight. */
typedef struct candidate {
    bool seen, plain; /* plain: some use wants it as it is */
    grt_packing packing;
    void *data;
} candidate;

typedef struct packer {
    grt_plan *plan;
    const grt_backend *backend;
    candidate *candidates; /* per weight */
    size_t padding;        /* bytes that packed forms may still be larger than plain ones, all together */
} packer;

static void keep_plain(candidate *c)
{
    c->plain = true;
    free(c->data);
    c->data = NULL;
}

/* Packs once; a second use must want the same bytes, which the same format and size tell: formats name all
 * that matters. */
static grt_status pack_consider(packer *p, const grt_kernel_row *row, const grt_kernel_node *node, int32_t i,
                                candidate *c)
{
    grt_packing packing = {0};
    void *data = NULL;
    if (c->plain)
        return GRT_OK;
    if (row && row->pack)
        GRT_TRY(row->pack(node, i, &packing, &data));
    const bool differs =
        c->seen && (strcmp(c->packing.format, packing.format) || c->packing.bytes != packing.bytes);
    if (!grt_is_packed(&packing) || differs) {
        free(data);
        keep_plain(c);
        return GRT_OK;
    }
    if (c->seen) {
        free(data);
        return GRT_OK;
    }
    *c = (candidate){.seen = true, .packing = packing, .data = data};
    const size_t plain = grt_tensor_bytes(&node->in[i]);
    const size_t padding = packing.bytes > plain ? packing.bytes - plain : 0;
    if (padding > p->padding)
        keep_plain(c);
    else
        p->padding -= padding;
    return GRT_OK;
}

static grt_status visit_step(packer *p, const grt_plan_body *body, const grt_plan_step *step)
{
    size_t n = (size_t)(step->n_in + step->n_out);
    grt_tensor *tensors = malloc((n ? n : 1) * sizeof *tensors);
    if (!tensors)
        return grt_fail_memory(n * sizeof *tensors);
    for (int32_t i = 0; i < step->n_in; i++)
        tensors[i] = grt_plan_describe(p->plan, body, step->in[i], NULL);
    for (int32_t i = 0; i < step->n_out; i++)
        tensors[step->n_in + i] = grt_plan_describe(p->plan, body, step->out[i], NULL);
    const grt_kernel_node node = {.desc = &step->desc,
                                  .n_in = step->n_in,
                                  .n_out = step->n_out,
                                  .in = tensors,
                                  .out = tensors + step->n_in,
                                  .threads = 1};
    /* Bodies of control flow run on the CPU, whatever the session's device. */
    const bool there = body == p->plan->bodies || p->backend == &grt_backend_cpu;
    const grt_kernel_row *row =
        there && step->kind == GRT_STEP_KERNEL ? p->backend->find_kernel(&node, NULL) : NULL;
    grt_status status = GRT_OK;
    for (int32_t i = 0; status == GRT_OK && i < step->n_in; i++)
        if (step->in[i] >= 0 && body->values[step->in[i]].role == GRT_VALUE_CONST)
            status = pack_consider(p, row, &node, i, &p->candidates[body->values[step->in[i]].weight]);
    free(tensors);
    return status;
}

/* Results, defaults and what bodies capture are read by the executor: those stay plain. */
static void exclude(packer *p, const grt_plan_body *body)
{
    for (int32_t v = 0; v < body->n_values; v++)
        if (body->values[v].role == GRT_VALUE_INPUT && body->values[v].weight >= 0)
            keep_plain(&p->candidates[body->values[v].weight]);
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (body->values[body->outputs[i]].role == GRT_VALUE_CONST)
            keep_plain(&p->candidates[body->values[body->outputs[i]].weight]);
    const grt_plan_body *outer = body->parent >= 0 ? &p->plan->bodies[body->parent] : NULL;
    for (int32_t i = 0; outer && i < body->n_captures; i++)
        if (outer->values[body->captures_outer[i]].role == GRT_VALUE_CONST)
            keep_plain(&p->candidates[outer->values[body->captures_outer[i]].weight]);
}

static grt_status pack_replace(packer *p)
{
    grt_plan *plan = p->plan;
    grt_packing *packings = GRT_ARENA_ARRAY(plan->arena, grt_packing, plan->n_weights + 1);
    grt_tensor *weights = GRT_ARENA_ARRAY(plan->arena, grt_tensor, plan->n_weights + 1);
    if (!packings || !weights)
        return grt_fail_memory(0);
    if (plan->n_weights)
        memcpy(weights, plan->weights, (size_t)plan->n_weights * sizeof *weights);
    for (int32_t i = 0; i < plan->n_weights; i++) {
        candidate *c = &p->candidates[i];
        if (!c->data)
            continue;
        if (!grt_arena_defer(plan->arena, free, c->data)) {
            c->data = NULL; /* the arena has freed it */
            return grt_fail_memory(0);
        }
        weights[i].data = c->data;
        packings[i] = c->packing;
        plan->weights_bytes += c->packing.bytes - grt_tensor_bytes(&weights[i]);
        c->data = NULL;
    }
    plan->weights = weights;
    plan->packings = packings;
    return GRT_OK;
}

grt_status grt_plan_pack(grt_plan *plan, const grt_backend *backend, const grt_cancel *cancel)
{
    enum { FREE_PADDING = 16 << 20 };
    packer p = {.plan = plan,
                .backend = backend,
                .candidates = calloc((size_t)plan->n_weights + 1, sizeof *p.candidates),
                .padding = plan->weights_bytes > FREE_PADDING ? plan->weights_bytes : FREE_PADDING};
    if (!p.candidates)
        return grt_fail_memory((size_t)plan->n_weights * sizeof *p.candidates);
    grt_status status = GRT_OK;
    for (int32_t b = 0; b < plan->n_bodies; b++)
        exclude(&p, &plan->bodies[b]);
    for (int32_t b = 0; status == GRT_OK && b < plan->n_bodies; b++)
        for (int32_t s = 0; status == GRT_OK && s < plan->bodies[b].n_steps; s++) {
            status = grt_cancel_check(cancel);
            if (status == GRT_OK)
                status = visit_step(&p, &plan->bodies[b], &plan->bodies[b].steps[s]);
        }
    if (status == GRT_OK)
        status = pack_replace(&p);
    for (int32_t i = 0; i < plan->n_weights; i++)
        free(p.candidates[i].data);
    free(p.candidates);
    return status;
}

grt_status grt_plan_unpack(const grt_plan *plan, grt_tensor *weights, void **out_block)
{
    size_t total = 0;
    *out_block = NULL;
    if (plan->n_weights)
        memcpy(weights, plan->weights, (size_t)plan->n_weights * sizeof *weights);
    for (int32_t i = 0; i < plan->n_weights; i++)
        if (plan->packings && grt_is_packed(&plan->packings[i]))
            total += grt_align_up(grt_tensor_bytes(&weights[i]), 256);
    if (!total)
        return GRT_OK;
    const grt_backend *packed_by = grt_backend_find(plan->target);
    if (!packed_by || !packed_by->unpack)
        return grt_fail(
            GRT_STATUS_INVALID_PLAN,
            "weights are packed for device '%s', which this library cannot unpack; make the plan again "
            "with graphc optimize, or with --target",
            plan->target);
    char *at = *out_block = aligned_alloc(256, total);
    if (!at)
        return grt_fail_memory(total);
    for (int32_t i = 0; i < plan->n_weights; i++) {
        if (!grt_is_packed(&plan->packings[i]))
            continue;
        GRT_TRY(packed_by->unpack(&plan->weights[i], &plan->packings[i], at));
        weights[i].data = at;
        at += grt_align_up(grt_tensor_bytes(&weights[i]), 256);
    }
    return GRT_OK;
}
