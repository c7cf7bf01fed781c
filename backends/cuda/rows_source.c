/* SPDX-License-Identifier: Apache-2.0 */
/* See rows_source.h. The expressions are those of pointwise.def, the words in them those of
 * pointwise_language.h. */
#include "backends/cuda/rows_source.h"

#include "backends/cuda/generated_source.h"

/* Change it when the same key would give other code. */
enum { GENERATOR = 2 };

enum {
    WARP = 32,
    MOST_THREADS = 1024, /* of a row */
    EACH = 8,            /* elements of a row that a thread has, unless there are no more threads */
    MOST_KEPT = 64       /* registers of a thread for what waits for later phases */
};

/* ---- shapes ---- */

/* Dim k of the result's shape, without the row's. */
static int64_t dim_of(const grt_tensor *in, const grt_tensor *out, int32_t k)
{
    const int32_t at = k - (out->rank - in->rank);
    return at < 0 ? 1 : in->dims[at];
}

/* The dims in front of the row as groups; false if there are too many. Bits of groups that are not there are
 * those of the outermost, so that the same code serves more dims. */
static bool join_outer(const grt_tensor *const *in, int32_t n_in, const grt_tensor *out, int32_t outer,
                       cuda_rows_form *form)
{
    uint32_t bits[CUDA_ROWS_GROUPS] = {0};
    int64_t sizes[CUDA_ROWS_GROUPS];
    int32_t n = 0;
    for (int32_t k = outer - 1; k >= 0; k--) {
        uint32_t found = 0;
        if (out->dims[k] == 1)
            continue;
        for (int32_t i = 0; i < n_in; i++) {
            if (dim_of(in[i], out, k) != 1 && dim_of(in[i], out, k) != out->dims[k])
                return false;
            found |= (uint32_t)(dim_of(in[i], out, k) != 1) << i;
        }
        if (n && bits[n - 1] == found) {
            sizes[n - 1] *= out->dims[k];
            continue;
        }
        if (n == CUDA_ROWS_GROUPS)
            return false;
        sizes[n] = out->dims[k];
        bits[n++] = found;
    }
    for (int32_t g = 0; g < CUDA_ROWS_GROUPS; g++) {
        if (g + 1 < CUDA_ROWS_GROUPS)
            form->sizes[g] = g < n ? (uint32_t)sizes[g] : 1;
        for (int32_t i = 0; i < n_in; i++)
            if (n && bits[g < n ? g : n - 1] >> i & 1)
                form->place[i] |= (uint8_t)cuda_rows_has_group(g);
    }
    return true;
}

static bool find_length(const grt_tensor *const *in, int32_t n_in, const grt_tensor *out, int32_t outer,
                        cuda_rows_form *form)
{
    int64_t length = 1;
    for (int32_t k = outer; k < out->rank; k++) {
        int64_t dim = 1;
        for (int32_t i = 0; i < n_in; i++)
            dim = dim_of(in[i], out, k) != 1 ? dim_of(in[i], out, k) : dim;
        length *= dim;
        if (length < 1 || length > ROWS_MAX_LENGTH)
            return false;
    }
    for (int32_t i = 0; i < n_in; i++) {
        int64_t row = 1;
        for (int32_t k = outer; k < out->rank; k++)
            row *= dim_of(in[i], out, k);
        if (row != 1 && row != length)
            return false;
        form->place[i] |= row == length ? CUDA_ROWS_HAS_ROW : 0;
    }
    form->length = (int32_t)length;
    return true;
}

/* Vectors of the row that a thread has. */
static int32_t turns_of(const cuda_rows_form *form)
{
    return (form->length / form->vector + form->threads - 1) / form->threads;
}

bool cuda_rows_form_of(const rows_program *program, int32_t row_dims, const grt_tensor *const *in,
                       const grt_tensor *out, cuda_rows_form *form)
{
    const int32_t outer = out->rank - row_dims;
    const int64_t rows = outer < 0 ? 0 : grt_dims_product(out->dims, 0, outer);
    *form = (cuda_rows_form){.n_in = program->n_in, .out_dtype = out->dtype, .threads = 1};
    if (row_dims < 1 || rows < 1 || rows >= (int64_t)1 << 30 ||
        !find_length(in, program->n_in, out, outer, form) ||
        !join_outer(in, program->n_in, out, outer, form) || rows * form->length >= (int64_t)1 << 31)
        return false;
    form->rows = (uint32_t)rows;
    form->vector = form->length % CUDA_ROWS_VECTOR ? 1 : CUDA_ROWS_VECTOR;
    while (form->threads < WARP && turns_of(form) > 1)
        form->threads *= 2;
    while (form->threads < MOST_THREADS && turns_of(form) * form->vector > EACH)
        form->threads *= 2;
    for (int32_t i = 0; i < program->n_in; i++)
        form->in_dtype[i] = in[i]->dtype;
    return turns_of(form) * form->vector * program->n_kept <= MOST_KEPT;
}

uint32_t cuda_rows_block(const cuda_rows_form *form)
{
    return (uint32_t)(form->threads <= WARP ? CUDA_ROWS_BLOCK : form->threads);
}

/* Rows of a block. */
static uint32_t rows_of_block(const cuda_rows_form *form)
{
    return form->threads <= WARP ? (uint32_t)(CUDA_ROWS_BLOCK / form->threads) : 1;
}

uint32_t cuda_rows_grid(const cuda_rows_form *form)
{
    return (form->rows + rows_of_block(form) - 1) / rows_of_block(form);
}

void cuda_rows_key(const grt_op_desc *desc, const cuda_rows_form *form, grt_text *key)
{
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    grt_text_add(key, "generator=%d;length=%d;in=", GENERATOR, form->length);
    for (int32_t i = 0; i < form->n_in; i++)
        grt_text_add(key, "%s%s %d", i ? "," : "", grt_dtype_name(form->in_dtype[i]), form->place[i]);
    grt_text_add(key, ";out=%s;program=", grt_dtype_name(form->out_dtype));
    for (size_t i = 0; i < n; i += 4)
        grt_text_add(key, "%s%s %lld %lld %lld", i ? "," : "",
                     rows_is_fold(program[i]) ? grt_rows_fold_name(rows_fold_of(program[i]))
                                              : grt_pointwise_info((int32_t)program[i])->name,
                     (long long)program[i + 1], (long long)program[i + 2], (long long)program[i + 3]);
    grt_text_add(key, ";constants=");
    for (size_t i = 0; i < n_constants; i++)
        grt_text_add(key, "%s%08x", i ? "," : "", cuda_bits_of(constants[i]));
    grt_text_add(key, ";");
}

/* ---- source ---- */

/* Folds: a maximum or minimum keeps a NaN. A row's other threads have their part in registers of their own
 * until it is shared. */
static const char folds[] =
    "struct Sum { typedef T A; static __device__ __forceinline__ A start() { return 0; }\n"
    "    static __device__ __forceinline__ A join(A a, A b) { return a + b; } };\n"
    "struct Product { typedef double A; static __device__ __forceinline__ A start() { return 1; }\n"
    "    static __device__ __forceinline__ A join(A a, A b) { return a * b; } };\n"
    "struct Max { typedef T A; static __device__ __forceinline__ A start() { return -INFINITY; }\n"
    "    static __device__ __forceinline__ A join(A a, A b) { return b > a || b != b ? b : a; } };\n"
    "struct Min { typedef T A; static __device__ __forceinline__ A start() { return INFINITY; }\n"
    "    static __device__ __forceinline__ A join(A a, A b) { return b < a || b != b ? b : a; } };\n"
    "template <typename F, int THREADS> __device__ __forceinline__ T fold(typename F::A x)\n{\n"
    "    typedef typename F::A A;\n"
    "#pragma unroll\n    for (int lane = (THREADS < 32 ? THREADS : 32) / 2; lane; lane /= 2)\n"
    "        x = F::join(x, __shfl_xor_sync(0xffffffffu, x, lane));\n"
    "    if (THREADS > 32) {\n"
    "        __shared__ A parts[(THREADS + 31) / 32];\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x % 32 == 0)\n            parts[threadIdx.x / 32] = x;\n"
    "        __syncthreads();\n"
    "        x = parts[0];\n"
    "#pragma unroll\n        for (int warp = 1; warp < THREADS / 32; warp++)\n"
    "            x = F::join(x, parts[warp]);\n    }\n"
    "    return (T)x;\n}\n";

static const char *rows_element_of(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT ? "float" : dtype == GRT_DTYPE_BOOL ? "u8" : "u16";
}

static void add_vectors(const cuda_rows_form *form, grt_text *s)
{
    static const char *const types[] = {"float", "u16", "u8"};
    static const int32_t sizes[] = {4, 2, 1};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        grt_text_add(s, "struct alignas(%d) vector_%s { %s v[%d]; };\n", sizes[i] * form->vector, types[i],
                     types[i], form->vector);
}

/* The product of the sizes of groups from `first` to before `end`, those in `bits` alone. */
static void add_sizes(int32_t first, int32_t end, int32_t bits, grt_text *s)
{
    const char *between = "(";
    for (int32_t g = first; g < end; g++)
        if (bits & cuda_rows_has_group(g)) {
            grt_text_add(s, "%sa.sizes[%d]", between, g);
            between = " * ";
        }
    grt_text_add(s, "%s", *between == '(' ? "1u" : ")");
}

/* The row among those that the input has: neighbouring groups that it has are one number. */
static void add_row_of_input(int32_t place, grt_text *s)
{
    const char *between = "";
    for (int32_t end = CUDA_ROWS_GROUPS; end > 0;) {
        int32_t first = end;
        while (first > 0 && place & cuda_rows_has_group(first - 1))
            first--;
        if (first == end) {
            end--;
            continue;
        }
        grt_text_add(s, "%srow", between);
        between = " + ";
        if (first > 0) {
            grt_text_add(s, " / ");
            add_sizes(0, first, ~0, s);
        }
        if (end < CUDA_ROWS_GROUPS) {
            grt_text_add(s, " %% ");
            add_sizes(first, end, ~0, s);
        }
        if (first > 0) {
            grt_text_add(s, " * ");
            add_sizes(0, first, place, s);
        }
        end = first;
    }
    if (!*between)
        grt_text_add(s, "0");
}

/* Where an input's part for this row begins. */
static void add_bases(const cuda_rows_form *form, grt_text *s)
{
    for (int32_t i = 0; i < form->n_in; i++) {
        const char *type = rows_element_of(form->in_dtype[i]);
        grt_text_add(s, "    const %s *const in%d = (const %s *)a.in[%d] + (unsigned long long)(", type, i,
                     type, i);
        add_row_of_input(form->place[i], s);
        grt_text_add(s, ") * %d;\n", form->place[i] & CUDA_ROWS_HAS_ROW ? form->length : 1);
    }
}

static void add_rows_operand(const rows_program *p, const cuda_rows_form *form, rows_operand from,
                             grt_text *s)
{
    switch (from.home) {
    case ROWS_INPUT:
        grt_text_add(s, form->place[from.index] & CUDA_ROWS_HAS_ROW ? "of_%s(x%d.v[v])" : "of_%s(x%d)",
                     grt_dtype_name(form->in_dtype[from.index]), from.index);
        break;
    case ROWS_CONSTANT:
        grt_text_add(s, "__int_as_float(0x%08x)", cuda_bits_of(p->constants[from.index]));
        break;
    case ROWS_NUMBER:
        grt_text_add(s, "n%d", from.index);
        break;
    case ROWS_KEPT:
        grt_text_add(s, "k%d[e * V + v]", from.index);
        break;
    default:
        grt_text_add(s, "b%d", from.index);
    }
}

static void rows_add_function(const rows_program *p, const cuda_rows_form *form, const rows_instruction *in,
                              grt_text *s)
{
    static const char *const names[] = {"a", "b", "c"};
    const pw_info *info = grt_pointwise_info(in->opcode);
    grt_text_add(s, "        {\n");
    /* The arguments of the kernel are called a, too: they are not needed here. */
    for (int32_t k = 0; k < in->arity; k++) {
        grt_text_add(s, "            const T o%d = ", k);
        add_rows_operand(p, form, in->operand[k], s);
        grt_text_add(s, ";\n");
    }
    for (int32_t k = 0; k < in->arity; k++)
        grt_text_add(s, "            const T %s = o%d;\n", names[k], k);
    for (int32_t k = 0; k < info->n_params; k++)
        grt_text_add(s, "            const T p%d = __int_as_float(0x%08x);\n", k, cuda_bits_of(in->p[k]));
    grt_text_add(s, "            ");
    add_rows_operand(p, form, in->target, s);
    grt_text_add(s, " = (T)(%s); /* %s */\n        }\n", grt_pointwise_expression(in->opcode), info->name);
}

/* The inputs that a phase reads, a bit each. */
static uint32_t inputs_of(const rows_program *p, int32_t phase)
{
    uint32_t bits = 0;
    for (int32_t i = 0; i < p->n; i++)
        for (int32_t k = 0; k < p->code[i].arity; k++)
            if (p->code[i].phase == phase && p->code[i].operand[k].home == ROWS_INPUT)
                bits |= 1u << p->code[i].operand[k].index;
    return bits;
}

static void rows_add_loads(const rows_program *p, const cuda_rows_form *form, int32_t phase, grt_text *s)
{
    for (int32_t i = 0; i < p->n_in; i++) {
        const char *type = rows_element_of(form->in_dtype[i]);
        if (!(inputs_of(p, phase) >> i & 1))
            continue;
        if (form->place[i] & CUDA_ROWS_HAS_ROW)
            grt_text_add(s, "        const vector_%s x%d = ((const vector_%s *)in%d)[i];\n", type, i, type,
                         i);
        else
            grt_text_add(s, "        const %s x%d = *in%d;\n", type, i, i);
    }
}

static void add_elements(const rows_program *p, const cuda_rows_form *form, int32_t phase, grt_text *s)
{
    const int32_t vectors = form->length / form->vector;
    const bool last = phase + 1 == p->n_phases && !p->code[p->n - 1].by_row;
    const char *out = rows_element_of(form->out_dtype);
    grt_text_add(s,
                 "#pragma unroll\n    for (int e = 0; e < E; e++) {\n"
                 "        const int i = e * THREADS + thread;\n%s",
                 vectors % form->threads ? "        if (i >= N)\n            break;\n" : "");
    rows_add_loads(p, form, phase, s);
    if (last)
        grt_text_add(s, "        vector_%s y;\n", out);
    grt_text_add(s, "#pragma unroll\n        for (int v = 0; v < V; v++) {\n");
    for (int32_t b = 0; b < p->n_blocks; b++)
        grt_text_add(s, "        T b%d;\n        (void)b%d;\n", b, b);
    for (int32_t o = 0; o < p->n; o++) {
        const rows_instruction *in = &p->code[p->order[o]];
        if (in->phase != phase || (in->by_row && !in->folds))
            continue;
        if (!in->folds) {
            rows_add_function(p, form, in, s);
            continue;
        }
        grt_text_add(s, "        f%d = %s::join(f%d, ", p->order[o],
                     grt_rows_fold_name(rows_fold_of(in->opcode)), p->order[o]);
        add_rows_operand(p, form, in->operand[0], s);
        grt_text_add(s, ");\n");
    }
    if (last) {
        grt_text_add(s, "        y.v[v] = to_%s(", grt_dtype_name(form->out_dtype));
        add_rows_operand(p, form, p->code[p->n - 1].target, s);
        grt_text_add(s, ");\n");
    }
    grt_text_add(s, "        }\n");
    if (last)
        grt_text_add(s,
                     "        if (live)\n"
                     "            ((vector_%s *)a.out)[(unsigned long long)row * N + i] = y;\n",
                     out);
    grt_text_add(s, "    }\n");
}

static void add_phase(const rows_program *p, const cuda_rows_form *form, int32_t phase, grt_text *s)
{
    bool elements = false;
    for (int32_t o = 0; o < p->n; o++) {
        const rows_instruction *in = &p->code[p->order[o]];
        if (in->phase != phase)
            continue;
        if (!in->by_row || in->folds) {
            elements = true;
        } else {
            grt_text_add(s, "    T n%d;\n", p->order[o]);
            rows_add_function(p, form, in, s);
        }
        if (in->folds)
            grt_text_add(s, "    %s::A f%d = %s::start();\n", grt_rows_fold_name(rows_fold_of(in->opcode)),
                         p->order[o], grt_rows_fold_name(rows_fold_of(in->opcode)));
    }
    if (elements)
        add_elements(p, form, phase, s);
    for (int32_t o = 0; o < p->n; o++) {
        const rows_instruction *in = &p->code[p->order[o]];
        if (in->phase == phase && in->folds)
            grt_text_add(s, "    const T n%d = fold<%s, THREADS>(f%d);\n", p->order[o],
                         grt_rows_fold_name(rows_fold_of(in->opcode)), p->order[o]);
    }
}

void cuda_rows_source(const rows_program *p, const cuda_rows_form *form, grt_text *s)
{
    grt_text_add(s, "%s%s", cuda_generated_beginning, folds);
    add_vectors(form, s);
    grt_text_add(s,
                 "struct arguments { const void *in[%d]; void *out; unsigned rows, sizes[%d]; };\n"
                 "enum { THREADS = %d, V = %d, N = %d, E = %d };\n",
                 ROWS_MAX_INPUTS, CUDA_ROWS_GROUPS - 1, form->threads, form->vector,
                 form->length / form->vector, turns_of(form));
    grt_text_add(s,
                 "extern \"C\" __global__ void __launch_bounds__(%u) " CUDA_ROWS_KERNEL
                 "(const __grid_constant__ arguments a)\n{\n",
                 cuda_rows_block(form));
    cuda_generated_let_next_begin(s);
    cuda_generated_wait(s);
    /* Threads behind the last row compute it again and store nothing: all lanes of a warp fold together. */
    grt_text_add(s,
                 "    const unsigned mine = blockIdx.x * %uu + threadIdx.x / THREADS;\n"
                 "    const bool live = mine < a.rows;\n"
                 "    const unsigned row = live ? mine : a.rows - 1;\n"
                 "    const int thread = threadIdx.x %% THREADS;\n",
                 rows_of_block(form));
    add_bases(form, s);
    for (int32_t k = 0; k < p->n_kept; k++)
        grt_text_add(s, "    T k%d[E * V];\n", k);
    for (int32_t phase = 0; phase < p->n_phases; phase++)
        add_phase(p, form, phase, s);
    if (p->code[p->n - 1].by_row)
        grt_text_add(s, "    if (live && thread == 0)\n        ((%s *)a.out)[row] = to_%s(n%d);\n",
                     rows_element_of(form->out_dtype), grt_dtype_name(form->out_dtype), p->n - 1);
    grt_text_add(s, "}\n");
}
