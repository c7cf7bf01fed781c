/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* secure_getenv */
#include "src/plan/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const char *prefix_of(bool secret)
{
    return secret ? "ed25519-secret:" : "ed25519:";
}

void grt_key_print(bool secret, const uint8_t key[GRT_KEY_BYTES], char out_text[GRT_KEY_SIZE])
{
    size_t n = (size_t)snprintf(out_text, GRT_KEY_SIZE, "%s", prefix_of(secret));
    for (int i = 0; i < GRT_KEY_BYTES; i++)
        n += (size_t)snprintf(out_text + n, GRT_KEY_SIZE - n, "%02x", key[i]);
}

static int trust_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool grt_key_parse(bool secret, const char *text, size_t size, uint8_t out_key[GRT_KEY_BYTES])
{
    const char *prefix = prefix_of(secret);
    const size_t n = strlen(prefix);
    if (size != n + 2 * GRT_KEY_BYTES || memcmp(text, prefix, n) != 0)
        return false;
    for (size_t i = 0; i < GRT_KEY_BYTES; i++) {
        const int high = trust_digit(text[n + 2 * i]), low = trust_digit(text[n + 2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out_key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* `from`: where the text is from, for messages. */
static grt_status parse_keys(const char *text, const char *from, grt_trust *out)
{
    out->kind = GRT_TRUST_KEYS;
    for (const char *p = text; *p; p += *p == ',') {
        const size_t size = strcspn(p, ",");
        if (out->n_keys == GRT_TRUST_MOST_KEYS)
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT, "%s: more than %d keys", from, GRT_TRUST_MOST_KEYS);
        if (!grt_key_parse(false, p, size, out->keys[out->n_keys++]))
            return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                            "%s: '%.*s' is neither all, none nor a public key, 'ed25519:' and 64 "
                            "hexadecimal digits (keys are separated by commas)",
                            from, (int)size, p);
        p += size;
    }
    return out->n_keys ? GRT_OK
                       : grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                                  "%s is empty; it may be all, none or public keys, or left out", from);
}

grt_status grt_trust_parse(const char *text, grt_trust *out_trust)
{
    const char *from = text ? "trust" : "GRAPHRT_TRUST";
    *out_trust = (grt_trust){.kind = GRT_TRUST_ALL};
    if (!text)
        text = secure_getenv("GRAPHRT_TRUST");
    if (!text)
        text = getauxval(AT_SECURE) ? "none" : "all";
    if (!strcmp(text, "all"))
        return GRT_OK;
    if (strcmp(text, "none") != 0)
        return parse_keys(text, from, out_trust);
    out_trust->kind = GRT_TRUST_NONE;
    return GRT_OK;
}

bool grt_trust_has_key(const grt_trust *trust, const uint8_t key[GRT_KEY_BYTES])
{
    for (size_t i = 0; i < trust->n_keys; i++)
        if (!memcmp(trust->keys[i], key, GRT_KEY_BYTES))
            return true;
    return false;
}
