#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of this checkout in build/debian/, examines them with lintian, and runs their tests in a fresh system.
# usage: scripts/debian.sh [--no-tests]
# What python3-graphrt is built with and Debian lacks is fetched from PyPI; without a network that package is left out, which is said.
# Needs dpkg-dev and debhelper; lintian and, for the tests, autopkgtest and mmdebstrap (as root): what is missing is said and skipped.
# The last line is the totals.
set -u
cd "$(dirname "$0")/.." || exit 1
tests=1
[ "${1:-}" = --no-tests ] && tests=
passed=0 failed=0 skipped=0
work=$PWD/build/debian
tree=$work/libgraphrt

check() # NAME COMMAND...
{
    local name=$1
    shift
    if "$@" >"$work/log-${name// /-}" 2>&1; then
        passed=$((passed + 1)) && echo "ok: $name"
    else
        failed=$((failed + 1)) && echo "FAILED: $name" && tail -n 30 "$work/log-${name// /-}" | sed 's/^/    /'
        return 1
    fi
}
skip() { skipped=$((skipped + 1)) && echo "skipped: $1: $2"; }
copy_tree() { rm -rf "$work" && mkdir -p "$tree" && git ls-files -co --exclude-standard | tar c -T - | tar x -C "$tree"; }
build_packages() { (cd "$tree" && DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS-nocheck}" dpkg-buildpackage -us -uc -b); }
clean_lintian() { lintian --fail-on error,warning "$work"/*.changes; }
make_system() { mmdebstrap --variant=buildd --include=dpkg-dev,apt-utils "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/system"; }
# shellcheck disable=SC2086 # a list of files
in_fresh_system() { autopkgtest --apt-upgrade --no-built-binaries "$work"/*.deb "$tree/" -- chroot "$work/system"; }

if ! command -v dpkg-buildpackage >/dev/null || ! command -v dh >/dev/null; then
    echo "skipped: Debian packages: there is no dpkg-buildpackage or debhelper"
    exit 77
fi
copy_tree || exit 1
if ! "$tree/debian/vendored.sh" >"$work/log-vendored" 2>&1; then
    skip "python3-graphrt" "nanobind cannot be fetched: $(tail -n 1 "$work/log-vendored" | cut -c 1-100)"
    export DEB_BUILD_PROFILES="${DEB_BUILD_PROFILES:+$DEB_BUILD_PROFILES }pkg.libgraphrt.nopython"
fi
if check "packages" build_packages; then
    if command -v lintian >/dev/null; then check "lintian" clean_lintian; else skip lintian "it is not installed"; fi
    if [ -z "$tests" ]; then
        skip "tests in a fresh system" "--no-tests"
    elif ! command -v autopkgtest >/dev/null || ! command -v mmdebstrap >/dev/null || [ "$(id -u)" != 0 ]; then
        skip "tests in a fresh system" "needs autopkgtest and mmdebstrap, as root"
    elif ! make_system >"$work/log-system" 2>&1; then
        skip "tests in a fresh system" "it cannot be made: $(tail -n 1 "$work/log-system" | cut -c 1-100)"
    else
        check "tests in a fresh system" in_fresh_system
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
