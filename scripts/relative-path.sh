#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The relative path from one absolute directory to another; neither needs to exist: "../lib/x86_64-linux-gnu".
# usage: relative-path.sh FROM TO
set -eu
awk -v from="$1" -v to="$2" 'BEGIN {
    gsub("/+", "/", from); gsub("/+", "/", to)
    sub("/$", "", from); sub("/$", "", to)
    n = split(from, a, "/"); m = split(to, b, "/")
    for (same = 1; same <= n && same <= m && a[same] == b[same];) same++
    way = ""
    for (i = same; i <= n; i++) way = way (way == "" ? "" : "/") ".."
    for (i = same; i <= m; i++) way = way (way == "" ? "" : "/") b[i]
    print way == "" ? "." : way
}'
