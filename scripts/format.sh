#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Formats all C files with clang-format 14 and .clang-format, and wraps the prose of documents (scripts/wrap.pl).
# usage: scripts/format.sh [--check] [FILE...]
# --check changes nothing and lists the files that are not formatted. Without clang-format 14 it formats documents only and
# exits 77 (skipped): other versions format differently.
set -u
cd "$(dirname "$0")/.." || exit 1

check=
[ "${1:-}" = --check ] && check=1 && shift

documents=()
if (($# == 0)); then
    mapfile -t documents < <(find . -name '*.md' -not -path './build*' -not -path './.*' | sort)
else
    mapfile -t documents < <(printf '%s\n' "$@" | grep '\.md$')
    mapfile -t files < <(printf '%s\n' "$@" | grep -E '\.(c|h|cc|cu|cuh|inc)$')
fi
status=0
((${#documents[@]} == 0)) || perl scripts/wrap.pl ${check:+--check} "${documents[@]}" || status=1

formatter=
for name in clang-format-14 clang-format; do
    case $($name --version 2>/dev/null) in *"version 14."*)
        formatter=$name
        break
        ;;
    esac
done
if [ -z "$formatter" ]; then
    ((status)) && exit 1
    echo "format: skipped, clang-format 14 is not installed"
    exit 77
fi

if (($# == 0)); then
    # The public header is laid out by hand: its tables and trailing comments are documentation.
    mapfile -t files < <(find src graph backends tools examples models tests bench python serving -regextype posix-extended -regex '.*\.(c|h|cc|cu|cuh|inc)' | sort)
fi
((${#files[@]} == 0)) && exit $status
if [ -z "$check" ]; then
    exec "$formatter" -i "${files[@]}"
fi
for file in "${files[@]}"; do
    if ! "$formatter" --dry-run -Werror "$file" >/dev/null 2>&1; then
        echo "$file: not formatted (scripts/format.sh $file)"
        status=1
    fi
done
exit $status
