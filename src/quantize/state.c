/* SPDX-License-Identifier: Apache-2.0 */
/* See state.h. The file is of this machine's byte order and of one version of the library. */
#include "src/quantize/state.h"

#include "src/base/file_map.h"
#include "src/base/output.h"

#include <string.h>
#include <xxhash.h>

typedef struct state_header {
    char magic[8];
    uint64_t key, n, group, sample, checksum; /* of the statistics behind it */
} state_header;

static const char magic[8] = "GRTSTAT1";

static uint64_t checksum_of(const void *list, size_t n)
{
    return XXH3_64bits(list, n * sizeof(statistics));
}

void state_read(calibration_state *s, const char *path)
{
    grt_file_map map;
    state_header h;
    if (grt_file_map_open(path, &map) != GRT_OK)
        return;
    const size_t bytes = s->n * sizeof *s->list;
    if (map.size == sizeof h + bytes) {
        memcpy(&h, map.data, sizeof h);
        const char *list = map.data + sizeof h;
        if (!memcmp(h.magic, magic, sizeof magic) && h.key == s->key && h.n == s->n &&
            h.checksum == checksum_of(list, s->n)) {
            memcpy(s->list, list, bytes);
            s->group = h.group;
            s->sample = h.sample;
        }
    }
    grt_file_map_close(&map);
}

grt_status state_write(const calibration_state *s, const char *path)
{
    grt_output o;
    state_header h = {.key = s->key, .n = s->n, .group = s->group, .sample = s->sample};
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = checksum_of(s->list, s->n);
    grt_status status = grt_output_open(&o, path);
    if (status == GRT_OK)
        status = grt_output_write(&o, &h, sizeof h);
    if (status == GRT_OK)
        status = grt_output_write(&o, s->list, s->n * sizeof *s->list);
    if (status == GRT_OK)
        status = grt_output_commit(&o);
    grt_output_close(&o);
    return status;
}
