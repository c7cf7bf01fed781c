/* SPDX-License-Identifier: Apache-2.0 */
/* --shard: which part of a list of inputs this process works on, when a launcher (MPI, Slurm) has started it
 * many times. */
#ifndef TOOLS_SHARD_H
#define TOOLS_SHARD_H

#include "tools/devices.h"

typedef struct shard {
    size_t index, count;             /* count 0: there is no --shard */
    size_t local_index, local_count; /* among the processes of this machine */
    const char *launcher;            /* who said so; static */
} shard;

/* "I/N", or "auto": what the launcher's environment says; without one, the only shard. False after printing
 * an error. */
bool shard_parse(const char *text, shard *out);
/* Leave the devices that are this process's: processes of a machine share them out. */
void shard_devices(const shard *s, device_list *devices);

#endif
