/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* cpu_set_t */
#include "src/base/cores.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4608, LINE_SIZE = 4096, NO_LIMIT = INT32_MAX };

/* The first line of a small file; false if there is none. */
static bool read_line(const char *directory, const char *name, char line[LINE_SIZE])
{
    char path[PATH_SIZE];
    const int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    const bool found = fgets(line, LINE_SIZE, file) != NULL;
    fclose(file);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

/* True if one of the first n of `cpus` is in a list such as "0-3,8,10-11". Both ascend. */
static bool any_listed(const char *list, const int32_t *cpus, size_t n)
{
    size_t i = 0;
    while (*list) {
        char *end;
        const long first = strtol(list, &end, 10);
        if (end == list)
            return false;
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        while (i < n && cpus[i] < first)
            i++;
        if (i < n && cpus[i] <= last)
            return true;
        list = *end == ',' ? end + 1 : "";
    }
    return false;
}

/* Processors that share a core are counted with the first of them. */
static bool is_first_of_core(const char *root, const int32_t *cpus, size_t i)
{
    char name[80], line[LINE_SIZE];
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", (int)cpus[i]);
    return !read_line(root, name, line) || !any_listed(line, cpus, i);
}

static int32_t cores_for(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return NO_LIMIT;
    const long long cores = quota / period + (quota % period != 0);
    return cores < NO_LIMIT ? (int32_t)cores : NO_LIMIT;
}

/* Version 2: "max 100000" or "150000 100000". */
static int32_t quota_v2(const char *directory)
{
    char line[LINE_SIZE];
    long long quota, period;
    if (!read_line(directory, "cpu.max", line) || sscanf(line, "%lld %lld", &quota, &period) != 2)
        return NO_LIMIT;
    return cores_for(quota, period);
}

/* Version 1: a file each; a quota of -1 is none. */
static int32_t quota_v1(const char *directory)
{
    char quota[LINE_SIZE], period[LINE_SIZE];
    if (!read_line(directory, "cpu.cfs_quota_us", quota) ||
        !read_line(directory, "cpu.cfs_period_us", period))
        return NO_LIMIT;
    return cores_for(atoll(quota), atoll(period));
}

/* A group is limited by those above it, too. Within a container the path may be the host's: what is not there
 * limits nothing, and the container's own group is at the top then. */
static int32_t quota_upwards(const char *mount, const char *group, int32_t (*quota)(const char *directory))
{
    char path[PATH_SIZE];
    int32_t least = NO_LIMIT;
    const int length = snprintf(path, sizeof path, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof path)
        return NO_LIMIT;
    for (const size_t top = strlen(mount); strlen(path) >= top;) {
        const int32_t found = quota(path);
        least = found < least ? found : least;
        char *slash = strrchr(path + top, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return least;
}

/* True if "cpu" is among controllers such as "cpu,cpuacct". */
static bool has_cpu(const char *controllers)
{
    for (const char *p = controllers; *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, "cpu", 3) && (p[3] == ',' || !p[3]))
            return true;
    return false;
}

/* "0::/group" (version 2) or "4:cpu,cpuacct:/group". */
static int32_t quota_of_line(const char *root, char *line)
{
    char mount[PATH_SIZE];
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return NO_LIMIT;
    *group++ = '\0';
    controllers++;
    if (!*controllers) {
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        return quota_upwards(mount, group, quota_v2);
    }
    if (!has_cpu(controllers))
        return NO_LIMIT;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controllers);
    const int32_t found = quota_upwards(mount, group, quota_v1);
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
    const int32_t other = quota_upwards(mount, group, quota_v1);
    return found < other ? found : other;
}

static int32_t quota(const char *root)
{
    char path[PATH_SIZE], line[LINE_SIZE];
    int32_t least = NO_LIMIT;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const int32_t found = quota_of_line(root, line);
        least = found < least ? found : least;
    }
    if (file)
        fclose(file);
    return least;
}

int32_t grt_cores_of(const char *root, const int32_t *cpus, size_t n)
{
    int32_t cores = 0;
    for (size_t i = 0; i < n; i++)
        cores += is_first_of_core(root, cpus, i);
    const int32_t most = quota(root);
    cores = cores < most ? cores : most;
    return cores < 1 ? 1 : cores;
}

/* The processors of the calling thread's affinity mask; NULL when out of memory or unknown. */
static int32_t *affinity(size_t *out_n)
{
    enum { MOST = 8192 }; /* processors that Linux can be built for */
    cpu_set_t *set = CPU_ALLOC(MOST);
    const size_t size = CPU_ALLOC_SIZE(MOST);
    int32_t *cpus = malloc(MOST * sizeof *cpus);
    *out_n = 0;
    if (set && cpus && sched_getaffinity(0, size, set) == 0)
        for (int32_t i = 0; i < MOST; i++)
            if (CPU_ISSET_S((size_t)i, size, set))
                cpus[(*out_n)++] = i;
    if (set)
        CPU_FREE(set);
    return cpus;
}

int32_t grt_cores_available(void)
{
    size_t n;
    int32_t *cpus = affinity(&n);
    const int32_t cores = cpus ? grt_cores_of("", cpus, n) : 1;
    free(cpus);
    return cores;
}
