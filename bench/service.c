/* SPDX-License-Identifier: Apache-2.0 */
/* What a service gets out of pools on one device.
 *
 *     service MODEL OTHER DEVICE SECONDS [BATCH [MULTIPROCESSORS]]      models with one input and one output
 * of floats, whose first dim is symbolic; OTHER is the busy neighbour. BATCH: 32. MULTIPROCESSORS: of the
 * device, to be divided between the two; 128
 *
 * Prints, each measured for SECONDS: computing alone; host to host from 1, 4 and 16 threads; two models
 * together, beside what their time-slices would give; single rows that the pool puts together; tails alone
 * and beside the other model, at equal and at higher priority and on parts of the device; what profile
 * callbacks cost. */
#include "bench/subject.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64, MOST_SAMPLES = 1 << 20, PRIORITY = 5 };

static grt_runtime *runtime;
static double seconds;

/* Of one request. */
typedef struct sample {
    double ms;
    grt_request_info parts;
} sample;

typedef struct client {
    const subject *subject;
    grt_pool *pool;
    size_t lane;
    int64_t rows;
    int32_t open; /* requests at a time */
    int32_t request_priority;
    double begin_ms, end_ms;
    long done;
    sample *samples; /* NULL: nobody wants them */
    long n_samples;
} client;

static void *ask(void *user)
{
    enum { MOST_OPEN = 8 };
    client *c = user;
    grt_tensor in[MOST_OPEN], out[MOST_OPEN];
    grt_request *open[MOST_OPEN] = {0};
    double begun[MOST_OPEN] = {0};
    for (int32_t i = 0; i < c->open; i++) {
        in[i] = alloc_rows(c->subject, &c->subject->in, c->rows, GRT_MEMORY_PINNED);
        out[i] = alloc_rows(c->subject, &c->subject->out, c->rows, GRT_MEMORY_PINNED);
    }
    double now = grt_clock_ms();
    for (int32_t i = 0; now < c->end_ms; i = (i + 1) % c->open) {
        if (open[i]) {
            must(grt_request_wait(open[i]), "request");
            now = grt_clock_ms();
            const bool counts = now >= c->begin_ms && now < c->end_ms;
            c->done += counts;
            if (counts && c->samples && c->n_samples < MOST_SAMPLES) {
                sample *s = &c->samples[c->n_samples++];
                *s = (sample){.ms = now - begun[i], .parts.struct_size = sizeof s->parts};
                must(grt_request_get_info(open[i], &s->parts), "figures of a request");
            }
            grt_request_release(open[i]);
            now = grt_clock_ms();
        }
        const grt_submission submission = {.struct_size = sizeof submission,
                                           .lane = c->lane,
                                           .inputs = &in[i],
                                           .n_inputs = 1,
                                           .outputs = &out[i],
                                           .n_outputs = 1,
                                           .priority = c->request_priority};
        begun[i] = grt_clock_ms();
        must(grt_pool_submit_with(c->pool, &submission, &open[i]), "submit");
    }
    for (int32_t i = 0; i < c->open; i++) {
        grt_request_release(open[i]);
        free_rows(c->subject, &in[i]);
        free_rows(c->subject, &out[i]);
    }
    return NULL;
}

/* All groups of clients at once, for the same time. */
static void run_clients(client *clients, int n)
{
    pthread_t threads[MOST_THREADS];
    const double begin = grt_clock_ms() + 300 + seconds * 200; /* contexts prepare before */
    for (int i = 0; i < n; i++) {
        clients[i].begin_ms = begin;
        clients[i].end_ms = begin + seconds * 1e3;
        if (pthread_create(&threads[i], NULL, ask, &clients[i]))
            exit(1);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static double rows_per_s(const client *clients, int n)
{
    double rows = 0;
    for (int i = 0; i < n; i++)
        rows += (double)clients[i].done * (double)clients[i].rows;
    return rows / seconds;
}

/* In memory of the device, one run after the other. */
static double alone(const subject *s, int64_t rows)
{
    grt_context *context;
    grt_tensor in = alloc_rows(s, &s->in, rows, GRT_MEMORY_PINNED);
    must(grt_context_create(s->session, &context), "context");
    must(grt_context_set_input(context, 0, &in), "set input");
    const bool device = grt_context_time_device(context, true);
    grt_context_stats stats = {.struct_size = sizeof stats};
    double sum = 0, end = grt_clock_ms() + 500;
    for (int i = 0; i < 5 || grt_clock_ms() < end; i++)
        must(grt_context_run(context), "run");
    long n = 0;
    for (end = grt_clock_ms() + seconds * 1e3; grt_clock_ms() < end; n++) {
        const double begin = grt_clock_ms();
        must(grt_context_run(context), "run");
        must(grt_context_get_stats(context, &stats), "stats");
        sum += device ? stats.device_ms : grt_clock_ms() - begin;
    }
    grt_context_release(context);
    free_rows(s, &in);
    return sum / (double)n;
}

static grt_pool *make_pool(const subject *s, int32_t contexts, int32_t max_batch, double delay_ms)
{
    grt_pool *pool;
    const grt_pool_options options = {.struct_size = sizeof options,
                                      .contexts = contexts,
                                      .queue = 256,
                                      .max_batch = max_batch,
                                      .max_delay_ms = delay_ms};
    must(grt_pool_create(&s->session, 1, &options, &pool), "pool");
    return pool;
}

static void host_to_host(const subject *s, int64_t rows, double alone_ms)
{
    static const int counts[] = {1, 4, 16};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        client clients[MOST_THREADS] = {{0}};
        grt_pool *pool = make_pool(s, 3, 0, 0);
        for (int i = 0; i < counts[k]; i++) /* one client keeps the contexts busy, too */
            clients[i] = (client){.subject = s, .pool = pool, .rows = rows, .open = counts[k] < 4 ? 4 : 2};
        run_clients(clients, counts[k]);
        const double found = rows_per_s(clients, counts[k]);
        printf("host to host, %2d threads: %10.1f rows/s, %.3f of computing alone\n", counts[k], found,
               found * alone_ms / (1e3 * (double)rows));
        grt_pool_release(pool);
    }
}

static void together(const subject *a, const subject *b, int64_t rows, double a_ms, double b_ms,
                     int32_t device_runs)
{
    client clients[4] = {{0}};
    size_t lane;
    grt_pool *pool;
    grt_pool_options options = {
        .struct_size = sizeof options, .contexts = 3, .queue = 64, .device_runs = device_runs};
    must(grt_pool_create(&a->session, 1, &options, &pool), "pool");
    options.device_runs = 0;
    must(grt_pool_add(pool, &b->session, 1, &options, &lane), "lane");
    for (int i = 0; i < 4; i++)
        clients[i] = (client){
            .subject = i < 2 ? a : b, .pool = pool, .lane = i < 2 ? 0 : lane, .rows = rows, .open = 4};
    run_clients(clients, 4);
    const double x = rows_per_s(clients, 2), y = rows_per_s(clients + 2, 2);
    printf("two models together, %d at work%s: %.1f and %.1f rows/s, %.3f of their time-slices\n",
           (int)device_runs, device_runs ? "" : " (the pool's own rule)", x, y,
           (x * a_ms + y * b_ms) / (1e3 * (double)rows));
    grt_pool_release(pool);
}

static void single_rows(const subject *s, int32_t batch, double batch_per_s)
{
    static const double delays[] = {0, 2};
    for (int k = 0; k < 2; k++) {
        client clients[MOST_THREADS] = {{0}};
        grt_pool *pool = make_pool(s, 3, batch, delays[k]);
        for (int i = 0; i < 32; i++)
            clients[i] = (client){.subject = s, .pool = pool, .rows = 1, .open = 4};
        run_clients(clients, 32);
        const double found = rows_per_s(clients, 32);
        grt_pool_stats stats = {.struct_size = sizeof stats};
        grt_histogram total = {.struct_size = sizeof total};
        must(grt_pool_get_stats(pool, 0, &stats), "stats");
        must(grt_pool_get_histogram(pool, 0, GRT_POOL_TOTAL, &total), "histogram");
        printf("single rows in batches, delay %g ms: %10.1f rows/s, %.3f of batch %d; batches of %.1f rows, "
               "p50 %.2f "
               "p99 %.2f ms\n",
               delays[k], found, found / batch_per_s, (int)batch,
               (double)stats.batch_rows / (double)(stats.batches + !stats.batches), total.p50_ms,
               total.p99_ms);
        grt_pool_release(pool);
    }
}

static int compare_samples(const void *a, const void *b)
{
    return compare_times(&((const sample *)a)->ms, &((const sample *)b)->ms);
}

/* Where the slowest percent spends its time, and those around the median: means. */
static void print_parts(const char *what, const sample *samples, long n)
{
    double queue = 0, in = 0, run = 0, out = 0, all = 0;
    for (long i = 0; i < n; i++) {
        queue += samples[i].parts.queued_ms / (double)n;
        in += samples[i].parts.copy_in_ms / (double)n;
        run += samples[i].parts.run_ms / (double)n;
        out += samples[i].parts.copy_out_ms / (double)n;
        all += samples[i].ms / (double)n;
    }
    printf("    %-18s %.4f ms: queue %.4f, bind %.4f, run %.4f, results %.4f, the rest %.4f\n", what, all,
           queue, in, run, out, all - queue - in - run - out);
}

/* One client of single rows with a pool of its own; `other`, if there is one, is kept busy by another pool.
 */
static double tail_turn(const char *what, const subject *s, const subject *other, int64_t other_rows)
{
    double ratio = 0;
    client clients[2] = {{0}};
    grt_pool *pool = make_pool(s, 1, 0, 0), *busy = other ? make_pool(other, 2, 0, 0) : NULL;
    sample *samples = malloc(MOST_SAMPLES * sizeof *samples);
    clients[0] = (client){.subject = s, .pool = pool, .rows = 1, .open = 1, .samples = samples};
    clients[1] = (client){.subject = other, .pool = busy, .rows = other_rows, .open = 4};
    if (!samples)
        exit(1);
    run_clients(clients, other ? 2 : 1);
    const long n = clients[0].n_samples;
    qsort(samples, (size_t)n, sizeof *samples, compare_samples);
    if (n) {
        const double p50 = samples[n / 2].ms;
        long slow = n;
        while (slow > 0 && samples[slow - 1].ms > 1.5 * p50)
            slow--;
        ratio = samples[n * 999 / 1000].ms / p50;
        printf("%-44s p50 %.4f p99 %.4f p99.9 %.4f max %.4f ms, p99.9 / p50 %.2f (%ld of %ld take more than "
               "1.5 of p50), neighbour %.1f rows/s\n",
               what, p50, samples[n * 99 / 100].ms, samples[n * 999 / 1000].ms, samples[n - 1].ms, ratio,
               n - slow, n, other ? rows_per_s(clients + 1, 1) : 0.0);
        print_parts("40 to 60 %", samples + n * 4 / 10, n / 5);
        print_parts("the slowest 1 %", samples + n - (n + 99) / 100, (n + 99) / 100);
    }
    free(samples);
    grt_pool_release(pool);
    grt_pool_release(busy);
    return ratio;
}

/* One late request in a thousand is few in a turn: the median of turns. */
static void tail(const char *what, const subject *s, const subject *other, int64_t other_rows)
{
    enum { TURNS = 3 };
    double ratios[TURNS];
    for (int i = 0; i < TURNS; i++)
        ratios[i] = tail_turn(what, s, other, other_rows);
    qsort(ratios, TURNS, sizeof *ratios, compare_times);
    printf("%-44s p99.9 / p50 %.2f, from %.2f to %.2f\n", what, ratios[TURNS / 2], ratios[0],
           ratios[TURNS - 1]);
}

static subject open_part(const char *path, const char *device, int32_t priority, int64_t multiprocessors)
{
    const subject s = open_subject(runtime, path, device, priority, multiprocessors);
    if (!s.session)
        printf("on %d multiprocessors: %s\n", (int)multiprocessors, grt_last_error());
    return s;
}

/* Each on multiprocessors of its own; the kind of device must have parts. */
static void parts(const char *path, const char *other, const char *device, int64_t batch,
                  int64_t multiprocessors)
{
    for (int64_t divisor = 8; divisor >= 2; divisor /= 2) {
        char what[64];
        const int64_t n_few = multiprocessors / divisor, n_many = multiprocessors - n_few;
        const subject few = open_part(path, device, PRIORITY, n_few),
                      many = open_part(other, device, 0, n_many);
        snprintf(what, sizeof what, "on %d multiprocessors, alone", (int)n_few);
        if (few.session)
            tail(what, &few, NULL, 0);
        snprintf(what, sizeof what, "on %d, beside the other model on %d", (int)n_few, (int)n_many);
        if (few.session && many.session)
            tail(what, &few, &many, batch);
        close_subject(&few);
        close_subject(&many);
    }
}

static void count_event(void *user, const grt_profile_event *event)
{
    (void)event;
    ++*(long *)user;
}

static double mean_run(grt_context *context)
{
    const double begin = grt_clock_ms();
    long n = 0;
    for (; n < 20 || grt_clock_ms() - begin < seconds * 100; n++)
        must(grt_context_run(context), "run");
    return (grt_clock_ms() - begin) / (double)n;
}

static void trace_cost(const subject *s, int64_t rows)
{
    enum { TURNS = 5 };
    grt_context *context;
    long events = 0;
    double off = 0, on = 0;
    grt_tensor in = alloc_rows(s, &s->in, rows, GRT_MEMORY_PINNED),
               out = alloc_rows(s, &s->out, rows, GRT_MEMORY_PINNED);
    const grt_profile_options options = {
        .struct_size = sizeof options, .event = count_event, .user = &events};
    must(grt_context_create(s->session, &context), "context");
    must(grt_context_set_input(context, 0, &in), "set input");
    must(grt_context_set_output(context, 0, &out), "set output");
    (void)mean_run(context);
    for (int i = 0; i < TURNS; i++) {
        must(grt_context_set_profile(context, NULL), "profile");
        off += mean_run(context) / TURNS;
        must(grt_context_set_profile(context, &options), "profile");
        on += mean_run(context) / TURNS;
    }
    printf("profile callbacks: %.4f ms a run off, %.4f on: %+.2f %%\n", off, on, 100 * (on / off - 1));
    grt_context_release(context);
    free_rows(s, &in);
    free_rows(s, &out);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: service MODEL OTHER DEVICE SECONDS [BATCH [MULTIPROCESSORS]]\n");
        return 2;
    }
    const int32_t batch = argc > 5 ? atoi(argv[5]) : 32;
    seconds = atof(argv[4]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(grt_runtime_create(&runtime), "runtime");
    subject a = open_subject(runtime, argv[1], argv[3], 0, 0),
            b = open_subject(runtime, argv[2], argv[3], 0, 0);
    const double a_ms = alone(&a, batch), b_ms = alone(&b, batch);
    printf("alone: %.4f and %.4f ms for %d rows: %.1f and %.1f rows/s\n", a_ms, b_ms, (int)batch,
           1e3 * batch / a_ms, 1e3 * batch / b_ms);
    host_to_host(&a, batch, a_ms);
    for (int32_t runs = 3; runs <= 6; runs++)
        together(&a, &b, batch, a_ms, b_ms, runs);
    together(&a, &b, batch, a_ms, b_ms, 0);
    single_rows(&a, batch, 1e3 * batch / a_ms);
    tail("one row at a time, alone", &a, NULL, 0);
    tail("beside the other model, equal priority", &a, &b, batch);
    trace_cost(&a, batch);
    trace_cost(&a, 1);
    subject first = open_subject(runtime, argv[1], argv[3], PRIORITY, 0);
    tail("beside the other model, of lower priority", &first, &b, batch);
    close_subject(&first);
    if (strncmp(argv[3], "cpu", 3) != 0)
        parts(argv[1], argv[2], argv[3], batch, argc > 6 ? atoi(argv[6]) : 128);
    close_subject(&a);
    close_subject(&b);
    grt_runtime_release(runtime);
    return 0;
}
