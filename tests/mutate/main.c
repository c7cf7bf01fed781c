/* SPDX-License-Identifier: Apache-2.0 */
/* Semantically wrong models: nodes of the conformance cases with one to three changes are opened, optimised
 * and run on the CPU. Each is refused, fails with a message, or runs. */
#include "backends/registry.h"
#include "tests/mirror/mirror.h"
#include "tests/mutate/batch.h"
#include "tests/mutate/mutation.h"

#include <stdio.h>
#include <string.h>

static bool make(void *user, grt_arena *arena, batch_case *out)
{
    static mutation m;
    const pool *p = user;
    const pool_case *from = &p->cases[mutation_pick(p->n_cases)];
    m.pool = p;
    m.arena = arena;
    m.model = pool_unpack(arena, from->bytes, from->size);
    if (!m.model)
        return false;
    mutate(&m);
    const size_t size = onnx__model_proto__get_packed_size(m.model);
    uint8_t *bytes = grt_arena_alloc(arena, size);
    if (!bytes)
        return false;
    onnx__model_proto__pack(m.model, bytes);
    *out = (batch_case){.name = from->name, .bytes = bytes, .size = size, .what = m.what};
    return true;
}

static void usage(FILE *file, const batch *b)
{
    fprintf(
        file,
        "usage: mutate [--seed N] [--count N] [--limit SECONDS] [--target KIND] [--save FILE] [--verbose] "
        "DIRECTORY\n" BATCH_USAGE "DIRECTORY holds the cases: <case>/model.onnx\n",
        (unsigned long long)b->count, b->limit);
}

int main(int argc, char **argv)
{
    pool p;
    batch b = {.program = "mutate", .seed = 1, .count = 1500, .limit = 10, .make = make, .user = &p};
    if (argc == 2 && !strcmp(argv[1], "--help")) {
        usage(stdout, &b);
        return 0;
    }
    if (batch_options(&b, argc, argv) != 1) {
        usage(stderr, &b);
        return 2;
    }
    int32_t n;
    if (grt_backend_register(&grt_backend_mirror) != GRT_OK ||
        grt_device_count(b.target ? b.target : "cpu", &n) != GRT_OK) {
        fprintf(stderr, "mutate: %s\n", grt_last_error());
        return 2;
    }
    if (!pool_open(argv[0], &p))
        return 2;
    const int status = batch_run(&b);
    pool_release(&p);
    return status;
}
