/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/loaded.h"

#include "tools/report.h"
#include "tools/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

grt_status loaded_model(grt_runtime *runtime, const char *path, const char *device, const char *trust,
                        grt_model **out_model)
{
    char kind[64];
    const char *name = device ? device : "cpu";
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(name, ":"), name);
    const grt_compile_options options = {.struct_size = sizeof options, .target = kind, .trust = trust};
    return grt_model_open_with(runtime, path, &options, out_model);
}

static grt_status loaded_open_in(loaded *l, grt_runtime *runtime, const char *path, const char *device,
                                 const char *fallback, int32_t threads, const char *trust)
{
    const double begin = now_ms();
    const char *said = getenv("GRAPHRT_COMPILE");
    const grt_session_options options = {.struct_size = sizeof options,
                                         .threads = threads,
                                         .fallback = fallback,
                                         .compile = said && *said ? NULL : "first"};
    grt_status status = GRT_OK;
    *l = (loaded){0};
    if (!runtime)
        status = grt_runtime_create(&l->runtime);
    if (status == GRT_OK)
        status = loaded_model(runtime ? runtime : l->runtime, path, device, trust, &l->model);
    l->sessions_at_ms = now_ms() - begin;
    if (status == GRT_OK)
        status = grt_session_create(l->model, device, &options, &l->session);
    if (status == GRT_OK)
        status = grt_context_create(l->session, &l->context);
    l->total_ms = now_ms() - begin;
    return l->status = status;
}

grt_status loaded_open(loaded *l, const char *path, const char *device, const char *fallback, int32_t threads,
                       const char *trust)
{
    visible_limit(device);
    return loaded_open_in(l, NULL, path, device, fallback, threads, trust);
}

grt_status loaded_open_beside(loaded *l, const loaded *first, const char *path, const char *device,
                              const char *fallback, int32_t threads, const char *trust)
{
    return loaded_open_in(l, first->runtime, path, device, fallback, threads, trust);
}

void loaded_release(loaded *l)
{
    grt_context_release(l->context);
    grt_session_release(l->session);
    grt_model_release(l->model);
    grt_runtime_release(l->runtime);
    *l = (loaded){0};
}
