/* grt_compile and grt_check_model: the compiler with a backend as its target. */
#include "graph/compile.h"
#include "graph/op.h"
#include "src/base/structs.h"
#include "src/plan_choose.h"
#include "src/plan_measure.h"
#include "src/plan_pack.h"
#include "src/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

grt_status grt_compile(const char *onnx_path, const grt_compile_options *options, const char *plan_path)
{
    if (!onnx_path || !plan_path)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_compile: %s is NULL",
                        onnx_path ? "plan_path" : "onnx_path");
    if (same_file(onnx_path, plan_path))
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: the plan would take the place of the model",
                        plan_path);
    grt_compile_options known = {.struct_size = sizeof known};
    GRT_TRY(grt_options_take(&known, sizeof known, options, "grt_compile_options"));
    const grt_backend *backend = grt_backend_find(known.target ? known.target : "cpu");
    if (!backend)
        return GRT_STATUS_DEVICE;
    grt_target target = grt_target_of(backend);
    compile_source source = {.path = onnx_path};
    compile_source_take(&source, &known);
    grt_plan *plan;
    grt_status status = grt_compile_plan(&source, options, &target, &plan);
    if (status != GRT_OK)
        return compile_fail_file(status, onnx_path);
    status = grt_plan_measure(plan, backend);
    if (status == GRT_OK)
        status = grt_plan_pack(plan, backend);
    if (status == GRT_OK)
        status = grt_plan_choose(plan, backend, &known);
    if (status == GRT_OK)
        status = grt_plan_write(plan, plan_path, known.external_weights);
    grt_plan_release(plan);
    return status;
}

/* ---- check ---- */

typedef struct checking {
    const grt_target *target;
    void (*each)(void *user, const grt_finding *finding);
    void *user;
    size_t count;
} checking;

static void forward(void *user, const grt_finding *finding)
{
    checking *c = user;
    c->count += finding->status != GRT_OK;
    if (c->each)
        c->each(c->user, finding);
}

static grt_tensor describe(const ir_value *value)
{
    grt_tensor t = {.rank = -1};
    if (!value)
        return t;
    const ir_type *type = &value->type;
    if (type->data)
        return *type->data;
    t.dtype = type->dtype;
    t.rank = type->kind == GRT_KIND_TENSOR ? type->rank : -1;
    for (int32_t i = 0; i < t.rank; i++)
        if (!grt_dim_is_const(value->graph->module->dims, type->dims[i], &t.dims[i]))
            t.dims[i] = -1;
    return t;
}

static void report(checking *c, const ir_node *node, grt_status status, const char *message)
{
    grt_text op = {0};
    grt_text_add(&op, "%s%s%s", node->desc.domain, *node->desc.domain ? "::" : "", node->desc.op);
    grt_finding finding = {status, node->desc.name, grt_text_get(&op), node->opset, message};
    forward(c, &finding);
    grt_text_release(&op);
}

static void check_kernel(checking *c, ir_node *node)
{
    grt_tensor *t = calloc((size_t)(node->n_in + node->n_out) + 1, sizeof *t);
    if (!t)
        return;
    for (int32_t i = 0; i < node->n_in; i++)
        t[i] = describe(node->in[i].value);
    for (int32_t i = 0; i < node->n_out; i++)
        t[node->n_in + i] = describe(node->out[i]);
    grt_text why = {0};
    if (!c->target->supports(c->target, &node->desc, t, node->n_in, t + node->n_in, node->n_out, &why)) {
        grt_text message = {0};
        char type[GRT_TYPE_TEXT_SIZE];
        grt_text_add(&message, "%s; inputs:", grt_text_get(&why));
        for (int32_t i = 0; i < node->n_in; i++)
            grt_text_add(&message, " %s", t[i].dtype ? grt_tensor_text(&t[i], type) : "none");
        report(c, node, GRT_STATUS_UNSUPPORTED, grt_text_get(&message));
        grt_text_release(&message);
    }
    grt_text_release(&why);
    free(t);
}

static grt_status check_graph(ir_graph *graph, void *user)
{
    checking *c = user;
    IR_FOR_EACH_NODE (node, graph) {
        if (!node->row)
            report(c, node, GRT_STATUS_UNSUPPORTED, "this op is not known to this version of the library");
        else if (!(node->row->flags & (OP_VIEW | OP_CONTROL)) && !node->row->expand && !node->row->rewrite)
            check_kernel(c, node);
    }
    return GRT_OK;
}

grt_status grt_check_model(const char *onnx_path, const char *device,
                           void (*each)(void *user, const grt_finding *finding), void *user,
                           size_t *out_count)
{
    const grt_compile_options options = {.struct_size = sizeof options, .target = device};
    return grt_check_model_with(onnx_path, &options, each, user, out_count);
}

grt_status grt_check_model_with(const char *onnx_path, const grt_compile_options *options,
                                void (*each)(void *user, const grt_finding *finding), void *user,
                                size_t *out_count)
{
    if (!onnx_path || !out_count)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_check_model: onnx_path or out_count is NULL");
    grt_compile_options known = {.struct_size = sizeof known};
    GRT_TRY(grt_options_take(&known, sizeof known, options, "grt_compile_options"));
    const grt_backend *backend = grt_backend_find(known.target ? known.target : "cpu");
    if (!backend)
        return GRT_STATUS_DEVICE;
    grt_target target = grt_target_of(backend);
    checking c = {&target, each, user, 0};
    known.warning = forward;
    known.user = &c;
    compile_source source = {.path = onnx_path};
    compile_source_take(&source, &known);
    ir_module *module = NULL;
    grt_status status = ir_import_check(&source, forward, &c, &module);
    if (status == GRT_OK && module) {
        /* Shapes make the findings better; a failure to infer is itself a finding. */
        if (ir_infer(module) != GRT_OK) {
            grt_finding finding = {GRT_STATUS_INVALID_MODEL, "", "", module->opset, grt_last_error()};
            forward(&c, &finding);
        }
        status = ir_graph_walk(module->main, check_graph, &c);
    }
    ir_module_release(module);
    if (status == GRT_OK)
        *out_count = c.count;
    return status;
}
