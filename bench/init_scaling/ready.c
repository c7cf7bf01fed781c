/* SPDX-License-Identifier: Apache-2.0 */
/* Time until sessions are ready on N devices, in a fresh process for each figure, so that the driver starts
 * in each.
 *
 * usage: init_scaling_ready MODEL DEVICE[,DEVICE...] [auto|direct] [READERS] [PINNED_MIB]
 *
 * Prints one JSON object: milliseconds from the start of main() until all sessions are ready ("ready"); until
 * they are ready again on devices that are open, weights gone ("again"); a second session of a model that is
 * there, per device ("second"); the first run on every device at once ("first_run"); bytes moved; and the
 * phases of each device. Memory for outputs and inputs is the library's concern: inputs are zeros. */
#include <graphrt/graphrt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_DEVICES = 64 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(grt_status status)
{
    if (status == GRT_OK)
        return;
    fprintf(stderr, "init_scaling_ready: %s\n", grt_last_error());
    exit(1);
}

static size_t split(char *text, const char *devices[MAX_DEVICES])
{
    size_t n = 0;
    for (char *at = strtok(text, ","); at && n < MAX_DEVICES; at = strtok(NULL, ","))
        devices[n++] = at;
    return n;
}

static void print_session(const grt_session *session, bool last)
{
    const grt_phase *phases;
    grt_load_info info = {.struct_size = sizeof info};
    must(grt_session_get_load(session, &info));
    const size_t n = grt_session_phases(session, &phases);
    printf("{\"device\": \"%s\", \"host_bytes\": %llu, \"peer_bytes\": %llu, \"pinned_bytes\": %llu, "
           "\"heuristics\": %llu, "
           "\"cache_hits\": %llu, \"phases\": [",
           info.device, (unsigned long long)info.host_bytes, (unsigned long long)info.peer_bytes,
           (unsigned long long)info.pinned_bytes, (unsigned long long)info.heuristics,
           (unsigned long long)info.cache_hits);
    for (size_t i = 0; i < n; i++)
        printf("%s[\"%s\", %.3f, %.3f]", i ? ", " : "", phases[i].name, phases[i].begin_ms, phases[i].end_ms);
    printf("]}%s", last ? "" : ", ");
}

static void release(grt_session **sessions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        grt_session_release(sessions[i]);
}

static double run_once(grt_session *session, const grt_model *model)
{
    grt_context *context;
    must(grt_context_create(session, &context));
    for (size_t i = 0; i < grt_model_input_count(model); i++) {
        grt_io_info info = {.struct_size = sizeof info};
        must(grt_model_input(model, i, &info));
        grt_tensor t = {.dtype = info.dtype, .rank = info.rank};
        for (int32_t k = 0; k < info.rank; k++)
            t.dims[k] = info.dims[k] < 0 ? 1 : info.dims[k];
        t.data = calloc(1, grt_tensor_bytes(&t) + 1);
        must(grt_context_set_input(context, i, &t)); /* kept until the process ends */
    }
    const double begin = now_ms();
    must(grt_context_run(context));
    const double ms = now_ms() - begin;
    grt_context_release(context);
    return ms;
}

int main(int argc, char **argv)
{
    const double start = now_ms();
    const char *devices[MAX_DEVICES];
    grt_session *sessions[MAX_DEVICES], *seconds[MAX_DEVICES], *third;
    grt_runtime *runtime;
    grt_model *model;
    if (argc < 3) {
        fprintf(stderr,
                "usage: init_scaling_ready MODEL DEVICE[,DEVICE...] [auto|direct] [READERS] [PINNED_MIB]\n");
        return 2;
    }
    const size_t n = split(argv[2], devices);
    grt_sessions_options options = {
        .struct_size = sizeof options, .upload = argc > 3 ? argv[3] : NULL, .fallback = "cpu"};
    options.readers = argc > 4 ? atoi(argv[4]) : 0;
    options.max_pinned = argc > 5 ? (size_t)atol(argv[5]) << 20 : 0;
    must(grt_runtime_create(&runtime));
    must(grt_model_open(runtime, argv[1], &model));
    const double opened = now_ms();
    must(grt_sessions_create(model, devices, n, &options, sessions));
    const double ready = now_ms();
    printf("{\"devices\": %zu, \"open_ms\": %.3f, \"ready_ms\": %.3f, \"sessions\": [", n, opened - start,
           ready - start);
    for (size_t i = 0; i < n; i++)
        print_session(sessions[i], i + 1 == n);
    double begin = now_ms();
    must(grt_sessions_create(model, devices, n, &options, seconds));
    printf("], \"second_ms\": %.3f, \"second\": [", now_ms() - begin);
    for (size_t i = 0; i < n; i++)
        print_session(seconds[i], i + 1 == n);
    printf("]");
    begin = now_ms();
    must(grt_sessions_create(model, devices, 1, &options, &third));
    printf(", \"second_on_one_ms\": %.3f", now_ms() - begin);
    grt_session_release(third);
    release(seconds, n);
    printf(", \"first_run_ms\": %.3f", run_once(sessions[0], model));
    for (int round = 0; round < 3; round++) {
        release(sessions, n);
        begin = now_ms();
        must(grt_sessions_create(model, devices, n, &options, sessions));
        printf("%s%.3f", round ? ", " : ", \"again_ms\": [", now_ms() - begin);
    }
    printf("], \"again\": [");
    for (size_t i = 0; i < n; i++)
        print_session(sessions[i], i + 1 == n);
    release(sessions, n);
    begin = now_ms();
    must(grt_sessions_create(model, devices, 1, &options, sessions));
    printf("], \"again_on_one_ms\": %.3f}\n", now_ms() - begin);
    grt_session_release(sessions[0]);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return 0;
}
