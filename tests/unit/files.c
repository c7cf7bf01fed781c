/* SPDX-License-Identifier: Apache-2.0 */
/* Making, reading and removing what tests leave in /tmp. */
#include "tests/unit/files.h"

#include "src/plan/format.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "/tmp/graphrt-test-XXXXXX";

void files_fresh(char out_path[FILES_NAME])
{
    strcpy(out_path, name);
    const int fd = mkstemp(out_path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

void files_directory(char out_path[FILES_NAME])
{
    strcpy(out_path, name);
    ck_assert_ptr_nonnull(mkdtemp(out_path));
}

void files_remove(const char *directory)
{
    char command[FILES_NAME + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}

void files_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

file files_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    file out = {0};
    void *data = NULL;
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    out.size = (size_t)ftell(f);
    rewind(f);
    ck_assert_int_eq(posix_memalign(&data, PLAN_PAGE, out.size + 1), 0);
    out.data = data;
    ck_assert_uint_eq(fread(out.data, 1, out.size, f), out.size);
    fclose(f);
    return out;
}
