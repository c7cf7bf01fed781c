/* SPDX-License-Identifier: Apache-2.0 */
/* Opening models: plans are mapped, ONNX files are compiled in memory. Answering questions about them. */
#include "src/session/model.h"

#include "backends/registry.h"
#include "graph/compile.h"
#include "src/base/log.h"
#include "src/base/openmp.h"
#include "src/base/structs.h"
#include "src/target/measure.h"
#include "src/target/target.h"
#include "src/plan/trust.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- opening ---- */

static grt_status model_map_file(const char *path, grt_model *model)
{
    GRT_TRY(grt_file_map_open(path, &model->file));
    if (!model->file.size)
        return grt_fail(GRT_STATUS_IO, "'%s' is empty", path);
    model->map = model->file.data;
    model->map_size = model->file.size;
    return GRT_OK;
}

/* options NULL: the defaults, which are grt_compile's. */
static grt_status model_compile(grt_model *model, const char *path, const grt_compile_options *options)
{
    grt_compile_options known;
    GRT_TRY(compile_options_take(&known, options));
    if (known.external_weights || known.n_devices || known.choices)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_model_open_with: %s is for plans that are written to a file: see grt_compile",
                        known.external_weights ? "external_weights"
                        : known.n_devices      ? "devices"
                                               : "choices");
    const grt_backend *backend = grt_backend_find(known.target ? known.target : "cpu");
    if (!backend)
        return GRT_STATUS_DEVICE;
    const grt_target target = grt_target_of(backend);
    compile_source source = {.path = path, .bytes = model->map, .size = model->map_size};
    compile_source_take(&source, &known);
    GRT_TRY(grt_compile_plan(&source, &known, &target, &model->plan));
    const char *const *names;
    model->passes = grt_pass_names(&names);
    return grt_plan_measure(model->plan, backend);
}

static grt_status find_trust(const grt_compile_options *options, grt_trust *out_trust)
{
    grt_compile_options known;
    GRT_TRY(compile_options_take(&known, options));
    return grt_trust_parse(known.trust, out_trust);
}

static grt_status model_load(grt_model *model, const char *path, const grt_compile_options *options)
{
    grt_trust trust;
    GRT_TRY(find_trust(options, &trust));
    if (grt_plan_recognize(model->map, model->map_size)) {
        grt_phases_next(&model->phases, "check plan");
        return grt_plan_read_later(path, model->map, model->map_size, &trust, &model->check, &model->plan);
    }
    if (trust.kind == GRT_TRUST_KEYS)
        return grt_fail(GRT_STATUS_UNTRUSTED,
                        "an ONNX model has no signature: compile it (graphc optimize) and sign the plan");
    grt_phases_next(&model->phases, "compile");
    return model_compile(model, path, options);
}

static grt_status model_create(grt_runtime *runtime, grt_model **out_model)
{
    grt_model *model = calloc(1, sizeof *model);
    if (!model)
        return grt_fail_memory(sizeof *model);
    grt_team_used();
    atomic_init(&model->refs, 1);
    pthread_mutex_init(&model->lock, NULL);
    model->runtime = grt_runtime_retain(runtime);
    grt_phases_start(&model->phases);
    *out_model = model;
    return GRT_OK;
}

static grt_status make_texts(grt_model *model);

static grt_status model_finish(grt_model *model, grt_status status, const char *path,
                               const grt_compile_options *options, grt_model **out_model)
{
    if (status == GRT_OK)
        status = model_load(model, path, options);
    if (status == GRT_OK)
        status = make_texts(model);
    grt_phases_next(&model->phases, NULL);
    if (status != GRT_OK)
        return compile_fail_file(status, path);
    *out_model = model;
    return GRT_OK;
}

static grt_status model_open_once(grt_runtime *runtime, const char *path, const grt_compile_options *options,
                                  grt_model **out_model, struct stat *out_file)
{
    grt_model *model;
    GRT_TRY(model_create(runtime, &model));
    grt_phases_next(&model->phases, "map");
    grt_status status = model_finish(model, model_map_file(path, model), path, options, out_model);
    *out_file = model->file.info;
    if (status != GRT_OK)
        grt_model_release(model);
    return status;
}

static bool was_replaced(const char *path, const struct stat *opened)
{
    struct stat now;
    if (!opened->st_ino || stat(path, &now) != 0)
        return false;
    return now.st_dev != opened->st_dev || now.st_ino != opened->st_ino ||
           now.st_ctim.tv_sec != opened->st_ctim.tv_sec || now.st_ctim.tv_nsec != opened->st_ctim.tv_nsec;
}

/* What another plan replaced meanwhile may have lost its weights: the one that is there now counts. */
grt_status grt_model_open_with(grt_runtime *runtime, const char *path, const grt_compile_options *options,
                               grt_model **out_model)
{
    enum { MOST_TRIES = 16 };
    struct stat file = {0};
    if (!runtime || !path || !out_model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_model_open: runtime, path or out_model is NULL");
    grt_status status = model_open_once(runtime, path, options, out_model, &file);
    for (int i = 1; status != GRT_OK && i < MOST_TRIES && was_replaced(path, &file); i++)
        status = model_open_once(runtime, path, options, out_model, &file);
    if (status != GRT_OK)
        GRT_LOG(ERROR, "load", "%s", grt_last_error());
    else
        GRT_LOG(INFO, "load", "%s: %lld nodes, %d steps, for %s, weights of %llu bytes", path,
                (long long)(*out_model)->plan->source_nodes, (int)(*out_model)->plan->bodies[0].n_steps,
                (*out_model)->plan->target, (unsigned long long)(*out_model)->plan->weights_bytes);
    return status;
}

grt_status grt_model_open(grt_runtime *runtime, const char *path, grt_model **out_model)
{
    return grt_model_open_with(runtime, path, NULL, out_model);
}

grt_status grt_model_open_memory(grt_runtime *runtime, const void *data, size_t size, grt_model **out_model)
{
    return grt_model_open_memory_with(runtime, data, size, NULL, out_model);
}

grt_status grt_model_open_memory_with(grt_runtime *runtime, const void *data, size_t size,
                                      const grt_compile_options *options, grt_model **out_model)
{
    if (!runtime || !data || !out_model)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_model_open_memory: runtime, data or out_model is NULL");
    if (size > SIZE_MAX / 2)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_model_open_memory: size is %zu bytes, more than memory can hold", size);
    grt_model *model;
    GRT_TRY(model_create(runtime, &model));
    grt_phases_next(&model->phases, "copy");
    grt_status status = GRT_OK;
    bool borrow = (uintptr_t)data % 4096 == 0 && grt_plan_recognize(data, size);
    model->map_size = size;
    if (borrow) {
        model->map = (void *)data;
        model->borrowed = true;
    } else {
        model->map = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
        if (model->map)
            memcpy(model->map, data, size);
        else
            status = grt_fail_memory(size);
    }
    status = model_finish(model, status, NULL, options, out_model);
    if (status != GRT_OK)
        grt_model_release(model);
    return status;
}

grt_model *grt_model_retain(grt_model *model)
{
    atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
    return model;
}

void grt_model_release(grt_model *model)
{
    if (!model || atomic_fetch_sub_explicit(&model->refs, 1, memory_order_acq_rel) != 1)
        return;
    grt_weights_check_release(model->check);
    pthread_mutex_destroy(&model->lock);
    grt_plan_release(model->plan);
    grt_arena_release(model->texts);
    if (!model->borrowed && !model->file.data)
        free(model->map);
    grt_file_map_close(&model->file);
    grt_runtime_release(model->runtime);
    free(model);
}

enum { PAGE = 4096 };

void grt_model_forget(const grt_model *model, const void *data, size_t bytes)
{
    const char *begin = data, *map = model->map;
    if (!model->file.data || begin < map || begin + bytes > map + model->map_size)
        return;
    uintptr_t first = ((uintptr_t)begin + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t last = ((uintptr_t)begin + bytes) & ~(uintptr_t)(PAGE - 1);
    if (first < last) /* advice only: the pages come back from the file when they are read again */
        madvise((void *)first, last - first, MADV_DONTNEED);
}

/* ---- questions ---- */

/* "2*seq+1", from the plan's own table */
static void print_dim(const grt_plan *plan, int32_t dim, int depth, grt_text *text)
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
        print_dim(plan, e->a, depth + 1, text);
        grt_text_add(text, "%s%s", group ? ")" : "", infix ? names[e->op] : ",");
        print_dim(plan, e->b, depth + 1, text);
        grt_text_add(text, "%s", infix ? "" : ")");
    }
}

static void print_value(const grt_plan *plan, const grt_plan_value *v, grt_text *text)
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
        print_dim(plan, v->dims[i], 0, text);
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

/* Texts are made once, at opening, so that queries may come from any thread. */
static grt_status make_texts(grt_model *model)
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
            print_dim(model->plan, v->dims[i], 0, &text);
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
        print_value(model->plan, v, &type);
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
