#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copy the licence of the package that a library belongs to, and the texts that it refers to. Debian and its like.
# usage: licence-of.sh LIBRARY DIRECTORY
set -eu
library=$1 directory=$2
mkdir -p "$directory"
# The file system may have been merged: dpkg knows one of the names.
owner() { dpkg -S "$1" 2>/dev/null | sed -n 's/:.*//p' | head -n 1; }
real=$(readlink -f "$library")
package=
for name in "$real" "${real#/usr}" "/usr$real" "$library"; do
    [ -n "$package" ] || package=$(owner "$name")
done
text=/usr/share/doc/$package/copyright
if [ -z "$package" ] || [ ! -f "$text" ]; then
    echo "licence-of.sh: the licence of $library is not known here: add it to $directory before you pass it on" >&2
    exit 0
fi
cp -L "$text" "$directory/$package.txt"
grep -oE '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$text" | sort -u | while read -r common; do
    [ ! -f "$common" ] || cp -L "$common" "$directory/"
done
