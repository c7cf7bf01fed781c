/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "tools/quantised_model.h"

#include "tools/interrupt.h"
#include "tools/progress.h"
#include "tools/report.h"

#include <errno.h>
#include <graphrt/quantize.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool give_calibration_sample(void *user, size_t index, grt_value **values)
{
    return calibration_data_sample(user, index, values);
}

static void show_quantising(void *user, const char *phase, double fraction)
{
    (void)user;
    progress_show(fraction, phase);
}

static bool make_model_directory(quantised_model *q)
{
    const char *temporary = getenv("TMPDIR");
    *q = (quantised_model){0};
    if (asprintf(&q->directory, "%s/graphrt-XXXXXX", temporary && *temporary ? temporary : "/tmp") < 0)
        q->directory = NULL;
    if (!q->directory || !mkdtemp(q->directory)) {
        tool_error("--precision auto: %s: %s", q->directory ? q->directory : "no name", strerror(errno));
        free(q->directory);
        q->directory = NULL;
        return false;
    }
    if (asprintf(&q->path, "%s/model.onnx", q->directory) < 0)
        q->path = NULL;
    return q->path || (tool_error("out of memory"), false);
}

static void forget_path(quantised_model *q)
{
    char *data = NULL;
    if (q->path && asprintf(&data, "%s.data", q->path) >= 0) {
        unlink(q->path);
        unlink(data);
        free(data);
    }
    free(q->path);
    q->path = NULL;
}

bool quantised_model_make(quantised_model *q, const char *model, const grt_compile_options *options,
                          calibration_data *data, grt_dtype activations, double max_error)
{
    const grt_quantize_options quantize = {.struct_size = sizeof quantize,
                                           .activations = activations,
                                           .max_error = max_error,
                                           .n_samples = data->n,
                                           .sample = give_calibration_sample,
                                           .allow_symlinks = options->allow_symlinks,
                                           .progress = show_quantising,
                                           .cancel = interrupt_asked,
                                           .user = data};
    grt_quantize_report report = {.struct_size = sizeof report};
    if (!make_model_directory(q))
        return false;
    const grt_status status = grt_quantize(model, &quantize, q->path, &report);
    progress_clear();
    q->layers = report.layers;
    q->quantised = report.quantised;
    if (status == GRT_OK)
        return true;
    forget_path(q);
    return status == GRT_STATUS_INVALID_ARGUMENT || status == GRT_STATUS_UNSUPPORTED || (tool_fail(), false);
}

void quantised_model_release(quantised_model *q)
{
    forget_path(q);
    if (q->directory)
        rmdir(q->directory);
    free(q->directory);
    q->directory = NULL;
}
