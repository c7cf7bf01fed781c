/* Makes the ONNX project's "light" models into cases as `graphrun check` reads them. They come as a model and
 * its expected output; the input is by definition 0/n, 1/n, 2/n ... in float32, with unknown dims 1.
 *
 *     light_case MODEL.onnx DIR        writes DIR/input_I.pb, I being the input's position
 */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "light_case: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* The first input that has no default: the weights of these models are inputs too, as was usual then. */
static bool find_input(const grt_model *model, size_t *out_index, grt_io_info *out_info)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++)
        if (ok(grt_model_input(model, i, out_info), "input") && !out_info->has_default) {
            *out_index = i;
            return true;
        }
    fprintf(stderr, "light_case: the model has no input to fill\n");
    return false;
}

static bool write_ramp(const grt_io_info *info, const char *path)
{
    grt_tensor tensor = {.dtype = GRT_DTYPE_FLOAT, .rank = info->rank};
    for (int32_t i = 0; i < info->rank; i++)
        tensor.dims[i] = info->dims[i] < 0 ? 1 : info->dims[i];
    int64_t n = grt_tensor_elements(&tensor);
    float *data = info->dtype == GRT_DTYPE_FLOAT && n > 0 ? malloc(grt_tensor_bytes(&tensor)) : NULL;
    if (!data) {
        fprintf(stderr, "light_case: input %s is not a float32 tensor of known rank\n", info->name);
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)((double)i / (double)n);
    tensor.data = data;
    grt_value *value = NULL;
    bool done =
        ok(grt_value_from_tensor(&tensor, &value), "value") && ok(grt_value_write_pb(value, path), path);
    grt_value_release(value);
    free(data);
    return done;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: light_case MODEL.onnx DIR\n");
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_io_info info;
    size_t index = 0;
    char path[4096];
    bool done = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open(runtime, argv[1], &model), argv[1]) && find_input(model, &index, &info) &&
                (size_t)snprintf(path, sizeof path, "%s/input_%zu.pb", argv[2], index) < sizeof path &&
                write_ramp(&info, path);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
