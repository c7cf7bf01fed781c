/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/generated.h"

#include "backends/cuda/nvrtc.h"

#include <stdlib.h>

grt_status cuda_generate(cuda_device *device, const char *name, const char *key, const grt_text *source)
{
    size_t size;
    void *code = grt_device_code_find(&device->base, key, &size);
    if (code) {
        free(code);
        return GRT_OK;
    }
    if (source->failed)
        return grt_fail_memory(source->size);
    const grt_status status =
        cuda_nvrtc_compile(name, source->data, 10 * device->prop.major + device->prop.minor, &code, &size);
    if (status == GRT_OK)
        grt_device_algo_store(&device->base, NULL, key, code, size);
    free(code);
    return status;
}
