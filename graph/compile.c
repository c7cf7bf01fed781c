/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler from end to end. */
#include "graph/compile.h"

#include "graph/ir/infer.h"
#include "graph/lower.h"
#include "graph/ops/refused.h"
#include "graph/passes/passes.h"
#include "graph/passes/supported.h"
#include "graph/state_pairs.h"
#include "src/base/structs.h"
#include "src/base/text.h"
#include "src/plan/format.h"

#include <string.h>

static grt_status check_elements(const grt_compile_options *options)
{
    for (size_t i = 0; options->devices && i < options->n_devices; i++)
        GRT_TRY(grt_reserved_check(options->devices[i].reserved, sizeof options->devices[i].reserved,
                                   "grt_device_description"));
    for (size_t i = 0; options->shapes && i < options->n_shapes; i++)
        GRT_TRY(grt_reserved_check(options->shapes[i].reserved, sizeof options->shapes[i].reserved,
                                   "grt_input_shape"));
    for (size_t i = 0; options->external_data && i < options->n_external_data; i++)
        GRT_TRY(grt_reserved_check(options->external_data[i].reserved,
                                   sizeof options->external_data[i].reserved, "grt_external_data"));
    return GRT_OK;
}

grt_status compile_options_take(grt_compile_options *out, const grt_compile_options *options)
{
    *out = (grt_compile_options){.struct_size = sizeof *out};
    GRT_TRY(grt_options_take(out, sizeof *out, options, "grt_compile_options"));
    if (out->optimization < GRT_OPTIMIZATION_DEFAULT || out->optimization > GRT_OPTIMIZATION_FULL)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_compile_options.optimization is %d; the values are GRT_OPTIMIZATION_DEFAULT "
                        "(%d) to GRT_OPTIMIZATION_FULL (%d)",
                        (int)out->optimization, GRT_OPTIMIZATION_DEFAULT, GRT_OPTIMIZATION_FULL);
    if (out->optimization == GRT_OPTIMIZATION_DEFAULT)
        out->optimization = GRT_OPTIMIZATION_FULL;
    return check_elements(out);
}

/* Level of passes: 0, 1 or 2. */
static int32_t compile_level_of(const grt_compile_options *options)
{
    return (int32_t)options->optimization - GRT_OPTIMIZATION_NONE;
}

void compile_source_take(compile_source *source, const grt_compile_options *options)
{
    source->allow_symlinks = options->allow_symlinks;
    source->strict = options->strict;
    source->warn = options->warning;
    source->warn_user = options->user;
    source->free_dims = options->free_dims;
    source->keep_weights = options->keep_weights;
    source->external = options->external_data;
    source->n_external = options->external_data ? options->n_external_data : 0;
}

static bool compile_is_narrow(grt_precision precision)
{
    return precision == GRT_PRECISION_FLOAT16 || precision == GRT_PRECISION_BFLOAT16;
}

/* "exact", "fp16" or "fp16,NAME=fp32,...". */
static grt_status read_precision(const char *text, pass_context *out)
{
    grt_precision narrow = GRT_PRECISION_MODEL;
    out->precision = GRT_PRECISION_MODEL;
    out->exact = text && !strcmp(text, "exact");
    if (!text || out->exact)
        return GRT_OK;
    const size_t first = strcspn(text, ",");
    out->exceptions = text[first] ? text + first + 1 : NULL;
    for (const char *p = text; *p; p += *p == ',') {
        const size_t size = strcspn(p, ","), word = p == text ? 0 : strcspn(p, "=") + 1;
        grt_precision found = GRT_PRECISION_MODEL;
        if (word >= size + (p == text) || !pass_precision_read(p + word, size - word, &found))
            return grt_fail(
                GRT_STATUS_INVALID_ARGUMENT,
                "there is no precision '%.*s'; there are exact, which stands alone, or fp32, tf32, fp16 and "
                "bf16, then exceptions as NAME=PRECISION, all separated by commas",
                (int)(size < 200 ? size : 200), p);
        if (p == text)
            out->precision = found;
        if (compile_is_narrow(found) && compile_is_narrow(narrow) && found != narrow)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "precision '%s' has fp16 and bf16: one of them can be in a plan", text);
        narrow = compile_is_narrow(found) ? found : narrow;
        p += size;
    }
    return GRT_OK;
}

/* Each exception is of a node that there is. */
static grt_status check_exceptions(const ir_graph *graph, const char *list)
{
    for (const char *p = list; p && *p; p += *p == ',') {
        const size_t size = strcspn(p, ",");
        const char *one = grt_arena_strndup(graph->module->arena, p, size);
        bool found = !one;
        grt_precision precision;
        IR_FOR_EACH_NODE (node, graph)
            found = found || pass_precision_find(one, node->desc.name, &precision);
        if (!found)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "grt_compile_options.precision: the model has no node for '%s'", one);
        p += size;
    }
    return GRT_OK;
}

grt_cancel compile_cancel(const grt_compile_options *options)
{
    return (grt_cancel){options->cancel, options->user};
}

/* CANCELLED if the caller does not want the next phase. */
static grt_status compile_report(const grt_compile_options *options, const char *phase, double fraction)
{
    const grt_cancel cancel = compile_cancel(options);
    if (options->progress)
        options->progress(options->user, phase, fraction);
    return grt_cancel_check(&cancel);
}

static grt_status optimise(pass_context *context, const grt_compile_options *options)
{
    GRT_TRY(compile_report(options, "infer", 0));
    GRT_TRY(ir_infer(context->module));
    GRT_TRY(compile_report(options, "optimize", 0));
    return pass_run_enabled(context);
}

static grt_status compile_start(ir_module *module, const grt_compile_options *options,
                                const grt_target *target, pass_context *out_context)
{
    *out_context = (pass_context){.module = module,
                                  .target = target,
                                  .disabled = options->disable_passes,
                                  .enabled = options->enable_passes,
                                  .level = compile_level_of(options),
                                  .progress = options->progress,
                                  .near_misses = {.tell = options->near_miss, .user = options->user},
                                  .user = options->user};
    module->budget.cancel = compile_cancel(options);
    out_context->precision_asked = options->precision != NULL;
    return read_precision(options->precision, out_context);
}

/* Each name is an input with a default now. */
static grt_status compile_check_kept(const ir_graph *graph, const char *list)
{
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        const size_t size = strcspn(p, ",");
        bool found = !size || (size == 1 && *p == '*');
        for (int32_t i = 0; i < graph->n_inputs && !found; i++)
            found = graph->defaults[i] && !strncmp(graph->inputs[i]->name, p, size) &&
                    !graph->inputs[i]->name[size];
        if (!found)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "grt_compile_options.keep_weights: the model has no initializer '%.*s'",
                            (int)(size < 200 ? size : 200), p);
    }
    return GRT_OK;
}

grt_status grt_compile_plan(const compile_source *source, const grt_compile_options *options,
                            const grt_target *target, grt_plan **out_plan)
{
    GRT_TRY(compile_report(options, "import", 0));
    ir_module *module = NULL;
    GRT_TRY(ir_import(source, &module));
    pass_context context;
    grt_status status = compile_start(module, options, target, &context);
    if (status == GRT_OK)
        status = compile_check_kept(module->main, options->keep_weights);
    if (status == GRT_OK)
        status = check_exceptions(module->main, context.exceptions);
    if (status == GRT_OK && options->state)
        status = state_pairs_declare(module, options->state);
    if (status == GRT_OK)
        status = optimise(&context, options);
    if (status == GRT_OK)
        status = pass_check_supported(&context);
    if (status == GRT_OK)
        status = compile_report(options, "lower", 0);
    if (status != GRT_OK) {
        ir_module_release(module);
        return status;
    }
    GRT_TRY(ir_lower(module, target, out_plan)); /* the module is its own now, whatever comes */
    static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16"}; /* as grt_precision */
    const bool said = context.exact || context.precision != GRT_PRECISION_MODEL || context.exceptions;
    const char *disabled = options->disable_passes ? options->disable_passes : "";
    const char *enabled = options->enable_passes ? options->enable_passes : "";
    const char *text =
        grt_arena_printf((*out_plan)->arena, "level %d, target %s%s%s%s%s%s%s%s%s", compile_level_of(options),
                         target->name, said ? ", precision " : "",
                         context.exact ? "exact"
                         : said        ? precisions[context.precision]
                                       : "",
                         context.exceptions ? "," : "", context.exceptions ? context.exceptions : "",
                         *disabled ? ", without " : "", disabled, *enabled ? ", with " : "", enabled);
    if (text)
        (*out_plan)->options = text;
    (void)compile_report(options, "lower", 1); /* the next step asks again */
    return GRT_OK;
}

typedef struct checking {
    void (*each)(void *user, const grt_finding *finding);
    void *user;
    size_t n;
} checking;

static void compile_count(void *user, const grt_finding *finding)
{
    checking *c = user;
    c->n++;
    c->each(c->user, finding);
}

/* A failing pass ends the search; unknown ops are reported all the same. */
static grt_status compile_tell_unknown(ir_graph *graph, void *user)
{
    IR_FOR_EACH_NODE (node, graph) {
        if (node->row)
            continue;
        grt_text op = {0};
        grt_text_add(&op, "%s%s%s", node->desc.domain, *node->desc.domain ? "::" : "", node->desc.op);
        compile_count(user, &(grt_finding){.struct_size = sizeof(grt_finding),
                                           .status = GRT_STATUS_UNSUPPORTED,
                                           .node = node->desc.name,
                                           .op = grt_text_get(&op),
                                           .opset = node->opset,
                                           .message = op_refused_why(node->desc.domain, node->desc.op)});
        const bool failed = op.failed;
        grt_text_release(&op);
        if (failed)
            return grt_fail_memory(0);
    }
    return GRT_OK;
}

static grt_status tell_failure(checking *c, ir_module *module, grt_status status)
{
    if (status == GRT_STATUS_INVALID_ARGUMENT)
        status = GRT_STATUS_INVALID_MODEL; /* what was given is the model */
    if (status != GRT_STATUS_INVALID_MODEL && status != GRT_STATUS_UNSUPPORTED)
        return status;
    grt_text message = {0};
    grt_text_add(&message, "%s", grt_last_error());
    const bool failed = message.failed;
    compile_count(c, &(grt_finding){.struct_size = sizeof(grt_finding),
                                    .status = status,
                                    .node = "",
                                    .op = "",
                                    .opset = module->opset,
                                    .message = grt_text_get(&message)});
    grt_text_release(&message);
    return failed ? grt_fail_memory(0) : ir_graph_walk(module->main, compile_tell_unknown, c);
}

/* The plan that would be written. Takes over the module. */
static grt_status check_plan(ir_module *module, const grt_target *target)
{
    grt_plan *plan;
    GRT_TRY(ir_lower(module, target, &plan));
    grt_status status = plan_check("", plan);
    if (status != GRT_OK)
        status = grt_fail_context(GRT_STATUS_INTERNAL, "the compiler made a plan that breaks its own rules");
    grt_plan_release(plan);
    return status;
}

grt_status grt_compile_check(const compile_source *source, const grt_target *target,
                             void (*each)(void *user, const grt_finding *finding), void *user)
{
    checking c = {each, user, 0};
    ir_module *module = NULL;
    grt_compile_options defaults;
    pass_context context;
    GRT_TRY(compile_options_take(&defaults, NULL));
    GRT_TRY(ir_import_check(source, compile_count, &c, &module));
    if (!module)
        return GRT_OK;
    grt_status status = compile_start(module, &defaults, target, &context);
    if (status == GRT_OK)
        status = optimise(&context, &defaults);
    if (status == GRT_OK)
        status = pass_report_unsupported(&context, true, compile_count, &c);
    else
        status = tell_failure(&c, module, status);
    if (status == GRT_OK && !c.n)
        return check_plan(module, target);
    ir_module_release(module);
    return status;
}
