/* SPDX-License-Identifier: Apache-2.0 */
/* How many cores a process may use: affinity, siblings and quotas of a machine that is made of files. */
#include "src/base/cores.h"
#include "tests/unit/suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static void setup(void)
{
    strcpy(root, "/tmp/graphrt-cores-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

/* A file below the root, and the directories on the way there. */
static void put(const char *text, const char *format, ...)
{
    char path[512];
    va_list args;
    const int length = snprintf(path, sizeof path, "%s/", root);
    va_start(args, format);
    vsnprintf(path + length, sizeof path - (size_t)length, format, args);
    va_end(args);
    for (char *slash = path + length; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0777);
    }
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* n cores of two processors each: i and i + n. */
static void put_cores(int n)
{
    char list[32];
    for (int i = 0; i < 2 * n; i++) {
        snprintf(list, sizeof list, "%d,%d\n", i % n, i % n + n);
        put(list, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
    }
}

static int32_t cores(size_t n, const int32_t *cpus)
{
    return grt_cores_of(root, cpus, n);
}
#define CORES(...) cores(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (int32_t[]){__VA_ARGS__})

START_TEST(siblings_share_a_core)
{
    ck_assert_int_eq(CORES(0, 1, 2, 3), 4); /* nothing is known */
    put_cores(4);
    ck_assert_int_eq(CORES(0, 1, 2, 3, 4, 5, 6, 7), 4);
    ck_assert_int_eq(CORES(0, 4), 1); /* the affinity mask has one core */
    ck_assert_int_eq(CORES(3, 5), 2);
    ck_assert_int_eq(CORES(6), 1);
    ck_assert_int_eq(cores(0, NULL), 1);
    put("0-1,4-5\n", "sys/devices/system/cpu/cpu5/topology/thread_siblings_list");
    ck_assert_int_eq(CORES(1, 5), 1); /* ranges */
    ck_assert_int_eq(CORES(2, 5), 2);
}
END_TEST

START_TEST(quota_of_version_2)
{
    put("0::/user/app\n", "proc/self/cgroup");
    put("max 100000\n", "sys/fs/cgroup/user/app/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 4);
    put("150000 100000\n", "sys/fs/cgroup/user/app/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 2); /* rounded up */
    put("1000 100000\n", "sys/fs/cgroup/user/app/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 1);
    put("800000 100000\n", "sys/fs/cgroup/user/app/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 4);
    put("300000 100000\n", "sys/fs/cgroup/user/cpu.max"); /* what is above limits, too */
    ck_assert_int_eq(CORES(0, 1, 2, 3), 3);
    put("200000 100000\n", "sys/fs/cgroup/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 2);
    put("nonsense\n", "sys/fs/cgroup/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 3);
}
END_TEST

START_TEST(quota_in_a_container)
{
    put("0::/docker/not/here\n", "proc/self/cgroup");
    put("200000 100000\n", "sys/fs/cgroup/cpu.max");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 2);
    put("0::/\n", "proc/self/cgroup");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 2);
}
END_TEST

START_TEST(quota_of_version_1)
{
    put("5:cpuset:/a\n4:cpu,cpuacct:/a/b\n0::/\n", "proc/self/cgroup");
    put("-1\n", "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us");
    put("100000\n", "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 4);
    put("250000\n", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us");
    put("100000\n", "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 3);
    put("50000\n", "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us"); /* the other name of the mount */
    put("100000\n", "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us");
    ck_assert_int_eq(CORES(0, 1, 2, 3), 1);
}
END_TEST

UNIT_SUITE(test_cores, setup, teardown, siblings_share_a_core, quota_of_version_2, quota_in_a_container,
           quota_of_version_1)
