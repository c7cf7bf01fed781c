/* SPDX-License-Identifier: Apache-2.0 */
/* Weights onto many devices: whoever comes when, however small the ring, everybody ends up with the same
 * bytes, which were read once; and what fails on one device does not hold up the others. The mirror's copies
 * are asynchronous, so that a ThreadSanitizer build finds what was not waited for. */
#include "src/session/upload.h"

#include "tests/mirror/mirror.h"
#include "tests/unit/tables.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 8, PIECES = 37 };

typedef struct image {
    size_t total;
    char *bytes; /* what devices are to hold, but for the gaps between pieces */
    grt_upload_piece pieces[PIECES];
    size_t n;
} image;

static image make_image(size_t total)
{
    image im = {.total = total, .bytes = malloc(total + 1)};
    unsigned random = 7;
    memset(im.bytes, 0, total);
    for (size_t i = 0; i < PIECES; i++) {
        const size_t from = total * i / PIECES, to = total * (i + 1) / PIECES, gap = (to - from) / 9;
        if (to - gap == from)
            continue;
        for (size_t k = from; k < to - gap; k++)
            im.bytes[k] = (char)((random = random * 1664525u + 1013904223u) >> 24);
        im.pieces[im.n++] = (grt_upload_piece){im.bytes + from, from, to - gap - from};
    }
    return im;
}

static bool has_image(const void *block, const image *im)
{
    for (size_t i = 0; i < im->n; i++)
        if (memcmp((const char *)block + im->pieces[i].offset, im->pieces[i].data, im->pieces[i].bytes) != 0)
            return false;
    return true;
}

typedef struct device_thread {
    grt_upload *upload;
    grt_device *device;
    void *block;
    grt_upload_stats stats;
    grt_status status;
    int delay_ms;
    size_t total;
} device_thread;

static void *come(void *arg)
{
    device_thread *t = arg;
    nanosleep(&(struct timespec){.tv_nsec = t->delay_ms * 1000000L}, NULL);
    t->status = grt_device_alloc(t->device, t->total, &t->block);
    if (t->status == GRT_OK)
        t->status = grt_upload_run(t->upload, t->device, t->block, &t->stats);
    return NULL;
}

static void run_all(const image *im, device_thread *threads, int n, int delay_ms,
                    const grt_upload_options *options, grt_upload **out_upload)
{
    pthread_t ids[DEVICES];
    ck_assert_int_eq(grt_upload_create(im->pieces, im->n, im->total, n, NULL, options, out_upload), GRT_OK);
    for (int i = 0; i < n; i++) {
        grt_device *device = threads[i].device;
        if (!device)
            ck_assert_int_eq(grt_backend_mirror.device_open(i, &device), GRT_OK);
        threads[i] = (device_thread){
            .upload = *out_upload, .device = device, .delay_ms = i * delay_ms, .total = im->total};
        ck_assert_int_eq(pthread_create(&ids[i], NULL, come, &threads[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
}

static void release_all(device_thread *threads, int n, grt_upload *upload)
{
    grt_upload_release(upload);
    for (int i = 0; i < n; i++) {
        grt_device_free(threads[i].device, threads[i].block);
        grt_device_close(threads[i].device);
    }
}

static void check_one(size_t total, int n, int delay_ms, grt_upload_options options)
{
    image im = make_image(total);
    device_thread threads[DEVICES] = {{0}};
    grt_upload *upload;
    run_all(&im, threads, n, delay_ms, &options, &upload);
    size_t from_host = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(threads[i].status, GRT_OK);
        ck_assert(has_image(threads[i].block, &im));
        ck_assert_uint_eq(threads[i].stats.host_bytes + threads[i].stats.peer_bytes, total);
        from_host += threads[i].stats.host_bytes;
        if (options.direct)
            ck_assert_uint_eq(threads[i].stats.peer_bytes, 0);
    }
    /* each island reads everything once */
    ck_assert_uint_eq(from_host, options.direct ? total * (size_t)n : total * (n > 4 ? 2 : 1));
    release_all(threads, n, upload);
    free(im.bytes);
}

START_TEST(everybody_gets_everything)
{
    static const size_t totals[] = {1, 255, 300000, (size_t)9 << 20};
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
        for (int n = 1; n <= DEVICES; n += n == 1 ? 2 : 5) {
            check_one(totals[t], n, 0, (grt_upload_options){.readers = 4});
            check_one(totals[t], n, 0, (grt_upload_options){.readers = 1, .direct = true});
            check_one(totals[t], n, 3, (grt_upload_options){.readers = 3, .max_pinned = 1});
            check_one(totals[t], n, 2, (grt_upload_options){.direct = true});
        }
    check_one(0, 3, 0, (grt_upload_options){.readers = 2});
}
END_TEST

/* A device whose copies fail after a while. */
static device_tables failing;
static int copies_left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool used_up(void)
{
    pthread_mutex_lock(&lock);
    const bool up = copies_left-- <= 0;
    pthread_mutex_unlock(&lock);
    return up;
}

static grt_status fail_upload(grt_device *device, void *dst, const void *src, size_t bytes, void *stream)
{
    return used_up() ? grt_fail(GRT_STATUS_DEVICE, "it broke")
                     : failing.before->copies->upload(device, dst, src, bytes, stream);
}

static grt_status fail_peer(grt_device *device, void *dst, grt_device *from, const void *src, size_t bytes,
                            void *stream)
{
    return used_up() ? grt_fail(GRT_STATUS_DEVICE, "it broke")
                     : failing.before->peers->copy(device, dst, from, src, bytes, stream);
}

START_TEST(a_device_that_breaks)
{
    image im = make_image((size_t)8 << 20);
    for (int after = 0; after < 12; after += 2) {
        device_thread threads[DEVICES] = {{0}};
        grt_upload *upload;
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(grt_backend_mirror.device_open(i, &threads[i].device), GRT_OK);
        device_tables_take(&failing, threads[1].device);
        failing.copies.upload = fail_upload;
        failing.peers.copy = fail_peer;
        copies_left = after;
        run_all(&im, threads, 4, after % 2, &(grt_upload_options){.readers = 3}, &upload);
        for (int i = 0; i < 4; i++) {
            if (i == 1) {
                ck_assert_int_eq(threads[i].status, GRT_STATUS_DEVICE);
                continue;
            }
            ck_assert_int_eq(threads[i].status, GRT_OK);
            ck_assert(has_image(threads[i].block, &im));
        }
        release_all(threads, 4, upload);
    }
    free(im.bytes);
}
END_TEST

typedef struct patience {
    atomic_bool cancel;
    grt_upload *_Atomic upload;
    atomic_int left;
} patience;

static void lose(void *user, size_t bytes)
{
    patience *p = user;
    (void)bytes;
    if (atomic_fetch_sub(&p->left, 1) == 1) {
        atomic_store(&p->cancel, true);
        if (atomic_load(&p->upload))
            grt_upload_wake(atomic_load(&p->upload));
    }
}

START_TEST(cancelled)
{
    image im = make_image((size_t)8 << 20);
    for (int after = 1; after < 40; after += 6) {
        patience p = {.left = after};
        device_thread threads[DEVICES] = {{0}};
        pthread_t ids[DEVICES];
        grt_upload *upload;
        const grt_upload_options options = {.readers = 4, .cancel = &p.cancel, .moved = lose, .user = &p};
        ck_assert_int_eq(grt_upload_create(im.pieces, im.n, im.total, DEVICES, NULL, &options, &upload),
                         GRT_OK);
        atomic_store(&p.upload, upload);
        for (int i = 0; i < DEVICES; i++) {
            grt_device *device;
            ck_assert_int_eq(grt_backend_mirror.device_open(i, &device), GRT_OK);
            threads[i] = (device_thread){.upload = upload, .device = device, .total = im.total};
            pthread_create(&ids[i], NULL, come, &threads[i]);
        }
        for (int i = 0; i < DEVICES; i++) {
            pthread_join(ids[i], NULL);
            ck_assert(threads[i].status == GRT_OK || threads[i].status == GRT_STATUS_CANCELLED);
        }
        release_all(threads, DEVICES, upload);
    }
    free(im.bytes);
}
END_TEST

Suite *suite_test_upload(void)
{
    Suite *suite = suite_create("upload");
    TCase *tests = tcase_create("upload");
    tcase_add_test(tests, everybody_gets_everything);
    tcase_add_test(tests, a_device_that_breaks);
    tcase_add_test(tests, cancelled);
    suite_add_tcase(suite, tests);
    return suite;
}
