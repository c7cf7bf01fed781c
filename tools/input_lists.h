/* SPDX-License-Identifier: Apache-2.0 */
/* Directories as sources of inputs: the model runs once with each file, in the order of their names. Or
 * "@FILE": the files that its lines name, in their order. */
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
    size_t *numbers;  /* their places before input_lists_keep; NULL: it was not called */
} input_lists;

/* False after printing an error: directories of one model have equally many files. Release in any case.
 */
bool input_lists_open(input_lists *l, const input_specs *specs);
void input_lists_release(input_lists *l);

/* Leave files index, index + count, ... that is not `done`; n_files may become 0. False after printing an
 * error. */
bool input_lists_keep(input_lists *l, size_t index, size_t count, const bool *done);
/* The place of run `index` among all files. */
size_t input_lists_number(const input_lists *l, size_t index);
/* The file that tells run `index` from others; NULL without directories. */
const char *input_lists_file(const input_lists *l, size_t index);
/* As inputs_create, for run `index`. */
bool input_lists_create(const input_lists *l, const grt_model *model, size_t index, uint64_t seed,
                        grt_value **values, const char **sources);

#endif
