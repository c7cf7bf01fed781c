/* SPDX-License-Identifier: Apache-2.0 */
/* What a model says of itself: inputs, outputs, steps, values, metadata. */
#include "src/base/structs.h"
#include "src/session/model.h"

#include <inttypes.h>
#include <string.h>

/* "2*seq+1", from the plan's own table */
static void model_print_dim(const grt_plan *plan, int32_t dim, int depth, grt_text *text)
{
    static const char *const names[] = {[GRT_DIM_ADD] = "+",
                                        [GRT_DIM_MUL] = "*",
                                        [GRT_DIM_FLOORDIV] = "floordiv",
                                        [GRT_DIM_CEILDIV] = "ceildiv",
                                        [GRT_DIM_MOD] = "mod",
                                        [GRT_DIM_MAX] = "max",
                                        [GRT_DIM_MIN] = "min",
                                        [GRT_DIM_BROADCAST] = "broadcast"};
    const grt_dim_expr *e = &plan->dims[dim];
    bool infix = e->op == GRT_DIM_ADD || e->op == GRT_DIM_MUL;
    if (e->op == GRT_DIM_CONST)
        grt_text_add(text, "%" PRId64, e->value);
    else if (e->op == GRT_DIM_SYMBOL)
        grt_text_add(text, "%s", plan->symbols[e->value]);
    else if (depth > 8)
        grt_text_add(text, "...");
    else {
        bool group = e->op == GRT_DIM_MUL && plan->dims[e->a].op == GRT_DIM_ADD;
        grt_text_add(text, "%s%s", infix ? "" : names[e->op], infix && !group ? "" : "(");
        model_print_dim(plan, e->a, depth + 1, text);
        grt_text_add(text, "%s%s", group ? ")" : "", infix ? names[e->op] : ",");
        model_print_dim(plan, e->b, depth + 1, text);
        grt_text_add(text, "%s", infix ? "" : ")");
    }
}

static void model_print_value(const grt_plan *plan, const grt_plan_value *v, grt_text *text)
{
    if (v->kind != GRT_KIND_TENSOR && v->kind != GRT_KIND_MAP)
        grt_text_add(text, v->kind == GRT_KIND_SEQUENCE ? "sequence of " : "optional ");
    if (v->keys) {
        grt_text_add(text, "map from %s to %s", grt_dtype_name(v->keys), grt_dtype_name(v->dtype));
        return;
    }
    grt_text_add(text, "%s[", grt_dtype_name(v->dtype));
    if (v->rank < 0)
        grt_text_add(text, "*");
    for (int32_t i = 0; i < v->rank; i++) {
        grt_text_add(text, i ? "x" : "");
        model_print_dim(plan, v->dims[i], 0, text);
    }
    grt_text_add(text, "]");
}

static const char *model_keep(grt_model *model, grt_text *text)
{
    const char *kept = grt_arena_strdup(model->texts, grt_text_get(text));
    if (text->failed)
        grt_arena_fail(model->texts);
    grt_text_release(text);
    return kept ? kept : "";
}

grt_status grt_model_make_texts(grt_model *model)
{
    const grt_plan_body *body = &model->plan->bodies[0];
    model->texts = grt_arena_create();
    if (!model->texts)
        return grt_fail_memory(0);
    int32_t n = body->n_inputs + body->n_outputs;
    model->io_symbols = GRT_ARENA_ARRAY(model->texts, const char *, (size_t)n *GRT_MAX_RANK + 1);
    if (!model->io_symbols)
        return grt_fail_memory(0);
    for (int32_t k = 0; k < n; k++) {
        const grt_plan_value *v =
            &body->values[k < body->n_inputs ? body->inputs[k] : body->outputs[k - body->n_inputs]];
        for (int32_t i = 0; i < v->rank; i++) {
            if (model->plan->dims[v->dims[i]].op == GRT_DIM_CONST)
                continue;
            grt_text text = {0};
            model_print_dim(model->plan, v->dims[i], 0, &text);
            model->io_symbols[k * GRT_MAX_RANK + i] = model_keep(model, &text);
        }
    }
    return grt_arena_failed(model->texts) ? grt_fail_memory(0) : GRT_OK;
}

static grt_status io_info(const grt_model *model, bool output, size_t index, grt_io_info *out_info)
{
    if (!model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_%s: the model is NULL",
                        output ? "output" : "input");
    const grt_plan_body *body = &model->plan->bodies[0];
    int32_t n = output ? body->n_outputs : body->n_inputs;
    if (index >= (size_t)n)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s %zu does not exist; the model has %d",
                        output ? "output" : "input", index, n);
    const grt_plan_value *v = &body->values[(output ? body->outputs : body->inputs)[index]];
    size_t k = index + (output ? (size_t)body->n_inputs : 0);
    grt_io_info info = {.name = output ? body->output_names[index] : v->name,
                        .kind = v->kind,
                        .element_kind = v->element_kind,
                        .dtype = v->dtype,
                        .rank = v->rank,
                        .has_default = !output && v->weight >= 0};
    for (int32_t i = 0; i < v->rank; i++) {
        const grt_dim_expr *e = &model->plan->dims[v->dims[i]];
        info.dims[i] = e->op == GRT_DIM_CONST ? e->value : -1;
        info.symbols[i] = model->io_symbols[k * GRT_MAX_RANK + (size_t)i];
    }
    return grt_info_give(out_info, &info, sizeof info, "grt_io_info");
}

size_t grt_model_input_count(const grt_model *model)
{
    return model ? (size_t)model->plan->bodies[0].n_inputs : 0;
}

size_t grt_model_output_count(const grt_model *model)
{
    return model ? (size_t)model->plan->bodies[0].n_outputs : 0;
}

grt_status grt_model_input(const grt_model *model, size_t index, grt_io_info *out_info)
{
    return io_info(model, false, index, out_info);
}

grt_status grt_model_output(const grt_model *model, size_t index, grt_io_info *out_info)
{
    return io_info(model, true, index, out_info);
}

static grt_dtype model_keys_of(const grt_model *model, bool output, size_t index)
{
    const grt_plan_body *body = model ? &model->plan->bodies[0] : NULL;
    if (!body || index >= (size_t)(output ? body->n_outputs : body->n_inputs))
        return GRT_DTYPE_NONE;
    return body->values[(output ? body->outputs : body->inputs)[index]].keys;
}

grt_dtype grt_model_input_keys(const grt_model *model, size_t index)
{
    return model_keys_of(model, false, index);
}

grt_dtype grt_model_output_keys(const grt_model *model, size_t index)
{
    return model_keys_of(model, true, index);
}

grt_status grt_model_get_info(const grt_model *model, grt_model_info *out_info)
{
    if (!model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_get_info: model is NULL");
    const grt_plan *plan = model->plan;
    const grt_model_info info = {.nodes = plan->source_nodes,
                                 .steps = plan->bodies[0].n_steps,
                                 .parameters = plan->parameters,
                                 .weights_bytes = plan->weights_bytes,
                                 .arena_bytes = plan->arena_bytes,
                                 .flops = plan->flops,
                                 .producer = plan->producer,
                                 .opset = plan->opset,
                                 .target = plan->target,
                                 .options = plan->options,
                                 .signer = plan->signer ? plan->signer : "",
                                 .verified = plan->verified};
    return grt_info_give(out_info, &info, sizeof info, "grt_model_info");
}

grt_status grt_model_metadata(const grt_model *model, grt_metadata *out_metadata)
{
    if (!model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_metadata: model is NULL");
    grt_metadata found = model->plan->metadata;
    const char **texts[] = {&found.producer_name, &found.producer_version, &found.domain,
                            &found.description,   &found.graph_name,       &found.graph_description};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*texts[i])
            *texts[i] = "";
    return grt_info_give(out_metadata, &found, sizeof found, "grt_metadata");
}

grt_status grt_model_step(const grt_model *model, size_t index, grt_step_info *out_info)
{
    if (!model || index >= (size_t)model->plan->bodies[0].n_steps)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_step: the model is NULL, or has no step %zu",
                        index);
    const grt_plan_step *step = &model->plan->bodies[0].steps[index];
    const grt_step_info info = {.op = step->desc.op,
                                .name = step->desc.name,
                                .detail = grt_attr_string(&step->desc, "activation", ""),
                                .n_inputs = (size_t)step->n_in,
                                .n_outputs = (size_t)step->n_out,
                                .inputs = step->in,
                                .outputs = step->out,
                                .flops = step->flops};
    return grt_info_give(out_info, &info, sizeof info, "grt_step_info");
}

grt_status grt_model_value(const grt_model *model, int32_t value, const char **out_name, char *text,
                           size_t text_size)
{
    if (!model || !out_name || value < 0 || value >= model->plan->bodies[0].n_values)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_value: a NULL, or no value %d", value);
    const grt_plan_value *v = &model->plan->bodies[0].values[value];
    *out_name = v->name;
    if (text && text_size) {
        grt_text type = {0};
        model_print_value(model->plan, v, &type);
        strncpy(text, grt_text_get(&type), text_size - 1);
        text[text_size - 1] = '\0';
        grt_text_release(&type);
    }
    return GRT_OK;
}

size_t grt_model_phases(const grt_model *model, const grt_phase **out_phases)
{
    if (out_phases)
        *out_phases = model ? model->phases.list : NULL;
    return model ? model->phases.n : 0;
}
