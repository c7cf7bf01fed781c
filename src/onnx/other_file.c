/* SPDX-License-Identifier: Apache-2.0 */
#include "src/onnx/other_file.h"

#include <ctype.h>
#include <string.h>

/* How a kind of file begins, behind `at` bytes. */
static const struct {
    size_t at, n;
    const char *begin, *what;
} kinds[] = {
    {0, 24, "version https://git-lfs.", "a pointer of Git LFS: 'git lfs pull' fetches the file itself"},
    {0, 4, "PK\3\4", "a ZIP archive, as torch.save and Keras write them: export the model to ONNX"},
    {0, 2, "\x80\2", "a pickle, as old versions of torch.save write them: export the model to ONNX"},
    {0, 4, "\x89HDF", "an HDF5 file, as Keras writes them: export the model to ONNX"},
    {0, 4, "GGUF", "a GGUF file: export the model to ONNX"},
    {8, 2, "{\"", "a safetensors file, which has weights and no graph: export the model to ONNX"},
    {4, 4, "ORTM", "a model in ONNX Runtime's own format (.ort): use the ONNX file that it was made from"},
    {4, 4, "TFL3", "a TensorFlow Lite model: convert it to ONNX"},
    {0, 2, "\x1f\x8b", "compressed by gzip: unpack it"},
};

const char *grt_other_file(const void *bytes, size_t size)
{
    const char *text = bytes;
    size_t blank = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (size >= kinds[i].at + kinds[i].n && !memcmp(text + kinds[i].at, kinds[i].begin, kinds[i].n))
            return kinds[i].what;
    while (blank < size && blank < 64 && isspace((unsigned char)text[blank]))
        blank++;
    return blank < size && text[blank] == '<' ? "HTML or XML, as a download that failed leaves it" : NULL;
}
