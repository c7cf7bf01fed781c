#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what packages.txt lists and this machine lacks. usage: scripts/setup.sh [--dry-run] [build] [test] [lint]
# Fails only if a package of kind "build" is missing afterwards; others are worth a warning.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/ui.sh

dry_run=
kinds=
for arg; do
    case $arg in
    --dry-run) dry_run=1 ;;
    build | test | lint) kinds="$kinds $arg" ;;
    -h | --help)
        sed -n '3,4s/^# //p' "$0"
        exit 0
        ;;
    *) die "unknown argument $arg (see --help)" ;;
    esac
done
kinds=${kinds:- build}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Packages of the wanted kinds ($1: kinds) that are not installed.
missing()
{
    local kind package rest
    while read -r kind package rest; do
        case " $1 " in *" $kind "*) installed "$package" || echo "$package" ;; esac
    done < <(grep -v '^#' scripts/packages.txt)
}

# Run as root, by sudo if need be; a script without a terminal must not wait for a password.
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

apt_install()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends install "$@"
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "This is not Debian or Ubuntu, so nothing is installed. What the build needs, by its Debian names:"
    say "    $(awk '$1 == "build" { printf "%s ", $2 }' scripts/packages.txt)"
    exit 0
fi

mapfile -t wanted < <(missing "$kinds")
if ((${#wanted[@]} == 0)); then
    say "Packages: all installed."
    exit 0
fi
say "Packages to install (apt-get): ${wanted[*]}"
[ -n "$dry_run" ] && exit 0

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "You are not root and there is no sudo. As root, run:"
    say "    apt-get update && apt-get install ${wanted[*]}"
else
    if [ "$(id -u)" != 0 ] && [ -t 0 ]; then
        sudo -v || true # asks for the password here, where it can be seen
    fi
    # One package that this release lacks must not keep the others away.
    step "updating the package list" as_root apt-get -q update
    step "installing ${#wanted[@]} packages" apt_install "${wanted[@]}" ||
        for package in "${wanted[@]}"; do
            apt_install "$package" >/dev/null 2>&1
        done
fi

mapfile -t lacking < <(missing "$kinds")
((${#lacking[@]} == 0)) && exit 0
mapfile -t needed < <(missing build)
if [[ $kinds != *build* ]] || ((${#needed[@]} == 0)); then
    say "Going on without: ${lacking[*]} (the tests that need them are skipped)."
    exit 0
fi
say "These packages are still missing: ${needed[*]}"
say "apt-get could not install them: no network, no permission, or a release that does not have them. Once you can, run"
say "    sudo apt-get update && sudo apt-get install ${needed[*]}"
say "and start this command again."
exit 1
