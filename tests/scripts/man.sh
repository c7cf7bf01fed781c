#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The man pages and --help agree: every command is in the synopsis, every option of each in both. --help fits. Every environment variable that
# is read in the pages. Links between documents lead somewhere.
set -u
. "$(dirname "$0")/lib.sh"
pages=$srcdir/docs/man

# The part of a page that describes a command: "graphc optimize" or "graphrun check".
section()
{
    case $1 in
    graphc\ *) awk -v head="*$1*" '/^# COMMANDS/ { in_commands = 1 } /^# EXIT/ { exit } in_commands && /^\*graphc / { on = index($0, head) == 1 } on' "$pages/graphc.1.scd" ;;
    graphrun) awk '/^# / { on = /^# DESCRIPTION/ } on' "$pages/graphrun.1.scd" ;;
    graphrun\ *) awk -v head="# ${1^^}" '/^# / { on = $0 == head } on' "$pages/graphrun.1.scd" ;;
    esac
}
# shellcheck disable=SC2086 # a command and its sub-command
options_in_help() { ./$1 --help | sed -nE 's/^  (--?[a-z-]+(, --[a-z-]+)?).*/\1/p' | tr -d ' ' | tr ',' '\n' | grep -vx -e --help -e --verbose | sort -u; }
options_in_page() { section "$1" | grep -oE '\*--?[a-z][a-z-]*' | tr -d '*' | grep -vx -e --help -e --verbose | sort -u; }
same_options() { diff <(options_in_help "$1") <(options_in_page "$1"); }
# shellcheck disable=SC2086 # the same
fits() { ! ./$1 --help | awk 'length > 120' | grep .; }
in_synopsis()
{
    local tool=${1%% *}
    awk '/^# / { on = /^# SYNOPSIS/ } on' "$pages/$tool.1.scd" | grep -qF "*$1*" && ./"$tool" --help | grep -q "^usage: $1 "
}

for command in "graphc optimize" "graphc quantize" "graphc check" "graphc inspect" "graphc tune" "graphc cache" "graphc keygen" "graphc sign" "graphc devices" graphrun "graphrun check" \
    "graphrun bench"; do
    check "$command: the options of --help are those of the man page" same_options "$command"
    check "$command: it is in the synopsis and in --help" in_synopsis "$command"
    check "$command: --help fits in 120 columns" fits "$command"
done
grep -rhoE 'getenv\("[A-Z_]+"\)' "$srcdir/src" "$srcdir/backends" "$srcdir/graph" "$srcdir/tools" | grep -oE '[A-Z_]{3,}' | sort -u >"$scratch/variables"
while read -r variable; do
    check "\$$variable is in a man page" grep -qF "$variable" "$pages/graphc.1.scd" "$pages/graphrun.1.scd"
done <"$scratch/variables"
links()
{
    local file link bad=0
    while read -r file; do
        while read -r link; do
            [ -e "$(dirname "$file")/$link" ] || { echo "$file: $link" && bad=1; }
        done < <(grep -oE '\]\([^)#: ]+' "$file" | sed 's/^](//' | grep -vx 'https\?')
    done < <(find "$srcdir" -name '*.md' -not -path "$srcdir/build*" -not -path '*/_build/*')
    return "$bad"
}
check "links between documents" links
finish
