/* SPDX-License-Identifier: Apache-2.0 */
/* Where the slowest runs of a model spend their time.
 *
 *     tails MODEL OTHER DEVICE SECONDS [BATCH [MULTIPROCESSORS]]      models with one input and one output of
 * floats, whose first dim is symbolic; OTHER is the busy neighbour, of lower priority, whose requests have
 * BATCH rows (32). MULTIPROCESSORS: of the device, of which each has a half at the end; 128
 *
 * One row at a time in one context, for SECONDS each: page-locked and pageable memory, alone and beside the
 * neighbour. For each: percentiles on the host's clock and, in another turn, on the device's, too (computing
 * alone; runs are then no single launch); what the slowest thousandth has more than the median, and how much
 * of that the device, enqueueing, the thread's own processor time and switches of the thread explain; and the
 * slowest runs one by one: when, on the host, on the device, in enqueueing. A thread that only reads the
 * clock tells what this machine takes from threads; "beside a jump": within 0.5 ms of such a loss. The
 * percentiles of the other runs are those of an undisturbed machine. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "bench/subject.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_SAMPLES = 1 << 20, PRIORITY = 5, OPEN = 4, SHOWN = 6, MOST_JUMPS = 1 << 16 };

static grt_runtime *runtime;
static double seconds;

/* ---- what is beside ---- */

static atomic_bool over;

typedef struct neighbour {
    const subject *subject;
    int64_t rows;
    long done;
    double begin_ms, end_ms;
} neighbour;

static void *keep_busy(void *user)
{
    neighbour *n = user;
    const grt_pool_options options = {.struct_size = sizeof options, .contexts = 2, .queue = OPEN};
    grt_tensor in[OPEN], out[OPEN];
    grt_request *open[OPEN] = {0};
    grt_pool *pool;
    must(grt_pool_create(&n->subject->session, 1, &options, &pool), "pool");
    for (int i = 0; i < OPEN; i++) {
        in[i] = alloc_rows(n->subject, &n->subject->in, n->rows, GRT_MEMORY_PINNED);
        out[i] = alloc_rows(n->subject, &n->subject->out, n->rows, GRT_MEMORY_PINNED);
    }
    n->begin_ms = grt_clock_ms();
    for (int i = 0; !over; i = (i + 1) % OPEN) {
        if (open[i]) {
            must(grt_request_wait(open[i]), "the neighbour");
            grt_request_release(open[i]);
            n->done++;
        }
        must(grt_pool_submit(pool, &in[i], 1, &out[i], 1, &open[i]), "the neighbour");
    }
    n->end_ms = grt_clock_ms();
    for (int i = 0; i < OPEN; i++) {
        grt_request_release(open[i]);
        free_rows(n->subject, &in[i]);
        free_rows(n->subject, &out[i]);
    }
    grt_pool_release(pool);
    return NULL;
}

static double processor_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Times in which this thread, which wants a processor always, had none: its clock jumps. */
static struct watch {
    long n;
    double most_ms, sum_ms;
    double at_ms[MOST_JUMPS];
} watched;

static void *watch_clock(void *user)
{
    static const double jump_ms = 0.02;
    double before = grt_clock_ms();
    memset(&watched, 0, sizeof watched);
    while (!over) {
        const double now = grt_clock_ms(), gap = now - before;
        if (gap > jump_ms) {
            if (watched.n < MOST_JUMPS)
                watched.at_ms[watched.n] = now;
            watched.n++;
            watched.sum_ms += gap;
            watched.most_ms = gap > watched.most_ms ? gap : watched.most_ms;
        }
        before = now;
    }
    return user;
}

/* ---- samples ---- */

typedef struct sample {
    double at_ms, host_ms, device_ms, enqueue_ms, processor_ms;
    long switches;
} sample;

static sample *samples;
static double sorted[MOST_SAMPLES];

static int slowest_first(const void *a, const void *b)
{
    return -compare_times(&((const sample *)a)->host_ms, &((const sample *)b)->host_ms);
}

static double host_of(const sample *s)
{
    return s->host_ms;
}

static double device_of(const sample *s)
{
    return s->device_ms;
}

static double enqueue_of(const sample *s)
{
    return s->enqueue_ms;
}

static double processor_of(const sample *s)
{
    return s->processor_ms;
}

static double print_percentiles(const char *clock, long all, double (*of)(const sample *s),
                                bool (*counts)(const sample *s))
{
    long n = 0;
    for (long i = 0; i < all; i++)
        if (!counts || counts(&samples[i]))
            sorted[n++] = of(&samples[i]);
    if (!n)
        return 0;
    qsort(sorted, (size_t)n, sizeof *sorted, compare_times);
    const double p50 = sorted[n / 2];
    printf("    %-9s p50 %.4f p90 %.4f p99 %.4f p99.9 %.4f max %.4f ms, p99.9 / p50 %.3f\n", clock, p50,
           sorted[n * 9 / 10], sorted[n * 99 / 100], sorted[n * 999 / 1000], sorted[n - 1],
           sorted[n * 999 / 1000] / p50);
    return p50;
}

static long switches_of_thread(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static _Thread_local double enqueueing_ms;

/* On the thread that ran. */
static void note_span(void *user, const grt_span *span)
{
    (void)user;
    if (span->kind == GRT_SPAN_REPLAY || span->kind == GRT_SPAN_UPLOAD || span->kind == GRT_SPAN_DOWNLOAD)
        enqueueing_ms += span->end_ms - span->begin_ms;
}

static bool is_beside_jump(double at_ms)
{
    static const double near_ms = 0.5;
    const long n = watched.n < MOST_JUMPS ? watched.n : MOST_JUMPS;
    long low = 0, high = n;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (watched.at_ms[middle] < at_ms - near_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && watched.at_ms[low] < at_ms + near_ms;
}

static double began_ms;

static long take_samples(grt_context *context, bool device)
{
    grt_context_stats stats = {.struct_size = sizeof stats};
    double host = began_ms = grt_clock_ms(), processor = processor_ms();
    long n = 0, switches = switches_of_thread();
    grt_trace_set(note_span, NULL);
    while (host < began_ms + seconds * 1e3 && n < MOST_SAMPLES) {
        const double from = grt_clock_ms();
        enqueueing_ms = 0;
        must(grt_context_run(context), "run");
        host = grt_clock_ms();
        if (device)
            must(grt_context_get_stats(context, &stats), "stats");
        const double used = processor_ms();
        const long switched = switches_of_thread();
        samples[n++] = (sample){.at_ms = from - began_ms,
                                .host_ms = host - from,
                                .device_ms = stats.device_ms,
                                .enqueue_ms = enqueueing_ms,
                                .processor_ms = used - processor,
                                .switches = switched - switches};
        processor = used;
        switches = switched;
    }
    grt_trace_set(NULL, NULL);
    return n;
}

static bool is_undisturbed(const sample *s)
{
    return !is_beside_jump(began_ms + s->at_ms) && !is_beside_jump(began_ms + s->at_ms + s->host_ms);
}

static double share_beside_jumps(long n)
{
    long beside = 0;
    for (long i = 0; i < n; i++)
        beside += is_beside_jump(began_ms + samples[i].at_ms);
    return 100 * (double)beside / (double)n;
}

/* Beyond the medians. */
static void print_slowest(long n, const sample *median)
{
    const long slow = n / 1000 + 1;
    sample sum = {0};
    qsort(samples, (size_t)n, sizeof *samples, slowest_first);
    for (long i = 0; i < slow; i++) {
        sum.host_ms += (samples[i].host_ms - median->host_ms) / (double)slow;
        sum.device_ms += (samples[i].device_ms - median->device_ms) / (double)slow;
        sum.enqueue_ms += (samples[i].enqueue_ms - median->enqueue_ms) / (double)slow;
        sum.processor_ms += (samples[i].processor_ms - median->processor_ms) / (double)slow;
        sum.switches += samples[i].switches;
    }
    printf("    the slowest %ld: %+.4f ms on the host, of which %+.4f on the device, %+.4f in enqueueing; "
           "%+.4f of "
           "processor time; %ld switches; %.0f %% of them and %.0f %% of all are beside a jump\n   ",
           slow, sum.host_ms, sum.device_ms, sum.enqueue_ms, sum.processor_ms, sum.switches,
           share_beside_jumps(slow), share_beside_jumps(n));
    for (long i = 0; i < SHOWN && i < n; i++)
        printf(" at %.0f: %.3f (%.3f, %.3f)", samples[i].at_ms, samples[i].host_ms, samples[i].device_ms,
               samples[i].enqueue_ms);
    printf("\n");
}

static void print_turn(const char *what, long n, bool device, const neighbour *beside)
{
    printf("%s%s: %ld runs", what, device ? ", on both clocks" : "", n);
    if (beside->subject)
        printf(", neighbour %.0f rows/s",
               1e3 * (double)beside->done * (double)beside->rows / (beside->end_ms - beside->begin_ms));
    printf("; a watching thread lost %ld times %.3f ms in all, %.3f at most\n", watched.n, watched.sum_ms,
           watched.most_ms);
    const sample median = {.host_ms = print_percentiles("host", n, host_of, NULL),
                           .device_ms = device ? print_percentiles("device", n, device_of, NULL) : 0,
                           .enqueue_ms = print_percentiles("enqueue", n, enqueue_of, NULL),
                           .processor_ms = print_percentiles("processor", n, processor_of, NULL)};
    print_percentiles("calm", n, host_of, is_undisturbed);
    print_slowest(n, &median);
}

static void turn(const char *what, const subject *s, const subject *other, int64_t rows, grt_memory memory,
                 bool device)
{
    enum { WARM_UP = 200 };
    pthread_t threads[2];
    grt_context *context;
    neighbour beside = {.subject = other, .rows = rows};
    grt_tensor in = alloc_rows(s, &s->in, 1, memory), out = alloc_rows(s, &s->out, 1, memory);
    over = false;
    must(grt_context_create(s->session, &context), "context");
    must(grt_context_set_input(context, 0, &in), "set input");
    must(grt_context_set_output(context, 0, &out), "set output");
    if (device && !grt_context_time_device(context, true)) { /* it has no clock */
        grt_context_release(context);
        free_rows(s, &in);
        free_rows(s, &out);
        return;
    }
    if ((other && pthread_create(&threads[0], NULL, keep_busy, &beside)) ||
        pthread_create(&threads[1], NULL, watch_clock, NULL))
        exit(1);
    for (int i = 0; i < WARM_UP; i++)
        must(grt_context_run(context), "run");
    const long n = take_samples(context, device);
    over = true;
    for (int i = !other; i < 2; i++)
        pthread_join(threads[i], NULL);
    print_turn(what, n, device, &beside);
    grt_context_release(context);
    free_rows(s, &in);
    free_rows(s, &out);
}

static void turns(const char *what, const subject *s, const subject *other, int64_t rows, grt_memory memory)
{
    turn(what, s, other, rows, memory, false);
    turn(what, s, other, rows, memory, true);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: tails MODEL OTHER DEVICE SECONDS [BATCH [MULTIPROCESSORS]]\n");
        return 2;
    }
    const int64_t batch = argc > 5 ? atoi(argv[5]) : 32, half = (argc > 6 ? atoi(argv[6]) : 128) / 2;
    seconds = atof(argv[4]);
    samples = malloc(MOST_SAMPLES * sizeof *samples);
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(samples ? grt_runtime_create(&runtime) : GRT_STATUS_OUT_OF_MEMORY, "runtime");
    const subject first = open_subject(runtime, argv[1], argv[3], PRIORITY, 0),
                  other = open_subject(runtime, argv[2], argv[3], 0, 0);
    turns("alone, page-locked", &first, NULL, 0, GRT_MEMORY_PINNED);
    turns("alone, pageable", &first, NULL, 0, GRT_MEMORY_HOST);
    turns("beside a lower priority, page-locked", &first, &other, batch, GRT_MEMORY_PINNED);
    close_subject(&first);
    close_subject(&other);
    if (strncmp(argv[3], "cpu", 3) != 0) {
        const subject a = open_subject(runtime, argv[1], argv[3], PRIORITY, half),
                      b = open_subject(runtime, argv[2], argv[3], 0, half);
        if (a.session && b.session) {
            turns("on a half, alone", &a, NULL, 0, GRT_MEMORY_PINNED);
            turns("on a half, beside a neighbour on the other", &a, &b, batch, GRT_MEMORY_PINNED);
        }
        close_subject(&a);
        close_subject(&b);
    }
    grt_runtime_release(runtime);
    free(samples);
    return 0;
}
