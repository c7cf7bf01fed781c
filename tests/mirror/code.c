/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mirror/code.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

mirror_code_counts mirror_code;
static const char beginning[] = "mirror code: ";

bool mirror_code_is_wanted(void)
{
    return getenv("GRAPHRT_MIRROR_CODE") != NULL;
}

static void mirror_code_target(grt_device *device, grt_text *key)
{
    (void)device;
    grt_text_add(key, "sm=0;options=none;");
}

static grt_status mirror_code_compile(grt_device *device, const char *name, const char *source,
                                      grt_text *compiler, void **out_code, size_t *out_size)
{
    const char *wanted = getenv("GRAPHRT_MIRROR_CODE");
    (void)device;
    if (!wanted || !strcmp(wanted, "none"))
        return grt_fail(GRT_STATUS_DEVICE, "there is no compiler for %s", name);
    const long ms = strtol(wanted, NULL, 10);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    *out_size = strlen(beginning) + strlen(source);
    char *code = malloc(*out_size + 1);
    if (!code)
        return grt_fail_memory(*out_size);
    memcpy(code, beginning, sizeof beginning);
    strcat(code, source);
    *out_code = code;
    grt_text_add(compiler, "mirror=1;");
    atomic_fetch_add(&mirror_code.compiled, 1);
    return GRT_OK;
}

static void *mirror_code_load(grt_device *device, const void *code, size_t size, const char *function)
{
    (void)device;
    if (size < strlen(beginning) || memcmp(code, beginning, strlen(beginning)))
        return NULL;
    atomic_fetch_add(&mirror_code.loaded, 1);
    return strdup(function);
}

static void mirror_code_unload(grt_device *device, void *loaded)
{
    (void)device;
    atomic_fetch_add(&mirror_code.unloaded, 1);
    free(loaded);
}

grt_status mirror_code_open(grt_device *device, grt_codes **out_codes)
{
    static const grt_code_maker maker = {.target = mirror_code_target,
                                         .compile = mirror_code_compile,
                                         .load = mirror_code_load,
                                         .unload = mirror_code_unload};
    return mirror_code_is_wanted() ? grt_codes_create(device, &maker, out_codes) : GRT_OK;
}

bool mirror_code_is_for(const grt_op_desc *desc)
{
    return grt_op_is(desc, "graphrt", "Pointwise") || grt_op_is(desc, "graphrt", "PointwiseParts") ||
           grt_op_is(desc, "graphrt", "PointwiseConcat") || grt_op_is(desc, "graphrt", "Rows");
}

/* Nodes of other names are other kernels. */
static void mirror_code_write(const void *user, grt_text *source)
{
    const grt_reshape *r = user;
    grt_text_add(source, "%s %s of ", r->desc->op, r->desc->name);
    grt_text_add_dims(source, r->out[0]->dims, r->out[0]->rank);
}

grt_status mirror_code_take(grt_codes *codes, grt_reshape *reshape, grt_code **out_code)
{
    grt_text key = {0};
    grt_device_algo_key(reshape->device, reshape->desc->op, &key);
    mirror_code_write(reshape, &key);
    const grt_code_request request = {.key = grt_text_get(&key),
                                      .name = reshape->desc->name,
                                      .function = "group",
                                      .write = mirror_code_write,
                                      .user = reshape,
                                      .when = reshape->code_when};
    const grt_status status =
        key.failed ? grt_fail_memory(key.size) : grt_code_take(codes, &request, out_code);
    if (status == GRT_OK)
        reshape->code = *out_code;
    grt_text_release(&key);
    return status;
}
