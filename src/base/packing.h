/* How the bytes of a constant lie when they are not the plain tensor. A format is a word that the kernels of
 * one backend agree on; nobody else reads such bytes. */
#ifndef GRT_BASE_PACKING_H
#define GRT_BASE_PACKING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct grt_packing {
    char format[48]; /* "": the plain tensor */
    size_t bytes;    /* of the packed form */
} grt_packing;

static inline bool grt_is_packed(const grt_packing *packing)
{
    return packing->format[0] != '\0';
}

#endif
