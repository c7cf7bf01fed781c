/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a plan file around META, shared by reader and writer; and the checks of a decoded plan.
 *
 *   page 0     plan_header, zeros up to 4096
 *   sections   each at a multiple of 4096, in the order of the table, zeros between them
 *
 * All numbers are little-endian. Every byte of the file is under a checksum or must be zero. */
#ifndef GRT_SRC_PLAN_FORMAT_H
#define GRT_SRC_PLAN_FORMAT_H

#include "src/plan/plan.h"

#include <xxhash.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "plan files are mapped as they are: a big-endian host needs a byte-swapping reader first"
#endif

/* As in PNG: the bytes around the name reveal transfers that strip bit 7 or translate line ends. */
#define PLAN_MAGIC "\x89GRT\r\n\x1a\n"

enum {
    PLAN_VERSION = 1,
    PLAN_PAGE = 4096,
    PLAN_TENSOR_ALIGNMENT = 256,
    PLAN_LEAF = 1 << 20, /* sections are hashed in pieces of this size, so that several threads can do it */
    PLAN_MAX_SECTIONS = 64,
    PLAN_MAX_NESTING = 128, /* bodies within bodies */
    PLAN_MAX_NAME = 512,    /* of a weights file */
};

typedef enum plan_section_kind {
    PLAN_META = 1,
    PLAN_WEIGHTS = 2,
    PLAN_KERNELS = 3,   /* per target: compiled kernels */
    PLAN_TUNING = 4,    /* chosen algorithms, of all targets */
    PLAN_SIGNATURE = 5, /* of all other sections; the last one (signature.h) */
} plan_section_kind;

typedef struct plan_section {
    uint32_t kind;
    uint32_t reserved; /* 0 */
    char target[16];   /* "sm_90", ...; zeros for sections of no target */
    uint64_t offset, length;
    uint64_t checksum; /* plan_checksum of the section */
} plan_section;

typedef struct plan_header {
    char magic[8];
    uint32_t version;
    uint32_t flags; /* 0; a reader refuses flags that it does not know */
    uint64_t file_size;
    uint64_t checksum; /* XXH3 of page 0 with this field zero */
    uint32_t n_sections;
    uint32_t reserved; /* 0 */
    plan_section sections[PLAN_MAX_SECTIONS];
} plan_header;
_Static_assert(sizeof(plan_section) == 56 - 8, "no padding in the file");
_Static_assert(sizeof(plan_header) <= PLAN_PAGE, "the header fits page 0");

/* XXH3 over the XXH3 of every leaf. False when out of memory. Large inputs are hashed by several threads. */
bool plan_checksum(const void *data, size_t size, uint64_t *out_checksum);

/* The same checksum of bytes that come in pieces. */
typedef struct plan_hasher {
    XXH3_state_t *leaf, *top;
    size_t in_leaf;
} plan_hasher;
bool plan_hasher_begin(plan_hasher *hasher); /* false when out of memory */
void plan_hasher_add(plan_hasher *hasher, const void *data, size_t size);
uint64_t plan_hasher_end(plan_hasher *hasher); /* and release */

uint64_t plan_header_checksum(const void *page);

/* META bytes to structures, with all sizes checked but no index. weights' data is set for strings only;
 * `offsets` (in the arena) tells where the others are. external->name is NULL unless weights lie in a file of
 * their own. */
typedef struct plan_external {
    const char *name;
    uint64_t size, checksum;
} plan_external;
grt_status plan_decode(const char *path, const void *meta, size_t size, grt_plan *plan,
                       const uint64_t **out_offsets, plan_external *out_external);
/* The opposite: META bytes, to be freed; NULL when out of memory. `offsets`: of weights. external may be
 * NULL. */
void *plan_encode(const grt_plan *plan, const uint64_t *offsets, const plan_external *external,
                  size_t *out_size);

/* src/plan/weights.c: the name of the weights file of a plan at `path`, "k.grt.0123456789abcdef.weights".
 * False if that is too long. */
bool plan_weights_name(const char *path, uint64_t checksum, char out_name[PLAN_MAX_NAME]);
/* Remove weights files of that name, but `keep`, that no plan in the directory mentions: those of plans that
 * were replaced. The caller has the directory's lock (grt_output_lock_directory), as everybody has who puts
 * weights in place and then their plan. */
void plan_weights_tidy(const char *path, const char *keep);

/* Everything that an executor may rely on: indices in range, values made before they are used, bodies a tree.
 * Weights' types must be set, their data need not. Errors: INVALID_PLAN. */
grt_status plan_check(const char *path, const grt_plan *plan);

#endif
