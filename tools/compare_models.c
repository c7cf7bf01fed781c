/* SPDX-License-Identifier: Apache-2.0 */
/* graphrun compare: two models, or one on two devices, tensor by tensor: where they begin to differ, and how
 * the difference grows. The plans run as they are. */
#include "tools/commands.h"
#include "tools/divergence.h"
#include "tools/piped.h"
#include "tools/report.h"
#include "tools/trust.h"

#include <stdlib.h>

static bool take_compare_input(void *request, const char *value)
{
    return inputs_add_source(&((compare_request *)request)->inputs, value);
}

static bool take_compare_shape(void *request, const char *value)
{
    return inputs_add_shape(&((compare_request *)request)->inputs, value);
}

static bool take_compare_model(void *request, const char *value)
{
    compare_request *c = request;
    if (c->n == 2)
        tool_error("two models are compared: '%s' is a third", value);
    if (c->n == 2)
        return false;
    c->models[c->n] = value;
    return piped_take(&c->models[c->n++]);
}

const tool_option compare_options[] = {
    OPTION_TEXT(compare_request, device, "--device", "DEVICE",
                "of the first model, KIND or KIND:NUMBER (default: cpu)"),
    OPTION_TEXT(compare_request, other_device, "--other-device", "DEVICE",
                "of the second (default: that of the first)"),
    OPTION_TEXT(compare_request, fallback, "--fallback", "cpu",
                "run ops that a device has no kernel for on the CPU; otherwise they are an error"),
    OPTION_INT(compare_request, threads, 0, 1024, "--threads", "N", "CPU threads of one operator"),
    OPTION_NUMBER(compare_request, tolerance, 0, "--tolerance", "X",
                  "a tensor diverges if its error, relative to the first's in the root mean square, is\n"
                  "larger (default: 1e-4; 1e-2 where one of the two is in half precision)"),
    OPTION_TAKE(take_compare_input, "--input", "NAME=SOURCE", "as in graphrun MODEL; for both"),
    OPTION_TAKE(take_compare_shape, "--shape", "NAME=2x3x224", "as in graphrun MODEL; for both"),
    OPTION_INT(compare_request, seed, INT64_MIN, INT64_MAX, "--seed", "N", "of random inputs (default: 0)"),
    OPTION_FLAG(compare_request, all, "--all",
                "show every tensor that is compared, not only where the error doubles"),
    OPTION_TEXT(compare_request, trust_option, "--trust", "all|none|KEY", TRUST_HELP),
    OPTION_CUSTOM_OPS,
    OPTION_FLAG(compare_request, json, "--json", "report as JSON, with every tensor"),
    OPTION_TABLE_END,
};

static int compare_models(compare_request *request)
{
    loaded l[2] = {{0}, {0}};
    comparison c = {0};
    int code = EXIT_BAD;
    bool ok = true;
    if (request->n == 1)
        request->models[1] = request->models[0];
    if (!request->other_device)
        request->other_device = request->device;
    for (int i = 0; i < 2 && ok; i++) {
        const char *device = i ? request->other_device : request->device;
        ok = loaded_open(&l[i], request->models[i], device, request->fallback, (int32_t)request->threads,
                         request->trust) == GRT_OK;
        if (!ok)
            tool_fail();
    }
    if (ok && comparison_run(&c, l, &request->inputs, (uint64_t)request->seed)) {
        if (request->json)
            ok = divergence_print_json(request, &c);
        else
            divergence_print_text(request, &c);
        code = !ok ? EXIT_BAD : divergence_first(request, &c) ? EXIT_CHECK : EXIT_GOOD;
    }
    comparison_release(&c);
    loaded_release(&l[0]);
    loaded_release(&l[1]);
    return code;
}

int compare_command(const tool_command *command, int argc, char **argv)
{
    compare_request request = {.tolerance = -1};
    int code = EXIT_BAD;
    if (options_parse(command, argc, argv, &request, take_compare_model, &code) &&
        option_given(command, request.models[0]) && trust_read(request.trust_option, &request.trust))
        code = compare_models(&request);
    inputs_release(&request.inputs);
    free(request.trust);
    return code;
}
