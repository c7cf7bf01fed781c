/* SPDX-License-Identifier: Apache-2.0 */
/* See signature.h. The only file that knows libsodium. */
#include "src/plan/signature.h"

#include <pthread.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(crypto_sign_PUBLICKEYBYTES == GRT_KEY_BYTES && crypto_sign_SEEDBYTES == GRT_KEY_BYTES,
               "keys as they are in files and texts");
_Static_assert(crypto_sign_BYTES == sizeof(((plan_signature *)0)->signature), "Ed25519");

static bool ready;

static void signature_init(void)
{
    ready = sodium_init() >= 0;
}

static bool sodium(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, signature_init);
    return ready;
}

/* A digest of leaves can never be taken for the digest of a leaf. */
static void digest(const void *data, size_t size,
                   const char personal[crypto_generichash_blake2b_PERSONALBYTES], plan_digest *out)
{
    (void)sodium(); /* it chooses the fastest code; without it there is the plain one */
    crypto_generichash_blake2b_salt_personal(out->bytes, sizeof out->bytes, data, size, NULL, 0, NULL,
                                             (const unsigned char *)personal);
}

void plan_digest_leaf(const void *leaf, size_t size, plan_digest *out_digest)
{
    digest(leaf, size, "graphrt leaf   ", out_digest);
}

void plan_digest_leaves(const plan_digest *leaves, size_t n, plan_digest *out_digest)
{
    digest(leaves, n * sizeof *leaves, "graphrt leaves ", out_digest);
}

bool plan_digest_of(const void *data, size_t size, plan_digest *out_digest)
{
    const int64_t n = (int64_t)(size / PLAN_LEAF + (size % PLAN_LEAF != 0));
    plan_digest few[4], *leaves = n <= 4 ? few : malloc((size_t)n * sizeof *leaves);
    if (!leaves)
        return false;
#pragma omp parallel for schedule(static) if (n > 4)
    for (int64_t i = 0; i < n; i++) {
        const size_t begin = (size_t)i * PLAN_LEAF, left = size - begin;
        plan_digest_leaf((const char *)data + begin, left < PLAN_LEAF ? left : PLAN_LEAF, &leaves[i]);
    }
    plan_digest_leaves(leaves, (size_t)n, out_digest);
    if (leaves != few)
        free(leaves);
    return true;
}

grt_status plan_digest_compare(const char *path, const char *what, const plan_digest *expected,
                               const plan_digest *found)
{
    if (!memcmp(expected, found, sizeof *found))
        return GRT_OK;
    return grt_fail(GRT_STATUS_UNTRUSTED, "%s: %s is not what was signed: it was changed afterwards", path,
                    what);
}

static const char line[] = "libgraphrt plan signature 1\n";
enum {
    MOST_BYTES = sizeof line + 2 * sizeof(uint32_t) + PLAN_MAX_SECTIONS * sizeof(plan_section) +
                 (PLAN_MAX_SECTIONS + 1) * sizeof(plan_digest)
};

static size_t signature_append(uint8_t *message, size_t at, const void *data, size_t size)
{
    memcpy(message + at, data, size);
    return at + size;
}

static size_t signed_bytes(const plan_header *h, const plan_signature *s, uint8_t out[MOST_BYTES])
{
    size_t n = signature_append(out, 0, line, sizeof line - 1);
    n = signature_append(out, n, &h->version, sizeof h->version);
    n = signature_append(out, n, &h->flags, sizeof h->flags);
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (h->sections[i].kind != PLAN_SIGNATURE)
            n = signature_append(out, n, &h->sections[i], sizeof h->sections[i]);
    return signature_append(out, n, s->digests, s->n_digests * sizeof *s->digests);
}

bool plan_signature_read(const void *data, size_t size, plan_signature *out_signature)
{
    const size_t fixed = offsetof(plan_signature, digests);
    *out_signature = (plan_signature){0};
    if (size < fixed || size > sizeof *out_signature)
        return false;
    memcpy(out_signature, data, size);
    return out_signature->version == 1 && out_signature->n_digests <= PLAN_MAX_SECTIONS + 1 &&
           size == fixed + out_signature->n_digests * sizeof(plan_digest);
}

grt_status plan_signature_verify(const char *path, const plan_header *header, const plan_signature *s,
                                 const grt_trust *trust)
{
    uint8_t message[MOST_BYTES];
    char key[GRT_KEY_SIZE];
    if (!s)
        return grt_fail(GRT_STATUS_UNTRUSTED, "%s: the plan is not signed; see graphc sign", path);
    grt_key_print(false, s->key, key);
    if (!grt_trust_has_key(trust, s->key))
        return grt_fail(GRT_STATUS_UNTRUSTED, "%s: the plan is signed by another key than trusted ones: %s",
                        path, key);
    if (!sodium())
        return grt_fail(GRT_STATUS_INTERNAL, "libsodium cannot be initialised");
    const size_t size = signed_bytes(header, s, message);
    if (crypto_sign_verify_detached(s->signature, message, size, s->key) != 0)
        return grt_fail(
            GRT_STATUS_UNTRUSTED,
            "%s: the signature does not fit the plan: it was changed afterwards, or %s has not signed it",
            path, key);
    return GRT_OK;
}

grt_status plan_signature_make(const plan_header *header, const uint8_t seed[GRT_KEY_BYTES],
                               plan_signature *signature)
{
    uint8_t message[MOST_BYTES], secret[crypto_sign_SECRETKEYBYTES];
    if (!sodium())
        return grt_fail(GRT_STATUS_INTERNAL, "libsodium cannot be initialised");
    signature->version = 1;
    crypto_sign_seed_keypair(signature->key, secret, seed);
    const size_t size = signed_bytes(header, signature, message);
    crypto_sign_detached(signature->signature, NULL, message, size, secret);
    sodium_memzero(secret, sizeof secret);
    return GRT_OK;
}

grt_status plan_key_make(uint8_t out_key[GRT_KEY_BYTES], uint8_t out_seed[GRT_KEY_BYTES])
{
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    if (!sodium())
        return grt_fail(GRT_STATUS_INTERNAL, "libsodium cannot be initialised");
    randombytes_buf(out_seed, GRT_KEY_BYTES);
    crypto_sign_seed_keypair(out_key, secret, out_seed);
    sodium_memzero(secret, sizeof secret);
    return GRT_OK;
}

void plan_key_forget(void *secret, size_t size)
{
    sodium_memzero(secret, size);
}
