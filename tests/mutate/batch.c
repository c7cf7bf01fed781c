/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/batch.h"

#include "tests/differential/draw.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* BATCH: cases of a child, and so how far a leak is from what made it. MOST_SAID: bytes that are shown of
 * what a child wrote to stderr. MOST_MEMORY: of a child's addresses. */
enum { BATCH = 250, MOST_SAID = 6000 };
#define MOST_MEMORY ((rlim_t)3 << 30)

/* Shared with the child: read after it has ended, normally or not. */
typedef struct progress {
    uint64_t next; /* case, from 0 */
    uint64_t ends[TRIAL_WRONG + 1], nothing;
    const char *volatile stage; /* "" between cases */
    char name[200], what[600];
} progress;

/* GCC defines a macro, clang has a feature. */
#if defined(__has_feature)
#define HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#else
#define HAS_ADDRESS_SANITIZER 0
#endif

#if HAS_ADDRESS_SANITIZER
/* Refuses large allocations, as limits of address space do not work with shadow memory. */
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

/* Whoever asks for a file wants what a case was that ended its process: without the file there is no case. */
static void save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file && fwrite(bytes, 1, size, file) == size && !fclose(file))
        return;
    perror(path);
    exit(2);
}

static const char *end_text(trial_end end)
{
    static const char *const texts[] = {
        [TRIAL_REFUSED] = "refused", [TRIAL_FAILED] = "failed", [TRIAL_RAN] = "ran", [TRIAL_WRONG] = "FAIL"};
    return texts[end];
}

/* An exact copy, so that a sanitizer sees a read past its end. */
static void *make_case(const batch *b, uint64_t seed, progress *at, size_t *out_size)
{
    batch_case made = {.what = ""};
    grt_arena *arena = grt_arena_create();
    draw_from(seed);
    if (!arena || !b->make(b->user, arena, &made))
        exit(2);
    snprintf(at->name, sizeof at->name, "%s", made.name);
    snprintf(at->what, sizeof at->what, "%s", made.what);
    void *bytes = malloc(made.size + !made.size);
    if (!bytes)
        exit(2);
    memcpy(bytes, made.bytes, made.size);
    *out_size = made.size;
    grt_arena_release(arena);
    return bytes;
}

static void try_case(const batch *b, grt_runtime *runtime, uint64_t i, progress *at)
{
    char why[1000];
    size_t size;
    void *bytes = make_case(b, b->seed + i, at, &size);
    if (b->save)
        save(b->save, bytes, size);
    alarm(b->limit);
    const trial_end end = try_model(runtime, bytes, size, b->target, b->inputs, &at->stage, why, sizeof why);
    alarm(0);
    at->stage = "";
    free(bytes);
    at->ends[end]++;
    at->nothing += !*at->what;
    if (b->verbose || end == TRIAL_WRONG)
        printf("%s seed %llu: %s: %s: %s\n", end_text(end), (unsigned long long)(b->seed + i), at->name,
               at->what, why);
    fflush(stdout); /* the next one may be the end */
}

/* The child's life. */
static void try_some(const batch *b, progress *at)
{
    grt_runtime *runtime;
    limit_memory();
    if (grt_runtime_create(&runtime) != GRT_OK)
        exit(2);
    const uint64_t end = at->next + BATCH < b->count ? at->next + BATCH : b->count;
    while (at->next < end)
        try_case(b, runtime, at->next++, at);
    grt_runtime_release(runtime);
}

/* Whether the child that left `at` ended well. */
static bool report(const batch *b, int status, uint64_t first, progress *at)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    const unsigned long long seed = (unsigned long long)(b->seed + at->next - 1);
    if (!*at->stage)
        printf("FAIL seeds %llu to %llu: exit status %d after them: a leak?\n",
               (unsigned long long)(b->seed + first), seed, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("FAIL seed %llu: %s: %s: no end of '%s' within %u s\n", seed, at->name, at->what, at->stage,
               b->limit);
    else
        printf("FAIL seed %llu: %s: %s: %s %d in '%s'\n", seed, at->name, at->what,
               WIFSIGNALED(status) ? "signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), at->stage);
    return false;
}

/* The beginning of what a child wrote to stderr, such as a sanitizer's report, behind the line that names the
 * case: a caller that keeps the last lines of stdout alone has both. The file is empty then. */
static void show_said(FILE *said)
{
    static char text[MOST_SAID + 1];
    rewind(said);
    const size_t n = fread(text, 1, MOST_SAID, said);
    text[n] = 0;
    if (n)
        printf("%s%s%s", text, text[n - 1] == '\n' ? "" : "\n", n == MOST_SAID ? "...\n" : "");
    rewind(said);
    if (ftruncate(fileno(said), 0))
        perror("ftruncate");
}

static uint64_t try_all(const batch *b, FILE *said, progress *at)
{
    uint64_t deaths = 0;
    while (at->next < b->count) {
        const uint64_t first = at->next;
        fflush(stdout);
        at->stage = "";
        const pid_t child = fork();
        if (child < 0) {
            perror(b->program);
            exit(2);
        }
        if (child == 0) {
            dup2(fileno(said), STDERR_FILENO);
            try_some(b, at);
            exit(0);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        deaths += !report(b, status, first, at);
        show_said(said);
    }
    return deaths;
}

int batch_run(const batch *b)
{
    progress *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *said = at != MAP_FAILED ? tmpfile() : NULL;
    if (!said) {
        perror(b->program);
        return 2;
    }
    const uint64_t deaths = try_all(b, said, at), wrong = at->ends[TRIAL_WRONG] + deaths;
    printf("%llu refused, %llu failed in a run, %llu ran; %llu without a change\n",
           (unsigned long long)at->ends[TRIAL_REFUSED], (unsigned long long)at->ends[TRIAL_FAILED],
           (unsigned long long)at->ends[TRIAL_RAN], (unsigned long long)at->nothing);
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(b->count - wrong),
           (unsigned long long)wrong);
    fclose(said);
    munmap(at, sizeof *at);
    return wrong || !b->count;
}

int batch_options(batch *b, int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--verbose"))
            b->verbose = true;
        else if (argv[i][0] != '-')
            argv[n++] = argv[i];
        else if (!next)
            return -1;
        else if (!strcmp(argv[i], "--seed"))
            b->seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--count"))
            b->count = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--limit"))
            b->limit = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--target"))
            b->target = argv[++i];
        else if (!strcmp(argv[i], "--save"))
            b->save = argv[++i];
        else
            return -1;
    }
    return n ? n : -1;
}
