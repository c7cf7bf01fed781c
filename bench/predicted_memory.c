/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a model is predicted to take, and how much it then takes.
 *
 *     predicted_memory MODEL [DEVICE [BATCH [CONTEXTS]]]      unknown dims of inputs are BATCH (1)
 *
 * On the CPU, the process's private memory after the first run of CONTEXTS (1); on GPUs the device's memory
 * as nvidia-smi tells it, of all programs. Exit status: 0 if they differ by at most 1 % or 1 MB, else 1. */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 64, MB = 1 << 20 };

static void must(grt_status status, const char *what)
{
    if (status == GRT_OK)
        return;
    fprintf(stderr, "predicted_memory: %s: %s\n", what, grt_last_error());
    exit(2);
}

static double host_bytes(void)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "Anonymous: %lf kB", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return kib * 1024;
}

static double device_bytes(const char *device)
{
    char command[256];
    double mib = 0;
    const char *colon = strchr(device, ':'), *visible = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(command, sizeof command,
             "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i %s",
             visible ? visible
             : colon ? colon + 1
                     : "0");
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%lf", &mib) != 1)
        fprintf(stderr, "predicted_memory: nvidia-smi says nothing\n");
    if (f)
        pclose(f);
    return mib * MB;
}

/* The context stays, with its memory. */
static void run_once(grt_model *model, grt_session *session, int64_t batch)
{
    grt_context *context;
    must(grt_context_create(session, &context), "context");
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        must(grt_model_input(model, i, &info), "input");
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? batch : info.dims[k];
        t.data = calloc(grt_tensor_bytes(&t) + 1, 1);
        must(grt_context_set_input(context, i, &t), "set input");
    }
    must(grt_context_run(context), "run");
}

int main(int argc, char **argv)
{
    grt_runtime *runtime;
    grt_model *model;
    grt_session *session;
    grt_input_shape shapes[MOST_INPUTS] = {{0}};
    char kind[32] = "cpu";
    const char *device = argc > 2 ? argv[2] : "cpu";
    const int64_t batch = argc > 3 ? atol(argv[3]) : 1;
    const int32_t contexts = argc > 4 ? atoi(argv[4]) : 1;
    if (argc < 2)
        return 2;
    sscanf(device, "%31[a-z]", kind);
    const grt_compile_options compile = {.struct_size = sizeof compile, .target = kind};
    must(grt_runtime_create(&runtime), "runtime");
    const bool plan = strlen(argv[1]) > 4 && !strcmp(argv[1] + strlen(argv[1]) - 4, ".grt");
    must(grt_model_open_with(runtime, argv[1], plan ? NULL : &compile, &model), argv[1]);
    grt_memory_options options = {.struct_size = sizeof options, .shapes = shapes, .contexts = contexts};
    for (; options.n_shapes < grt_model_input_count(model) && options.n_shapes < MOST_INPUTS;
         options.n_shapes++) {
        grt_io_info info = {.struct_size = sizeof info};
        grt_input_shape *shape = &shapes[options.n_shapes];
        must(grt_model_input(model, options.n_shapes, &info), "input");
        *shape = (grt_input_shape){.input = info.name, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            shape->dims[k] = info.dims[k] < 0 ? batch : info.dims[k];
    }
    grt_memory_info found = {.struct_size = sizeof found};
    must(grt_model_predict_memory(model, device, &options, &found), "prediction");
    const grt_session_options limited = {.struct_size = sizeof limited, .memory_limit = found.total_bytes};
    must(grt_session_create(model, device, &limited, &session), "session");
    for (int32_t i = 0; i < contexts; i++)
        run_once(model, session, batch);
    const double measured = strcmp(kind, "cpu") ? device_bytes(device) : host_bytes();
    const double off = measured - (double)found.process_bytes;
    const bool good = (off < 0 ? -off : off) <= (measured > 100 * MB ? measured / 100 : MB);
    printf("%s: weights %.2f, kernels %.2f, activations %.2f, workspaces %.2f, inputs %.2f MiB; process "
           "predicted "
           "%.2f, measured %.2f MiB, off by %+.2f MiB%s\n",
           argv[1], (double)found.weights_bytes / MB, (double)found.kernels_bytes / MB,
           (double)found.activations_bytes / MB, (double)found.workspaces_bytes / MB,
           (double)found.inputs_bytes / MB, (double)found.process_bytes / MB, measured / MB, off / MB,
           good ? "" : " (more than 1 % or 1 MB)");
    return !good;
}
