/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of plan files: Ed25519 over the section table and a digest of each section. Digests are BLAKE2b
 * of leaves of PLAN_LEAF bytes, then of those, so that several threads can compute one, and weights may be
 * digested after the signature was verified: it covers the digests that are expected.
 *
 * What is signed: a line of text, the header's version and flags, the section table without the SIGNATURE
 * section, the digests of those sections in order, and the one of the weights' file if there is one (META has
 * its name and size). */
#ifndef GRT_SRC_PLAN_SIGNATURE_H
#define GRT_SRC_PLAN_SIGNATURE_H

#include "src/plan/format.h"
#include "src/plan/trust.h"

enum { PLAN_DIGEST_BYTES = 32 };

typedef struct plan_digest {
    uint8_t bytes[PLAN_DIGEST_BYTES];
} plan_digest;

/* The content of a SIGNATURE section, which is the last of its file. */
typedef struct plan_signature {
    uint32_t version;   /* 1 */
    uint32_t n_digests; /* that follow: of the other sections in order, then of the file of weights */
    uint8_t key[GRT_KEY_BYTES];
    uint8_t signature[64];
    plan_digest digests[PLAN_MAX_SECTIONS + 1];
} plan_signature;
_Static_assert(sizeof(plan_signature) == 104 + 32 * (PLAN_MAX_SECTIONS + 1), "no padding in the file");

/* False: these bytes are no signature. */
bool plan_signature_read(const void *data, size_t size, plan_signature *out_signature);
/* UNTRUSTED if there is none (NULL), its key is not trusted, or it was not made for this header and these
 * digests. What the digests are of is the caller's to compare. */
grt_status plan_signature_verify(const char *path, const plan_header *header, const plan_signature *signature,
                                 const grt_trust *trust);

/* The digests are there; key and signature are filled in. */
grt_status plan_signature_make(const plan_header *header, const uint8_t seed[GRT_KEY_BYTES],
                               plan_signature *signature);
/* A key of its own: the public one, and the seed of the secret one. */
grt_status plan_key_make(uint8_t out_key[GRT_KEY_BYTES], uint8_t out_seed[GRT_KEY_BYTES]);
void plan_key_forget(void *secret, size_t size); /* overwritten for good */

/* Of all the data; large data is read by several threads. False when out of memory. */
bool plan_digest_of(const void *data, size_t size, plan_digest *out_digest);
/* The same in two steps: of each leaf, then of all of them. */
void plan_digest_leaf(const void *leaf, size_t size, plan_digest *out_digest);
void plan_digest_leaves(const plan_digest *leaves, size_t n, plan_digest *out_digest);
/* UNTRUSTED: `what` differs from the signed content. */
grt_status plan_digest_compare(const char *path, const char *what, const plan_digest *expected,
                               const plan_digest *found);

#endif
