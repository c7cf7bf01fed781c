/* SPDX-License-Identifier: Apache-2.0 */
/* From a file or bytes to a module: map, unpack, check the model as a whole, import its graph. */
#include "graph/import/import.h"

#include "graph/import/importer.h"
#include "graph/ops/refused.h"
#include "src/base/checked.h"
#include "src/base/file_map.h"
#include "src/plan/plan.h"

#include <inttypes.h>
#include <string.h>

enum { NEWEST_IR = 14 };

static void import_unmap(void *map)
{
    grt_file_map_close(map);
}

static grt_status import_map_file(const char *path, grt_arena *arena, const void **out_bytes,
                                  size_t *out_size)
{
    grt_file_map *map = GRT_ARENA_NEW(arena, grt_file_map);
    if (!map || !grt_arena_defer(arena, import_unmap, map))
        return grt_fail_memory(sizeof *map);
    GRT_TRY(grt_file_map_open(path, map));
    if (!map->size)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "'%s' is empty", path);
    *out_bytes = map->data;
    *out_size = map->size;
    return GRT_OK;
}

static grt_status import_versions(importer *imp)
{
    const Onnx__ModelProto *model = imp->model;
    imp->ir_version = model->has_ir_version ? model->ir_version : 0;
    if (imp->ir_version < 1)
        GRT_TRY(problem(imp, NULL, "the model has no ir_version"));
    if (imp->ir_version > NEWEST_IR)
        GRT_TRY(problem_from(imp, NULL,
                             grt_fail(GRT_STATUS_UNSUPPORTED,
                                      "IR version %" PRId64 " is newer than the newest known, %d",
                                      imp->ir_version, NEWEST_IR)));
    imp->opsets = (opsets){model->opset_import, model->n_opset_import, 0};
    if (!model->n_opset_import && imp->ir_version >= 3)
        GRT_TRY(problem(imp, NULL,
                        "opset_import is missing: the model does not say which operator sets it uses"));
    if (imp->ir_version < 3)
        imp->opsets.fallback = 1;
    if (model->n_opset_import > MAX_OPSETS)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "opset_import has %zu entries; the limit is %d",
                        model->n_opset_import, MAX_OPSETS);
    for (size_t i = 0; i < model->n_opset_import; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(domain_of(model->opset_import[i]->domain),
                        domain_of(model->opset_import[k]->domain)) &&
                model->opset_import[i]->version != model->opset_import[k]->version)
                GRT_TRY(warning(imp, NULL,
                                "opset_import lists domain '%s' twice, with versions %" PRId64 " and %" PRId64
                                "; the later entry was taken",
                                domain_of(model->opset_import[i]->domain), model->opset_import[k]->version,
                                model->opset_import[i]->version));
    return GRT_OK;
}

static const char *import_keep(importer *imp, const char *text)
{
    return *text_or_empty(text) ? grt_arena_strdup(imp->arena, text) : "";
}

/* What the model says of itself. */
static grt_status keep_metadata(importer *imp)
{
    const Onnx__ModelProto *model = imp->model;
    grt_metadata_entry *entries = GRT_ARENA_ARRAY(imp->arena, grt_metadata_entry, model->n_metadata_props);
    for (size_t i = 0; entries && i < model->n_metadata_props; i++)
        entries[i] = (grt_metadata_entry){.key = import_keep(imp, model->metadata_props[i]->key),
                                          .value = import_keep(imp, model->metadata_props[i]->value)};
    imp->module->metadata =
        (grt_metadata){.producer_name = import_keep(imp, model->producer_name),
                       .producer_version = import_keep(imp, model->producer_version),
                       .domain = import_keep(imp, model->domain),
                       .description = import_keep(imp, model->doc_string),
                       .graph_name = import_keep(imp, model->graph ? model->graph->name : NULL),
                       .graph_description = import_keep(imp, model->graph ? model->graph->doc_string : NULL),
                       .model_version = model->model_version,
                       .ir_version = imp->ir_version,
                       .n_entries = model->n_metadata_props,
                       .entries = entries};
    return grt_arena_failed(imp->arena) ? grt_fail_memory(0) : GRT_OK;
}

/* A text for a line of a report; a description of several lines is only among the metadata. */
static const char *text_of_line(const char *text)
{
    for (const char *c = text_or_empty(text); *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return "";
    return text_or_empty(text);
}

static grt_status import_describe(importer *imp)
{
    ir_module *module = imp->module;
    module->ir_version = imp->ir_version;
    module->opset = imp->opsets.fallback;
    for (size_t i = 0; i < imp->opsets.n; i++)
        if (!*domain_of(imp->opsets.list[i]->domain))
            module->opset = imp->opsets.list[i]->version;
    const char *name = text_of_line(imp->model->producer_name),
               *version = text_of_line(imp->model->producer_version);
    module->producer = grt_arena_printf(imp->arena, "%s%s%s", name, *name && *version ? " " : "", version);
    return module->producer ? keep_metadata(imp) : grt_fail_memory(0);
}

/* Passes expect clean marks. */
static grt_status import_clear_marks(ir_graph *graph, void *user)
{
    (void)user;
    ir_clear_marks(graph);
    return GRT_OK;
}

/* A module with problems is not returned, so unknown operators are reported here too. */
static grt_status import_tell_unknown(ir_graph *graph, void *user)
{
    importer *imp = user;
    IR_FOR_EACH_NODE (node, graph) {
        if (node->row)
            continue;
        const char *op = grt_arena_printf(imp->scratch, "%s%s%s", node->desc.domain,
                                          *node->desc.domain ? "::" : "", node->desc.op);
        if (!op)
            return grt_fail_memory(0);
        const grt_finding finding = {.struct_size = sizeof finding,
                                     .status = GRT_STATUS_UNSUPPORTED,
                                     .node = node->desc.name,
                                     .op = op,
                                     .opset = node->opset,
                                     .message = op_refused_why(node->desc.domain, node->desc.op)};
        imp->each(imp->user, &finding);
    }
    return GRT_OK;
}

/* Of the model and of the files with its external data. */
static size_t source_size(const importer *imp)
{
    size_t size = imp->size;
    for (const external_file *file = imp->files; file; file = file->next)
        if (!grt_add_size(size, file->size, &size))
            return SIZE_MAX;
    return size;
}

static grt_status import_model(importer *imp)
{
    const void *bytes = imp->source->bytes;
    size_t size = imp->source->size;
    ProtobufCMessage *message;
    if (!bytes)
        GRT_TRY(import_map_file(imp->source->path, imp->arena, &bytes, &size));
    imp->size = size;
    if (grt_plan_recognize(bytes, size))
        return grt_fail(
            GRT_STATUS_INVALID_ARGUMENT,
            "this is a plan, made by graphc optimize; an ONNX model is wanted (graphc inspect and graphrun "
            "take plans)");
    GRT_TRY(grt_pb_unpack(&onnx__model_proto__descriptor, bytes, size, imp->scratch, &message));
    imp->model = (const Onnx__ModelProto *)message;
    if (!imp->model->graph)
        return grt_fail(GRT_STATUS_INVALID_MODEL, "not an ONNX model: it has no graph");
    GRT_TRY(import_versions(imp));
    GRT_TRY(import_describe(imp));
    GRT_TRY(import_functions(imp));
    GRT_TRY(import_main(imp, imp->model->graph));
    budget_start(&imp->module->budget, source_size(imp));
    GRT_TRY(ir_graph_walk(imp->module->main, import_clear_marks, NULL));
    const bool failed =
        grt_arena_failed(imp->arena) || grt_arena_failed(imp->scratch) || grt_dims_failed(imp->module->dims);
    return failed ? grt_fail_memory(0) : GRT_OK;
}

grt_status compile_fail_file(grt_status status, const char *path)
{
    return !path || strstr(grt_last_error(), path) ? status : grt_fail_context(status, "%s", path);
}

grt_status ir_import_check(const compile_source *source, void (*each)(void *user, const grt_finding *finding),
                           void *user, ir_module **out_module)
{
    importer imp = {.source = source, .each = each, .user = user, .node = import_node};
    if (!source || (!source->bytes && !source->path))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "neither a path nor bytes of a model are given");
    GRT_TRY(ir_module_create(&imp.module));
    imp.arena = imp.module->arena;
    imp.module->warnings =
        (ir_warnings){.tell = source->warn, .user = source->warn_user, .strict = source->strict};
    imp.scratch = grt_arena_create();
    grt_status status = imp.scratch ? import_model(&imp) : grt_fail_memory(1);
    if (each && (status == GRT_STATUS_INVALID_MODEL || status == GRT_STATUS_UNSUPPORTED))
        status = problem_from(&imp, NULL, status);
    if (status == GRT_OK && imp.n_problems && imp.module->main)
        status = ir_graph_walk(imp.module->main, import_tell_unknown, &imp);
    if (status != GRT_OK)
        compile_fail_file(status, source->path);
    grt_arena_release(imp.scratch);
    if (status != GRT_OK || imp.n_problems) {
        ir_module_release(imp.module);
        imp.module = NULL;
    }
    if (status == GRT_OK)
        *out_module = imp.module;
    return status;
}

grt_status ir_import(const compile_source *source, ir_module **out_module)
{
    return ir_import_check(source, NULL, NULL, out_module);
}
