/* SPDX-License-Identifier: Apache-2.0 */
/* See lt_search.h. Sums are split over blocks only where the parts are added in the type of the arithmetic,
 * in an order that stays. */
#include "backends/cuda/lt_search.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHECKS = 200000, MOST_KINDS = 128, MOST_SIZES = 1024, MOST_OPTIONS = 64 };

static const int32_t splits[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
enum { N_SPLITS = sizeof splits / sizeof *splits };

typedef struct search {
    const cuda_lt_product *p;
    bool (*each)(void *user, const cublasLtMatmulAlgo_t *algo);
    void *user;
    int32_t checks;
    bool over;
} search;

bool cuda_lt_takes(const cuda_lt_product *p, const cublasLtMatmulAlgo_t *algo, size_t *out_workspace)
{
    cublasLtMatmulHeuristicResult_t result;
    memset(&result, 0, sizeof result);
    if (p->blas->cublasLtMatmulAlgoCheck(p->blas->handle, p->desc, p->first, p->second, p->result, p->result,
                                         algo, &result) != CUBLAS_STATUS_SUCCESS ||
        result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > p->workspace_cap)
        return false;
    *out_workspace = result.workspaceSize;
    return true;
}

static void lt_search_consider(search *s, const cublasLtMatmulAlgo_t *algo)
{
    size_t workspace;
    s->over = s->over || s->checks++ == MOST_CHECKS;
    if (!s->over && cuda_lt_takes(s->p, algo, &workspace))
        s->over = !s->each(s->user, algo);
}

static bool lt_search_set(const search *s, cublasLtMatmulAlgo_t *algo,
                          cublasLtMatmulAlgoConfigAttributes_t name, const void *value, size_t size)
{
    return s->p->blas->cublasLtMatmulAlgoConfigSetAttribute(algo, name, value, size) == CUBLAS_STATUS_SUCCESS;
}

static int32_t capability(const search *s, const cublasLtMatmulAlgo_t *algo,
                          cublasLtMatmulAlgoCapAttributes_t name)
{
    int32_t value = 0;
    size_t written;
    return s->p->blas->cublasLtMatmulAlgoCapGetAttribute(algo, name, &value, sizeof value, &written) ==
                   CUBLAS_STATUS_SUCCESS
               ? value
               : 0;
}

/* A list of sizes; one that says "undefined" if the algorithm has none. */
static size_t lt_search_sizes(const search *s, const cublasLtMatmulAlgo_t *algo,
                              cublasLtMatmulAlgoCapAttributes_t name, uint32_t out[MOST_SIZES])
{
    size_t written = 0;
    out[0] = 0;
    if (s->p->blas->cublasLtMatmulAlgoCapGetAttribute(algo, name, out, MOST_SIZES * sizeof *out, &written) !=
            CUBLAS_STATUS_SUCCESS ||
        written < sizeof *out)
        return 1;
    return written / sizeof *out;
}

static bool splits_sums(const search *s, const cublasLtMatmulAlgo_t *algo)
{
    return capability(s, algo, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) &&
           capability(s, algo, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK) &
               CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

static bool set_split(const search *s, cublasLtMatmulAlgo_t *algo, int32_t n)
{
    const uint32_t scheme = n > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
    return lt_search_set(s, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &n, sizeof n) &&
           lt_search_set(s, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme);
}

/* The algorithm with its sum in 1 to 16 parts. */
static void lt_search_split(search *s, const cublasLtMatmulAlgo_t *algo)
{
    const size_t n = splits_sums(s, algo) ? N_SPLITS : 1;
    for (size_t i = 0; i < n && !s->over; i++) {
        cublasLtMatmulAlgo_t other = *algo;
        if (set_split(s, &other, splits[i]))
            lt_search_consider(s, &other);
    }
}

static void vary(search *s, const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t name,
                 uint32_t end)
{
    for (uint32_t value = 0; value < end && !s->over; value++) {
        cublasLtMatmulAlgo_t other = *algo;
        if (lt_search_set(s, &other, name, &value, sizeof value))
            lt_search_consider(s, &other);
    }
}

static void vary_cluster(search *s, const cublasLtMatmulAlgo_t *algo)
{
    for (uint16_t shape = 0; shape < CUBLASLT_CLUSTER_SHAPE_END && !s->over; shape++) {
        cublasLtMatmulAlgo_t other = *algo;
        if (lt_search_set(s, &other, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &shape, sizeof shape))
            lt_search_consider(s, &other);
    }
}

static void relatives(search *s, const cublasLtMatmulAlgo_t *algo)
{
    const int32_t options = capability(s, algo, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX);
    lt_search_split(s, algo);
    vary(s, algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
         capability(s, algo, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) ? 2 : 0);
    vary_cluster(s, algo);
    vary(s, algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
         options > 0 ? (uint32_t)(options < MOST_OPTIONS ? options + 1 : MOST_OPTIONS) : 0);
}

static void lt_search_sweep(search *s, const cublasLtMatmulAlgo_t *algo)
{
    uint32_t *tiles = malloc(2 * MOST_SIZES * sizeof *tiles);
    if (!tiles)
        return;
    uint32_t *stages = tiles + MOST_SIZES;
    const size_t n_tiles = lt_search_sizes(s, algo, CUBLASLT_ALGO_CAP_TILE_IDS, tiles),
                 n_stages = lt_search_sizes(s, algo, CUBLASLT_ALGO_CAP_STAGES_IDS, stages);
    for (size_t t = 0; t < n_tiles; t++)
        for (size_t k = 0; k < n_stages && !s->over; k++) {
            cublasLtMatmulAlgo_t other = *algo;
            if (lt_search_set(s, &other, CUBLASLT_ALGO_CONFIG_TILE_ID, &tiles[t], sizeof *tiles) &&
                lt_search_set(s, &other, CUBLASLT_ALGO_CONFIG_STAGES_ID, &stages[k], sizeof *stages))
                lt_search_split(s, &other);
        }
    free(tiles);
}

void cuda_lt_search(const cuda_lt_product *p, const cublasLtMatmulHeuristicResult_t *seeds, int n_seeds,
                    bool (*each)(void *user, const cublasLtMatmulAlgo_t *algo), void *user)
{
    search s = {.p = p, .each = each, .user = user};
    int ids[MOST_KINDS], n = 0;
    for (int i = 0; i < n_seeds && !s.over; i++)
        if (seeds[i].state == CUBLAS_STATUS_SUCCESS)
            relatives(&s, &seeds[i].algo);
    if (p->blas->cublasLtMatmulAlgoGetIds(p->blas->handle, p->compute, p->scale, p->first_type,
                                          p->second_type, p->type, p->type, MOST_KINDS, ids,
                                          &n) != CUBLAS_STATUS_SUCCESS)
        return;
    for (int i = 0; i < n && !s.over; i++) {
        cublasLtMatmulAlgo_t algo;
        if (p->blas->cublasLtMatmulAlgoInit(p->blas->handle, p->compute, p->scale, p->first_type,
                                            p->second_type, p->type, p->type, ids[i],
                                            &algo) == CUBLAS_STATUS_SUCCESS)
            lt_search_sweep(&s, &algo);
    }
}
