/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as an ONNX model: import, inference, passes, lowering. Any status is accepted; a crash is not. */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grt_model *model = NULL;
    if (grt_model_open_memory(fuzz_runtime(), data, size, &model) == GRT_OK) {
        grt_model_info info = {.struct_size = sizeof info};
        if (grt_model_get_info(model, &info) != GRT_OK)
            abort();
    }
    grt_model_release(model);
    return 0;
}
