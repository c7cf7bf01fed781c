#!/bin/sh
# Make ./configure from configure.ac. Needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
mkdir -p m4
exec autoreconf -fi
