/* SPDX-License-Identifier: Apache-2.0 */
/* See completion.h. zsh reads the same after bashcompinit. */
#include "tools/completion.h"

#include "tools/report.h"

#include <string.h>

static void print_options(const tool_command *command)
{
    for (const tool_option *o = command->options; o->name; o++)
        tool_print(" %s", o->name);
    tool_print(" --verbose --help");
}

static void print_commands(const tool_command *commands)
{
    for (const tool_command *c = commands; c->run; c++)
        if (c->name)
            tool_print(" %s", c->name);
}

static void print_cases(const tool_command *commands)
{
    for (const tool_command *c = commands; c->run; c++) {
        if (!c->name)
            continue;
        tool_print("    %s) words=\"", c->name);
        print_options(c);
        tool_print("\" ;;\n");
    }
    tool_print("    help) words=\"");
    print_commands(commands);
    tool_print("\" ;;\n");
    tool_print("    *) words=\"");
    print_commands(commands);
    tool_print(" help completion --version");
    for (const tool_command *c = commands; c->run; c++)
        if (!c->name)
            print_options(c);
    tool_print("\" ;;\n");
}

int completion_print(const tool_command *commands, const char *shell)
{
    if (!shell || (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0)) {
        tool_error("completion: for which shell? There are bash and zsh: source <(%s completion bash)",
                   tool_name);
        return EXIT_BAD;
    }
    if (!strcmp(shell, "zsh"))
        tool_print("autoload -U +X bashcompinit && bashcompinit\n");
    tool_print("_%s_words()\n", tool_name);
    tool_print("{\n");
    tool_print("    local words command=${COMP_WORDS[1]}\n");
    tool_print("    [ \"$COMP_CWORD\" = 1 ] && command=\n");
    tool_print("    case $command in\n");
    print_cases(commands);
    tool_print("    esac\n");
    tool_print("    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n");
    tool_print("}\n");
    tool_print("complete -o default -F _%s_words %s\n", tool_name, tool_name);
    return EXIT_GOOD;
}
