/* SPDX-License-Identifier: Apache-2.0 */
/* See pointwise_source.h. The expressions are those of pointwise.def, the words in them those of
 * pointwise_language.h. */
#include "backends/cuda/pointwise_source.h"

#include "backends/cuda/generated_source.h"
#include "src/base/pointwise.h"

#include <string.h>

/* Change it when the same key would give other code. */
enum { GENERATOR = 2 };

/* Which inputs have dim k of the result, a bit each; -1 if one does not fit. */
static int32_t having(const pw_part_view *in, int32_t n_in, const grt_tensor *out, int32_t k)
{
    int32_t bits = 0;
    for (int32_t i = 0; i < n_in; i++) {
        const int32_t at = k - (out->rank - in[i].part.rank);
        const int64_t dim = at < 0 ? 1 : in[i].part.dims[at];
        if (dim != 1 && dim != out->dims[k])
            return -1;
        bits |= dim != 1 ? 1 << i : 0;
    }
    return bits;
}

/* The dims of the result, joined; the last one comes first. cut: of an input of several ranges, the dims that
 * lie within one. */
typedef struct joined_dims {
    int32_t n;
    int64_t dims[CUDA_POINTWISE_DIMS];
    int32_t bits[CUDA_POINTWISE_DIMS];
    uint8_t cut[CUDA_POINTWISE_INPUTS];
} joined_dims;

/* Notes which inputs' ranges begin with dim k; true if there are any: then dims before it are not joined with
 * those from it on. */
static bool begins_range(const pw_part_view *in, int32_t n_in, const grt_tensor *out, int32_t k,
                         joined_dims *joined)
{
    bool begins = false;
    for (int32_t i = 0; i < n_in; i++)
        if (in[i].pitch && k == in[i].axis + out->rank - in[i].part.rank) {
            joined->cut[i] = (uint8_t)joined->n;
            begins = true;
        }
    return begins;
}

/* False if there are more than CUDA_POINTWISE_DIMS. */
static bool join_dims(const pw_part_view *in, int32_t n_in, const grt_tensor *out, joined_dims *joined)
{
    bool apart = true;
    *joined = (joined_dims){.dims = {1, 1, 1, 1, 1}};
    for (int32_t k = out->rank - 1; k >= 0; k--) {
        const int32_t found = having(in, n_in, out, k);
        if (found < 0)
            return false;
        if (out->dims[k] != 1) {
            const bool joins = !apart && joined->bits[joined->n - 1] == found;
            if (!joins && joined->n == CUDA_POINTWISE_DIMS)
                return false;
            joined->n += !joins;
            joined->dims[joined->n - 1] *= out->dims[k];
            joined->bits[joined->n - 1] = found;
            apart = false;
        }
        apart |= begins_range(in, n_in, out, k, joined);
    }
    return true;
}

/* True if all ranges are whole vectors. False, for *fits, if there are too many elements around them. */
static bool has_whole_ranges(const pw_part_view *in, int32_t n_in, bool *fits)
{
    enum { V = CUDA_POINTWISE_VECTOR };
    bool whole = true;
    for (int32_t i = 0; i < n_in; i++) {
        const int64_t ranges = grt_dims_product(in[i].part.dims, 0, in[i].axis);
        whole &= in[i].pitch % V == 0 && (!in[i].pitch || in[i].offset % V == 0);
        *fits &= !in[i].pitch || (ranges >= 0 && ranges <= INT32_MAX / in[i].pitch);
    }
    return whole;
}

bool cuda_pointwise_form_of(const pw_part_view *in, int32_t n_in, const grt_tensor *out,
                            cuda_pointwise_form *form)
{
    enum { V = CUDA_POINTWISE_VECTOR };
    const int64_t n = grt_tensor_elements(out), most = (int64_t)1 << 30;
    joined_dims joined;
    bool fits = true;
    if (n <= 0 || n >= most || n_in > CUDA_POINTWISE_INPUTS || !join_dims(in, n_in, out, &joined))
        return false;
    const bool uneven = !has_whole_ranges(in, n_in, &fits) || joined.dims[0] % V != 0;
    *form = (cuda_pointwise_form){.n_in = n_in,
                                  .out_dtype = out->dtype,
                                  .dims = joined.n < 3 ? 3 : joined.n,
                                  .uneven = uneven,
                                  .joined = 1,
                                  .n = (uint32_t)((n + V - 1) / V),
                                  .inner = (uint32_t)(uneven ? joined.dims[0] : joined.dims[0] / V),
                                  .elements = (uint32_t)n,
                                  .middle = (uint32_t)joined.dims[1],
                                  .further = {(uint32_t)joined.dims[2], (uint32_t)joined.dims[3]}};
    memcpy(form->cut, joined.cut, sizeof form->cut);
    for (int32_t i = 0; fits && i < n_in; i++) {
        form->in_dtype[i] = in[i].part.dtype;
        if (grt_tensor_elements(&in[i].part) == 1)
            continue;
        for (int32_t k = 0; k < form->dims; k++) { /* dims that are not there go with the last one that is */
            const int32_t at = k < joined.n ? k : joined.n - 1;
            form->place[i] |= (uint8_t)((joined.bits[at] >> i & 1) << k);
        }
        const bool by_vectors = !uneven && form->place[i] & CUDA_PLACE_INNER;
        form->pitch[i] = (uint32_t)(by_vectors ? in[i].pitch / V : in[i].pitch);
    }
    return fits;
}

bool cuda_pointwise_join(const grt_tensor *const *in, int32_t joined, cuda_pointwise_form *form,
                         uint32_t *ends)
{
    uint32_t end = 0;
    form->joined = joined;
    for (int32_t i = 0; joined > 1 && i < joined; i++) {
        const int64_t size = in[i]->dims[in[i]->rank - 1];
        if (size % CUDA_POINTWISE_VECTOR)
            return false;
        ends[i] = end += (uint32_t)(size / CUDA_POINTWISE_VECTOR);
    }
    /* The first operand's last dim is the result's, by vectors, and by itself. */
    return joined == 1 ||
           (!form->uneven && form->cut[0] == 1 && form->place[0] & CUDA_PLACE_INNER && form->inner == end);
}

bool cuda_pointwise_is_cut(const cuda_pointwise_form *form)
{
    for (int32_t i = 0; i < form->n_in; i++)
        if (form->cut[i])
            return true;
    return false;
}

static bool is_own(const cuda_pointwise_form *form, int32_t i)
{
    return form->place[i] == (1 << form->dims) - 1 && !form->cut[i];
}

bool cuda_pointwise_reads_vectors(const cuda_pointwise_form *form, int32_t i)
{
    return form->uneven ? is_own(form, i) : form->place[i] & CUDA_PLACE_INNER;
}

void cuda_pointwise_sizes(const cuda_pointwise_form *form, cuda_pointwise_args *args)
{
    args->n = form->n;
    args->inner = form->inner;
    args->middle = form->middle;
    args->elements = form->elements;
    memcpy(args->further, form->further, sizeof args->further);
    memcpy(args->pitch, form->pitch, sizeof args->pitch);
}

/* Of an input of a form with more than three dims: a digit for each, the outermost first. */
static void add_dims(const cuda_pointwise_form *form, int32_t input, grt_text *key)
{
    for (int32_t k = form->dims - 1; k >= 0; k--)
        grt_text_add(key, "%d", form->place[input] >> k & 1);
}

static void add_place(const cuda_pointwise_form *form, int32_t input, grt_text *key)
{
    static const char *const places[] = {"one",   "inner",       "middle",       "middle inner",
                                         "outer", "outer inner", "outer middle", "own"};
    if (form->dims > 3)
        add_dims(form, input, key);
    else
        grt_text_add(key, "%s", places[form->place[input]]);
}

void cuda_pointwise_key(const grt_op_desc *desc, const cuda_pointwise_form *form, grt_text *key)
{
    size_t n, n_constants;
    const int64_t *program = grt_attr_ints(desc, "program", &n);
    const float *constants = grt_attr_floats(desc, "constants", &n_constants);
    grt_text_add(key, "generator=%d;in=", GENERATOR);
    for (int32_t i = 0; i < form->n_in; i++) {
        grt_text_add(key, "%s%s ", i ? "," : "", grt_dtype_name(form->in_dtype[i]));
        add_place(form, i, key);
        if (form->cut[i])
            grt_text_add(key, " cut %d", form->cut[i]);
    }
    if (form->joined > 1)
        grt_text_add(key, ";joined");
    grt_text_add(key, "%s;out=%s;program=", form->uneven ? ";uneven" : "", grt_dtype_name(form->out_dtype));
    for (size_t i = 0; i < n; i += 4)
        grt_text_add(key, "%s%s %lld %lld %lld", i ? "," : "", grt_pointwise_info((int32_t)program[i])->name,
                     (long long)program[i + 1], (long long)program[i + 2], (long long)program[i + 3]);
    grt_text_add(key, ";constants=");
    for (size_t i = 0; i < n_constants; i++)
        grt_text_add(key, "%s%08x", i ? "," : "", cuda_bits_of(constants[i]));
    grt_text_add(key, ";");
}

static const char arguments[] =
    "struct arguments { const void *in[8]; void *out; unsigned n, inner, middle%s; };\n";

static const char *pack_of(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT ? "pack32" : dtype == GRT_DTYPE_BOOL ? "pack8" : "pack16";
}

static const char *cuda_pointwise_source_element_of(grt_dtype dtype)
{
    return dtype == GRT_DTYPE_FLOAT ? "float" : dtype == GRT_DTYPE_BOOL ? "u8" : "u16";
}

/* Where vector i of the result finds an input: a vector where it has the inner dim, else an element. */
static const char *place_of_three(uint8_t place)
{
    static const char *const at[] = {
        "0",
        "i % a.inner",
        "i / a.inner % a.middle",
        "i % (a.inner * a.middle)",
        "i / (a.inner * a.middle)",
        "i / (a.inner * a.middle) * a.inner + i % a.inner",
        "i / a.inner",
        "i",
    };
    return at[place];
}

static const char *const size_of_dim[] = {"a.inner", "a.middle", "a.further[0]", "a.further[1]"};

/* With more dims: x0, x1, ... are where vector i lies in each; uneven: its first element. */
static void add_coordinates(const cuda_pointwise_form *form, grt_text *s)
{
    if (form->dims <= 3 && !form->uneven && !cuda_pointwise_is_cut(form))
        return;
    grt_text_add(s, form->uneven ? "    unsigned x%d = i * %d;\n" : "    unsigned x%d = i;\n", form->dims - 1,
                 CUDA_POINTWISE_VECTOR);
    for (int32_t k = 0; k < form->dims - 1; k++)
        grt_text_add(s, "    unsigned x%d = x%d %% %s;\n    x%d /= %s;\n", k, form->dims - 1, size_of_dim[k],
                     form->dims - 1, size_of_dim[k]);
}

/* The place along dims `from` to `to` of those that an input has. */
static void add_place_within(const cuda_pointwise_form *form, uint8_t place, int32_t from, int32_t to,
                             grt_text *s)
{
    for (int32_t k = from; k < to; k++)
        if (place >> k & 1)
            grt_text_add(s, "(");
    grt_text_add(s, "0");
    for (int32_t k = to - 1; k >= from; k--)
        if (place >> k & 1)
            grt_text_add(s, " * %s + x%d)", k < form->dims - 1 ? size_of_dim[k] : "1", k);
}

static void add_index(const cuda_pointwise_form *form, int32_t i, grt_text *s)
{
    const uint8_t place = form->place[i];
    if (form->cut[i]) {
        add_place_within(form, place, form->cut[i], form->dims, s);
        grt_text_add(s, " * a.pitch[%d] + ", i);
        add_place_within(form, place, 0, form->cut[i], s);
    } else if ((form->dims <= 3 && !form->uneven) || place == (1 << form->dims) - 1) {
        grt_text_add(s, "%s", form->dims <= 3 ? place_of_three(place) : "i");
    } else {
        add_place_within(form, place, 0, form->dims, s);
    }
}

/* The first operand's vector: of the first input that ends behind it. */
static void add_joined_load(const cuda_pointwise_form *form, grt_text *s)
{
    const char *type = pack_of(form->in_dtype[0]);
    grt_text_add(
        s, "    unsigned part = 0, last = a.joined - 1;\n    while (part < last) {\n        const unsigned "
           "mid = (part "
           "+ last) / 2;\n        if (x0 < a.ends[mid])\n            last = mid;\n        else\n          "
           "  part = mid + 1;\n    }\n    const unsigned begin = part ? a.ends[part - 1] : 0;\n");
    grt_text_add(s, "    const %s in0 = ((const %s *)a.part[part])[", type, type);
    add_place_within(form, form->place[0], 1, form->dims, s);
    grt_text_add(s, " * (a.ends[part] - begin) + (x0 - begin)];\n");
}

static void add_loads(const cuda_pointwise_form *form, grt_text *s)
{
    if (form->joined > 1)
        add_joined_load(form, s);
    for (int32_t i = form->joined > 1; i < form->n_in; i++) {
        const grt_dtype dtype = form->in_dtype[i];
        const char *type =
            form->place[i] & CUDA_PLACE_INNER ? pack_of(dtype) : cuda_pointwise_source_element_of(dtype);
        grt_text_add(s, "    const %s in%d = ((const %s *)a.in[%d])[", type, i, type, i);
        add_index(form, i, s);
        grt_text_add(s, "];\n");
    }
}

/* Uneven: the vector, or the elements that are left at the end. */
static void add_own_load(const cuda_pointwise_form *form, int32_t i, grt_text *s)
{
    const char *pack = pack_of(form->in_dtype[i]),
               *element = cuda_pointwise_source_element_of(form->in_dtype[i]);
    grt_text_add(s, "    %s in%d;\n    if (whole)\n        in%d = ((const %s *)a.in[%d])[i];\n", pack, i, i,
                 pack, i);
    grt_text_add(s,
                 "    for (unsigned j = 0; !whole && j < %du; j++)\n        in%d.v[j] = j < left ? ((const "
                 "%s *)a.in[%d])[i * %d + j] : (%s)0;\n",
                 CUDA_POINTWISE_VECTOR, i, element, i, CUDA_POINTWISE_VECTOR, element);
}

/* Uneven: x0, x1, ... become those of the next element. */
static void add_next_coordinates(const cuda_pointwise_form *form, grt_text *s)
{
    for (int32_t k = 0; k < form->dims - 1; k++)
        grt_text_add(s, "        if (++x%d == %s) {\n        x%d = 0;\n", k, size_of_dim[k], k);
    grt_text_add(s, "        x%d++;\n", form->dims - 1);
    for (int32_t k = 0; k < form->dims - 1; k++)
        grt_text_add(s, "        }\n");
}

/* Uneven: element by element what is no vector and not one for all. */
static void add_uneven_loads(const cuda_pointwise_form *form, grt_text *s)
{
    bool each = false;
    for (int32_t i = 0; i < form->n_in; i++) {
        const char *element = cuda_pointwise_source_element_of(form->in_dtype[i]);
        if (is_own(form, i))
            add_own_load(form, i, s);
        else if (!form->place[i])
            grt_text_add(s, "    const %s in%d = ((const %s *)a.in[%d])[0];\n", element, i, element, i);
        else
            grt_text_add(s, "    %s in%d;\n", pack_of(form->in_dtype[i]), i);
        each |= form->place[i] && !is_own(form, i);
    }
    if (!each)
        return;
    grt_text_add(s, "#pragma unroll\n    for (unsigned j = 0; j < %du; j++) {\n", CUDA_POINTWISE_VECTOR);
    for (int32_t i = 0; i < form->n_in; i++) {
        const char *element = cuda_pointwise_source_element_of(form->in_dtype[i]);
        if (!form->place[i] || is_own(form, i))
            continue;
        grt_text_add(s, "        in%d.v[j] = j < left ? ((const %s *)a.in[%d])[", i, element, i);
        add_index(form, i, s);
        grt_text_add(s, "] : (%s)0;\n", element);
    }
    add_next_coordinates(form, s);
    grt_text_add(s, "    }\n");
}

/* An operand: an input, a constant, or the result of an instruction. */
static void add_operand(const cuda_pointwise_form *form, const float *constants, int64_t n_constants,
                        int64_t operand, grt_text *s)
{
    if (operand < form->n_in)
        grt_text_add(
            s,
            (form->uneven ? form->place[operand] != CUDA_PLACE_ONE : form->place[operand] & CUDA_PLACE_INNER)
                ? "of_%s(in%lld.v[j])"
                : "of_%s(in%lld)",
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
    grt_text_add(s, "%s", cuda_generated_beginning);
    grt_text_add(s, arguments,
                 form->joined > 1
                     ? ", further[2], elements, pitch[8]; const void *part[64]; unsigned ends[64], joined"
                 : cuda_pointwise_is_cut(form) ? ", further[2], elements, pitch[8]"
                 : form->uneven                ? ", further[2], elements"
                 : form->dims > 3              ? ", further[2]"
                                               : "");
    grt_text_add(s,
                 "extern \"C\" __global__ void __launch_bounds__(%d) " CUDA_POINTWISE_KERNEL
                 "(const __grid_constant__ arguments a)\n{\n",
                 CUDA_POINTWISE_BLOCK);
    cuda_generated_let_next_begin(s);
    cuda_generated_wait(s);
    grt_text_add(
        s, "    const unsigned i = blockIdx.x * %du + threadIdx.x;\n    if (i >= a.n)\n        return;\n",
        CUDA_POINTWISE_BLOCK);
    if (form->uneven)
        grt_text_add(s,
                     "    const unsigned left = a.elements - i * %d;\n    const bool whole = left >= %du;\n",
                     CUDA_POINTWISE_VECTOR, CUDA_POINTWISE_VECTOR);
    add_coordinates(form, s);
    if (form->uneven)
        add_uneven_loads(form, s);
    else
        add_loads(form, s);
    grt_text_add(s, "    %s out;\n#pragma unroll\n    for (int j = 0; j < %d; j++) {\n",
                 pack_of(form->out_dtype), CUDA_POINTWISE_VECTOR);
    for (size_t i = 0; i + 4 <= n; i += 4)
        cuda_pointwise_source_add_instruction(form, program + i, (int64_t)(i / 4), constants,
                                              (int64_t)n_constants, s);
    grt_text_add(s, "        out.v[j] = to_%s(r%zu);\n    }\n%s    ((%s *)a.out)[i] = out;\n",
                 grt_dtype_name(form->out_dtype), n / 4 - 1, form->uneven ? "    if (whole)\n    " : "",
                 pack_of(form->out_dtype));
    if (form->uneven)
        grt_text_add(s,
                     "    for (unsigned j = 0; !whole && j < left; j++)\n        ((%s *)a.out)[i * %d + j] = "
                     "out.v[j];\n",
                     cuda_pointwise_source_element_of(form->out_dtype), CUDA_POINTWISE_VECTOR);
    grt_text_add(s, "}\n");
}
