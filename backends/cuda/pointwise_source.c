/* SPDX-License-Identifier: Apache-2.0 */
/* See pointwise_source.h. The expressions are those of pointwise.def, the words in them those of
 * pointwise_language.h. */
#include "backends/cuda/pointwise_source.h"

#include "backends/cuda/generated.h"
#include "src/base/pointwise.h"

#include <string.h>

/* Change it when the same key would give other code. */
enum { GENERATOR = 2 };

/* The dims of t, leading ones left out, are the last dims of the result: the number of elements; else 0. */
static int64_t trailing_elements(const grt_tensor *t, const grt_tensor *out)
{
    int32_t skip = 0;
    while (skip < t->rank && t->dims[skip] == 1)
        skip++;
    const int32_t rank = t->rank - skip;
    return rank <= out->rank && grt_dims_equal(t->dims + skip, rank, out->dims + out->rank - rank, rank)
               ? grt_tensor_elements(t)
               : 0;
}

bool cuda_pointwise_form_of(const grt_tensor *const *in, int32_t n_in, const grt_tensor *out,
                            cuda_pointwise_form *form)
{
    enum { V = CUDA_POINTWISE_VECTOR };
    const int64_t n = grt_tensor_elements(out), most = (int64_t)1 << 30;
    int64_t period = 0;
    if (n <= 0 || n >= most || n % V || n_in > CUDA_POINTWISE_INPUTS)
        return false;
    *form = (cuda_pointwise_form){.n_in = n_in, .out_dtype = out->dtype};
    for (int32_t i = 0; i < n_in; i++) {
        const int64_t size = grt_tensor_elements(in[i]), trailing = trailing_elements(in[i], out);
        form->in_dtype[i] = in[i]->dtype;
        if (size == n && trailing == n) {
            form->place[i] = CUDA_PLACE_OWN;
        } else if (size == 1) {
            form->place[i] = CUDA_PLACE_ONE;
        } else if (trailing > 0 && trailing % V == 0 && (period == 0 || period == trailing)) {
            form->place[i] = CUDA_PLACE_TRAILING;
            period = trailing;
        } else {
            return false;
        }
    }
    form->n = (uint32_t)(n / V);
    form->period = period ? (uint32_t)(period / V) : 1;
    return true;
}

void cuda_pointwise_key(const grt_op_desc *desc, const cuda_pointwise_form *form, grt_text *key)
{
    static const char *const places[] = {"own", "trailing", "one"};
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    grt_text_add(key, "generator=%d;in=", GENERATOR);
    for (int32_t i = 0; i < form->n_in; i++)
        grt_text_add(key, "%s%s %s", i ? "," : "", grt_dtype_name(form->in_dtype[i]), places[form->place[i]]);
    grt_text_add(key, ";out=%s;program=", grt_dtype_name(form->out_dtype));
    for (size_t i = 0; i < n; i += 4)
        grt_text_add(key, "%s%s %lld %lld %lld", i ? "," : "", grt_pointwise_info((int32_t)program[i])->name,
                     (long long)program[i + 1], (long long)program[i + 2], (long long)program[i + 3]);
    grt_text_add(key, ";constants=");
    for (size_t i = 0; i < n_constants; i++)
        grt_text_add(key, "%s%08x", i ? "," : "", cuda_bits_of(constants[i]));
    grt_text_add(key, ";");
}

static const char arguments[] = "struct arguments { const void *in[8]; void *out; unsigned n, period; };\n";

static const char *pack_of(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT ? "pack32" : dtype == GRT_DTYPE_BOOL ? "pack8" : "pack16";
}

static const char *cuda_pointwise_source_element_of(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT ? "float" : dtype == GRT_DTYPE_BOOL ? "u8" : "u16";
}

static void add_loads(const cuda_pointwise_form *form, grt_text *s)
{
    for (int32_t i = 0; i < form->n_in; i++) {
        const grt_dtype dtype = form->in_dtype[i];
        if (form->place[i] == CUDA_PLACE_ONE)
            grt_text_add(s, "    const %s in%d = *(const %s *)a.in[%d];\n",
                         cuda_pointwise_source_element_of(dtype), i, cuda_pointwise_source_element_of(dtype),
                         i);
        else
            grt_text_add(s, "    const %s in%d = ((const %s *)a.in[%d])[%s];\n", pack_of(dtype), i,
                         pack_of(dtype), i, form->place[i] == CUDA_PLACE_OWN ? "i" : "i % a.period");
    }
}

/* An operand: an input, a constant, or the result of an instruction. */
static void add_operand(const cuda_pointwise_form *form, const float *constants, int64_t n_constants,
                        int64_t operand, grt_text *s)
{
    if (operand < form->n_in)
        grt_text_add(s, form->place[operand] == CUDA_PLACE_ONE ? "of_%s(in%lld)" : "of_%s(in%lld.v[j])",
                     grt_dtype_name(form->in_dtype[operand]), (long long)operand);
    else if (operand < form->n_in + n_constants)
        grt_text_add(s, "__int_as_float(0x%08x)", cuda_bits_of(constants[operand - form->n_in]));
    else
        grt_text_add(s, "r%lld", (long long)(operand - form->n_in - n_constants));
}

static void cuda_pointwise_source_add_instruction(const cuda_pointwise_form *form, const int64_t *code,
                                                  int64_t index, const float *constants, int64_t n_constants,
                                                  grt_text *s)
{
    static const char *const names[] = {"a", "b", "c"}, *const parameters[] = {"p0", "p1"};
    const pw_info *info = grt_pointwise_info((int32_t)code[0]);
    grt_text_add(s, "        T r%lld;\n        {\n", (long long)index);
    for (int k = 0; k < info->arity + info->n_params; k++) {
        grt_text_add(s,
                     "            const T %s = ", k < info->arity ? names[k] : parameters[k - info->arity]);
        add_operand(form, constants, n_constants, code[1 + k], s);
        grt_text_add(s, ";\n");
    }
    grt_text_add(s, "            r%lld = (T)(%s); /* %s */\n        }\n", (long long)index,
                 grt_pointwise_expression((int32_t)code[0]), info->name);
}

void cuda_pointwise_source(const grt_op_desc *desc, const cuda_pointwise_form *form, grt_text *s)
{
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    grt_text_add(s, "%s%s", cuda_generated_beginning, arguments);
    grt_text_add(s,
                 "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_POINTWISE_KERNEL
                 "(const __grid_constant__ arguments a)\n{\n",
                 CUDA_POINTWISE_BLOCK);
    cuda_generated_let_next_begin(s);
    cuda_generated_wait(s);
    grt_text_add(
        s, "    const unsigned i = blockIdx.x * %du + threadIdx.x;\n    if (i >= a.n)\n        return;\n",
        CUDA_POINTWISE_BLOCK);
    add_loads(form, s);
    grt_text_add(s, "    %s out;\n#pragma unroll\n    for (int j = 0; j < %d; j++) {\n",
                 pack_of(form->out_dtype), CUDA_POINTWISE_VECTOR);
    for (size_t i = 0; i + 4 <= n; i += 4)
        cuda_pointwise_source_add_instruction(form, program + i, (int64_t)(i / 4), constants,
                                              (int64_t)n_constants, s);
    grt_text_add(s, "        out.v[j] = to_%s(r%zu);\n    }\n    ((%s *)a.out)[i] = out;\n}\n",
                 grt_dtype_name(form->out_dtype), n / 4 - 1, pack_of(form->out_dtype));
}
