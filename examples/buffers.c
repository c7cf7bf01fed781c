/* SPDX-License-Identifier: Apache-2.0 */
/* A model and its weights out of memory, as programs have them that carry, download or decrypt both.
 *
 *     buffers MODEL.onnx WEIGHTS [LOCATION]
 *
 * MODEL.onnx keeps its weights as external data, in a file that it calls LOCATION (the name of WEIGHTS
 * without its directory). Both files are read here, and the library gets their bytes. Weights that the
 * compiler leaves as they are stay in that memory: it must outlive the model. Inputs are zeros, unknown
 * dims 1.
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "buffers: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* The file's bytes, which the caller frees; NULL with a message. */
static void *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        bytes = malloc((size_t)size + 1);
    if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    if (!bytes)
        fprintf(stderr, "buffers: %s cannot be read\n", path);
    *out_size = bytes ? (size_t)size : 0;
    return bytes;
}

/* data[i] is the memory of input i, which the caller frees after the context. */
static bool bind_zeros(const grt_model *model, grt_context *context, void **data)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (!ok(grt_model_input(model, i, &info), "input"))
            return false;
        if (info.has_default)
            continue;
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        t.data = data[i] = calloc(grt_tensor_bytes(&t) + 1, 1);
        if (!t.data || !ok(grt_context_set_input(context, i, &t), "set input"))
            return false;
    }
    return true;
}

static bool run_on_zeros(const grt_model *model)
{
    grt_session *session = NULL;
    grt_context *context = NULL;
    grt_tensor y;
    const size_t n = grt_model_input_count(model);
    void **data = calloc(n + 1, sizeof *data);
    const bool good = data && ok(grt_session_create((grt_model *)model, "cpu", NULL, &session), "session") &&
                      ok(grt_context_create(session, &context), "context") &&
                      bind_zeros(model, context, data) && ok(grt_context_run(context), "run") &&
                      ok(grt_context_get_output(context, 0, &y), "output");
    if (good)
        printf("the first output has %lld elements\n", (long long)grt_tensor_elements(&y));
    grt_context_release(context);
    grt_session_release(session);
    for (size_t i = 0; data && i < n; i++)
        free(data[i]);
    free(data);
    return good;
}

static bool run_from_memory(const void *model_bytes, size_t model_size, const grt_external_data *weights)
{
    const grt_compile_options options = {
        .struct_size = sizeof options, .external_data = weights, .n_external_data = 1};
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    const bool good =
        ok(grt_runtime_create(&runtime), "runtime") &&
        ok(grt_model_open_memory_with(runtime, model_bytes, model_size, &options, &model), "model") &&
        run_on_zeros(model);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: buffers MODEL.onnx WEIGHTS [LOCATION]\n");
        return 2;
    }
    const char *slash = strrchr(argv[2], '/');
    grt_external_data weights = {.location = argc > 3 ? argv[3] : slash ? slash + 1 : argv[2]};
    size_t model_size = 0;
    void *model_bytes = read_file(argv[1], &model_size), *bytes = read_file(argv[2], &weights.size);
    weights.data = bytes;
    const bool good = model_bytes && bytes && run_from_memory(model_bytes, model_size, &weights);
    free(model_bytes);
    free(bytes); /* after the model */
    return !good;
}
