/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cuda/nvrtc.h"

#include "backends/cuda/libraries.h"

#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

#define NVRTC_FUNCTIONS(X)    \
    X(nvrtcCreateProgram)     \
    X(nvrtcDestroyProgram)    \
    X(nvrtcCompileProgram)    \
    X(nvrtcGetErrorString)    \
    X(nvrtcGetProgramLog)     \
    X(nvrtcGetProgramLogSize) \
    X(nvrtcVersion)           \
    X(nvrtcGetCUBIN)          \
    X(nvrtcGetCUBINSize)

#define X(function) static __typeof__(&function) p_##function;
NVRTC_FUNCTIONS(X)
#undef X

static void cuda_nvrtc_find(void *opened, const char **missing)
{
#define X(function) cuda_library_function(opened, #function, &p_##function, missing);
    NVRTC_FUNCTIONS(X)
#undef X
}

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
static cuda_library nvrtc_library = {"NVRTC 13 or 12", names, cuda_nvrtc_find, PTHREAD_MUTEX_INITIALIZER,
                                     false};

/* The end of the compiler's log, which has the errors. */
static grt_status refused(const char *name, nvrtcResult result, nvrtcProgram program)
{
    enum { SHOWN = 1500 };
    size_t size = 0;
    char *log = NULL;
    if (p_nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1 && (log = calloc(size + 1, 1)))
        (void)p_nvrtcGetProgramLog(program, log);
    grt_status status = grt_fail(
        result == NVRTC_ERROR_INVALID_OPTION ? GRT_STATUS_UNSUPPORTED : GRT_STATUS_INTERNAL,
        "NVRTC on the generated kernel %s: %s%s%s", name, p_nvrtcGetErrorString(result), log ? ": " : "",
        !log           ? ""
        : size > SHOWN ? log + size - SHOWN
                       : log);
    free(log);
    return status;
}

grt_status cuda_nvrtc_compile(const char *name, const char *source, int sm, void **out_code, size_t *out_size)
{
    char architecture[48];
    nvrtcProgram program;
    *out_code = NULL;
    GRT_TRY(cuda_library_open(&nvrtc_library));
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", sm);
    const char *const options[] = {architecture, "--std=c++17", "--disable-warnings"};
    _Static_assert(sizeof CUDA_NVRTC_OPTIONS == sizeof "--std=c++17 --disable-warnings", "as above");
    nvrtcResult result = p_nvrtcCreateProgram(&program, source, name, 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return grt_fail(GRT_STATUS_INTERNAL, "NVRTC: %s", p_nvrtcGetErrorString(result));
    grt_status status = GRT_OK;
    result = p_nvrtcCompileProgram(program, 3, options);
    if (result == NVRTC_SUCCESS)
        result = p_nvrtcGetCUBINSize(program, out_size);
    if (result == NVRTC_SUCCESS) {
        *out_code = malloc(*out_size);
        result = *out_code ? p_nvrtcGetCUBIN(program, *out_code) : NVRTC_ERROR_OUT_OF_MEMORY;
    }
    if (result != NVRTC_SUCCESS) {
        status = refused(name, result, program);
        free(*out_code);
        *out_code = NULL;
    }
    p_nvrtcDestroyProgram(&program);
    return status;
}

void cuda_nvrtc_version(grt_text *key)
{
    int major = 0, minor = 0;
    if (p_nvrtcVersion && p_nvrtcVersion(&major, &minor) == NVRTC_SUCCESS)
        grt_text_add(key, "nvrtc=%d.%d;", major, minor);
}
