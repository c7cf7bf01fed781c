/* SPDX-License-Identifier: Apache-2.0 */
/* grt_key_create and grt_plan_sign. */
#include "src/plan/signature.h"
#include "src/plan/source.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

grt_status grt_key_create(char out_public[GRT_KEY_SIZE], char out_secret[GRT_KEY_SIZE])
{
    uint8_t key[GRT_KEY_BYTES], seed[GRT_KEY_BYTES];
    if (!out_public || !out_secret)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "grt_key_create: out_public or out_secret is NULL");
    GRT_TRY(plan_key_make(key, seed));
    grt_key_print(false, key, out_public);
    grt_key_print(true, seed, out_secret);
    plan_key_forget(seed, sizeof seed);
    return GRT_OK;
}

static grt_status add_digest(plan_signature *s, const void *data, size_t size)
{
    return plan_digest_of(data, size, &s->digests[s->n_digests++]) ? GRT_OK : grt_fail_memory(size);
}

static grt_status digest_all(const plan_source *source, plan_signature *s)
{
    const plan_header *h = (const plan_header *)source->map.data;
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (h->sections[i].kind != PLAN_SIGNATURE)
            GRT_TRY(add_digest(s, source->map.data + h->sections[i].offset, (size_t)h->sections[i].length));
    const grt_plan *plan = source->plan;
    return plan->weights_owner ? add_digest(s, plan->weights_base, (size_t)plan->weights_bytes) : GRT_OK;
}

static grt_status write_signed(const plan_source *source, const char *out_path,
                               const uint8_t seed[GRT_KEY_BYTES])
{
    plan_signature s = {0};
    GRT_TRY(digest_all(source, &s));
    GRT_TRY(plan_signature_make((const plan_header *)source->map.data, seed, &s));
    return plan_source_write(source, out_path, PLAN_SIGNATURE, &s,
                             offsetof(plan_signature, digests) + s.n_digests * sizeof *s.digests);
}

grt_status grt_plan_sign(const char *plan_path, const char *out_path, const char *secret_key)
{
    uint8_t seed[GRT_KEY_BYTES];
    plan_source source;
    if (!plan_path || !out_path || !secret_key)
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_plan_sign: plan_path, out_path or secret_key is NULL");
    if (!grt_key_parse(true, secret_key, strlen(secret_key),
                       seed)) /* it is not shown: it may be one, nearly */
        return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                        "grt_plan_sign: that is no secret key, 'ed25519-secret:' and 64 hexadecimal digits");
    grt_status status = plan_source_open(plan_path, &source);
    if (status == GRT_OK)
        status = write_signed(&source, out_path, seed);
    plan_source_close(&source);
    plan_key_forget(seed, sizeof seed);
    return status;
}
