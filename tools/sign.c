/* SPDX-License-Identifier: Apache-2.0 */
/* graphc keygen: a pair of keys in two files. graphc sign: a plan, signed. */
#define _GNU_SOURCE /* explicit_bzero */
#include "tools/sign.h"

#include "tools/report.h"
#include "tools/trust.h"

#include <graphrt/graphrt.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct keygen_request {
    const char *file;
    bool json;
} keygen_request;

const tool_option keygen_options[] = {
    OPTION_FLAG(keygen_request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

static bool take_key_file(void *request, const char *value)
{
    return option_only(&((keygen_request *)request)->file, value);
}

/* No key is ever overwritten. */
static bool write_key(const char *path, const char *key, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        tool_error("%s: %s", path, strerror(errno));
        return false;
    }
    const size_t size = strlen(key);
    const bool ok = write(fd, key, size) == (ssize_t)size && write(fd, "\n", 1) == 1 && fsync(fd) == 0;
    if (close(fd) == 0 && ok)
        return true;
    tool_error("%s: %s", path, strerror(errno));
    unlink(path);
    return false;
}

static bool print_keys(const keygen_request *r, const char *beside, const char *key)
{
    if (!r->json) {
        tool_print("%s: the secret key, for graphc sign --key\n", r->file);
        tool_print("%s: the public key, for graphrun --trust: %s\n", beside, key);
        return true;
    }
    json_t *object = json_object();
    json_object_set_new(object, "secret", json_text(r->file));
    json_object_set_new(object, "public", json_text(beside));
    json_object_set_new(object, "key", json_text(key));
    return json_print(object);
}

static int create_key_files(const keygen_request *r)
{
    const char *file = r->file;
    char key[GRT_KEY_SIZE], secret[GRT_KEY_SIZE], *beside = NULL;
    int code = EXIT_BAD;
    if (grt_key_create(key, secret) != GRT_OK)
        return tool_fail();
    if (asprintf(&beside, "%s.pub", file) < 0) {
        beside = NULL;
        tool_error("out of memory");
    } else if (write_key(file, secret, 0600)) {
        if (write_key(beside, key, 0666)) {
            code = print_keys(r, beside, key) ? EXIT_GOOD : EXIT_BAD;
        } else {
            unlink(file);
        }
    }
    explicit_bzero(secret, sizeof secret);
    free(beside);
    return code;
}

int keygen_command(const tool_command *command, int argc, char **argv)
{
    keygen_request r = {0};
    int code = EXIT_BAD;
    if (!options_parse(command, argc, argv, &r, take_key_file, &code))
        return code;
    if (!r.file)
        tool_error("no file is given; see %s keygen --help", tool_name);
    return r.file ? create_key_files(&r) : EXIT_BAD;
}

typedef struct sign_request {
    const char *plan, *key, *output;
    bool json;
} sign_request;

const tool_option sign_options[] = {
    OPTION_TEXT(sign_request, key, "--key", "FILE", "the secret key, from graphc keygen"),
    OPTION_TEXT(sign_request, output, "-o", "FILE", "where the signed plan goes (default: in place of PLAN)"),
    OPTION_TEXT(sign_request, output, "--output", "FILE", NULL),
    OPTION_FLAG(sign_request, json, "--json", "report as JSON on standard output"),
    OPTION_TABLE_END,
};

static bool take_plan_to_sign(void *request, const char *value)
{
    return option_only(&((sign_request *)request)->plan, value);
}

static int sign_plan(const sign_request *r)
{
    char *secret = trust_read_secret(r->key);
    if (!secret)
        return EXIT_BAD;
    const char *output = r->output ? r->output : r->plan;
    int code = grt_plan_sign(r->plan, output, secret) == GRT_OK ? EXIT_GOOD : tool_fail();
    if (code == EXIT_GOOD && r->json) {
        json_t *object = json_object();
        json_object_set_new(object, "plan", json_text(r->plan));
        json_object_set_new(object, "output", json_text(output));
        code = json_print(object) ? EXIT_GOOD : EXIT_BAD;
    } else if (code == EXIT_GOOD)
        tool_print("%s: signed\n", output);
    explicit_bzero(secret, strlen(secret));
    free(secret);
    return code;
}

int sign_command(const tool_command *command, int argc, char **argv)
{
    sign_request r = {0};
    int code = EXIT_BAD;
    if (!options_parse(command, argc, argv, &r, take_plan_to_sign, &code) || !option_given(command, r.plan))
        return code;
    if (!r.key)
        tool_error("no key is given: --key FILE, which graphc keygen makes");
    return r.key ? sign_plan(&r) : EXIT_BAD;
}
