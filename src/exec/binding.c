/* SPDX-License-Identifier: Apache-2.0 */
#include "src/exec/binding.h"

#include "src/base/heap.h"

#include <stdlib.h>

typedef struct grt_extent {
    uintptr_t begin, end;
    int32_t index; /* inputs first, then outputs */
} grt_extent;

#define COMES_AFTER(a, b) ((a).begin > (b).begin)
GRT_DEFINE_SIFT(sift_down, grt_extent, COMES_AFTER)

/* qsort may allocate, which a run must not. */
static void sort_by_begin(grt_extent *e, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        sift_down(e, n, i);
    for (int64_t last = n; last-- > 1;) {
        grt_extent largest = e[0];
        e[0] = e[last];
        e[last] = largest;
        sift_down(e, last, 0);
    }
}

static bool add_extent(grt_extent *out, const grt_tensor *t, int32_t index)
{
    const size_t bytes = grt_tensor_bytes(t);
    *out = (grt_extent){(uintptr_t)t->data, (uintptr_t)t->data + bytes, index};
    return bytes > 0;
}

/* Of tensors that the caller bound; defaults and outputs without binding lie in memory of ours. */
static size_t list_extents(const grt_binding *binding, bool *out_any_output)
{
    const grt_plan_body *body = grt_binding_body(binding);
    size_t n = 0;
    for (int32_t i = 0; i < body->n_inputs; i++)
        if (binding->input_set[i] && binding->inputs[i].kind == GRT_KIND_TENSOR)
            n += add_extent(&binding->extents[n], &binding->inputs[i].t, i);
    const size_t inputs = n;
    for (int32_t i = 0; i < body->n_outputs; i++)
        if (binding->output_set[i] && !binding->in_place[i])
            n += add_extent(&binding->extents[n], &binding->outputs[i], body->n_inputs + i);
    *out_any_output = n > inputs;
    return n;
}

static grt_status fail_overlap(const grt_binding *binding, const grt_extent *a, const grt_extent *b)
{
    const grt_plan_body *body = grt_binding_body(binding);
    const grt_extent *output = a->index >= body->n_inputs ? a : b, *other = output == a ? b : a;
    const bool both = other->index >= body->n_inputs;
    return grt_fail(
        GRT_STATUS_INVALID_ARGUMENT,
        "output '%s' is bound to memory that overlaps that of %s '%s' (%zu bytes at %p, %zu at %p): "
        "give each output memory of its own",
        body->output_names[output->index - body->n_inputs], both ? "output" : "input",
        both ? body->output_names[other->index - body->n_inputs]
             : body->values[body->inputs[other->index]].name,
        (size_t)(output->end - output->begin), (void *)output->begin, (size_t)(other->end - other->begin),
        (void *)other->begin);
}

/* In the order of their begins, whatever overlaps one that was passed overlaps the one that reaches furthest.
 */
grt_status grt_binding_check_overlap(grt_binding *binding)
{
    bool any_output;
    if (!binding->rebound)
        return GRT_OK;
    const size_t n = list_extents(binding, &any_output);
    const grt_extent *furthest = NULL, *furthest_output = NULL;
    if (any_output)
        sort_by_begin(binding->extents, (int64_t)n);
    for (size_t i = 0; any_output && i < n; i++) {
        const grt_extent *e = &binding->extents[i];
        const bool output = e->index >= grt_binding_body(binding)->n_inputs;
        const grt_extent *before = output ? furthest : furthest_output;
        if (before && before->end > e->begin)
            return fail_overlap(binding, before, e);
        if (!furthest || e->end > furthest->end)
            furthest = e;
        if (output && (!furthest_output || e->end > furthest_output->end))
            furthest_output = e;
    }
    binding->rebound = false;
    return GRT_OK;
}

grt_status grt_binding_create(const grt_plan *plan, grt_binding *out_binding)
{
    const size_t n_in = (size_t)plan->bodies[0].n_inputs + 1, n_out = (size_t)plan->bodies[0].n_outputs + 1;
    *out_binding = (grt_binding){.plan = plan,
                                 .inputs = calloc(n_in, sizeof *out_binding->inputs),
                                 .input_set = calloc(n_in, sizeof *out_binding->input_set),
                                 .outputs = calloc(n_out, sizeof *out_binding->outputs),
                                 .output_set = calloc(n_out, sizeof *out_binding->output_set),
                                 .asked = calloc(n_out, sizeof *out_binding->asked),
                                 .in_place = calloc(n_out, sizeof *out_binding->in_place),
                                 .extents = calloc(n_in + n_out, sizeof *out_binding->extents)};
    return out_binding->inputs && out_binding->input_set && out_binding->outputs && out_binding->output_set &&
                   out_binding->in_place && out_binding->asked && out_binding->extents
               ? GRT_OK
               : grt_fail_memory(0);
}

void grt_binding_release(grt_binding *binding)
{
    free(binding->inputs);
    free(binding->input_set);
    free(binding->outputs);
    free(binding->output_set);
    free(binding->in_place);
    free(binding->asked);
    free(binding->extents);
}

grt_status grt_binding_check_inputs(grt_binding *binding)
{
    const grt_plan_body *body = grt_binding_body(binding);
    for (int32_t i = 0; i < body->n_inputs; i++) {
        const grt_plan_value *v = &body->values[body->inputs[i]];
        if (binding->input_set[i])
            continue;
        if (v->weight < 0)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "input '%s' is not set", v->name);
        const bool kept = binding->kept && binding->kept[i].t.dtype;
        binding->inputs[i] = (grt_value){.t = kept ? binding->kept[i].t : binding->plan->weights[v->weight]};
        if (!binding->inputs[i].t.data)
            binding->inputs[i].t.data = grt_nothing;
    }
    return GRT_OK;
}
