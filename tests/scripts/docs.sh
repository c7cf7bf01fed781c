#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every file of the project that a document or a comment names exists: paths ("src/plan/read.c", "tests/unit/") and bare names of
# sources ("upload.h"); and bench/README.md and docs/README.md name every file beside them. What this script finds in a text
# of its own shows that it sees stale names and files that are not listed.
set -u
. "$(dirname "$0")/lib.sh"

# named TREE FILE...: "FILE:LINE: NAME" of each name in the documents and comments of these files that is not in the tree.
named()
{
    perl -e '
        use strict;
        my ($tree, @files) = @ARGV;
        my %base; # names of all files
        my @folders = ($tree);
        while (my $folder = shift @folders) {
            opendir(my $d, $folder) or next;
            for (readdir $d) {
                next if /^\.\.?$|^(build(-.*)?|_build|_inst|autom4te\.cache|\.git|bundle)$/ || -l "$folder/$_";
                if (-d "$folder/$_") { push @folders, "$folder/$_" } else { $base{$_} = 1 }
            }
        }
        my $room = "src|graph|backends|tools|tests|docs|scripts|bench|examples|models|include|proto|share|python|serving";
        my $source = "c|h|cc|cu|cuh|inc|def|sh|py|mk|md|scd|proto|txt|json";
        my $status = 0;
        sub missing { print "$_[0]:$_[1]: $_[2]\n"; $status = 1 }
        sub look {
            my ($file, $line, $text) = @_;
            while ($text =~ m{(?<![\w/.\$\}~-])((?:$room)/[\w./*<>\{\},-]*)}g) {
                (my $path = $1) =~ s/[.,]+$//;
                next unless $path =~ m{(?:\.(?:$source)|/)$} && $path !~ /\b[A-Z]{4,}\b|\.pb-c\.|celsius/;
                (my $glob = $path) =~ s/<\w+>/*/g;
                missing($file, $line, $path) unless grep { -e } glob("$tree/$glob");
            }
            while ($text =~ m{(?<![\w/.<*>\$-])([a-z][a-z0-9_]*\.(?:c|h|cc|cu|cuh|def|mk))(?!\.?\w|[(/-])}g) {
                missing($file, $line, $1) unless $base{$1} || $1 =~ /^(std\w+|float|math|cuda_\w+|cuda|omp|uthash|celsius|program|name|value_name|[a-z])\.[ch]$/;
            }
        }
        for my $file (@files) {
            open(my $in, "<", $file) or die "$file: $!";
            local $/;
            my $text = <$in>;
            if ($file =~ /\.(c|h|cc|cu|cuh|inc|def|proto)$/) {
                # Comments and line ends stay.
                $text =~ s{("(?:\\.|[^"\\\n])*"|\x27(?:\\.|[^\x27\\\n])*\x27)|(/\*.*?\*/|//[^\n]*)|([^\n"\x27/]+|/)}{my $code = $1 // $3; defined $2 ? $2 : " " . "\n" x ($code =~ tr/\n//)}gse;
            } elsif ($file !~ /\.(md|scd)$/) {
                $text = join("\n", map { /^\s*#/ ? $_ : "" } split(/\n/, $text));
            }
            my $line = 0;
            look($file, ++$line, $_) for split(/\n/, $text);
        }
        exit $status' "$@"
}

everything()
{
    (cd "$srcdir" && find README.md CONTRIBUTING.md SECURITY.md docs src graph backends tools tests scripts bench examples models \
        include proto python serving -type f 2>/dev/null | grep -E '\.(c|h|cc|cu|cuh|inc|def|sh|py|mk|md|scd|proto)$' |
        grep -vE '^(tests/scripts/includes\.sh|docs/measurements/)' | sort)
}
this_tree()
{
    local files
    mapfile -t files < <(everything)
    ((${#files[@]} > 100)) && (cd "$srcdir" && named . "${files[@]}")
}

# listed LIST FILE...: "FILE is not in LIST" of each file, below LIST's folder, that LIST neither links to nor names between
# backquotes; a name may be a pattern.
listed()
{
    local list=$1 folder names name file found status=0
    folder=$(dirname "$1")
    # shellcheck disable=SC2016 # backquotes of Markdown
    names=$(grep -oE '`[^` ]+`|\]\([^)#]+' "$list" | tr -d '`' | sed 's/^](//')
    shift
    for file; do
        found=
        while read -r name; do
            # shellcheck disable=SC2254 # a pattern
            case ${file#"$folder"/} in $name) found=1 ;; esac
        done <<<"$names"
        [ "$found" ] || { echo "$file is not in $list" && status=1; }
    done
    return "$status"
}
# shellcheck disable=SC2046 # one word a file
benchmarks_listed() { (cd "$srcdir" && listed bench/README.md $(find bench -name '*.py' -o -name '*.c' -o -name '*.sh')); }
# shellcheck disable=SC2046 # one word a file
documents_listed() { (cd "$srcdir" && listed docs/README.md $(find docs -name '*.md' -not -path 'docs/decisions/*' -not -path docs/README.md)); }

mkdir -p "$scratch/tree/src/plan" "$scratch/tree/docs"
echo 'int x; /* see src/plan/gone.c */' >"$scratch/tree/src/plan/a.c"
echo 'const char *t = "gone.h"; // what away.h says' >"$scratch/tree/src/plan/b.c"
# shellcheck disable=SC2016 # backquotes of Markdown
echo 'See `src/gone/` and `src/plan/a.c`.' >"$scratch/tree/docs/c.md"
# shellcheck disable=SC2016 # backquotes of Markdown
echo 'The files `src/plan/*.c`, b.c, <stdio.h>, and build/x.c.' >"$scratch/tree/docs/d.md"
refuse 1 "a path in a comment" named "$scratch/tree" "$scratch/tree/src/plan/a.c"
refuse 1 "a name in a comment" named "$scratch/tree" "$scratch/tree/src/plan/b.c"
refuse 1 "a folder in a document" named "$scratch/tree" "$scratch/tree/docs/c.md"
refuse 0 "what exists" named "$scratch/tree" "$scratch/tree/docs/d.md"
check "every file that a document or a comment of this checkout names exists" this_tree
# shellcheck disable=SC2016 # backquotes of Markdown
echo 'A [page](c.md), `d_*.py`.' >"$scratch/tree/docs/list.md"
refuse 0 "files that a list has" listed "$scratch/tree/docs/list.md" "$scratch/tree/docs/c.md" "$scratch/tree/docs/d_one.py"
refuse 1 "a file that a list has not" listed "$scratch/tree/docs/list.md" "$scratch/tree/docs/c.md" "$scratch/tree/docs/d.md"
check "bench/README.md names every program of bench/" benchmarks_listed
check "docs/README.md names every document but the decisions" documents_listed
finish
