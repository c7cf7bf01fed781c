/* SPDX-License-Identifier: Apache-2.0 */
/* See trust.h. A file of keys has one a line; empty lines and those that begin with '#' are nothing. */
#include "tools/trust.h"

#include "tools/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char public_prefix[] = "ed25519:", secret_prefix[] = "ed25519-secret:";

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

static bool append_key(char **list, const char *key)
{
    char *joined = malloc((*list ? strlen(*list) : 0) + strlen(key) + 2);
    if (!joined) {
        tool_error("out of memory");
        return false;
    }
    sprintf(joined, "%s%s%s", *list ? *list : "", *list ? "," : "", key);
    free(*list);
    *list = joined;
    return true;
}

/* All keys of the kind, with commas between. */
static bool read_keys(FILE *f, const char *path, const char *prefix, char **out_keys)
{
    char line[256];
    bool ok = true;
    for (int number = 1; ok && fgets(line, sizeof line, f); number++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (!*line || *line == '#')
            continue;
        ok = begins_with(line, prefix);
        if (!ok) /* the line is not shown: it may be a secret */
            tool_error("%s:%d: this is no %s key ('%s...'); see graphc keygen", path, number,
                       prefix == secret_prefix ? "secret" : "public", prefix);
        ok = ok && append_key(out_keys, line);
    }
    memset(line, 0, sizeof line);
    if (ok && !*out_keys)
        tool_error("%s: there is no key in it", path);
    return ok && *out_keys;
}

/* option: whose value the path is. */
static bool read_key_file(const char *option, const char *path, const char *prefix, char **out_keys)
{
    FILE *f = fopen(path, "r");
    *out_keys = NULL;
    if (!f) {
        tool_error("%s: %s: %s", option, path, strerror(errno));
        return false;
    }
    const bool ok = read_keys(f, path, prefix, out_keys);
    fclose(f);
    return ok;
}

bool trust_read(const char *text, char **out_trust)
{
    *out_trust = NULL;
    if (!text)
        return true;
    if (strcmp(text, "all") != 0 && strcmp(text, "none") != 0 && !begins_with(text, public_prefix))
        return read_key_file("--trust (or GRAPHRT_TRUST): file of public keys", text, public_prefix,
                             out_trust);
    *out_trust = strdup(text);
    if (!*out_trust)
        tool_error("out of memory");
    return *out_trust != NULL;
}

char *trust_read_secret(const char *path)
{
    char *key;
    if (read_key_file("--key", path, secret_prefix, &key))
        return key;
    free(key);
    return NULL;
}
