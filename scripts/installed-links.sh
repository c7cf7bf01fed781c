#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Turns links of installed documents to files that are not installed into plain text.
# usage: installed-links.sh DIRECTORY
set -eu
find "$1" -name '*.md' -type f | while read -r document; do
    awk -v here="$(dirname "$document")" '
        function exists(path) { return system("test -e \"" here "/" path "\"") == 0 }
        {
            out = ""
            while (match($0, /\[[^][]*\]\([^()]*\)/)) {
                link = substr($0, RSTART, RLENGTH)
                target = link; sub(/^.*\]\(/, "", target); sub(/\)$/, "", target)
                file = target; sub(/#.*/, "", file)
                if (file != "" && file !~ /^[a-z]+:/ && file ~ /^[A-Za-z0-9_.\/-]+$/ && !exists(file)) {
                    sub(/^\[/, "", link); sub(/\]\([^()]*\)$/, "", link)
                }
                out = out substr($0, 1, RSTART - 1) link
                $0 = substr($0, RSTART + RLENGTH)
            }
            print out $0
        }' "$document" >"$document.tmp"
    cat "$document.tmp" >"$document"
    rm "$document.tmp"
done
