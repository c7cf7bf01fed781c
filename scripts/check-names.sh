#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a static function's name tells in a backtrace which file it is in: no two files of what is shipped define one
# of the same name. docs/style.md has the rule; the package for Python is C++ in classes and is left out.
# usage: scripts/check-names.sh [SOURCE-DIR]; the last line is "N passed, N failed, N skipped" (one per file).
set -u
cd "${1:-${srcdir:-$(dirname "$0")/..}}" || exit 1

# Names that several files share on purpose. Micro-kernels of 8-bit products are one loop over functions that the including
# file defines for its instruction set: the loop names them.
shared='^(finish_rows|multiply_block|sum_windows)$'

files() { find src graph backends tools serving -regextype posix-extended -regex '.*\.(c|h|cc|cu|cuh|inc)' | sort; }

# "NAME FILE" for each function with internal linkage. The formatter puts a definition's first word and its "{" into the
# first column, so a definition is what lies between the two without a ";" or "}".
# shellcheck disable=SC2016 # awk's own variables
definitions()
{
    files | xargs -r awk '
        FNR == 1 { head = ""; inner = 0 }
        /^namespace$/ { inner = 1; head = ""; next }
        /^#/ { next }
        /^{/ {
            if (head != "" && (inner || head ~ /(^| )static /)) {
                gsub(/__attribute__\(\([^)]*(\([^)]*\))?[^)]*\)\)|__launch_bounds__\([^)]*\)/, "", head)
                if (match(head, /[A-Za-z_][A-Za-z_0-9]*\(/))
                    print substr(head, RSTART, RLENGTH - 1), FILENAME
            }
            head = ""
            next
        }
        /^[A-Za-z]/ { head = head " " $0 }
        /^[ \t]/ && head != "" { head = head $0 }
        /[;}]$|^$|^[\/ ]\*|=/ { head = "" }
    ' | sort -u
}

all=$(definitions)
twice=$(cut -d' ' -f1 <<<"$all" | sort | uniq -d | grep -vE "$shared")
if [ "$twice" ]; then
    grep -E "^($(paste -sd'|' <<<"$twice")) " <<<"$all" |
        sed -E 's/^([^ ]+) (.*)/\2: \1: another file has a static function of this name; put the noun of the file before it/'
fi
total=$(files | wc -l)
failed=0
[ "$twice" ] && failed=$(grep -E "^($(paste -sd'|' <<<"$twice")) " <<<"$all" | cut -d' ' -f2 | sort -u | wc -l)
echo "$((total - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
