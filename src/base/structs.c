/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/structs.h"

#include <string.h>

enum { LARGEST = 1 << 16 }; /* what is beyond was never set */

static grt_status read_size(const void *theirs, const char *name, size_t *out_size)
{
    memcpy(out_size, theirs, sizeof *out_size);
    if (*out_size <= sizeof *out_size || *out_size > LARGEST)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s.struct_size is %zu; set it to sizeof(%s)", name,
                        *out_size, name);
    return GRT_OK;
}

grt_status grt_options_take(void *out, size_t size, const void *options, const char *name)
{
    size_t theirs;
    if (!options)
        return GRT_OK;
    GRT_TRY(read_size(options, name, &theirs));
    for (size_t i = size; i < theirs; i++)
        if (((const char *)options)[i])
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "%s has an option set that is unknown to this version of the library", name);
    memcpy(out, options, theirs < size ? theirs : size);
    memcpy(out, &size, sizeof size);
    return GRT_OK;
}

grt_status grt_reserved_check(const uint64_t *reserved, size_t size, const char *name)
{
    for (size_t i = 0; i < size / sizeof *reserved; i++)
        if (reserved[i])
            return grt_fail(GRT_STATUS_UNSUPPORTED,
                            "%s.reserved is not 0: zero the struct before its members are set, or use the "
                            "version of the library that the program was compiled for",
                            name);
    return GRT_OK;
}

grt_status grt_info_give(void *out_info, const void *info, size_t size, const char *name)
{
    size_t theirs;
    if (!out_info)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s is NULL", name);
    GRT_TRY(read_size(out_info, name, &theirs));
    const size_t first = sizeof theirs, end = theirs < size ? theirs : size;
    memcpy((char *)out_info + first, (const char *)info + first, end - first);
    return GRT_OK;
}
