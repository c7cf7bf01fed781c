/* SPDX-License-Identifier: Apache-2.0 */
/* A pool under requests of changing sizes from many threads, in lanes with and without batches on several
 * devices, with and without bound outputs, with priorities, deadlines and cancels, with results read or
 * dropped, before or after completion, by waiting, callbacks and collecting. Each request must be answered
 * once, results must be right, and memory must not grow: neither what the process has, of which free memory
 * in the allocator's arenas is a part, nor what is in use. The latter goes up and down, by up to a MB on a
 * GPU: contexts keep programs for some of the combinations of dims, with a library's objects and the
 * driver's, and these are not of one size. So means of some rounds are compared.
 *
 *     soak [--requests N] [--threads N] [--rows N] MODEL [DEVICE...]      MODEL has one float32 input and
 * output, of whose dims the first is symbolic. DEVICE: "cpu" if there is none */
#include <graphrt/graphrt.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MOST_ROWS: of a request. OPEN: requests that a thread has at a time. ROUNDS: how often memory is looked at;
 * in those that warm up, pools and allocators reach their size. */
enum {
    MOST_ROWS = 24,
    OPEN = 8,
    ROUNDS = 10,
    WARM_UP_ROUNDS = 3,
    MEAN_ROUNDS = 3,
    MOST_GROWTH_KB = 1024,
    MOST_THREADS = 64,
    MOST_LANES = 16
};

/* Sanitizers have memory of their own, which grows: they look for other things. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LOOKS_AT_MEMORY = 0 };
#else
enum { LOOKS_AT_MEMORY = 1 };
#endif

/* The model, what it is fed, and what comes of it. */
typedef struct subject {
    grt_pool *pool;
    size_t n_lanes;
    grt_tensor in, out; /* of MOST_ROWS rows */
} subject;

typedef struct client {
    const subject *of;
    uint64_t random;
    long requests; /* of a round */
    long read, unread, stopped, wrong, submitted;
    atomic_long called;   /* back */
    float *outputs[OPEN]; /* memory for results */
    grt_request *open[OPEN];
    int64_t rows[OPEN];
} client;
static atomic_long collected;
/* Above 16, contexts prepare again and again, as they keep so many combinations of dims: on a GPU that takes
 * long. */
static long most_rows = MOST_ROWS;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "soak: %s: %s\n", what, grt_last_error());
    exit(2);
}

static uint64_t below(client *c, uint64_t n)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random % n;
}

static int64_t row_of(const grt_tensor *t)
{
    return grt_tensor_elements(t) / t->dims[0];
}

/* Rows do not depend on each other, but how they are summed up may on their number. */
static bool is_right(const subject *s, const grt_tensor *found, int64_t rows)
{
    const float *a = found->data, *b = s->out.data;
    bool right = found->dims[0] == rows && row_of(found) == row_of(&s->out);
    for (int64_t i = 0; right && i < rows * row_of(&s->out); i++) {
        const float off = a[i] - b[i], limit = 1e-3F * (1 + (b[i] < 0 ? -b[i] : b[i]));
        right = off <= limit && -off <= limit;
    }
    return right;
}

static void finish(client *c, int k)
{
    grt_tensor found;
    if (!c->open[k])
        return;
    if (below(c, 8) == 0)
        grt_request_cancel(c->open[k]);
    if (below(c, 2)) {
        c->unread++;
    } else {
        const grt_status status = grt_request_wait(c->open[k]);
        if (status == GRT_STATUS_CANCELLED || status == GRT_STATUS_DEADLINE_EXCEEDED)
            c->stopped++;
        else if (status != GRT_OK || grt_request_get_output(c->open[k], 0, &found) != GRT_OK)
            give_up("a request");
        else {
            c->read++;
            c->wrong += !is_right(c->of, &found, c->rows[k]);
        }
    }
    grt_request_release(c->open[k]);
    c->open[k] = NULL;
}

static void count_call(void *user, grt_request *request)
{
    (void)request;
    atomic_fetch_add(&((client *)user)->called, 1);
}

/* Those that anybody collects belong to their clients all the same. */
static void *collect(void *user)
{
    const subject *s = user;
    grt_request *done;
    while (grt_pool_take_done(s->pool, &done) == GRT_OK)
        atomic_fetch_add(&collected, 1);
    return NULL;
}

static void draw_submission(client *c, grt_submission *s)
{
    s->lane = below(c, c->of->n_lanes);
    s->priority = (int32_t)below(c, 4);
    s->done = count_call;
    s->user = c;
    s->collect = below(c, 4) == 0;
    if (below(c, 4) == 0) /* 0 to 10 ms, or long */
        s->deadline_ms = grt_clock_ms() + (below(c, 2) ? 1e6 : (double)below(c, 1000) / 100);
}

static void *run_client(void *user)
{
    client *c = user;
    for (long i = 0; i < c->requests; i++) {
        const int k = (int)below(c, OPEN);
        grt_tensor in = c->of->in, out = c->of->out;
        finish(c, k);
        in.dims[0] = out.dims[0] = c->rows[k] = 1 + (int64_t)below(c, (uint64_t)most_rows);
        out.data = c->outputs[k];
        grt_submission s = {
            .struct_size = sizeof s, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = below(c, 2)};
        draw_submission(c, &s);
        const grt_status status = below(c, 4) ? grt_pool_submit_with(c->of->pool, &s, &c->open[k])
                                              : grt_pool_try_submit(c->of->pool, &s, &c->open[k]);
        if (status == GRT_OK)
            c->submitted++;
        else if (status != GRT_STATUS_BUSY && status != GRT_STATUS_DEADLINE_EXCEEDED)
            give_up("a submission");
        if (below(c, 16) == 0)
            collect((void *)(uintptr_t)c->of);
    }
    for (int k = 0; k < OPEN; k++)
        finish(c, k);
    return NULL;
}

/* Without pages of files: those of libraries come as their code is first used, and the system takes them back
 * as it likes. */
static long resident_kb(void)
{
    char line[256];
    long kb = 0, sum = 0, n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %ld", &kb) == 1 || sscanf(line, "RssShmem: %ld", &kb) == 1) {
            sum += kb;
            n++;
        }
    if (file)
        fclose(file);
    if (n != 2)
        give_up("/proc/self/status");
    return sum;
}

/* What was allocated and not released yet, and what the allocator keeps for later; 0 where the C library does
 * not tell. */
typedef struct heap {
    long in_use_kb, kept_kb;
} heap;

static heap heap_look(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 info = mallinfo2();
    return (heap){(long)((info.uordblks + info.hblkhd) / 1024), (long)(info.fordblks / 1024)};
#else
    return (heap){0};
#endif
}

/* After each round. */
typedef struct growth {
    long first, most; /* at the end of the warm-up, and later */
} growth;

static void growth_add(growth *g, int round, long now)
{
    g->first = round < WARM_UP_ROUNDS ? now : g->first;
    g->most = now > g->most || round < WARM_UP_ROUNDS ? now : g->most;
}

/* From the end of the warm-up to the end. */
static long growth_of_means(const long *kb)
{
    long grown = 0;
    for (int i = 0; i < MEAN_ROUNDS; i++)
        grown += kb[ROUNDS - 1 - i] - kb[WARM_UP_ROUNDS - 1 + i];
    return grown / MEAN_ROUNDS;
}

/* The subject's tensors: rows of small numbers, and what a context of its own makes of them. */
static void describe(subject *s, grt_model *model, grt_session *session)
{
    grt_io_info info = {.struct_size = sizeof info};
    grt_context *context;
    if (grt_model_input(model, 0, &info) != GRT_OK || info.dtype != GRT_DTYPE_FLOAT || info.rank < 1)
        give_up("the model's input");
    s->in = (grt_tensor){.dtype = info.dtype, .rank = info.rank};
    memcpy(s->in.dims, info.dims, sizeof info.dims);
    s->in.dims[0] = MOST_ROWS;
    float *data = malloc(grt_tensor_bytes(&s->in));
    for (int64_t i = 0; data && i < grt_tensor_elements(&s->in); i++)
        data[i] = (float)(i % 17);
    s->in.data = data;
    if (!data || grt_context_create(session, &context) != GRT_OK ||
        grt_context_set_input(context, 0, &s->in) != GRT_OK || grt_context_run(context) != GRT_OK ||
        grt_context_get_output(context, 0, &s->out) != GRT_OK)
        give_up("a run");
    const size_t bytes = grt_tensor_bytes(&s->out);
    void *copy = malloc(bytes);
    if (!copy)
        give_up("memory");
    s->out.data = memcpy(copy, s->out.data, bytes);
    grt_context_release(context);
}

/* Two lanes on each device: one by one, and in batches. */
static void add_lanes(subject *s, grt_model *model, grt_session *session)
{
    const grt_pool_options options[] = {{.struct_size = sizeof *options, .contexts = 2, .queue = 16},
                                        {.struct_size = sizeof *options,
                                         .contexts = 1,
                                         .queue = 64,
                                         .max_batch = 32,
                                         .max_delay_ms = 0.3,
                                         .share = 2}};
    for (int i = 0; i < 2; i++, s->n_lanes++) {
        size_t lane;
        const grt_status status = s->pool ? grt_pool_add(s->pool, &session, 1, &options[i], &lane)
                                          : grt_pool_create(&session, 1, &options[i], &s->pool);
        if (status != GRT_OK)
            give_up("a lane");
    }
    if (s->n_lanes == 2)
        describe(s, model, session);
}

static void open_subject(subject *s, const char *path, char *const *devices, int n)
{
    grt_runtime *runtime;
    grt_model *model;
    const grt_session_options options = {.struct_size = sizeof options, .threads = 1};
    if (grt_runtime_create(&runtime) != GRT_OK || grt_model_open(runtime, path, &model) != GRT_OK)
        give_up(path);
    for (int i = 0; i < n; i++) {
        grt_session *session;
        if (grt_session_create(model, devices[i], &options, &session) != GRT_OK)
            give_up(devices[i]);
        add_lanes(s, model, session);
        grt_session_release(session);
    }
    grt_model_release(model);
    grt_runtime_release(runtime);
}

/* Memory is looked at between rounds, when no request is open. */
static void run_round(client *clients, int n)
{
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run_client, &clients[i]))
            give_up("pthread_create");
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* What the lanes have counted is what the clients have. */
static bool counts_agree(const subject *s, long submitted, long called)
{
    uint64_t answered = 0;
    grt_pool_stats sum = {0}, one = {.struct_size = sizeof one};
    for (size_t i = 0; i < s->n_lanes; i++) {
        if (grt_pool_get_stats(s->pool, i, &one) != GRT_OK)
            give_up("grt_pool_get_stats");
        sum.submitted += one.submitted;
        sum.cancelled += one.cancelled;
        sum.late += one.late;
        sum.batches += one.batches;
        sum.batch_rows += one.batch_rows;
        sum.refused += one.refused;
        sum.failed += one.failed;
        answered += one.succeeded + one.cancelled + one.late + one.failed;
    }
    printf("%lu submitted, %lu answered, %ld called back, %ld collected; %lu cancelled, %lu late, %lu "
           "refused, %lu "
           "batches of %.1f rows\n",
           (unsigned long)sum.submitted, (unsigned long)answered, called, (long)collected,
           (unsigned long)sum.cancelled, (unsigned long)sum.late, (unsigned long)sum.refused,
           (unsigned long)sum.batches, (double)sum.batch_rows / (double)(sum.batches + !sum.batches));
    return sum.submitted == (uint64_t)submitted && answered == (uint64_t)submitted && called == submitted &&
           !sum.failed && sum.cancelled && sum.late && sum.batches;
}

static void init_clients(const subject *s, client *clients, long requests, int n)
{
    for (int i = 0; i < n; i++) {
        clients[i].of = s;
        clients[i].random = 0x9e3779b9u + (unsigned)i * 7919u;
        clients[i].requests = requests / ROUNDS / n + 1;
        for (int k = 0; k < OPEN; k++)
            if (!(clients[i].outputs[k] = malloc(grt_tensor_bytes(&s->out))))
                give_up("memory");
    }
}

static bool soak(subject *s, long requests, int n)
{
    static client clients[MOST_THREADS];
    growth resident = {0};
    long in_use[ROUNDS];
    long read = 0, unread = 0, stopped = 0, wrong = 0, submitted = 0, called = 0;
    init_clients(s, clients, requests, n);
    for (int round = 0; round < ROUNDS; round++) {
        run_round(clients, n);
        if (grt_pool_drain(s->pool, 0) != GRT_OK)
            give_up("grt_pool_drain");
        collect(s);
        const long now = resident_kb();
        const heap h = heap_look();
        printf("%ld (%ld, %ld)%s", now, h.in_use_kb, h.kept_kb,
               round + 1 < ROUNDS ? ", " : " KB (in use, kept by the allocator) after each round\n");
        growth_add(&resident, round, now);
        in_use[round] = h.in_use_kb;
    }
    for (int i = 0; i < n; i++) {
        read += clients[i].read;
        unread += clients[i].unread;
        stopped += clients[i].stopped;
        wrong += clients[i].wrong;
        submitted += clients[i].submitted;
        called += clients[i].called;
        for (int k = 0; k < OPEN; k++)
            free(clients[i].outputs[k]);
    }
    printf("%ld requests from %d threads: %ld read, %ld stopped, %ld let go, %ld wrong; memory %ld KB, at "
           "most %ld KB later; in use %+ld KB, in the mean\n",
           read + unread + stopped, n, read, stopped, unread, wrong, resident.first, resident.most,
           growth_of_means(in_use));
    return counts_agree(s, submitted, called) && !wrong &&
           (!LOOKS_AT_MEMORY ||
            (resident.most - resident.first <= MOST_GROWTH_KB && growth_of_means(in_use) <= MOST_GROWTH_KB));
}

int main(int argc, char **argv)
{
    long requests = 20000;
    int threads = 8;
    const char *path = NULL;
    static char cpu[] = "cpu", *devices[MOST_LANES / 2] = {cpu};
    int n_devices = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--requests") && i + 1 < argc)
            requests = atol(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--rows") && i + 1 < argc)
            most_rows = atol(argv[++i]);
        else if (!path)
            path = argv[i];
        else if (n_devices < MOST_LANES / 2)
            devices[n_devices++] = argv[i];
    if (!path || requests < 1 || threads < 1 || threads > MOST_THREADS || most_rows < 1 ||
        most_rows > MOST_ROWS) {
        fprintf(stderr, "usage: soak [--requests N] [--threads N] [--rows N] MODEL [DEVICE...]\n");
        return 2;
    }
    subject s = {0};
    open_subject(&s, path, devices, n_devices ? n_devices : 1);
    const bool good = soak(&s, requests, threads);
    grt_pool_release(s.pool);
    free(s.in.data);
    free(s.out.data);
    printf("%d passed, %d failed, 0 skipped\n", good, !good);
    return !good;
}
