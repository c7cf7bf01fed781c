#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An OCI image with graphc and graphrun, of Debian packages that scripts/debian.sh has built; needs no daemon, no container and no registry of images.
# usage: packaging/image.sh DIRECTORY-OF-DEBS IMAGE-LAYOUT     as root, with mmdebstrap and umoci
# `skopeo copy oci:IMAGE-LAYOUT:graphrt docker://...` and `podman load` take the layout.
set -eu
debs=$(cd "${1:?usage: image.sh DIRECTORY-OF-DEBS IMAGE-LAYOUT}" && pwd)
layout=${2:?usage: image.sh DIRECTORY-OF-DEBS IMAGE-LAYOUT}
model=$(cd "$(dirname "$0")/.." && pwd)/models/digits/digits.onnx
for tool in mmdebstrap umoci; do
    command -v "$tool" >/dev/null || { echo "image.sh: $tool is not installed" >&2 && exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir "$scratch/debs"
cp "$debs"/libgraphrt1_*.deb "$debs"/graphrt-tools_*.deb "$scratch/debs/"

rm -rf "$layout"
umoci init --layout "$layout"
umoci new --image "$layout:graphrt"
umoci unpack --image "$layout:graphrt" "$scratch/bundle"
# shellcheck disable=SC2016 # $1 is the shell of the hook's
mmdebstrap --variant=minbase --customize-hook="copy-in $scratch/debs /tmp" \
    --customize-hook='chroot "$1" sh -c "apt-get install -y --no-install-recommends /tmp/debs/*.deb && rm -rf /tmp/debs /var/lib/apt/lists/* /var/cache/apt/*.bin"' \
    "$release" "$scratch/root.tar"
tar xf "$scratch/root.tar" -C "$scratch/bundle/rootfs"
umoci repack --image "$layout:graphrt" "$scratch/bundle"
umoci config --image "$layout:graphrt" --config.entrypoint graphrun --config.user nobody
umoci gc --layout "$layout"
# It works, before anyone else is told so.
cp "$model" "$scratch/bundle/rootfs/tmp/model.onnx"
chroot "$scratch/bundle/rootfs" graphrun /tmp/model.onnx
du -sh "$layout"
