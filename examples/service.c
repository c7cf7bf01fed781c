/* SPDX-License-Identifier: Apache-2.0 */
/* A service in small: two classes of clients share one model on one device, an event loop collects what is
 * done.
 *
 *     service MODEL [DEVICE [REQUESTS]]
 *
 * MODEL has one float32 input whose first dim is symbolic. Lane 0 answers single requests at once and at high
 * priority, within 200 ms or not at all. Lane 1 puts requests together to batches of up to 16 rows. Interrupt
 * it: what is open is cancelled, and counted as such.
 */
#include <graphrt/graphrt.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN = 32, ROWS = 2 };

struct service {
    grt_pool *pool;
    grt_tensor input; /* of ROWS rows; requests of lane 0 have the first only */
    size_t open;
    unsigned long done, stopped, refused;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static bool ok(grt_status status, const char *what)
{
    if (status != GRT_OK)
        fprintf(stderr, "service: %s: %s\n", what, grt_last_error());
    return status == GRT_OK;
}

/* One lane for those in a hurry, one for those who are many. */
static bool open_pool(struct service *s, grt_session *session)
{
    const grt_pool_options quick = {.struct_size = sizeof quick, .queue = OPEN, .share = 3};
    const grt_pool_options batched = {
        .struct_size = sizeof batched, .queue = OPEN, .max_batch = 16, .max_delay_ms = 2};
    size_t lane;
    return ok(grt_pool_create(&session, 1, &quick, &s->pool), "pool") &&
           ok(grt_pool_add(s->pool, &session, 1, &batched, &lane), "lane");
}

static bool make_input(struct service *s, const grt_model *model)
{
    grt_io_info info = {.struct_size = sizeof info};
    if (!ok(grt_model_input(model, 0, &info), "input"))
        return false;
    if (grt_model_input_count(model) != 1 || info.dtype != GRT_DTYPE_FLOAT || info.rank < 1 ||
        info.dims[0] >= 0) {
        fprintf(stderr, "service: the model must have one input, of float32, whose first dim is symbolic\n");
        return false;
    }
    s->input = (grt_tensor){.dtype = info.dtype, .rank = info.rank, .dims = {ROWS}};
    for (int32_t i = 1; i < info.rank; i++)
        s->input.dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
    s->input.data = calloc(grt_tensor_bytes(&s->input), 1);
    return s->input.data != NULL;
}

/* Does not wait: this thread has all clients to see to. */
static bool submit(struct service *s, size_t lane)
{
    grt_tensor input = s->input;
    const grt_submission submission = {.struct_size = sizeof submission,
                                       .lane = lane,
                                       .inputs = &input,
                                       .n_inputs = 1,
                                       .deadline_ms = lane == 0 ? grt_clock_ms() + 200 : 0,
                                       .priority = lane == 0,
                                       .collect = true};
    grt_request *request;
    input.dims[0] = lane == 0 ? 1 : ROWS;
    const grt_status status = grt_pool_try_submit(s->pool, &submission, &request);
    s->refused += status == GRT_STATUS_BUSY;
    s->open += status == GRT_OK;
    return status == GRT_OK || status == GRT_STATUS_BUSY || ok(status, "submit");
}

static bool collect(struct service *s)
{
    grt_request *request;
    grt_tensor output;
    bool fine = true;
    while (grt_pool_take_done(s->pool, &request) == GRT_OK) {
        const grt_status status = grt_request_wait(request);
        const bool stopped = status == GRT_STATUS_CANCELLED || status == GRT_STATUS_DEADLINE_EXCEEDED;
        s->open--;
        s->stopped += stopped;
        s->done += status == GRT_OK;
        if (!stopped)
            fine = ok(status, "run") && ok(grt_request_get_output(request, 0, &output), "output") && fine;
        grt_request_release(request);
    }
    return fine;
}

static bool wait_for_some(int fd)
{
    struct pollfd done = {.fd = fd, .events = POLLIN};
    return poll(&done, 1, -1) == 1 || errno == EINTR;
}

static bool serve(struct service *s, long requests)
{
    bool fine = true, cancelled = false;
    int fd;
    if (!ok(grt_pool_get_fd(s->pool, &fd), "descriptor"))
        return false;
    for (long submitted = 0; fine && (s->open || (submitted < requests && !interrupted));) {
        for (; fine && submitted < requests && s->open < OPEN && !interrupted; submitted++)
            fine = submit(s, submitted % 4 != 0);
        if (interrupted && !cancelled) {
            grt_pool_cancel(s->pool);
            cancelled = true;
        }
        fine = fine && (!s->open || wait_for_some(fd)) && collect(s);
    }
    return fine;
}

static bool report(const struct service *s)
{
    grt_histogram h = {.struct_size = sizeof h};
    grt_pool_stats stats = {.struct_size = sizeof stats};
    for (size_t lane = 0; lane < 2; lane++) {
        if (!ok(grt_pool_get_histogram(s->pool, lane, GRT_POOL_TOTAL, &h), "histogram") ||
            !ok(grt_pool_get_stats(s->pool, lane, &stats), "counts"))
            return false;
        printf("lane %zu: %lu requests, p50 %.3f ms, p99 %.3f ms, %lu batches\n", lane,
               (unsigned long)stats.succeeded, h.p50_ms, h.p99_ms, (unsigned long)stats.batches);
    }
    printf("%lu done, %lu cancelled or late, %lu refused\n", s->done, s->stopped, s->refused);
    return true;
}

int main(int argc, char **argv)
{
    const char *device = argc > 2 ? argv[2] : "cpu";
    const long requests = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    if (argc < 2 || argc > 4 || requests < 1) {
        fprintf(stderr, "usage: service MODEL [DEVICE [REQUESTS]]\n");
        return 2;
    }
    grt_runtime *runtime = NULL;
    grt_model *model = NULL;
    grt_session *session = NULL;
    struct service s = {0};
    signal(SIGINT, interrupt);
    bool fine = ok(grt_runtime_create(&runtime), "runtime") &&
                ok(grt_model_open(runtime, argv[1], &model), "model") &&
                ok(grt_session_create(model, device, NULL, &session), "session") && make_input(&s, model) &&
                open_pool(&s, session) && serve(&s, requests) && report(&s);
    /* At most so long, whatever is open after a failure. */
    fine = (!s.pool || ok(grt_pool_shutdown(s.pool, grt_clock_ms() + 1000), "shutdown")) && fine;
    grt_pool_release(s.pool);
    free(s.input.data);
    grt_session_release(session);
    grt_model_release(model);
    grt_runtime_release(runtime);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
