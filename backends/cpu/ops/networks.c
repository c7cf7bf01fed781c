/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt::Networks: neighbouring networks are computed side by side, as their weights lie. */
#include "backends/cpu/act.h"
#include "backends/cpu/cpu.h"
#include "backends/shared/networks.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = 64 }; /* networks at once */

typedef float lines[GRT_NETWORKS_WIDTH][SIDE];

/* Networks from..from+n of one row. */
typedef struct piece {
    const grt_run *run;
    const grt_networks *networks;
    int64_t row, count, from, n, lane;
} piece;

static void networks_load(const piece *p, lines h)
{
    const int32_t k = p->networks->width[0];
    const float *x = (const float *)p->run->in[0]->data + (p->row * p->count + p->from) * k;
    for (int64_t j = 0; j < p->n; j++)
        for (int32_t i = 0; i < k; i++)
            h[i][j] = x[j * k + i];
}

static void networks_store(const piece *p, lines h)
{
    const int32_t k = p->networks->width[p->networks->n_layers];
    float *y = (float *)p->run->out[0]->data + (p->row * p->count + p->from) * k;
    for (int64_t j = 0; j < p->n; j++)
        for (int32_t i = 0; i < k; i++)
            y[j * k + i] = h[i][j];
}

static void add_products(const piece *p, int32_t l, int32_t o, lines h, float *sum)
{
    const int32_t in = p->networks->width[l], out = p->networks->width[l + 1];
    const float *w = (const float *)p->run->in[grt_networks_weights(l)]->data + p->from;
    for (int32_t i = 0; i < in; i++) {
        const float *line = w + ((int64_t)i * out + o) * p->lane, *x = h[i];
        for (int64_t j = 0; j < p->n; j++)
            sum[j] += x[j] * line[j];
    }
}

static void compute_layer(const piece *p, int32_t l, lines in, lines out)
{
    const grt_tensor *bias = grt_run_in(p->run, grt_networks_bias(l));
    for (int32_t o = 0; o < p->networks->width[l + 1]; o++) {
        if (bias)
            memcpy(out[o], (const float *)bias->data + o * p->lane + p->from, (size_t)p->n * sizeof(float));
        else
            memset(out[o], 0, (size_t)p->n * sizeof(float));
        add_products(p, l, o, in, out[o]);
        grt_act_apply(p->networks->act[l], out[o], p->n);
    }
}

static void compute(const piece *p)
{
    lines h[2];
    networks_load(p, h[0]);
    for (int32_t l = 0; l < p->networks->n_layers; l++)
        compute_layer(p, l, h[l % 2], h[1 - l % 2]);
    networks_store(p, h[p->networks->n_layers % 2]);
}

static grt_status networks_run(const grt_run *run)
{
    const grt_tensor *x = run->in[0];
    const int64_t rows = x->dims[0], count = x->dims[1], pieces = (count + SIDE - 1) / SIDE;
    if (run->out[0]->data == NULL || rows * pieces == 0)
        return GRT_OK;
#pragma omp parallel for num_threads(run->threads) if (rows * count * 64 > CPU_GRAIN)
    for (int64_t i = 0; i < rows * pieces; i++) {
        const int64_t from = i % pieces * SIDE, left = count - from;
        const piece p = {.run = run,
                         .networks = run->state,
                         .row = i / pieces,
                         .count = count,
                         .from = from,
                         .n = left < SIDE ? left : SIDE,
                         .lane = run->in[grt_networks_weights(0)]->dims[2]};
        compute(&p);
    }
    return GRT_OK;
}

static const grt_kernel_row rows[] = {
    {.domain = "graphrt",
     .op = "Networks",
     .types = {GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT), GRT_BIT(FLOAT)},
     .supports = grt_networks_supports,
     .create = grt_networks_create,
     .destroy = free,
     .run = networks_run},
};
CPU_KERNELS(networks, rows);
