/* SPDX-License-Identifier: Apache-2.0 */
/* A pool whose sessions are in processes of their own, which may die.
 *
 *     processes MODEL [DEVICE...]      models whose inputs are floats
 *
 * Runs the model in a process for each device, kills one of them again and again, and counts what comes back.
 * A request whose process ends is run again by another; one that loses two is told so. */
#include <graphrt/processes.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

enum { REQUESTS = 2000, KILL_EVERY = 500, MOST_INPUTS = 8, MOST_DEVICES = 16 };

static int fail(const char *what)
{
    fprintf(stderr, "processes: %s: %s\n", what, grt_last_error());
    return 1;
}

/* Zeros, for every dim that is not fixed one. */
static int make_inputs(const grt_model *model, grt_tensor *inputs)
{
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        if (i == MOST_INPUTS || grt_model_input(model, i, &info) != GRT_OK)
            return fail("inputs");
        if (info.has_default)
            continue;
        inputs[i] = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            inputs[i].dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        inputs[i].data = calloc(grt_tensor_bytes(&inputs[i]) + 1, 1);
        if (!inputs[i].data)
            return fail("memory");
    }
    return 0;
}

static void kill_process(grt_pool *pool, size_t lane)
{
    grt_process_info info = {.struct_size = sizeof info};
    if (grt_pool_get_process(pool, lane, 0, &info) == GRT_OK && info.pid)
        kill((pid_t)info.pid, SIGKILL);
}

static int serve(grt_pool *pool, size_t lane, const grt_model *model, const grt_tensor *inputs)
{
    int good = 0, lost = 0;
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .lane = lane,
                                       .inputs = inputs,
                                       .n_inputs = grt_model_input_count(model)};
    for (int i = 0; i < REQUESTS; i++) {
        grt_request *request;
        if (i % KILL_EVERY == KILL_EVERY / 2)
            kill_process(pool, lane);
        if (grt_pool_submit_with(pool, &submission, &request) != GRT_OK)
            return fail("submit");
        const grt_status status = grt_request_wait(request);
        if (status != GRT_OK && status != GRT_STATUS_DEVICE)
            return fail("request");
        good += status == GRT_OK;
        lost += status != GRT_OK;
        grt_request_release(request);
    }
    grt_process_info info = {.struct_size = sizeof info};
    if (grt_pool_get_process(pool, lane, 0, &info) != GRT_OK)
        return fail("process");
    printf("%d answered, %d lost with two processes; %llu processes were started for the first device\n",
           good, lost, (unsigned long long)info.started);
    return 0;
}

int main(int argc, char **argv)
{
    const char *devices[MOST_DEVICES] = {"cpu"};
    grt_tensor inputs[MOST_INPUTS] = {{0}};
    grt_runtime *runtime;
    grt_model *model;
    grt_pool *pool;
    size_t lane, n = argc > 2 ? (size_t)argc - 2 : 1;
    if (argc < 2 || n > MOST_DEVICES) {
        fprintf(stderr, "usage: processes MODEL [DEVICE...]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        devices[i - 2] = argv[i];
    if (grt_runtime_create(&runtime) != GRT_OK || grt_model_open(runtime, argv[1], &model) != GRT_OK)
        return fail(argv[1]);
    if (grt_pool_create(NULL, 0, NULL, &pool) != GRT_OK)
        return fail("pool");
    if (make_inputs(model, inputs) != 0)
        return 1;
    if (grt_pool_add_processes(pool, model, devices, n, NULL, NULL, &lane) != GRT_OK)
        return fail("processes");
    const int code = serve(pool, lane, model, inputs);
    grt_pool_release(pool);
    for (size_t i = 0; i < MOST_INPUTS; i++)
        free(inputs[i].data);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return code;
}
