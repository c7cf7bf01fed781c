/* SPDX-License-Identifier: Apache-2.0 */
// A model family: its name, its size options, and how to build it. One file defines one or two families;
// main.c lists them all.
#ifndef GRT_MODELS_FAMILY_H
#define GRT_MODELS_FAMILY_H

#include "builder.h"

struct gen_option {
    const char *name, *help;
    int64_t value, low, high; // default and range
    int64_t symbol;           // GEN_BATCH or GEN_SEQUENCE where "sym" is a valid value too, otherwise 0
};

enum { GEN_MAX_OPTIONS = 12 };

struct gen_family {
    const char *name, *summary;
    enum gen_dtype dtype; // default
    // Says what is wrong with a combination of values, NULL when all is well. May be absent.
    const char *(*check)(const int64_t *values);
    // Receives the values of options, in their order.
    void (*build)(struct gen *g, const int64_t *values);
    struct gen_option options[GEN_MAX_OPTIONS]; // ends at a NULL name
};

#define GEN_BATCH_OPTION                              \
    {                                                 \
        "batch", "batch size", 1, 1, 65536, GEN_BATCH \
    }

extern const struct gen_family gen_resnet50, gen_mobilenet_v2, gen_densenet121, gen_bert, gen_vit_b16,
    gen_parallel_fcn, gen_deep_ffn, gen_phi3_mini, gen_llama_stack, gen_chain;

#endif
