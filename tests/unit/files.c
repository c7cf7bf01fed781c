/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* stpcpy */
#include "tests/unit/files.h"

#include "src/plan/format.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[FILES_NAME] = "/tmp";

void files_begin(void)
{
    strcpy(root, "/tmp/graphrt-unit-XXXXXX");
    if (!mkdtemp(root) || chmod(root, 0755) != 0) { /* tests that give up their rights go through it */
        perror(root);
        exit(EXIT_FAILURE);
    }
}

void files_end(void)
{
    char command[FILES_NAME + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        perror(command);
}

static void name_one(char out_path[FILES_NAME])
{
    static const char name[] = "/test-XXXXXX";
    ck_assert_uint_lt(strlen(root) + sizeof name, FILES_NAME);
    stpcpy(stpcpy(out_path, root), name);
}

void files_fresh(char out_path[FILES_NAME])
{
    name_one(out_path);
    const int fd = mkstemp(out_path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

void files_directory(char out_path[FILES_NAME])
{
    name_one(out_path);
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
