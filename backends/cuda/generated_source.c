/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/generated_source.h"

#include <string.h>

const char cuda_generated_beginning[] = {
    "typedef unsigned short u16;\n"
    "typedef unsigned char u8;\n"
    "#define INFINITY __int_as_float(0x7f800000)\n"
#include "cuda_pointwise_language.inc"
    "typedef float T, P;\n"
    "template <typename> using pw_vocabulary = pw_vocabulary_of<T, true>;\n"
    "struct alignas(16) pack16 { u16 v[8]; };\n"
    "struct alignas(16) pack32 { float v[8]; };\n"
    "struct alignas(8) pack8 { u8 v[8]; };\n"
    "__device__ __forceinline__ T of_float32(float x) { return x; }\n"
    "__device__ __forceinline__ T of_float16(u16 x) { T y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : "
    "\"h\"(x)); return y; }\n"
    "__device__ __forceinline__ T of_bfloat16(u16 x) { return __uint_as_float((unsigned)x << 16); }\n"
    "__device__ __forceinline__ T of_bool(u8 x) { return x ? 1.0f : 0.0f; }\n"
    "__device__ __forceinline__ float to_float32(T x) { return x; }\n"
    "__device__ __forceinline__ u16 to_float16(T x) { u16 y; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : "
    "\"f\"(x)); return y; }\n"
    "__device__ __forceinline__ u16 to_bfloat16(T x) { u16 y; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y) : "
    "\"f\"(x)); return y; }\n"
    "__device__ __forceinline__ u8 to_bool(T x) { return x != 0; }\n"};

uint32_t cuda_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void cuda_generated_let_next_begin(grt_text *s)
{
    grt_text_add(s, "#if __CUDA_ARCH__ >= 900\n    asm volatile(\"griddepcontrol.launch_dependents;\" ::: "
                    "\"memory\");\n#endif\n");
}

void cuda_generated_wait(grt_text *s)
{
    grt_text_add(
        s, "#if __CUDA_ARCH__ >= 900\n    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n#endif\n");
}
