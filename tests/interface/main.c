/* SPDX-License-Identifier: Apache-2.0 */
/* usage: interface [--device KIND[:NUMBER]]...
 * Runs the tests of tests.def on these devices; on all that are listed and the mirror, if none is named:
 * those that this machine lacks are skipped. The last line is the totals. */
#include "tests/interface/interface.h"

#include "backends/registry.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    verdict (*run)(const subject *);
} tests[] = {
#define X(name) {#name, name},
#include "tests/interface/tests.def"
#undef X
};
enum { N_TESTS = sizeof tests / sizeof *tests };

static int totals[3]; /* by verdict */

static unsigned char byte_at(size_t i, unsigned seed)
{
    return (unsigned char)(seed ? (i * 131 + (i >> 8) * 7 + seed * 29 + 1) : 0);
}

void make_pattern(void *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)data)[i] = byte_at(i, seed);
}

bool is_pattern(const void *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)data)[i] != byte_at(i, seed))
            return false;
    return true;
}

unsigned char *host_block(grt_device *device, size_t bytes, unsigned seed)
{
    void *data;
    if (grt_device_alloc_pinned(device, bytes, &data) != GRT_OK)
        return NULL;
    make_pattern(data, bytes, seed);
    return data;
}

unsigned char *device_block(grt_device *device, size_t bytes, unsigned seed)
{
    void *data = NULL, *stream = NULL;
    unsigned char *host = host_block(device, bytes, seed);
    bool ok = host && grt_device_alloc(device, bytes, &data) == GRT_OK &&
              grt_device_stream_create(device, 0, &stream) == GRT_OK &&
              grt_device_upload(device, data, host, bytes, stream) == GRT_OK &&
              grt_device_wait(device, stream) == GRT_OK;
    grt_device_stream_release(device, stream);
    grt_device_free_pinned(device, host);
    if (!ok)
        grt_device_free(device, data);
    return ok ? data : NULL;
}

static void run_all(const char *name, const subject *s)
{
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    for (int i = 0; i < N_TESTS; i++) {
        const verdict v = tests[i].run(s);
        printf("%s: %s on %s\n", words[v], tests[i].name, name);
        fflush(stdout);
        totals[v]++;
    }
}

static void fail_device(const char *name, verdict v)
{
    printf("%s: %s: %s\n", v == SKIPPED ? "skipped" : "FAILED", name, grt_last_error());
    totals[v]++;
}

static void run_device(const char *name, verdict if_missing)
{
    char kind[64];
    const char *colon = strchr(name, ':');
    const int32_t index = colon ? (int32_t)strtol(colon + 1, NULL, 10) : 0;
    subject s = {0};
    snprintf(kind, sizeof kind, "%.*s", (int)(colon ? colon - name : (ptrdiff_t)strlen(name)), name);
    const grt_backend *backend = grt_backend_find(kind);
    const int32_t n = backend ? backend->device_count() : 0;
    if (n == 0) {
        fail_device(name, if_missing);
        return;
    }
    if (backend->device_open(index, &s.device) != GRT_OK ||
        (n > 1 && backend->device_open(index ? index - 1 : 1, &s.other) != GRT_OK))
        fail_device(name, FAILED);
    else
        run_all(name, &s);
    grt_device_close(s.other);
    grt_device_close(s.device);
}

int main(int argc, char **argv)
{
    setenv("GRAPHRT_MIRROR_MEMORY", "67108864", 0); /* of the mirror's devices, which could have any amount */
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--device") != 0 || i + 1 == argc) {
            fprintf(stderr, "usage: interface [--device KIND[:NUMBER]]...\n");
            return 2;
        }
        run_device(argv[i + 1], FAILED);
    }
    if (argc == 1) {
        for (size_t i = 0; grt_backend_name(i); i++)
            run_device(grt_backend_name(i), SKIPPED);
        run_device("mirror:1", FAILED);
    }
    printf("%d passed, %d failed, %d skipped\n", totals[PASSED], totals[FAILED], totals[SKIPPED]);
    return totals[FAILED] || !totals[PASSED] ? EXIT_FAILURE : EXIT_SUCCESS;
}
