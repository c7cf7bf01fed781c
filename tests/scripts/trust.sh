#!/bin/bash
# What a model, a plan or a neighbour may not do to the user: write to the terminal, forge a line, leave files open, bring code unasked.
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

finish
