/* SPDX-License-Identifier: Apache-2.0 */
/* What --precision auto knows of a model while it searches, and the parts of the search. */
#ifndef TOOLS_PRECISION_SEARCH_H
#define TOOLS_PRECISION_SEARCH_H

#include "tools/precision_request.h"

enum { MOST_SAMPLES = 16, MOST_GROUPS = 24 };

/* Layers that change precision together, one after the other in the model. */
typedef struct layer_group {
    char *layers; /* names, separated by commas */
    double flops, error;
    int64_t n;
} layer_group;

typedef struct precision_search {
    auto_precision *a;
    const char *model; /* whose candidates are opened */
    grt_runtime *runtime;
    size_t n_samples, n_outputs;
    float **expected; /* [sample][output] */
    int64_t *counts;
    layer_group groups[MOST_GROUPS];
    size_t n_groups;
    double flops, convolution_flops; /* of all groups, of their convolutions */
    int64_t n_convolutions, tried;
} precision_search;

/* True if the plan is for the CPU. */
bool precision_search_is_for_cpu(const precision_search *s);
/* Prints format % (name, error), unless the caller wants quiet. */
void precision_search_say(const precision_search *s, const char *format, const char *name, double error);

/* Runs the model in float32, keeps what it gives, and finds its groups of layers. False after printing an
 * error; release in any case. */
bool precision_search_begin(precision_search *s);
void precision_search_end(precision_search *s);

/* The error of a candidate (a value of grt_compile_options.precision) over all samples: the largest of its
 * outputs'. False after printing an error. */
bool precision_candidate_measure(precision_search *s, const char *precision, double *out_error);

/* Groups of the model's layers, with their work. False: no memory, or the model says nothing of its steps. */
bool precision_layers_find(precision_search *s, const grt_model *model);
/* A precision: base, then the layers of the first n groups as `other`. malloc'ed; NULL: no memory. */
char *precision_layers_mix(const char *base, const layer_group *groups, size_t n, const char *other);

/* As many layers in 8 bits as the error allows, where the GPUs that are named gain by that. A precision for
 * the rest, malloc'ed, with a->quantised made; NULL: no form is possible, or, with *out_failed, something
 * went wrong, and was printed. */
char *precision_eight_bits_search(precision_search *s, bool *out_failed);

#endif
