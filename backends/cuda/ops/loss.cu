/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, straight from their definitions. A thread per
 * target; the sums by one block, in an order that is the same on every run. A class that does not exist
 * counts as ignored: the device cannot report it. */
#include "backends/cuda/each.cuh"

namespace
{

enum reduction { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

struct loss_state {
    reduction how;
    bool softmax, ignores;
    int64_t ignore;
};

grt_status cuda_loss_create(const grt_kernel_node *node, void **out_state)
{
    loss_state *s;
    GRT_TRY(cuda_state(&s));
    const char *name = grt_attr_string(node->desc, "reduction", "mean");
    s->how = !strcmp(name, "none") ? REDUCE_NONE : !strcmp(name, "sum") ? REDUCE_SUM : REDUCE_MEAN;
    s->softmax = grt_op_is(node->desc, "", "SoftmaxCrossEntropyLoss");
    s->ignores = grt_attr_find(node->desc, "ignore_index") != NULL;
    s->ignore = grt_attr_int(node->desc, "ignore_index", 0);
    *out_state = s;
    return GRT_OK;
}

grt_status cuda_loss_reshape(grt_reshape *r)
{
    const grt_tensor *x = r->in[0], *target = r->in[1], *weights = r->n_in > 2 ? r->in[2] : NULL;
    bool same = x->rank >= 2 && target->rank == x->rank - 1;
    for (int32_t i = 0; same && i < target->rank; i++)
        same = target->dims[i] == x->dims[i ? i + 1 : 0];
    if (!same || (weights && (weights->rank != 1 || weights->dims[0] != x->dims[1]))) {
        char a[GRT_TYPE_TEXT_SIZE], b[GRT_TYPE_TEXT_SIZE];
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                           "input %s and target %s do not fit: N x C x d1 ... and N x d1 ..., with C weights",
                           grt_tensor_text(x, a), grt_tensor_text(target, b));
    }
    /* Loss and weight of each target; targets have 4 bytes or more. */
    r->workspace_bytes = grt_tensor_bytes(target) * 4;
    return GRT_OK;
}

grt_status cuda_loss_run(const grt_run *r)
{
    const loss_state s = *(const loss_state *)r->state;
    const grt_tensor *t = r->in[0];
    const cuda_any x = cuda_any_in(r, 0), target = cuda_any_in(r, 1), weights = cuda_any_in(r, 2),
                   out = cuda_any_out(r, 0), log_prob = cuda_any_out(r, 1);
    const int64_t classes = t->dims[1], inner = grt_dims_product(t->dims, 2, t->rank),
                  n = grt_tensor_elements(r->in[1]);
    double *loss = (double *)r->workspace, *weight = loss + n;
    cuda_watch watch;
    GRT_TRY(cuda_watch_begin(r, "target", &watch));
    GRT_TRY(cuda_each(r, n, [=] __device__(int64_t i) {
        int64_t at = i / inner * classes * inner + i % inner, k = target.whole(i);
        double lse = 0;
        if (s.softmax) {
            double most = -INFINITY, sum = 0;
            for (int64_t c = 0; c < classes; c++)
                most = fmax(most, x.get(at + c * inner));
            for (int64_t c = 0; c < classes && !isinf(most); c++)
                sum += exp(x.get(at + c * inner) - most);
            lse = isinf(most) ? most : most + log(sum);
        }
        if (log_prob)
            for (int64_t c = 0; c < classes; c++)
                log_prob.put(at + c * inner, x.get(at + c * inner) - lse);
        bool counts = !(s.ignores && k == s.ignore) && cuda_check(watch, k, i, 0, classes - 1);
        weight[i] = !counts ? 0 : weights ? weights.get(k) : 1;
        loss[i] = counts ? weight[i] * (lse - x.get(at + k * inner)) : 0;
        if (s.how == REDUCE_NONE && out)
            out.put(i, loss[i]);
    }));
    if (s.how == REDUCE_NONE || !out)
        return GRT_OK;
    return cuda_each_block(r, 1, [=] __device__(int64_t, int thread, int threads) {
        double sum = 0, total = 0;
        for (int64_t i = thread; i < n; i += threads) {
            sum += loss[i];
            total += weight[i];
        }
        sum = cuda_block_sum(sum);
        total = cuda_block_sum(total);
        if (thread == 0)
            out.put(0, s.how == REDUCE_MEAN ? sum / total : sum);
    });
}

#define TARGETS (GRT_BIT(INT32) | GRT_BIT(INT64))
const grt_kernel_row rows[] = {
    {.domain = "",
     .op = "NegativeLogLikelihoodLoss",
     .types = {GRT_SET_FLOATS, TARGETS, GRT_SET_FLOATS},
     .create = cuda_loss_create,
     .destroy = free,
     .reshape = cuda_loss_reshape,
     .run = cuda_loss_run},
    {.domain = "",
     .op = "SoftmaxCrossEntropyLoss",
     .types = {GRT_SET_FLOATS, TARGETS, GRT_SET_FLOATS},
     .create = cuda_loss_create,
     .destroy = free,
     .reshape = cuda_loss_reshape,
     .run = cuda_loss_run},
};

} // namespace
CUDA_KERNELS(loss, rows);
