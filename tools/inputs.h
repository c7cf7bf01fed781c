/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into a model: --input and --shape, files, made-up data. */
#ifndef TOOLS_INPUTS_H
#define TOOLS_INPUTS_H

#include <graphrt/graphrt.h>

typedef struct input_spec {
    char *name;         /* of the input */
    const char *source; /* file, "random" or "zeros"; NULL: not said */
    bool has_shape;
    int32_t rank;
    int64_t dims[GRT_MAX_RANK];
} input_spec;

typedef struct input_specs {
    size_t n;
    input_spec *items;
} input_specs;

/* One --input or --shape. False after printing an error with it. */
bool inputs_add_source(input_specs *specs, const char *text);
bool inputs_add_shape(input_specs *specs, const char *text);
void inputs_release(input_specs *specs);

typedef enum input_fill { FILL_RANDOM, FILL_ZEROS, FILL_RAMP } input_fill;

/* A tensor of the input's type. Unknown dims are 1 unless `shape` (may be NULL) gives them. RANDOM: floats
 * uniform in [0, 1), integers and booleans 0 or 1, from `seed`; RAMP: arange(n) / n. Strings are empty,
 * sequences and maps (whose keys are of `keys`) too, optionals hold nothing. False after printing what is
 * wrong. */
bool inputs_make(const grt_io_info *info, grt_dtype keys, const input_spec *shape, input_fill fill,
                 uint64_t seed, grt_value **out_value);

/* Values for all inputs of the model: as the specs say, else their defaults (NULL), else random. sources, one
 * per input, gets where each comes from: "random", "default", a file... The caller releases values in any
 * case. False after printing an error: unknown names too. */
bool inputs_create(const grt_model *model, const input_specs *specs, uint64_t seed, grt_value **values,
                   const char **sources);
/* The same, bound to the context. */
bool inputs_bind(const grt_model *model, grt_context *context, const input_specs *specs, uint64_t seed,
                 grt_value **values, const char **sources);
void inputs_release_values(grt_value **values, size_t n);

#endif
