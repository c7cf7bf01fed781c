/* SPDX-License-Identifier: Apache-2.0 */
/* The strided copy engine against a loop over all indices. */
#include "backends/cpu/move.h"
#include "tests/unit/suite.h"

#include <string.h>

enum { ROOM = 1 << 16, GUARD = 0xa5 };

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* A random box: destination dense in a random order of axes, source strided, mirrored or repeated. */
static void random_move(cpu_move *m, int64_t *out_first, uint32_t *seed)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    static const int64_t dims[] = {1, 2, 3, 4, 8, 9, 16, 33};
    int32_t rank = (int32_t)(next_random(seed) % 6);
    int64_t to = 1, from = 1, total = 1;
    *m = (cpu_move){.size = sizes[next_random(seed) % 5]};
    *out_first = 0;
    for (int32_t k = 0; k < rank; k++) {
        int64_t dim = dims[next_random(seed) % 8];
        if (total * dim > 2048)
            dim = 1;
        total *= dim;
        cpu_move_axis(m, dim, to, from);
        to *= dim;
        switch (next_random(seed) % 5) {
        case 0: /* repeated */
            m->from[k] = 0;
            break;
        case 1: /* mirrored */
            *out_first += from * (dim - 1);
            m->from[k] = -from;
            from *= dim;
            break;
        case 2: /* every second */
            m->from[k] = 2 * from;
            from *= 2 * dim;
            break;
        default:
            from *= dim;
        }
    }
    for (int32_t k = rank - 1; k > 0; k--) { /* shuffle */
        int32_t other = (int32_t)(next_random(seed) % (uint32_t)(k + 1));
        int64_t dim = m->dims[k], t = m->to[k], f = m->from[k];
        m->dims[k] = m->dims[other], m->to[k] = m->to[other], m->from[k] = m->from[other];
        m->dims[other] = dim, m->to[other] = t, m->from[other] = f;
    }
}

static void naive_move(const cpu_move *m, int32_t axis, char *dst, const char *src)
{
    if (axis == m->rank) {
        memcpy(dst, src, m->size);
        return;
    }
    for (int64_t i = 0; i < m->dims[axis]; i++)
        naive_move(m, axis + 1, dst + i * m->to[axis] * (int64_t)m->size,
                   src + i * m->from[axis] * (int64_t)m->size);
}

START_TEST(moves_like_a_loop)
{
    char *src = malloc(8 * ROOM), *found = malloc(ROOM), *expected = malloc(ROOM);
    uint32_t seed = 7;
    for (int i = 0; i < 8 * ROOM; i++)
        src[i] = (char)next_random(&seed);
    for (int round = 0; round < 3000; round++) {
        cpu_move m;
        int64_t first;
        random_move(&m, &first, &seed);
        memset(found, GUARD, ROOM);
        memset(expected, GUARD, ROOM);
        naive_move(&m, 0, expected, src + first * (int64_t)m.size);
        cpu_move_run(&m, found, src + first * (int64_t)m.size, 1 + round % 3);
        ck_assert_msg(!memcmp(found, expected, ROOM), "round %d", round);
    }
    free(src);
    free(found);
    free(expected);
}
END_TEST

/* Large enough for several threads and for every branch of the blocked transpose. */
START_TEST(moves_large_transposes)
{
    enum { A = 3, B = 131, C = 517 };
    uint32_t *src = malloc(sizeof(uint32_t) * A * B * C), *dst = malloc(sizeof(uint32_t) * A * B * C);
    for (uint32_t i = 0; i < A * B * C; i++)
        src[i] = i;
    for (int32_t threads = 1; threads <= 3; threads++) {
        cpu_move m = {.size = 4};
        cpu_move_axis(&m, A, B * C, B * C);
        cpu_move_axis(&m, C, B, 1);
        cpu_move_axis(&m, B, 1, C);
        cpu_move_run(&m, dst, src, threads);
        for (uint32_t a = 0; a < A; a++)
            for (uint32_t c = 0; c < C; c++)
                for (uint32_t b = 0; b < B; b++)
                    ck_assert_uint_eq(dst[(a * C + c) * B + b], (a * B + b) * C + c);
    }
    free(src);
    free(dst);
}
END_TEST

START_TEST(fills_and_copies_whole_ranges)
{
    enum { N = 300001 };
    uint16_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), value = 0x1234;
    for (int32_t threads = 1; threads <= 4; threads++) {
        memset(a, 0, N * sizeof *a);
        memset(b, 0, N * sizeof *b);
        cpu_fill(a, &value, sizeof value, N - 1, threads);
        cpu_copy(b, a, (N - 1) * sizeof *a, threads);
        for (int i = 0; i < N - 1; i++)
            ck_assert(a[i] == value && b[i] == value);
        ck_assert(a[N - 1] == 0 && b[N - 1] == 0);
    }
    free(a);
    free(b);
}
END_TEST

UNIT_SUITE(test_move, NULL, NULL, moves_like_a_loop, moves_large_transposes, fills_and_copies_whole_ranges)
