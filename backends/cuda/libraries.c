/* Opening the vendor libraries on first use. */
#include "backends/cuda/libraries.h"

#include <stdlib.h>

struct cuda_libraries {
    int device;
};

grt_status cuda_libraries_create(int device, cuda_libraries **out_libraries)
{
    cuda_libraries *libraries = calloc(1, sizeof *libraries);
    if (!libraries)
        return grt_fail_memory(sizeof *libraries);
    libraries->device = device;
    *out_libraries = libraries;
    return GRT_OK;
}

void cuda_libraries_release(cuda_libraries *libraries)
{
    free(libraries);
}
