/* SPDX-License-Identifier: Apache-2.0 */
/* Trusted plans: `trust` of grt_compile_options, and keys as text. */
#ifndef GRT_SRC_PLAN_TRUST_H
#define GRT_SRC_PLAN_TRUST_H

#include "src/base/status.h"

enum { GRT_KEY_BYTES = 32, GRT_TRUST_MOST_KEYS = 16 };

typedef enum grt_trust_kind {
    GRT_TRUST_ALL,  /* any plan, with the code and choices that it brings */
    GRT_TRUST_NONE, /* any plan, without them */
    GRT_TRUST_KEYS, /* plans that one of the keys has signed, with them */
} grt_trust_kind;

typedef struct grt_trust {
    grt_trust_kind kind;
    size_t n_keys;
    uint8_t keys[GRT_TRUST_MOST_KEYS][GRT_KEY_BYTES];
} grt_trust;

/* text NULL: the environment's GRAPHRT_TRUST, else "all"; in programs with more rights than their user
 * "none". Errors: INVALID_ARGUMENT. */
grt_status grt_trust_parse(const char *text, grt_trust *out_trust);
bool grt_trust_has_key(const grt_trust *trust, const uint8_t key[GRT_KEY_BYTES]);

/* "ed25519:0123..." and "ed25519-secret:0123..." */
void grt_key_print(bool secret, const uint8_t key[GRT_KEY_BYTES], char out_text[GRT_KEY_SIZE]);
/* False: the text, of so many bytes, is no such key. */
bool grt_key_parse(bool secret, const char *text, size_t size, uint8_t out_key[GRT_KEY_BYTES]);

#endif
