/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/generated.h"

#include "backends/cuda/libraries.h"
#include "backends/cuda/nvrtc.h"

#include <stdlib.h>

/* Once for all steps that want it. */
static grt_status make_for_plan(const grt_reshape *r, const cuda_generated *wanted, const char *key)
{
    const cuda_device *device = (const cuda_device *)r->device;
    grt_text source = {0};
    size_t size;
    void *code = grt_device_code_find(r->device, key, &size);
    if (code) {
        free(code);
        return GRT_OK;
    }
    wanted->source(wanted->user, &source);
    const grt_status status =
        source.failed ? grt_fail_memory(source.size)
                      : cuda_nvrtc_compile(r->desc->name, grt_text_get(&source),
                                           10 * device->prop.major + device->prop.minor, &code, &size);
    if (status == GRT_OK)
        grt_device_algo_store(r->device, NULL, key, code, size);
    grt_text_release(&source);
    free(code);
    return status;
}

static grt_status generated_take(grt_reshape *r, const cuda_generated *wanted, const char *key,
                                 grt_code **out_code)
{
    const grt_code_request request = {.key = key,
                                      .name = r->desc->name,
                                      .function = wanted->function,
                                      .write = wanted->source,
                                      .user = wanted->user,
                                      .block_memory = wanted->shared,
                                      .when = r->code_when};
    GRT_TRY(grt_code_take(((cuda_device *)r->device)->codes, &request, out_code));
    r->code = *out_code;
    return GRT_OK;
}

grt_status cuda_generated_take(grt_reshape *r, const cuda_generated *wanted, grt_code **out_code)
{
    grt_text key = {0};
    *out_code = NULL;
    grt_device_algo_key(r->device, wanted->op, &key);
    wanted->key(wanted->user, &key);
    const grt_status status = key.failed ? grt_fail_memory(key.size)
                              : cuda_is_described(r->device)
                                  ? make_for_plan(r, wanted, grt_text_get(&key))
                                  : generated_take(r, wanted, grt_text_get(&key), out_code);
    grt_text_release(&key);
    return status;
}
