/* SPDX-License-Identifier: Apache-2.0 */
/* Opening models: plans are mapped, ONNX files are compiled in memory. */
#include "src/session/model.h"

#include "backends/registry.h"
#include "graph/compile.h"
#include "src/base/log.h"
#include "src/base/openmp.h"
#include "src/target/measure.h"
#include "src/target/target.h"
#include "src/plan/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static grt_status model_finish(grt_model *model, grt_status status, const char *path,
                               const grt_compile_options *options, grt_model **out_model)
{
    if (status == GRT_OK)
        status = model_load(model, path, options);
    if (status == GRT_OK)
        status = grt_model_make_texts(model);
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
