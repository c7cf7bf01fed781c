/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/gemm_launch.cuh"
#include "backends/cuda/gemm_run.h"

/* Here and not beside the others' launches: no other object has these kernels. */
grt_status cuda_gemm_run_strict(const cuda_gemm *p, const cuda_gemm_args *args, cudaStream_t stream)
{
    switch (p->form) {
#define GEMM_CASE(NUMBER, GROUPS, COLUMNS, STAGES, BLOCKS, SPLITS)                                       \
    case NUMBER:                                                                                         \
        return gemm_launch_form<float, gemm_form<GROUPS, COLUMNS, STAGES, BLOCKS, true>, SPLITS, false>( \
            p, args, stream);
        GEMM_STRICT_FORMS(GEMM_CASE)
#undef GEMM_CASE
    default:
        return GRT_OK;
    }
}
