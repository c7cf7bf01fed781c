#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copy the licences of the libraries that a wheel will carry. usage: licences.sh TREE LIBRARY DIRECTORY
set -eu
tree=$1 library=$2 directory=$3
# What every Linux has stays where it is.
ldd "$library" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux[^/]*|libgraphrt)\.so' |
    while read -r found; do
        "$tree/scripts/licence-of.sh" "$found" "$directory"
    done
