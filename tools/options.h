/* Command lines of both tools: tables of options, `--name VALUE`, `--name=VALUE`, -o VALUE, --help made from
 * the tables. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes, documented in the man pages. */
enum { EXIT_GOOD = 0, EXIT_CHECK = 1, EXIT_BAD = 2 };

typedef struct tool_option {
    int id;            /* > 0, what options_next returns */
    const char *name;  /* "--input" or "-o" */
    const char *value; /* what it takes: "NAME=FILE"; NULL: a flag; "[=FILE]": a flag that may have one */
    const char *help;  /* may have several lines */
} tool_option;

typedef struct tool_command {
    const char *name;      /* "bench"; NULL: what is done without a subcommand */
    const char *arguments; /* "MODEL..." */
    const char *summary;
    const tool_option *options; /* ends with id 0 */
    const char *notes;          /* after the options in --help; may be NULL */
    int (*run)(const struct tool_command *command, int argc, char **argv);
} tool_command;

enum { OPTION_END = 0, OPTION_ARGUMENT = -1, OPTION_WRONG = -2, OPTION_HELP = -3 };

typedef struct tool_parser {
    const tool_command *command;
    int argc, at;
    char **argv;
    bool only_arguments; /* after "--" */
    const char *value;   /* of the option, or the argument itself */
} tool_parser;

/* argv[0] is the first word after the subcommand. */
void options_begin(tool_parser *parser, const tool_command *command, int argc, char **argv);
/* The next option's id, or one of the above; OPTION_WRONG has printed why, OPTION_HELP the help. */
int options_next(tool_parser *parser);

/* Numbers in a range; false after printing what is wrong with `option`. */
bool option_int(const char *option, const char *text, int64_t min, int64_t max, int64_t *out);
bool option_double(const char *option, const char *text, double min, double *out);

/* "NAME=REST": *out_name is malloc'ed, *out_rest points into text. */
bool option_pair(const char *option, const char *text, char **out_name, const char **out_rest);

/* Run the subcommand that argv names, or the one without a name; handles --help and --version. */
int options_dispatch(const char *summary, const tool_command *commands, int argc, char **argv);

#endif
