/* ArrayFeatureExtractor, Binarizer; Adagrad, Adam, Momentum: what goes element by element of the operators beside neural networks'. */
#include "backends/cuda/each.cuh"

namespace {

#define ML_NUMBERS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE) | GRT_BIT(INT32) | GRT_BIT(INT64))

/* ---- ArrayFeatureExtractor: columns; one that does not exist is clamped, see cuda_clamp_index ---- */

template <typename T> grt_status extract(const grt_run *r, int64_t n, int64_t width)
{
    const T *in = (const T *)r->in[0]->data;
    T *out = (T *)r->out[0]->data;
    const int64_t *columns = (const int64_t *)r->in[1]->data;
    return cuda_each(r, grt_tensor_elements(r->out[0]), [=] __device__(int64_t i) {
        int64_t column = columns[i % n];
        column = column < 0 ? 0 : column >= width ? width - 1 : column;
        out[i] = in[i / n * width + column];
    });
}

grt_status reshape_extractor(grt_reshape *r)
{
    const grt_tensor *in = r->in[0];
    if (in->rank == 0 || (in->dims[in->rank - 1] == 0 && grt_tensor_elements(r->in[1]) > 0))
        return grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT, "the input has no features to take from");
    return GRT_OK;
}

grt_status run_extractor(const grt_run *r)
{
    const int64_t n = grt_tensor_elements(r->in[1]), width = r->in[0]->dims[r->in[0]->rank - 1];
    return CUDA_BY_SIZE(grt_dtype_size(r->in[0]->dtype), extract, r, n, width);
}

/* ---- Binarizer ---- */

grt_status create_binarizer(const grt_kernel_node *node, void **out_state)
{
    float *threshold;
    GRT_TRY(cuda_state(&threshold));
    *threshold = grt_attr_float(node->desc, "threshold", 0);
    *out_state = threshold;
    return GRT_OK;
}

grt_status run_binarizer(const grt_run *r)
{
    const double threshold = (double)*(const float *)r->state;
    const cuda_any in = cuda_any_in(r, 0), out = cuda_any_out(r, 0);
    return cuda_each(r, grt_tensor_elements(r->in[0]), [=] __device__(int64_t i) { out.put(i, in.get(i) > threshold); });
}

/* ---- one step of training ---- */

enum step_kind { ADAGRAD, ADAM, MOMENTUM };

struct step_state {
    step_kind kind;
    bool nesterov;
    double alpha, beta, epsilon, decay, norm, norm_post;
};

grt_status create_step(const grt_kernel_node *node, void **out_state)
{
    step_state *s;
    GRT_TRY(cuda_state(&s));
    const grt_op_desc *desc = node->desc;
    s->kind = !strcmp(desc->op, "Adam") ? ADAM : !strcmp(desc->op, "Momentum") ? MOMENTUM : ADAGRAD;
    s->nesterov = !strcmp(grt_attr_string(desc, "mode", "standard"), "nesterov");
    s->alpha = (double)grt_attr_float(desc, "alpha", 0.9f);
    s->beta = (double)grt_attr_float(desc, "beta", 0.999f);
    s->epsilon = (double)grt_attr_float(desc, "epsilon", 1e-6f);
    s->decay = (double)grt_attr_float(desc, "decay_factor", 0);
    s->norm = (double)grt_attr_float(desc, "norm_coefficient", 0);
    s->norm_post = (double)grt_attr_float(desc, "norm_coefficient_post", 0);
    *out_state = s;
    return GRT_OK;
}

/* Tensors of one step: value, gradient and one or two states. */
int32_t kinds_of(const step_state *s)
{
    return s->kind == ADAM ? 4 : 3;
}

grt_status reshape_step(grt_reshape *r)
{
    const int32_t kinds = kinds_of((const step_state *)r->state), n = (r->n_in - 2) / kinds;
    bool fits = grt_tensor_elements(r->in[0]) == 1 && grt_tensor_elements(r->in[1]) == 1;
    for (int32_t i = 2; fits && i < 2 + n * kinds; i++)
        fits = r->in[i] && grt_tensor_same_type(r->in[i], r->in[2 + (i - 2) % n]);
    return fits ? GRT_OK
                : grt_fail_op(r->desc, GRT_STATUS_INVALID_ARGUMENT,
                              "R and T must be scalars; each tensor, its gradient and its states must have one type and shape");
}

__device__ double step(const step_state &s, double rate, double t, double x, double g, double *first, double *second)
{
    g += s.norm * x;
    if (s.kind == ADAGRAD) {
        *first += g * g;
        return x - rate / (1 + t * s.decay) * g / (sqrt(*first) + s.epsilon);
    }
    if (s.kind == ADAM) {
        if (t > 0) /* states start at zero: undo the bias */
            rate = rate * sqrt(1 - pow(s.beta, t)) / (1 - pow(s.alpha, t));
        *first = s.alpha * *first + (1 - s.alpha) * g;
        *second = s.beta * *second + (1 - s.beta) * g * g;
        return (1 - s.norm_post) * (x - rate * *first / (sqrt(*second) + s.epsilon));
    }
    *first = s.alpha * *first + (t > 0 ? s.beta : 1) * g;
    return x - rate * (s.nesterov ? g + s.alpha * *first : *first);
}

grt_status run_step(const grt_run *r)
{
    const step_state s = *(const step_state *)r->state;
    const int32_t kinds = kinds_of(&s), n = (r->n_in - 2) / kinds;
    const cuda_any rate = cuda_any_in(r, 0), time = cuda_any_in(r, 1);
    for (int32_t k = 0; k < n; k++) {
        const cuda_any x = cuda_any_in(r, 2 + k), g = cuda_any_in(r, 2 + n + k), a = cuda_any_in(r, 2 + 2 * n + k);
        const cuda_any b = kinds == 4 ? cuda_any_in(r, 2 + 3 * n + k) : cuda_any_of(NULL);
        const cuda_any new_x = cuda_any_out(r, k), new_a = cuda_any_out(r, n + k), new_b = kinds == 4 ? cuda_any_out(r, 2 * n + k) : b;
        GRT_TRY(cuda_each(r, grt_tensor_elements(r->in[2 + k]), [=] __device__(int64_t i) {
            double first = a.get(i), second = b ? b.get(i) : 0;
            const double value = step(s, rate.get(0), time.get(0), x.get(i), g.get(i), &first, &second);
            if (new_x)
                new_x.put(i, value);
            if (new_a)
                new_a.put(i, first);
            if (new_b)
                new_b.put(i, second);
        }));
    }
    return GRT_OK;
}

#define FLOATS (GRT_BIT(FLOAT) | GRT_BIT(DOUBLE))
#define STEP(name)                                                                                                     \
    {.domain = "ai.onnx.preview.training", .op = name, .types = {FLOATS, GRT_BIT(INT64), FLOATS, FLOATS},              \
     .create = create_step, .destroy = free, .reshape = reshape_step, .run = run_step}
const grt_kernel_row rows[] = {
    {.domain = "ai.onnx.ml", .op = "ArrayFeatureExtractor", .types = {ML_NUMBERS, GRT_BIT(INT64)},
     .reshape = reshape_extractor, .run = run_extractor},
    {.domain = "ai.onnx.ml", .op = "Binarizer", .types = {ML_NUMBERS}, .flags = GRT_KERNEL_IN_PLACE(0), .create = create_binarizer,
     .destroy = free, .run = run_binarizer},
    STEP("Adagrad"),
    STEP("Adam"),
    STEP("Momentum"),
};

} // namespace
CUDA_KERNELS(features, rows);
