/* SPDX-License-Identifier: Apache-2.0 */
/* By hand instead of by nvrtc.h, so that builds without CUDA have the test where NVRTC is. */
#include "tests/emulate/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *program;
static struct {
    int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*destroy)(program *);
    int (*compile)(program, int, const char *const *);
    int (*log_size)(program, size_t *);
    int (*log)(program, char *);
} nvrtc;

static void *open_library(void)
{
    const char *home = getenv("CUDA_HOME"), *folders[] = {"", home, "/usr/local/cuda"};
    for (int i = 0; i < 3; i++)
        for (int version = 13; folders[i] && version >= 12; version--) {
            char path[512];
            snprintf(path, sizeof path, "%s%slibnvrtc.so.%d", folders[i], i ? "/lib64/" : "", version);
            void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (opened)
                return opened;
        }
    return NULL;
}

bool emulate_nvrtc_open(void)
{
    void *opened = open_library();
    if (!opened)
        return false;
    *(void **)&nvrtc.create = dlsym(opened, "nvrtcCreateProgram");
    *(void **)&nvrtc.destroy = dlsym(opened, "nvrtcDestroyProgram");
    *(void **)&nvrtc.compile = dlsym(opened, "nvrtcCompileProgram");
    *(void **)&nvrtc.log_size = dlsym(opened, "nvrtcGetProgramLogSize");
    *(void **)&nvrtc.log = dlsym(opened, "nvrtcGetProgramLog");
    return nvrtc.create && nvrtc.destroy && nvrtc.compile && nvrtc.log_size && nvrtc.log;
}

const char *emulate_nvrtc_refuses(const char *source)
{
    static const char *const options[] = {"--gpu-architecture=sm_80", "--std=c++17", "--disable-warnings"};
    static char words[1024];
    size_t size = 0;
    program p;
    if (nvrtc.create(&p, source, "kernel.cu", 0, NULL, NULL))
        return "NVRTC makes no program";
    const int failed = nvrtc.compile(p, sizeof options / sizeof *options, options);
    if (failed) {
        char *log = nvrtc.log_size(p, &size) ? NULL : calloc(size + 1, 1);
        snprintf(words, sizeof words, "NVRTC: %s", log && !nvrtc.log(p, log) ? log : "refused");
        free(log);
    }
    (void)nvrtc.destroy(&p);
    return failed ? words : NULL;
}
