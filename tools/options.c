/* See options.h. */
#include "tools/options.h"

#include "tools/report.h"

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
        printf("%*s%.*s\n", line == text ? 0 : column, "", n, line);
        line = end ? end + 1 : NULL;
    }
}

static void print_option(const char *name, const char *value, const char *help)
{
    char left[80];
    snprintf(left, sizeof left, "  %s%s%s", name, value && *value != '[' ? " " : "", value ? value : "");
    enum { COLUMN = 28 };
    if (strlen(left) < COLUMN - 1)
        printf("%-*s", COLUMN, left);
    else
        printf("%s\n%*s", left, COLUMN, "");
    print_indented(help, COLUMN);
}

static void print_usage(FILE *to, const tool_command *c)
{
    fprintf(to, "usage: %s%s%s [OPTION]... %s\n", tool_name, c->name ? " " : "", c->name ? c->name : "",
            c->arguments);
}

static void print_command_help(const tool_command *c)
{
    print_usage(stdout, c);
    printf("\n");
    print_indented(c->summary, 0);
    printf("\n");
    for (const tool_option *o = c->options; o->id; o++)
        print_option(o->name, o->value, o->help);
    print_option("--help", NULL, "show this text");
    if (c->notes)
        printf("\n%s\n", c->notes);
    printf("\nExit status: 0 success, 1 a check failed, 2 bad use or bad input. More: man %s\n", tool_name);
}

void options_begin(tool_parser *parser, const tool_command *command, int argc, char **argv)
{
    *parser = (tool_parser){.command = command, .argc = argc, .argv = argv};
}

static int wrong(const tool_parser *p, const char *problem, const char *word)
{
    tool_error("%s '%s'; see %s%s%s --help", problem, word, tool_name, p->command->name ? " " : "",
               p->command->name ? p->command->name : "");
    return OPTION_WRONG;
}

int options_next(tool_parser *p)
{
    if (p->at >= p->argc)
        return OPTION_END;
    const char *word = p->argv[p->at++];
    p->value = word;
    if (p->only_arguments || word[0] != '-' || !word[1])
        return OPTION_ARGUMENT;
    if (!strcmp(word, "--")) {
        p->only_arguments = true;
        return options_next(p);
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        print_command_help(p->command);
        return OPTION_HELP;
    }
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    for (const tool_option *o = p->command->options; o->id; o++) {
        if (strlen(o->name) != n || strncmp(o->name, word, n) != 0)
            continue;
        p->value = equals ? equals + 1 : NULL;
        if (!o->value && equals)
            return wrong(p, "no value is expected in", word);
        if (o->value && *o->value != '[' && !equals) {
            if (p->at >= p->argc)
                return wrong(p, "a value is missing after", word);
            p->value = p->argv[p->at++];
        }
        return o->id;
    }
    return wrong(p, "unknown option", word);
}

bool option_int(const char *option, const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < min || v > max) {
        tool_error("%s: '%s' is not a whole number from %lld to %lld", option, text, (long long)min,
                   (long long)max);
        return false;
    }
    *out = v;
    return true;
}

bool option_double(const char *option, const char *text, double min, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < min) {
        tool_error("%s: '%s' is not a number of at least %g", option, text, min);
        return false;
    }
    *out = v;
    return true;
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
    printf("%s\n\n", summary);
    for (const tool_command *c = commands; c->run; c++) {
        print_usage(stdout, c);
        for (const char *line = c->summary; line;) {
            const char *end = strchr(line, '\n');
            printf("    %.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
            line = end ? end + 1 : NULL;
        }
    }
    printf("\n%s COMMAND --help has the options of each. Exit status: 0 success, 1 a check failed, 2 bad use "
           "or bad input.\n",
           tool_name);
}

int options_dispatch(const char *summary, const tool_command *commands, int argc, char **argv)
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
    if (!strcmp(word, "--version")) {
        printf("%s %s\n", tool_name, grt_version());
        return EXIT_GOOD;
    }
    if (!strcmp(word, "help") || ((!strcmp(word, "--help") || !strcmp(word, "-h")))) {
        print_help(summary, commands);
        if (unnamed) {
            printf("\n");
            print_command_help(unnamed);
        }
        return EXIT_GOOD;
    }
    for (const tool_command *c = commands; c->run; c++)
        if (c->name && !strcmp(c->name, word))
            return c->run(c, argc - 2, argv + 2);
    if (unnamed)
        return unnamed->run(unnamed, argc - 1, argv + 1);
    tool_error("unknown command '%s'; see %s --help", word, tool_name);
    return EXIT_BAD;
}
