/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/options.h"

#include "tools/completion.h"
#include "tools/destination.h"
#include "tools/piped.h"
#include "tools/report.h"
#include "tools/verbose.h"

#include <graphrt/graphrt.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_indented(const char *text, int column)
{
    for (const char *line = text; line;) {
        const char *end = strchr(line, '\n');
        int n = end ? (int)(end - line) : (int)strlen(line);
        tool_print("%*s%.*s\n", line == text ? 0 : column, "", n, line);
        line = end ? end + 1 : NULL;
    }
}

/* long_name: NULL unless the option has two. */
static void print_option(const char *name, const char *long_name, const char *value, const char *help)
{
    char left[80];
    snprintf(left, sizeof left, "  %s%s%s%s%s", name, long_name ? ", " : "", long_name ? long_name : "",
             value && *value != '[' ? " " : "", value ? value : "");
    enum { COLUMN = 28 };
    const bool fits = strlen(left) < COLUMN - 1;
    tool_print("%-*s", COLUMN, left);
    if (!fits) {
        tool_print("\n");
        tool_print("%*s", COLUMN, "");
    }
    print_indented(help, COLUMN);
}

static void print_usage(FILE *to, const tool_command *c)
{
    fprintf(to, "usage: %s%s%s [OPTION]...%s%s\n", tool_name, c->name ? " " : "", c->name ? c->name : "",
            *c->arguments ? " " : "", c->arguments);
}

/* A command may mean something of its own by a word that all take. */
static bool has_option(const tool_command *c, const char *name)
{
    const tool_option *o = c->options;
    while (o->name && strcmp(o->name, name) != 0)
        o++;
    return o->name != NULL;
}

static void print_command_help(const tool_command *c)
{
    print_usage(stdout, c);
    tool_print("\n");
    print_indented(c->summary, 0);
    tool_print("\n");
    for (const tool_option *o = c->options; o->name; o++)
        if (o->help)
            print_option(o->name, o[1].name && !o[1].help ? o[1].name : NULL, o->value, o->help);
    if (!has_option(c, "--verbose"))
        print_option("--verbose", NULL, NULL,
                     "say what happens to models and sessions; GRAPHRT_LOG asks for more or less");
    print_option("--help", NULL, NULL, "show this text");
    if (c->notes) {
        tool_print("\n");
        print_indented(c->notes, 0);
    }
    tool_print("\nExit status: 0 success, 1 a check failed, 2 bad use or bad input. More: man %s\n",
               tool_name);
}

typedef struct parser {
    const tool_command *command;
    void *request;
    int argc, at;
    char **argv;
} parser;

static bool refuse_word(const parser *p, const char *problem, const char *word)
{
    tool_error("%s '%s'; see %s%s%s --help", problem, word, tool_name, p->command->name ? " " : "",
               p->command->name ? p->command->name : "");
    return false;
}

static bool take_int_value(const tool_option *o, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < o->min || v > o->max) {
        tool_error("%s: '%s' is not a whole number from %lld to %lld", o->name, text, (long long)o->min,
                   (long long)o->max);
        return false;
    }
    *out = v;
    return true;
}

static bool take_number_value(const tool_option *o, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < o->least) {
        tool_error("%s: '%s' is not a number of at least %g", o->name, text, o->least);
        return false;
    }
    *out = v;
    return true;
}

static bool take_option_value(const parser *p, const tool_option *o, const char *value)
{
    void *to = (char *)p->request + o->at;
    if (value && !*value)
        return refuse_word(p, "the value is empty after", o->name);
    switch (o->kind) {
    case OPTION_IS_FLAG:
        *(bool *)to = true;
        return true;
    case OPTION_IS_TEXT:
        *(const char **)to = value;
        return true;
    case OPTION_IS_FILE:
        *(const char **)to = value;
        return option_is_file(o->name, value);
    case OPTION_IS_INT:
        return take_int_value(o, value, to);
    case OPTION_IS_NUMBER:
        return take_number_value(o, value, to);
    case OPTION_IS_TAKEN:
        return o->take(p->request, value);
    }
    return false;
}

/* "--name=VALUE" and "-nVALUE" have the value in the word itself. */
static bool take_option(parser *p, const char *word)
{
    const bool is_short = word[1] != '-';
    const char *equals = is_short ? NULL : strchr(word, '='), *value = equals ? equals + 1 : NULL;
    size_t n = equals ? (size_t)(equals - word) : is_short ? 2 : strlen(word);
    if (is_short && word[2])
        value = word + 2;
    const tool_option *o = p->command->options;
    while (o->name && (strlen(o->name) != n || strncmp(o->name, word, n) != 0))
        o++;
    if (!o->name)
        return refuse_word(p, "unknown option", word);
    if (!o->value && value)
        return refuse_word(p, "no value is expected in", word);
    if (o->value && *o->value != '[' && !value) {
        if (p->at >= p->argc)
            return refuse_word(p, "a value is missing after", word);
        value = p->argv[p->at++];
    }
    return take_option_value(p, o, value);
}

bool options_parse(const tool_command *command, int argc, char **argv, void *request,
                   bool (*argument)(void *request, const char *value), int *out_code)
{
    parser p = {command, request, argc, 0, argv};
    bool only_arguments = false;
    while (p.at < argc) {
        const char *word = argv[p.at++];
        bool ok = true;
        if (only_arguments || word[0] != '-' || !word[1]) {
            ok = argument(request, word);
        } else if (!strcmp(word, "--")) {
            only_arguments = true;
        } else if (!strcmp(word, "--verbose") && !has_option(command, word)) {
            verbose_switch_on();
        } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            print_command_help(command);
            *out_code = EXIT_GOOD;
            return false;
        } else {
            ok = take_option(&p, word);
        }
        if (!ok) {
            *out_code = EXIT_BAD;
            return false;
        }
    }
    return true;
}

bool option_only(const char **model, const char *value)
{
    if (*model)
        tool_error("one model at a time: '%s' and '%s'", *model, value);
    bool ok = !*model;
    *model = value;
    return ok && piped_take(model);
}

bool option_is_file(const char *option, const char *path)
{
    if (strcmp(path, "-") != 0)
        return destination_file(option, path);
    tool_error("%s: this cannot go to standard output; a file of that name is ./-", option);
    return false;
}

bool option_given(const tool_command *command, const char *model)
{
    if (!model)
        tool_error("no model is given; see %s%s%s --help", tool_name, command->name ? " " : "",
                   command->name ? command->name : "");
    return model != NULL;
}

bool option_pair(const char *option, const char *text, char **out_name, const char **out_rest)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) {
        tool_error("%s: '%s' is not NAME=VALUE", option, text);
        return false;
    }
    *out_name = strndup(text, (size_t)(equals - text));
    *out_rest = equals + 1;
    return *out_name != NULL;
}

static void print_help(const char *summary, const tool_command *commands)
{
    tool_print("%s\n\n", summary);
    for (const tool_command *c = commands; c->run; c++) {
        print_usage(stdout, c);
        for (const char *line = c->summary; line;) {
            const char *end = strchr(line, '\n');
            tool_print("    %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
            line = end ? end + 1 : NULL;
        }
    }
    tool_print(
        "\n%s COMMAND --help has the options of each. Exit status: 0 success, 1 a check failed, 2 bad use "
        "or bad input.\n",
        tool_name);
}

/* `help`, and `help COMMAND`. */
static int show_help(const char *summary, const tool_command *commands, const char *word)
{
    const tool_command *unnamed = NULL;
    for (const tool_command *c = commands; c->run; c++) {
        if (word && c->name && !strcmp(c->name, word)) {
            print_command_help(c);
            return EXIT_GOOD;
        }
        unnamed = c->name ? unnamed : c;
    }
    if (word) {
        tool_error("there is no help on '%s'; see %s --help", word, tool_name);
        return EXIT_BAD;
    }
    print_help(summary, commands);
    if (unnamed) {
        tool_print("\n");
        print_command_help(unnamed);
    }
    return EXIT_GOOD;
}

static int dispatch_command(const char *summary, const tool_command *commands, int argc, char **argv)
{
    const tool_command *unnamed = NULL;
    for (const tool_command *c = commands; c->run; c++)
        if (!c->name)
            unnamed = c;
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        tool_error("nothing to do; see %s --help", tool_name);
        return EXIT_BAD;
    }
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        tool_print("%s %s\n", tool_name, grt_version());
        return EXIT_GOOD;
    }
    if (!strcmp(word, "completion"))
        return completion_print(commands, argc > 2 ? argv[2] : NULL);
    if (!strcmp(word, "help"))
        return show_help(summary, commands, argc > 2 ? argv[2] : NULL);
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        return show_help(summary, commands, NULL);
    for (const tool_command *c = commands; c->run; c++)
        if (c->name && !strcmp(c->name, word))
            return c->run(c, argc - 2, argv + 2);
    if (unnamed)
        return unnamed->run(unnamed, argc - 1, argv + 1);
    tool_error("unknown command '%s'; see %s --help", word, tool_name);
    return EXIT_BAD;
}

int options_dispatch(const char *summary, const tool_command *commands, int argc, char **argv)
{
    int code = verbose_read_environment() ? dispatch_command(summary, commands, argc, argv) : EXIT_BAD;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    tool_error("standard output: %s", errno ? strerror(errno) : "cannot be written");
    return EXIT_BAD;
}

bool option_load_custom_ops(void *request, const char *value)
{
    (void)request;
    if (grt_custom_ops_load(value) == GRT_OK)
        return true;
    tool_fail();
    return false;
}
