/* Models that are wrong in what they say, not in how it is written: nodes of the conformance cases, changed
 * at one to three places, are opened, optimised and run on the CPU. They may be refused or fail, with a
 * message; nothing else may happen.
 *
 * A child tries them one after the other, within a time and an amount of memory; one that dies, hangs or
 * leaks is a failure, and another child goes on behind it. */
#include "tests/differential/draw.h"
#include "tests/mutate/mutation.h"
#include "tests/mutate/trial.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* BATCH: mutants of a child, and so how far a leak is from what made it. MOST_MEMORY: of a child's addresses.
 */
enum { BATCH = 250 };
#define MOST_MEMORY ((rlim_t)3 << 30)

typedef struct options {
    const char *directory, *save;
    uint64_t seed, count;
    unsigned limit;
    bool verbose;
} options;

/* What a child leaves behind, however it ends. */
typedef struct progress {
    uint64_t next; /* mutant, from 0 */
    uint64_t ends[TRIAL_WRONG + 1], nothing, endless;
    bool loops;
    const char *volatile stage; /* "" between mutants */
    char name[200], what[600];
} progress;

#if defined(__SANITIZE_ADDRESS__)
/* What is too large is refused here, as limits of addresses are no use beside shadow memory. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
static void limit_memory(void)
{
}
#else
static void limit_memory(void)
{
    setrlimit(RLIMIT_AS, &(struct rlimit){MOST_MEMORY, MOST_MEMORY});
}
#endif

static void save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        perror(path);
}

static void try_mutant(const options *o, const pool *p, grt_runtime *runtime, uint64_t i, progress *at)
{
    static mutation m;
    char why[1000];
    draw_from(o->seed + i);
    const pool_case *from = &p->cases[mutation_pick(p->n_cases)];
    m.pool = p;
    m.arena = grt_arena_create();
    m.model = m.arena ? pool_unpack(m.arena, from->bytes, from->size) : NULL;
    if (!m.model)
        exit(2);
    const bool any = mutate(&m);
    snprintf(at->name, sizeof at->name, "%s", from->name);
    memcpy(at->what, m.what, sizeof at->what);
    at->loops = mutation_loops(&m);
    const size_t size = onnx__model_proto__get_packed_size(m.model);
    uint8_t *bytes = malloc(size + !size); /* exact, so that a sanitizer sees a read past its end */
    if (!bytes)
        exit(2);
    onnx__model_proto__pack(m.model, bytes);
    grt_arena_release(m.arena);
    if (o->save)
        save(o->save, bytes, size);
    alarm(o->limit);
    const trial_end end = try_model(runtime, bytes, size, &at->stage, why, sizeof why);
    alarm(0);
    at->stage = "";
    free(bytes);
    at->ends[end]++;
    at->nothing += !any;
    if (o->verbose || end == TRIAL_WRONG)
        printf("%s seed %llu: %s: %s: %s\n",
               end == TRIAL_WRONG     ? "FAIL"
               : end == TRIAL_RAN     ? "ran"
               : end == TRIAL_REFUSED ? "refused"
                                      : "failed",
               (unsigned long long)(o->seed + i), at->name, at->what, why);
    fflush(stdout); /* the next one may be the end */
}

/* The child's life. */
static void try_batch(const options *o, const pool *p, progress *at)
{
    grt_runtime *runtime;
    limit_memory();
    if (grt_runtime_create(&runtime) != GRT_OK)
        exit(2);
    const uint64_t end = at->next + BATCH < o->count ? at->next + BATCH : o->count;
    while (at->next < end)
        try_mutant(o, p, runtime, at->next++, at);
    grt_runtime_release(runtime);
}

/* Whether the child that left `at` ended well. */
static bool report(const options *o, int status, uint64_t first, progress *at)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    const unsigned long long seed = (unsigned long long)(o->seed + at->next - 1);
    const bool timed_out = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    if (timed_out && at->loops && !strcmp(at->stage, "run")) {
        printf("skipped seed %llu: %s: %s: a Loop that does not end\n", seed, at->name, at->what);
        at->endless++;
        return true;
    }
    if (!*at->stage)
        printf("FAIL seeds %llu to %llu: exit status %d after them: a leak?\n",
               (unsigned long long)(o->seed + first), seed, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    else if (timed_out)
        printf("FAIL seed %llu: %s: %s: no end of '%s' within %u s\n", seed, at->name, at->what, at->stage,
               o->limit);
    else
        printf("FAIL seed %llu: %s: %s: %s %d in '%s'\n", seed, at->name, at->what,
               WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), at->stage);
    return false;
}

static uint64_t try_all(const options *o, const pool *p, progress *at)
{
    uint64_t deaths = 0;
    while (at->next < o->count) {
        const uint64_t first = at->next;
        fflush(stdout);
        at->stage = "";
        const pid_t child = fork();
        if (child < 0) {
            perror("mutate: fork");
            exit(2);
        }
        if (child == 0) {
            try_batch(o, p, at);
            exit(0);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        deaths += !report(o, status, first, at);
    }
    return deaths;
}

static const char usage[] =
    "usage: mutate [--seed N] [--count N] [--limit SECONDS] [--save FILE] [--verbose] DIRECTORY\n"
    "  --seed N         of the first mutant (1); what fails is repeated by --seed THAT --count 1\n"
    "  --count N        mutants (1500)\n"
    "  --limit SECONDS  for one of them (10)\n"
    "  --save FILE      write each there before it is tried\n"
    "  --verbose        a line for each\n"
    "DIRECTORY holds the cases: <case>/model.onnx\n";

static bool read_options(int argc, char **argv, options *o)
{
    *o = (options){.seed = 1, .count = 1500, .limit = 10};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--verbose"))
            o->verbose = true;
        else if (argv[i][0] != '-' && !o->directory)
            o->directory = argv[i];
        else if (!next)
            return false;
        else if (!strcmp(argv[i], "--seed"))
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--count"))
            o->count = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--limit"))
            o->limit = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--save"))
            o->save = argv[++i];
        else
            return false;
    }
    return o->directory != NULL;
}

int main(int argc, char **argv)
{
    options o;
    pool p;
    if (argc == 2 && !strcmp(argv[1], "--help")) {
        fputs(usage, stdout);
        return 0;
    }
    if (!read_options(argc, argv, &o)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!pool_open(o.directory, &p))
        return 2;
    progress *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mutate");
        return 2;
    }
    const uint64_t deaths = try_all(&o, &p, at), wrong = at->ends[TRIAL_WRONG] + deaths;
    printf("%llu refused, %llu failed in a run, %llu ran; %llu without a change\n",
           (unsigned long long)at->ends[TRIAL_REFUSED], (unsigned long long)at->ends[TRIAL_FAILED],
           (unsigned long long)at->ends[TRIAL_RAN], (unsigned long long)at->nothing);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)(o.count - wrong - at->endless),
           (unsigned long long)wrong, (unsigned long long)at->endless);
    munmap(at, sizeof *at);
    pool_release(&p);
    return wrong || !o.count;
}
