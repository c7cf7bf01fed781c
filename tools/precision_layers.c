/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* open_memstream */
#include "tools/precision_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool precision_layers_is_one(const char *op)
{
    static const char *const ops[] = {"Conv",
                                      "ConvTranspose",
                                      "MatMul",
                                      "Gemm",
                                      "Attention",
                                      "WMatMul",
                                      "graphrt::Conv",
                                      "graphrt::MatMul",
                                      "graphrt::WMatMul",
                                      "graphrt::Attention",
                                      "graphrt::ConvTranspose"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(op, ops[i]))
            return true;
    return false;
}

static bool precision_layers_is_convolution(const char *op)
{
    return !strcmp(op, "Conv") || !strcmp(op, "graphrt::Conv");
}

/* The first of the nodes of a step, as a pattern that fits it alone: signs that patterns or lists have a use
 * for fit any character. */
static bool precision_layers_add(layer_group *g, const grt_step_info *step)
{
    const size_t size = strcspn(step->name, "+"), before = g->layers ? strlen(g->layers) : 0;
    if (!size)
        return true;
    char *longer = realloc(g->layers, before + size + 3);
    if (!longer)
        return false;
    g->layers = longer;
    snprintf(longer + before, size + 3, "%s%.*s", before ? "," : "", (int)size, step->name);
    for (char *p = longer + before + (before != 0); *p; p++)
        if (strchr("*[]\\,=", *p))
            *p = '?';
    g->flops += step->flops;
    g->n++;
    return true;
}

bool precision_layers_find(precision_search *s, const grt_model *model)
{
    grt_model_info info = {.struct_size = sizeof info};
    int64_t layers = 0, seen = 0;
    if (grt_model_get_info(model, &info) != GRT_OK)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < info.steps; i++) {
            grt_step_info step = {.struct_size = sizeof step};
            if (grt_model_step(model, (size_t)i, &step) != GRT_OK)
                return false;
            if (!precision_layers_is_one(step.op) || !*step.name)
                continue;
            if (!pass) {
                layers++;
                continue;
            }
            const int64_t groups = layers < MOST_GROUPS ? layers : MOST_GROUPS, at = seen++ * groups / layers;
            s->n_groups = (size_t)at + 1;
            s->flops += step.flops;
            if (precision_layers_is_convolution(step.op)) {
                s->convolution_flops += step.flops;
                s->n_convolutions++;
            }
            if (!precision_layers_add(&s->groups[at], &step))
                return false;
        }
    return true;
}

/* base, then the layers of some groups as `other`. */
char *precision_layers_mix(const char *base, const layer_group *groups, size_t n, const char *other)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    fputs(base, file);
    for (size_t i = 0; i < n; i++)
        for (const char *p = groups[i].layers; p && *p; p += strcspn(p, ","), p += *p == ',')
            fprintf(file, ",%.*s=%s", (int)strcspn(p, ","), p, other);
    return fclose(file) == 0 ? text : (free(text), NULL);
}
