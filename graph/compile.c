/* The compiler from end to end. */
#include "graph/compile.h"

#include "src/base/structs.h"

#include <string.h>

enum { DEFAULT_LEVEL = 2, MAX_LEVEL = 2 };

/* The caller's options, as far as its struct goes; the rest are defaults. */
static grt_status read_options(const grt_compile_options *options, grt_compile_options *out)
{
    *out = (grt_compile_options){.struct_size = sizeof *out, .level = -1};
    GRT_TRY(grt_options_take(out, sizeof *out, options, "grt_compile_options"));
    if (out->level < -1 || out->level > MAX_LEVEL)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "the optimisation level is %d; it must be 0, 1 or 2, or -1 for the default",
                        out->level);
    if (out->level < 0)
        out->level = DEFAULT_LEVEL;
    return GRT_OK;
}

void compile_source_take(compile_source *source, const grt_compile_options *options)
{
    source->allow_symlinks = options->allow_symlinks;
    source->strict = options->strict;
    source->warn = options->warning;
    source->warn_user = options->user;
    source->free_dims = options->free_dims;
}

grt_status compile_fail_file(grt_status status, const char *path)
{
    return !path || strstr(grt_last_error(), path) ? status : grt_fail_context(status, "%s", path);
}

static grt_status read_precision(const char *text, grt_precision *out)
{
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16"}; /* as grt_precision */
    *out = GRT_PRECISION_MODEL;
    for (int i = 0; text && i < 4; i++)
        if (!strcmp(text, names[i])) {
            *out = (grt_precision)i;
            return GRT_OK;
        }
    return !text ? GRT_OK
                 : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "there is no precision '%s'; there are fp32, tf32, fp16 and bf16", text);
}

static void report(const grt_compile_options *options, const char *phase, double fraction)
{
    if (options->progress)
        options->progress(options->user, phase, fraction);
}

static grt_status optimise(ir_module *module, const grt_compile_options *options, const grt_target *target)
{
    pass_context context = {.module = module,
                            .target = target,
                            .disabled = options->disable_passes,
                            .level = options->level,
                            .progress = options->progress,
                            .user = options->user};
    GRT_TRY(read_precision(options->precision, &context.precision));
    report(options, "infer", 0);
    GRT_TRY(ir_infer(module));
    report(options, "optimize", 0);
    return pass_run_all(&context);
}

grt_status grt_compile_plan(const compile_source *source, const grt_compile_options *options,
                            const grt_target *target, grt_plan **out_plan)
{
    grt_compile_options used;
    GRT_TRY(read_options(options, &used));
    report(&used, "import", 0);
    ir_module *module = NULL;
    GRT_TRY(ir_import(source, &module));
    grt_status status = optimise(module, &used, target);
    if (status != GRT_OK) {
        ir_module_release(module);
        return status;
    }
    report(&used, "lower", 0);
    GRT_TRY(ir_lower(module, target, out_plan)); /* the module is its own now, whatever comes */
    const bool narrowed = used.precision && strcmp(used.precision, "fp32") != 0;
    const char *disabled = used.disable_passes ? used.disable_passes : "";
    const char *text =
        grt_arena_printf((*out_plan)->arena, "level %d, target %s%s%s%s%s", used.level, target->name,
                         narrowed ? ", precision " : "", narrowed ? used.precision : "",
                         *disabled ? ", without " : "", disabled);
    if (text)
        (*out_plan)->options = text;
    report(&used, "lower", 1);
    return GRT_OK;
}
