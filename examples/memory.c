/* SPDX-License-Identifier: Apache-2.0 */
/* What a model takes of memory, and who gives it: the prediction before anything is loaded, a limit that
 * holds, outputs in the caller's memory of whatever size they turn out to have, memory of the device, and
 * what an idle context gives back.
 *
 *     memory MODEL [DEVICE]
 *
 * Inputs are zeros, unknown dims 1. Exit status: 0 if the session kept within what was predicted.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 16 };

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "memory: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* A session that may have what was predicted for it, and not a byte more. */
static grt_session *open_within_prediction(grt_model *model, const char *device)
{
    grt_memory_info predicted = {.struct_size = sizeof predicted};
    grt_session_options options = {.struct_size = sizeof options};
    grt_session *session = NULL;
    if (!ok(grt_model_predict_memory(model, device, NULL, &predicted), "prediction"))
        return NULL;
    printf("predicted %.2f MiB: weights %.2f, kernels %.2f, activations %.2f, workspaces %.2f, inputs %.2f\n",
           mib(predicted.total_bytes), mib(predicted.weights_bytes), mib(predicted.kernels_bytes),
           mib(predicted.activations_bytes), mib(predicted.workspaces_bytes), mib(predicted.inputs_bytes));
    options.memory_limit = predicted.total_bytes;
    (void)ok(grt_session_create(model, device, &options, &session), "session");
    return session;
}

/* Zeros in memory of the device, which runs use in place. */
static bool put_input(grt_session *session, grt_context *context, const grt_model *model, size_t i,
                      void **out_memory)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(model, i, &info), "input") || info.kind != GRT_KIND_TENSOR || info.has_default)
        return info.has_default;
    grt_tensor host = {.dtype = info.dtype, .rank = info.rank}, device;
    for (int32_t k = 0; k < info.rank; k++)
        host.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
    const size_t bytes = grt_tensor_bytes(&host);
    device = host;
    host.data = calloc(bytes + 1, 1);
    bool good =
        host.data && ok(grt_session_alloc_device(session, bytes, &device.data, &device.device), "memory");
    *out_memory = good ? device.data : NULL;
    device.memory = good && device.device >= 0 ? GRT_MEMORY_DEVICE : GRT_MEMORY_HOST;
    good = good && ok(grt_session_copy(session, &device, &host), "copy") &&
           ok(grt_context_set_input(context, i, &device), "set input");
    free(host.data);
    return good;
}

/* Asked once the size is known, which may be after the last step. */
static void *give_memory(void *user, size_t index, const grt_tensor *tensor, size_t bytes)
{
    printf("output %zu has %lld elements and wants %zu bytes\n", index,
           (long long)grt_tensor_elements(tensor), bytes);
    *(void **)user = malloc(bytes);
    return *(void **)user;
}

static bool run_and_trim(grt_session *session, grt_context *context)
{
    void *output = NULL;
    uint64_t given_back = 0;
    grt_memory_info has = {.struct_size = sizeof has};
    bool good = ok(grt_context_set_output_allocator(context, 0, give_memory, &output, GRT_MEMORY_HOST),
                   "allocator") &&
                ok(grt_context_run(context), "run") && ok(grt_session_get_memory(session, &has), "memory");
    if (good)
        printf("the session has %.2f MiB, had %.2f at most, may have %.2f\n", mib(has.total_bytes),
               mib(has.peak_bytes), mib(has.limit_bytes));
    good = good && has.peak_bytes <= has.limit_bytes && ok(grt_context_trim(context, &given_back), "trim");
    if (good)
        printf("an idle context gives %.2f MiB back; the next run prepares anew\n", mib(given_back));
    free(output);
    output = NULL;
    good = good && ok(grt_context_run(context), "run after trimming");
    free(output);
    return good;
}

static bool use(grt_model *model, const char *device)
{
    void *inputs[MOST_INPUTS] = {NULL};
    const size_t n = grt_model_input_count(model);
    grt_session *session = n <= MOST_INPUTS ? open_within_prediction(model, device) : NULL;
    grt_context *context = NULL;
    bool good = session && ok(grt_context_create(session, &context), "context");
    for (size_t i = 0; good && i < n; i++)
        good = put_input(session, context, model, i, &inputs[i]);
    good = good && run_and_trim(session, context);
    grt_context_release(context);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        if (inputs[i])
            grt_session_free_device(session, inputs[i]);
    grt_session_release(session);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: memory MODEL [DEVICE]\n");
        return 2;
    }
    const char *device = argc > 2 ? argv[2] : "cpu";
    char kind[32] = "cpu";
    sscanf(device, "%31[a-z]", kind);
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = kind};
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    const bool good = ok(grt_runtime_create(&runtime), "runtime") &&
                      ok(grt_model_open_with(runtime, argv[1], &compile, &model), argv[1]) &&
                      use(model, device);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return !good;
}
