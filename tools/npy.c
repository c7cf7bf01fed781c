/* SPDX-License-Identifier: Apache-2.0 */
/* See npy.h. The header is a Python dictionary in a fixed order of keys; ours are read in any order. */
#define _GNU_SOURCE /* asprintf */
#include "tools/npy.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    grt_dtype dtype;
    const char *text;
} types[] = {
    {GRT_DTYPE_FLOAT, "f4"},     {GRT_DTYPE_DOUBLE, "f8"},      {GRT_DTYPE_FLOAT16, "f2"},
    {GRT_DTYPE_INT8, "i1"},      {GRT_DTYPE_INT16, "i2"},       {GRT_DTYPE_INT32, "i4"},
    {GRT_DTYPE_INT64, "i8"},     {GRT_DTYPE_UINT8, "u1"},       {GRT_DTYPE_UINT16, "u2"},
    {GRT_DTYPE_UINT32, "u4"},    {GRT_DTYPE_UINT64, "u8"},      {GRT_DTYPE_BOOL, "b1"},
    {GRT_DTYPE_COMPLEX64, "c8"}, {GRT_DTYPE_COMPLEX128, "c16"},
};

static const char *type_text(grt_dtype dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return types[i].text;
    return NULL;
}

bool npy_has(grt_dtype dtype)
{
    return type_text(dtype) != NULL;
}

typedef struct npy_header {
    grt_tensor tensor; /* dtype and dims */
    bool fortran;
    char text_kind;   /* 'U', 'S' or 0 */
    size_t text_size; /* characters of an element */
} npy_header;

/* label: the input and its file, as messages begin. */
static bool refuse_npy(const char *label, const char *problem)
{
    tool_error("%s: %s", label, problem);
    return false;
}

/* NumPy's name of the dtype, or the fields of a structure, as the file has it. */
static bool refuse_type(const char *label, const char *descr)
{
    const bool fields = *descr == '[';
    const char quote[] = {descr[-1], 0};
    const int n = (int)(fields ? strcspn(descr, "]") + 1 : strcspn(descr, quote));
    const char *reason = *descr == '>'
                             ? "its bytes are in big-endian order, which is not supported; in NumPy, "
                               "a.astype(a.dtype.newbyteorder('<')) has the other"
                         : fields ? "arrays of structures are not supported"
                                  : "that is no dtype of ONNX that .npy files can have";
    tool_error("%s: found dtype %s%.*s%s: %s", label, fields ? "" : "'", n < 80 ? n : 80, descr,
               fields ? "" : "'", reason);
    return false;
}

static bool parse_type(const char *label, const char *full, npy_header *h)
{
    const char order = *full, *descr = full + 1;
    if (order != '<' && order != '|' && order != '=')
        return refuse_type(label, full);
    size_t n = strcspn(descr, "'\"");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].text) == n && !strncmp(types[i].text, descr, n)) {
            h->tensor.dtype = types[i].dtype;
            return true;
        }
    if (*descr == 'U' || *descr == 'S') {
        char *end;
        h->text_kind = *descr;
        h->text_size = strtoul(descr + 1, &end, 10);
        h->tensor.dtype = GRT_DTYPE_STRING;
        if (end == descr + n && h->text_size < (1u << 24))
            return true;
    }
    return refuse_type(label, full);
}

/* The text after 'key': */
static const char *find_npy_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? at + strlen(key) : NULL;
    while (at && (*at == '\'' || *at == '"' || *at == ':' || *at == ' '))
        at++;
    return at;
}

static bool parse_header(const char *label, const char *text, npy_header *h)
{
    const char *descr = find_npy_key(text, "'descr"), *order = find_npy_key(text, "'fortran_order"),
               *shape = find_npy_key(text, "'shape");
    *h = (npy_header){0};
    if (!descr || !order || !shape || *shape != '(')
        return refuse_npy(label, "its .npy header is not understood");
    if (!parse_type(label, descr, h))
        return false;
    h->fortran = !strncmp(order, "True", 4);
    for (shape++; *shape && *shape != ')';) {
        char *end;
        errno = 0;
        long long dim = strtoll(shape, &end, 10);
        if (end == shape || errno || dim < 0 || h->tensor.rank == GRT_MAX_RANK)
            return refuse_npy(label, "its shape is not understood, or has more than 16 dims");
        h->tensor.dims[h->tensor.rank++] = dim;
        shape = end + strspn(end, "L, ");
    }
    return true;
}

/* Row-major copy of column-major elements. */
static void from_fortran(const grt_tensor *t, const char *src, char *dst, size_t size)
{
    int64_t index[GRT_MAX_RANK] = {0}, n = grt_tensor_elements(t);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int32_t i = t->rank - 1; i >= 0; i--)
            at = at * t->dims[i] + index[i];
        memcpy(dst + (size_t)k * size, src + (size_t)at * size, size);
        for (int32_t i = t->rank - 1; i >= 0 && ++index[i] == t->dims[i]; i--)
            index[i] = 0;
    }
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)((0xf0 << (4 - n) & 0xff) | c);
    return n;
}

/* Elements of fixed length, padded with zeros, to strings. bytes has room for 4 per character. */
static void make_strings(const npy_header *h, const char *src, grt_string *strings, char *bytes, int64_t n)
{
    size_t unit = h->text_kind == 'U' ? 4 : 1;
    for (int64_t i = 0; i < n; i++) {
        const char *element = src + (size_t)i * h->text_size * unit;
        strings[i].data = bytes;
        size_t length = 0, used = 0;
        for (size_t k = 0; k < h->text_size; k++) {
            uint32_t c = 0;
            memcpy(&c, element + k * unit, unit);
            if (c)
                used = k + 1;
        }
        for (size_t k = 0; k < used; k++) {
            uint32_t c = 0;
            memcpy(&c, element + k * unit, unit);
            if (unit == 4)
                length += put_utf8(bytes + length, c & 0x1fffff);
            else
                bytes[length++] = (char)c;
        }
        strings[i].size = length;
        bytes += length;
    }
}

static bool to_value(const char *label, npy_header *h, const char *data, int64_t n, size_t size,
                     grt_value **out_value)
{
    size_t count = (size_t)n, bytes = count * size;
    char *ordered = NULL, *text = NULL;
    grt_string *strings = NULL;
    bool ok = true;
    if (h->fortran && h->tensor.rank > 1 && bytes) {
        ordered = malloc(bytes);
        ok = ordered != NULL;
        if (ok)
            from_fortran(&h->tensor, data, ordered, size);
        data = ordered;
    }
    if (ok && h->text_kind) {
        strings = calloc(count + 1, sizeof *strings);
        text = malloc(bytes + 1);
        ok = strings && text;
        if (ok)
            make_strings(h, data, strings, text, n);
    }
    h->tensor.data = strings ? (void *)strings : (void *)data;
    if (!ok)
        tool_error("%s: out of memory", label);
    else if (grt_value_from_tensor(&h->tensor, out_value) != GRT_OK) {
        tool_error("%s: %s", label, grt_last_error());
        ok = false;
    }
    free(ordered);
    free(strings);
    free(text);
    return ok;
}

/* The whole file; its size is known before memory is taken. */
static bool read_whole_file(const char *path, const char *label, char **out_data, size_t *out_size)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (!f || size < 0) {
        tool_error("%s: %s", label, strerror(errno));
        if (f)
            fclose(f);
        return false;
    }
    rewind(f);
    char *data = malloc((size_t)size + 1);
    size_t got = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    if (!data || got != (size_t)size) {
        free(data);
        return refuse_npy(label, "cannot be read");
    }
    data[size] = 0;
    *out_data = data;
    *out_size = (size_t)size;
    return true;
}

static bool parse_npy(const char *label, char *data, size_t size, grt_value **out_value)
{
    if (size < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
        return refuse_npy(label, "not a .npy file");
    uint32_t length = 0;
    size_t begin = data[6] == 1 ? 10 : 12;
    memcpy(&length, data + 8, begin - 8);
    if (length > size - begin)
        return refuse_npy(label, "truncated in its header");
    char *text = strndup(data + begin, length);
    npy_header h;
    bool ok = text && parse_header(label, text, &h);
    free(text);
    if (!ok)
        return false;
    int64_t n = grt_tensor_elements(&h.tensor);
    size_t element =
        h.text_kind ? h.text_size * (h.text_kind == 'U' ? 4 : 1) : grt_dtype_bits(h.tensor.dtype) / 8;
    size_t rest = size - begin - length;
    if (n < 0 || (element && (size_t)n > rest / element) || (!element && n > (int64_t)size))
        return refuse_npy(label, "truncated: its shape asks for more data than the file has");
    return to_value(label, &h, data + begin + length, n, element, out_value);
}

bool npy_read(const char *input, const char *path, grt_value **out_value)
{
    char *data = NULL, *label = NULL;
    size_t size;
    if (asprintf(&label, "input '%s': %s", input, path) < 0) {
        tool_error("out of memory");
        return false;
    }
    const bool ok = read_whole_file(path, label, &data, &size) && parse_npy(label, data, size, out_value);
    free(data);
    free(label);
    return ok;
}

bool npy_write(const char *path, const grt_tensor *t)
{
    char header[1024];
    int n = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                     grt_dtype_bits(t->dtype) == 8 ? "|" : "<", type_text(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        n += snprintf(header + n, sizeof header - (size_t)n, "%" PRId64 "%s", t->dims[i],
                      t->rank == 1      ? ","
                      : i + 1 < t->rank ? ", "
                                        : "");
    n += snprintf(header + n, sizeof header - (size_t)n, "), }");
    size_t padded = ((size_t)n + 10 + 1 + 63) / 64 * 64 - 10;
    unsigned char start[10] = "\x93NUMPY\x01";
    start[8] = (unsigned char)(padded & 255);
    start[9] = (unsigned char)(padded >> 8);
    whole_file file;
    if (!whole_file_begin(&file, path))
        return false;
    size_t bytes = grt_tensor_bytes(t);
    return whole_file_end(&file,
                          fwrite(start, 1, 10, file.f) == 10 &&
                              fprintf(file.f, "%s%*s\n", header, (int)padded - n - 1, "") == (int)padded &&
                              fwrite(t->data, 1, bytes, file.f) == bytes);
}
