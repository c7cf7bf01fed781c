/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of both tools: a table of options for each command says what it takes, where that goes and
 * what its help says. `--name VALUE`, `--name=VALUE`, `-o VALUE`, `-oVALUE`; "--" ends the options. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "tools/option_table.h"

/* Rows of such a table, for member `field` of request type `type`; the compiler checks the member's type. */
#define OPTION_AT(type, field, kind) (offsetof(type, field) + 0 * sizeof(&((type *)0)->field == (kind *)0))
#define OPTION_FLAG(type, field, name, help)                                 \
    {                                                                        \
        name, NULL, help, OPTION_IS_FLAG, .at = OPTION_AT(type, field, bool) \
    }
#define OPTION_TEXT(type, field, name, value, help)                                   \
    {                                                                                 \
        name, value, help, OPTION_IS_TEXT, .at = OPTION_AT(type, field, const char *) \
    }
#define OPTION_FILE(type, field, name, value, help)                                   \
    {                                                                                 \
        name, value, help, OPTION_IS_FILE, .at = OPTION_AT(type, field, const char *) \
    }
#define OPTION_INT(type, field, low, high, name, value, help)                                            \
    {                                                                                                    \
        name, value, help, OPTION_IS_INT, .at = OPTION_AT(type, field, int64_t), .min = low, .max = high \
    }
#define OPTION_NUMBER(type, field, low, name, value, help)                                      \
    {                                                                                           \
        name, value, help, OPTION_IS_NUMBER, .at = OPTION_AT(type, field, double), .least = low \
    }
#define OPTION_TAKE(function, name, value, help)             \
    {                                                        \
        name, value, help, OPTION_IS_TAKEN, .take = function \
    }
/* Of every command that opens or compiles models. The library is loaded while options are read. */
#define OPTION_CUSTOM_OPS                                      \
    OPTION_TAKE(option_load_custom_ops, "--custom-ops", "LIB", \
                "load custom operators from this shared object, whose code is run; may be repeated")
bool option_load_custom_ops(void *request, const char *value);
#define OPTION_TABLE_END \
    {                    \
        0                \
    }

/* Fill in the request that the command's table speaks of; argv[0] is the first word after the command's name,
 * `argument` gets what is no option and returns false after printing what is wrong with it. False: there is
 * nothing more to do, the exit status is *out_code (--help, or something was wrong, which is printed). */
bool options_parse(const tool_command *command, int argc, char **argv, void *request,
                   bool (*argument)(void *request, const char *value), int *out_code);
/* False after printing that no file can be written there, or that "-" is none. */
bool option_is_file(const char *option, const char *path);
/* For `argument` of commands that have one model: false after printing that there are two. "-" and pipes are
 * read here (piped.h). */
bool option_only(const char **model, const char *value);
/* False after printing that there is no model. */
bool option_given(const tool_command *command, const char *model);

/* "NAME=REST": *out_name is malloc'ed, *out_rest points into text. */
bool option_pair(const char *option, const char *text, char **out_name, const char **out_rest);

/* Run the subcommand that argv names, or the one without a name; handles help, --help and --version. */
int options_dispatch(const char *summary, const tool_command *commands, int argc, char **argv);

#endif
