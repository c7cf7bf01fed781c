/* SPDX-License-Identifier: Apache-2.0 */
/* Forged plans with right checksums are opened and run on the CPU. Each is refused, fails with a message, or
 * runs. */
#include "tests/differential/draw.h"
#include "tests/forge/forgery.h"
#include "tests/mutate/batch.h"

#include <stdio.h>
#include <string.h>

typedef struct plans {
    char **paths;
    int n;
} plans;

static uint8_t *read_file(grt_arena *arena, const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    uint8_t *bytes = size > 0 ? grt_arena_alloc(arena, (size_t)size) : NULL;
    if (bytes && fread(bytes, 1, (size_t)size, file) != (size_t)size)
        bytes = NULL;
    fclose(file);
    *out_size = bytes ? (size_t)size : 0;
    return bytes;
}

static bool make(void *user, grt_arena *arena, batch_case *out)
{
    static forgery forged;
    const plans *p = user;
    const char *path = p->paths[draw(0, p->n - 1)];
    size_t size = 0;
    const uint8_t *bytes = read_file(arena, path, &size);
    if (!bytes || !forge(arena, bytes, size, &forged)) {
        fprintf(stderr, "forge: %s: not a plan\n", path);
        return false;
    }
    const char *name = strrchr(path, '/');
    *out = (batch_case){
        .name = name ? name + 1 : path, .bytes = forged.bytes, .size = forged.size, .what = forged.what};
    return true;
}

static void usage(FILE *file, const batch *b)
{
    fprintf(file,
            "usage: forge [--seed N] [--count N] [--limit SECONDS] [--save FILE] [--verbose] "
            "PLAN...\n" BATCH_USAGE,
            (unsigned long long)b->count, b->limit);
}

int main(int argc, char **argv)
{
    plans p = {.paths = argv};
    batch b = {.program = "forge",
               .seed = 1,
               .count = 1500,
               .limit = 10,
               .inputs = TRIAL_WILD,
               .make = make,
               .user = &p};
    if (argc == 2 && !strcmp(argv[1], "--help")) {
        usage(stdout, &b);
        return 0;
    }
    if ((p.n = batch_options(&b, argc, argv)) < 0) {
        usage(stderr, &b);
        return 2;
    }
    return batch_run(&b);
}
