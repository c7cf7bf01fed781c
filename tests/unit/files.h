/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories that tests make below /tmp. What goes wrong fails the test. */
#ifndef GRT_TESTS_FILES_H
#define GRT_TESTS_FILES_H

#include <stddef.h>

enum { FILES_NAME = 64 };

/* Before the first test and after the last: the directory that all are made in, which goes with what tests
 * left there, those that failed or ended in the middle too. */
void files_begin(void);
void files_end(void);

/* An empty file, and an empty directory, with names of their own. */
void files_fresh(char out_path[FILES_NAME]);
void files_directory(char out_path[FILES_NAME]);
/* With all that is in it. */
void files_remove(const char *directory);

void files_write(const char *path, const void *data, size_t size);

typedef struct file {
    char *data; /* on a page of its own, as plans want it, with room for one more byte; free() releases it */
    size_t size;
} file;
file files_read(const char *path);

#endif
