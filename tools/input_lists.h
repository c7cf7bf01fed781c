/* SPDX-License-Identifier: Apache-2.0 */
/* Directories as sources of inputs: the model runs once with each file, in the order of their names. */
#ifndef TOOLS_INPUT_LISTS_H
#define TOOLS_INPUT_LISTS_H

#include "tools/inputs.h"

typedef struct file_list {
    char **paths; /* NULL: the input's source is no directory */
    size_t n;
} file_list;

typedef struct input_lists {
    const input_specs *specs;
    file_list *lists; /* one for each spec */
    size_t n_files;   /* of each directory; 0: there are none */
} input_lists;

/* False after printing what is wrong: directories of one model have equally many files. Release in any case.
 */
bool input_lists_open(input_lists *l, const input_specs *specs);
void input_lists_release(input_lists *l);

/* The file that tells run `index` from others; NULL without directories. */
const char *input_lists_file(const input_lists *l, size_t index);
/* As inputs_create, for run `index`. */
bool input_lists_create(const input_lists *l, const grt_model *model, size_t index, uint64_t seed,
                        grt_value **values, const char **sources);

#endif
