/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and their options, as tables. */
#ifndef TOOLS_OPTION_TABLE_H
#define TOOLS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an option's value goes, in the command's request: */
typedef enum option_kind {
    OPTION_IS_FLAG,   /* a bool becomes true */
    OPTION_IS_TEXT,   /* a const char *, which points into argv */
    OPTION_IS_FILE,   /* the same, a file to write: not "-" */
    OPTION_IS_INT,    /* an int64_t from min to max */
    OPTION_IS_NUMBER, /* a double of at least least */
    OPTION_IS_TAKEN,  /* take(request, value); false after printing what is wrong */
} option_kind;

typedef struct tool_option {
    const char *name;  /* "--input" or "-o"; NULL ends the table */
    const char *value; /* what it takes: "NAME=FILE"; NULL: nothing; "[=FILE]": it may have one */
    const char *help;  /* may have several lines; NULL: a longer name of the option before */
    option_kind kind;
    size_t at; /* in the request */
    int64_t min, max;
    double least;
    bool (*take)(void *request, const char *value);
} tool_option;

typedef struct tool_command {
    const char *name;      /* "bench"; NULL: what is done without a subcommand */
    const char *arguments; /* "MODEL..." */
    const char *summary;
    const tool_option *options; /* ends with OPTION_TABLE_END */
    const char *notes;          /* after the options in --help; may be NULL */
    int (*run)(const struct tool_command *command, int argc, char **argv);
} tool_command;

#endif
