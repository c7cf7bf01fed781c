/* SPDX-License-Identifier: Apache-2.0 */
/* Reads NumPy's .npy files: a magic number, the length of a header, the header (a Python dict as text), the
 * elements. */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    return false;
}

/* Fill dtype, rank and dims from the text of the header. */
static bool parse_header(const char *header, grt_tensor *out)
{
    const char *shape = strstr(header, "'shape': (");
    if (!shape || !strstr(header, "'fortran_order': False"))
        return false;
    if (strstr(header, "'<f4'"))
        out->dtype = GRT_DTYPE_FLOAT;
    else if (strstr(header, "'<i8'"))
        out->dtype = GRT_DTYPE_INT64;
    else
        return false;
    shape += strlen("'shape': (");
    for (char *end; *shape != ')'; shape = end + strspn(end, ", ")) {
        if (out->rank == GRT_MAX_RANK)
            return false;
        out->dims[out->rank++] = strtoll(shape, &end, 10);
        if (end == shape)
            return false;
    }
    return grt_tensor_elements(out) >= 0;
}

static bool read_file(FILE *file, const char *path, grt_tensor *out)
{
    unsigned char start[10];
    if (fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, "\x93NUMPY\x01", 7) != 0)
        return complain(path, "not a .npy file of version 1");
    char header[1 << 16] = "";
    size_t length = start[8] | (size_t)start[9] << 8;
    if (fread(header, 1, length, file) != length || !parse_header(header, out))
        return complain(path, "not a C-ordered float32 or int64 array");
    size_t bytes = grt_tensor_bytes(out);
    out->data = malloc(bytes ? bytes : 1);
    if (!out->data)
        return complain(path, "out of memory");
    if (fread(out->data, 1, bytes, file) != bytes) {
        free(out->data);
        return complain(path, "shorter than its shape");
    }
    return true;
}

bool npy_read(const char *path, grt_tensor *out)
{
    *out = (grt_tensor){0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return complain(path, "cannot be opened");
    bool ok = read_file(file, path, out);
    fclose(file);
    return ok;
}
