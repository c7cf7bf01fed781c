/* SPDX-License-Identifier: Apache-2.0 */
/* Opening devices, their memory, page-locked memory, and what tells a device from others. */
#include "tests/interface/interface.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

verdict devices_are_numbered(const subject *s)
{
    const grt_backend *backend = s->device->backend;
    const int32_t n = backend->device_count();
    grt_device *device = NULL;
    EXPECT(n > 0 && s->device->index >= 0 && s->device->index < n, "%d of %d", s->device->index, n);
    REFUSED(backend->device_open(n, &device), GRT_STATUS_DEVICE);
    EXPECT(strstr(grt_last_error(), backend->name), "%s", grt_last_error());
    REFUSED(backend->device_open(-1, &device), GRT_STATUS_DEVICE);
    DONE(backend->device_open(s->device->index, &device)); /* the same one again */
    EXPECT(grt_device_is_host(device) == !backend->traits.own_memory, "the traits say otherwise");
    grt_device_close(device);
    return PASSED;
}

enum { BLOCKS = 5 };

verdict memory_is_aligned_and_apart(const subject *s)
{
    static const size_t sizes[BLOCKS] = {0, 1, 255, 4097, (size_t)1 << 20};
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        void *data;
        DONE(grt_device_alloc(s->device, sizes[i], &data));
        EXPECT(data && (uintptr_t)data % 256 == 0, "%zu bytes at %p", sizes[i], data);
        DONE(grt_device_check_pointer(s->device, data));
        if (sizes[i])
            DONE(grt_device_check_pointer(s->device, (char *)data + sizes[i] - 1));
        blocks[i] = data;
        for (int k = 0; k < i; k++)
            EXPECT(blocks[k] + sizes[k] <= blocks[i] || blocks[i] + sizes[i] <= blocks[k], "%d in %d", i, k);
    }
    for (int i = 0; i < BLOCKS; i++)
        grt_device_free(s->device, blocks[i]);
    grt_device_free(s->device, NULL);
    return PASSED;
}

static verdict still_works(const subject *s)
{
    unsigned char *block = device_block(s->device, 1000, 3);
    EXPECT(block, "%s", grt_last_error());
    grt_device_free(s->device, block);
    return PASSED;
}

verdict too_much_memory_is_refused(const subject *s)
{
    void *data = NULL;
    REFUSED(grt_device_alloc(s->device, SIZE_MAX, &data), GRT_STATUS_OUT_OF_MEMORY);
    /* More than any GPU has; a host may promise all that it can address. */
    const size_t most = grt_device_is_host(s->device) ? SIZE_MAX / 4 : (size_t)1 << 46;
    REFUSED(grt_device_alloc(s->device, most, &data), GRT_STATUS_OUT_OF_MEMORY);
    REFUSED(grt_device_alloc_pinned(s->device, SIZE_MAX, &data), GRT_STATUS_OUT_OF_MEMORY);
    return still_works(s);
}

/* All there is, in ever smaller blocks. The host's memory is left to others. */
verdict memory_runs_out_and_comes_back(const subject *s)
{
    enum { MOST = 4096 };
    static void *blocks[MOST];
    int n = 0, before = 0;
    if (grt_device_is_host(s->device))
        SKIP("the host's memory is left to others");
    for (int round = 0; round < 2; round++) {
        grt_status status = GRT_OK;
        for (size_t bytes = (size_t)1 << 40; bytes >= (size_t)1 << 20 && n < MOST; bytes /= 2)
            while (n < MOST && (status = grt_device_alloc(s->device, bytes, &blocks[n])) == GRT_OK)
                n++;
        REFUSED(status, GRT_STATUS_OUT_OF_MEMORY);
        EXPECT(strstr(grt_last_error(), "free"), "%s", grt_last_error()); /* it says how much is left */
        for (int i = 0; i < n; i++)
            grt_device_free(s->device, blocks[i]);
        EXPECT(n > 0 && (round == 0 || n >= before - 8), "%d blocks, then %d", before, n);
        before = n;
        n = 0;
    }
    return still_works(s);
}

verdict pinned_memory(const subject *s)
{
    enum { PAGE = 4096, BYTES = 5 * PAGE };
    unsigned char *own = aligned_alloc(PAGE, BYTES), *given = host_block(s->device, BYTES, 5);
    unsigned char *back = host_block(s->device, BYTES, 0), *block = device_block(s->device, BYTES, 1);
    void *stream;
    EXPECT(own && given && back && block, "%s", grt_last_error());
    make_pattern(own, BYTES, 9);
    DONE(grt_device_stream_create(s->device, 0, &stream));
    DONE(grt_device_pin(s->device, own, BYTES));
    for (int i = 0; i < 2; i++) {
        DONE(grt_device_upload(s->device, block, i ? own : given, BYTES, stream));
        DONE(grt_device_download(s->device, back, block, BYTES, stream));
        DONE(grt_device_wait(s->device, stream));
        SAME(back, BYTES, i ? 9U : 5U);
    }
    grt_device_unpin(s->device, own);
    DONE(grt_device_upload(s->device, block, own, BYTES, stream)); /* as any memory */
    DONE(grt_device_wait(s->device, stream));
    grt_device_stream_release(s->device, stream);
    grt_device_free_pinned(s->device, given);
    grt_device_free_pinned(s->device, back);
    grt_device_free_pinned(s->device, NULL);
    grt_device_free(s->device, block);
    free(own);
    return PASSED;
}

/* "gpu=...;sm=...;driver=...;", the same each time; without the driver, that of its description. */
verdict identity(const subject *s)
{
    const grt_backend *backend = s->device->backend;
    grt_text key = {0}, again = {0}, described = {0}, name = {0}, properties = {0};
    grt_device *copy = NULL;
    int32_t sm = 0;
    grt_device_identify(s->device, &key);
    grt_device_identify(s->device, &again);
    EXPECT(!strcmp(grt_text_get(&key), grt_text_get(&again)), "%s, then %s", grt_text_get(&key),
           grt_text_get(&again));
    EXPECT(!grt_device_chooses(s->device) == !key.size, "'%s'", grt_text_get(&key));
    EXPECT(!key.size || key.data[key.size - 1] == ';', "'%s'", grt_text_get(&key));
    if (backend->describe) {
        const grt_status status = backend->describe(s->device, &name, &sm, &properties);
        if (status == GRT_STATUS_DEVICE)
            SKIP(grt_last_error()); /* a library is missing */
        DONE(status);
        const grt_device_description d = {
            .name = grt_text_get(&name), .sm = sm, .properties = grt_text_get(&properties)};
        DONE(backend->open_description(&d, &copy));
        grt_device_identify(copy, &described);
        const char *driver = strstr(grt_text_get(&described), "driver=");
        EXPECT(driver && !strncmp(grt_text_get(&key), grt_text_get(&described),
                                  (size_t)(driver - grt_text_get(&described))),
               "%s is described as %s", grt_text_get(&key), grt_text_get(&described));
        void *data;
        REFUSED(grt_device_alloc(copy, 1, &data), GRT_STATUS_UNSUPPORTED);
        grt_device_close(copy);
    }
    grt_text *texts[] = {&key, &again, &described, &name, &properties};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        grt_text_release(texts[i]);
    return PASSED;
}
