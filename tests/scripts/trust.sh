#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Models, plans and other users must not control the terminal, forge a line of output, keep files open, or bring code unasked.
set -u
. "$(dirname "$0")/lib.sh"
onnx() { base64 -d >"$scratch/$1.onnx"; }

# ---- text: an attribute, strings of a tensor and names hold escape sequences, line ends and C1 controls ----
onnx attribute <<<'CAo6bwonCgF4CgAKAXMSAXkiBlJlc2l6ZSoSCgRtb2RlIgcbWzJKYmFkoAEDEgFnKhkIBBABQgFzShAAAIA/AACAPwAAAEAAAABAWhsKAXgSFgoUCAESEAoCCAEKAggBCgIIAgoCCAJiCQoBeRIECgIIAUIECgAQFA=='
onnx strings <<<'CAo6jQEKTRIBYyIIQ29uc3RhbnQqPgoFdmFsdWUqMggCEAgyGBtdMDtwd25lZAcbWzJKG1szMW1oZWxsbzIPCkZBS0UgTElORTogb2sKQgFjoAEEChcKAWMKAXoSAXkiDFN0cmluZ0NvbmNhdBIBZ1oPCgF6EgoKCAgIEgQKAggBYg8KAXkSCgoICAgSBAoCCAJCBAoAEBQ='
onnx name <<<'CAo6iQEKGgoBeBIBdBoMwpszMW1SRUTCmzBtIgRSZWx1CikKAXQSDMKbMzFtUkVEwpswbRoNwpszMW1SRUTCmzBtMiIHU29mdG1heBIMwpszMW1SRUTCmzBtWhwKAXgSFwoVCAESEQoPEg3CmzMxbVJFRMKbMG1kYhQKDMKbMzFtUkVEwpswbRIECgIIAUIECgAQFA=='
# quiet COMMAND...: nothing of what it says acts on a terminal
quiet()
{
    "$@" >"$scratch/said" 2>&1
    test -s "$scratch/said" && ! LC_ALL=C grep -qP '[^\x20-\x7e\n]' "$scratch/said" && ! grep -q '^FAKE' "$scratch/said"
}
check "an attribute in a message" quiet ./graphrun "$scratch/attribute.onnx"
check "an attribute in a finding" quiet ./graphc check "$scratch/attribute.onnx"
check "it is told" grep -qF 'mode is '"'"'\x1b[2Jbad' "$scratch/said"
check "strings of an output" quiet ./graphrun "$scratch/strings.onnx" --input z=zeros
check "they are shown" grep -qF '"\nFAKE LINE: ok\n"' "$scratch/said"
for command in graphrun "graphc inspect" "graphc check" "graphc inspect --dot" "graphrun bench --seconds 0 --repeat 1" \
    "graphc optimize -o $scratch/name.grt" "graphrun --explain-load"; do
    # shellcheck disable=SC2086
    check "names, $command" quiet ./$command "$scratch/name.onnx"
done
check "names are shown" sh -c "./graphrun '$scratch/name.onnx' | grep -qF '\\u009b31mRED'"

# ---- signatures ----
model=$srcdir/models/digits/digits.onnx
plan=$scratch/p.grt
check "keygen" ./graphc keygen "$scratch/key"
check "another" ./graphc keygen "$scratch/other"
check "the secret key is its owner's" sh -c "[ \$(stat -c %a '$scratch/key') = 600 ]"
cp "$scratch/key" "$scratch/key.before"
refuse 2 "no key is overwritten" ./graphc keygen "$scratch/key"
check "it is the same" cmp "$scratch/key" "$scratch/key.before"
rm "$scratch/key.before" && cp "$scratch/other" "$scratch/lone"
refuse 2 "nor the half of a pair" ./graphc keygen "$scratch/lone"

./graphc optimize "$model" -o "$plan" >/dev/null
# refused WORD COMMAND...: exit status 2 and a message with the word
refused()
{
    local word=$1 status=0
    shift
    "$@" >"$scratch/said" 2>&1 || status=$?
    cat "$scratch/said"
    [ "$status" = 2 ] && grep -q "$word" "$scratch/said"
}
check "an unsigned plan" refused "not signed" ./graphrun "$plan" --trust "$scratch/key.pub"
check "an unsigned plan, by default" ./graphrun "$plan"
check "sign" ./graphc sign "$plan" --key "$scratch/key"
check "the plan of a key" ./graphrun "$plan" --trust "$scratch/key.pub"
check "the key as text" ./graphrun bench "$plan" --seconds 0 --repeat 1 --trust "$(cat "$scratch/key.pub")"
check "one of two keys" ./graphrun "$plan" --trust "$(cat "$scratch/other.pub"),$(cat "$scratch/key.pub")"
(echo "# those who may" && cat "$scratch/other.pub" && echo && cat "$scratch/key.pub") >"$scratch/both.pub"
check "one of two keys, in a file" ./graphrun "$plan" --trust "$scratch/both.pub" --device null
check "on several devices" ./graphrun "$plan" --trust "$scratch/key.pub" --contexts 2
check "another key" refused "another key" ./graphrun "$plan" --trust "$scratch/other.pub"
check "another key, on several devices" refused "another key" ./graphrun "$plan" --trust "$scratch/other.pub" --contexts 2
check "another key, bench" refused "another key" ./graphrun bench "$plan" --trust "$scratch/other.pub"
check "another key, inspect" refused "another key" ./graphc inspect "$plan" --trust "$scratch/other.pub"
check "trust none" ./graphrun "$plan" --trust none
check "a model has no signature" refused "no signature" ./graphrun "$model" --trust "$scratch/key.pub"
check "the environment's key" env GRAPHRT_TRUST="$(cat "$scratch/key.pub")" ./graphrun "$plan"
check "another one" refused "another key" env GRAPHRT_TRUST="$(cat "$scratch/other.pub")" ./graphrun "$plan"
check "an empty one, by its name" refused "GRAPHRT_TRUST is empty" env GRAPHRT_TRUST= ./graphrun "$plan"
check "inspect tells who signed" sh -c "./graphc inspect '$plan' | grep -q 'signed by  ed25519:.*as it says'"
check "and that it is right" sh -c "./graphc inspect '$plan' --trust '$scratch/key.pub' | grep -q 'which is right'"
cp "$plan" "$scratch/changed.grt"
printf '\\x01' | dd of="$scratch/changed.grt" bs=1 seek=5000 conv=notrunc status=none
check "a changed plan" refused "changed.grt" ./graphrun "$scratch/changed.grt" --trust "$scratch/key.pub"
check "a secret key for a public one" refused "no public key" ./graphrun "$plan" --trust "$scratch/key"
check "which is not shown" sh -c "! grep -qF \"\$(cut -c 20-60 '$scratch/key')\" '$scratch/said'"
check "a public key for a secret one" refused "no secret key" ./graphc sign "$plan" --key "$scratch/key.pub"
check "nonsense for a key" refused "No such file" ./graphrun "$plan" --trust nonsense
check "sign to another file" ./graphc sign "$plan" --key "$scratch/other" -o "$scratch/second.grt"
check "it has the other's" ./graphrun "$scratch/second.grt" --trust "$scratch/other.pub"
check "the first has its own" ./graphrun "$plan" --trust "$scratch/key.pub"
check "weights beside it" sh -c "./graphc optimize '$model' -o '$scratch/e.grt' --external-weights && ./graphc sign '$scratch/e.grt' --key '$scratch/key' &&
    ./graphrun '$scratch/e.grt' --trust '$scratch/key.pub'"
printf '\\x01' | dd of="$(ls "$scratch"/e.grt.*.weights)" bs=1 seek=100 conv=notrunc status=none
check "changed weights" refused "e.grt" ./graphrun "$scratch/e.grt" --trust "$scratch/key.pub"

# ---- hardening: what was asked of the linker and the compiler is in the files ----
if ! command -v readelf >/dev/null; then
    skip "hardening" "no readelf here"
elif ! grep -q '^HARDEN_LDFLAGS = .*-z,now' Makefile || [ -n "${SANITIZE:-}" ]; then
    skip "hardening" "switched off, or not known to these tools"
else
    for file in .libs/libgraphrt.so .libs/graphrun .libs/graphc; do
        [ -f "$file" ] || file=$(basename "$file")
        check "$file: relocations are read-only" sh -c "readelf -lW '$file' | grep -q GNU_RELRO && readelf -dW '$file' | grep -q 'NOW'"
        check "$file: stacks do not execute" sh -c "readelf -lW '$file' | grep GNU_STACK | grep -qv RWE"
    done
    check "canaries" sh -c "readelf -sW .libs/libgraphrt.so | grep -q __stack_chk_fail"
    grep -q '^HARDEN_CFLAGS = .*FORTIFY' Makefile && check "checked string functions" sh -c "readelf -sW .libs/libgraphrt.so | grep -q __snprintf_chk"
fi

# ---- a program with rights that its user lacks takes no code from the environment ----
cat >"$scratch/evil.c" <<'END'
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    write(1, "LOADED\n", 7);
}
END
mkdir "$scratch/modules"
if [ -n "${SANITIZE:-}" ] || [ "$(id -u)" != 0 ] || ! ${CC:-cc} -w -shared -fPIC "$scratch/evil.c" -o "$scratch/modules/libgraphrt-cuda.so"; then
    skip "setuid" "wants root and a compiler, and no sanitizer"
else
    chmod 755 "$scratch" && cp -L .libs/libgraphrt.so.1 "$scratch/"
    # With the library's place written into it, as the loader takes none from the environment either.
    cat >"$scratch/open.c" <<'END'
#include <graphrt/graphrt.h>
#include <stdio.h>
int main(void)
{
    int count;
    return grt_device_count("cuda", &count) == GRT_OK || puts("ran") < 0;
}
END
    ${CC:-cc} -I"$srcdir/include" "$scratch/open.c" -o "$scratch/open" "$scratch/libgraphrt.so.1" -Wl,-rpath,"$scratch" || exit 99
    export GRAPHRT_BACKEND_PATH=$scratch/modules
    check "modules come from the environment" sh -c "'$scratch/open' | grep -q LOADED"
    chown nobody "$scratch/open" && chmod u+s "$scratch/open"
    if findmnt -no OPTIONS -T "$scratch" | grep -q nosuid; then
        skip "setuid" "no such programs on this file system"
    else
        check "but not in setuid programs" sh -c "[ \"\$('$scratch/open')\" = ran ]"
    fi
    unset GRAPHRT_BACKEND_PATH
fi
finish
