/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as a plan: header, sections, META. What is behind the checksums would never be reached by changed
 * bytes, so the checksums of a well-formed header are made right first. A plan that loads is asked all that
 * tools ask, gets a session on the null device, which checks every step and computes nothing, and is run on
 * the CPU. */
#include "fuzz.h"

#include "tests/unit/plan_sample.h"

#include <stdlib.h>
#include <string.h>

/* Rows are what the checks of plans promise. */
static void read_choice(void *user, const grt_cache_row *row)
{
    size_t *sum = user;
    *sum += strlen(row->key);
    for (size_t i = 0; i < row->size; i++)
        *sum += ((const unsigned char *)row->data)[i];
    if (!*row->key || !(row->cost_ms >= 0))
        abort();
}

/* Every name and text that the model claims to have is read. */
static void ask(const grt_model *model)
{
    size_t sum = 0;
    if (grt_model_choices(model, read_choice, &sum) != GRT_OK)
        abort();
    grt_model_info info = {.struct_size = sizeof info};
    if (grt_model_get_info(model, &info) != GRT_OK)
        abort();
    for (int64_t i = 0; i < info.steps; i++) {
        grt_step_info step = {.struct_size = sizeof step};
        if (grt_model_step(model, (size_t)i, &step) != GRT_OK)
            abort();
        for (size_t k = 0; k < step.n_inputs; k++) {
            const char *name;
            char text[256];
            if (step.inputs[k] >= 0 &&
                grt_model_value(model, step.inputs[k], &name, text, sizeof text) != GRT_OK)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    plan_reseal(copy, size);
    grt_model *model = NULL;
    grt_session *session = NULL;
    if (grt_model_open_memory(fuzz_runtime(), copy, size, &model) == GRT_OK) {
        ask(model);
        if (grt_session_create(model, "null", NULL, &session) == GRT_OK)
            fuzz_try(copy, size);
    }
    grt_session_release(session);
    grt_model_release(model);
    free(copy);
    return 0;
}
