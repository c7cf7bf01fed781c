/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of plans' signatures, as users give them: in files or spelled out. */
#ifndef TOOLS_TRUST_H
#define TOOLS_TRUST_H

#include <stdbool.h>

/* For --trust: "all", "none", a public key, or a file with some, to what grt_compile_options.trust takes
 * (malloc'ed). NULL text: NULL, the library's default. False after printing an error. */
bool trust_read(const char *text, char **out_trust);
/* The one secret key in a file, malloc'ed: overwrite it before free(). NULL after printing what is wrong. */
char *trust_read_secret(const char *path);

#define TRUST_HELP                                                                                \
    "whose plans may bring code for a GPU: all (default), none (it is left out), or only plans\n" \
    "that are signed by KEY, 'ed25519:...' or a file of graphc keygen, are opened at all"

#endif
