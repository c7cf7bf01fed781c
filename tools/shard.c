/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/shard.h"

#include "tools/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What launchers tell each process, those that may run inside another's first. torchrun and others set the
 * last row. Slurm has these variables in batch scripts, too, which are no step and run once: only steps have
 * SLURM_STEP_NUM_TASKS. */
static const struct {
    const char *name, *index, *count, *local_index, *local_count;
} launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
    {"the environment", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

/* A number at the beginning of the text, as in Slurm's "4(x2)"; false if there is none. */
static bool leading_number(const char *text, size_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    *out = (size_t)n;
    return errno == 0 && n < UINT32_MAX;
}

static bool find_launcher(shard *out)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!leading_number(getenv(launchers[i].index), &out->index) ||
            !leading_number(getenv(launchers[i].count), &out->count))
            continue;
        out->launcher = launchers[i].name;
        if (!leading_number(getenv(launchers[i].local_index), &out->local_index) ||
            !leading_number(getenv(launchers[i].local_count), &out->local_count))
            out->local_index = 0, out->local_count = 1;
        return true;
    }
    return false;
}

static bool read_fraction(const char *text, shard *out)
{
    const char *slash = strchr(text, '/');
    out->launcher = "--shard";
    return slash && strspn(text, "0123456789") == (size_t)(slash - text) &&
           slash[1 + strspn(slash + 1, "0123456789")] == 0 && leading_number(text, &out->index) &&
           leading_number(slash + 1, &out->count);
}

bool shard_parse(const char *text, shard *out)
{
    const bool automatic = !strcmp(text, "auto");
    *out = (shard){.local_count = 1};
    if (automatic ? !find_launcher(out) : !read_fraction(text, out)) {
        if (!automatic) {
            tool_error("--shard: '%s' is neither auto nor I/N, as in 0/4", text);
            return false;
        }
        *out = (shard){.count = 1, .local_count = 1, .launcher = "no launcher"};
    }
    if (out->index < out->count)
        return true;
    tool_error("--shard: %s says that this is process %zu of %zu; they count from 0", out->launcher,
               out->index, out->count);
    return false;
}

void shard_devices(const shard *s, device_list *devices)
{
    size_t kept = 0;
    for (size_t i = 0; i < devices->n; i++) {
        /* with less devices than processes, some share one */
        const bool mine = s->local_count <= devices->n ? i % s->local_count == s->local_index
                                                       : s->local_index % devices->n == i;
        if (mine)
            devices->names[kept++] = devices->names[i];
        else
            free(devices->names[i]);
    }
    devices->n = kept;
}
