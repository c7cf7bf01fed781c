/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds files, and a number of changed copies of each, to a fuzz target: what make check can do without
 * libFuzzer. The changes come from a fixed seed, so that a failure comes again; a case that crashes was
 * written to CRASH-FILE before it was tried.
 *
 *     replay CHANGES CRASH-FILE FILE...
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 1 << 20 };

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

/* One change in place; returns the new size. */
static size_t change(uint8_t *data, size_t size)
{
    static const uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x08, 0x12, 0x0a};
    if (size == 0)
        return 0;
    size_t at = random_below(size), n = 1 + random_below(size - at < 32 ? size - at : 32);
    switch (random_below(6)) {
    case 0:
        data[at] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 1:
        data[at] = telling[random_below(sizeof telling)];
        return size;
    case 2:
        memset(data + at, telling[random_below(sizeof telling)], n);
        return size;
    case 3: /* copy a piece to another place */
        memmove(data + random_below(size - n + 1), data + at, n);
        return size;
    case 4: /* cut a piece out */
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    default:
        return at; /* truncate */
    }
}

static size_t read_file(const char *path, uint8_t *data)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    size_t size = fread(data, 1, MAX_SIZE, file);
    fclose(file);
    return size;
}

/* Exact-sized copy, so that a sanitizer sees a read past its end. */
static void feed(const uint8_t *data, size_t size, const char *crash_file)
{
    FILE *file = fopen(crash_file, "wb");
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    static uint8_t original[MAX_SIZE], changed[MAX_SIZE];
    if (argc < 4) {
        fprintf(stderr, "usage: replay CHANGES CRASH-FILE FILE...\n");
        return 2;
    }
    long changes = atol(argv[1]);
    for (int i = 3; i < argc; i++) {
        size_t size = read_file(argv[i], original);
        feed(original, size, argv[2]);
        for (long k = 0; k < changes; k++) {
            memcpy(changed, original, size);
            size_t left = change(changed, size);
            for (uint64_t more = random_below(4); more > 0; more--)
                left = change(changed, left);
            feed(changed, left, argv[2]);
        }
    }
    remove(argv[2]);
    printf("%d files, %ld inputs\n", argc - 3, (long)(argc - 3) * (changes + 1));
    return EXIT_SUCCESS;
}
