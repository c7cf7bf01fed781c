#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Wraps the prose of Markdown files at 120 columns. usage: scripts/wrap.pl [--check] FILE...
# Only paragraphs and items with a longer line are touched; tables, headings, code and what has no space stay as they are.
# --check changes nothing and names the lines that are too long.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

my $WIDTH = 120;
my $check = @ARGV && $ARGV[0] eq '--check' ? shift : 0;
my $status = 0;

# The words of a text. Code, and what at the beginning of a line would mean something else, stay with the word before.
sub words_of {
    my ($text) = @_;
    my @words;
    for my $word ($text =~ /((?:`[^`]*`|[^\s`])+|`)/g) {
        if (@words && $word =~ /^(?:[-*+|>]|#+|\d+[.)])$/) { $words[-1] .= " $word" }
        else { push @words, $word }
    }
    return @words;
}

sub fill {
    my ($first, $rest, @words) = @_;
    my ($line, @out) = ($first . shift @words);
    for my $word (@words) {
        if (length("$line $word") > $WIDTH) { push @out, $line; $line = $rest . $word }
        else { $line .= " $word" }
    }
    return (@out, $line);
}

sub too_long {
    my ($line) = @_;
    return length $line > $WIDTH && $line =~ /^\s*(?:(?:[-*+]|\d+\.)\s+)?\S.*\s\S/ && $line !~ /^\s*[#|<]|^\[[^\]]*\]: /;
}

for my $file (@ARGV) {
    open(my $in, '<', $file) or die "$file: $!\n";
    chomp(my @lines = <$in>);
    close $in;
    my ($fenced, @out, $changed) = (0);
    for (my $i = 0; $i < @lines;) {
        my $line = $lines[$i];
        $fenced = !$fenced if $line =~ /^\s*```/;
        if ($fenced || $line =~ /^\s*(?:```|[#|<]|$)|^ {4,}(?![-*+] |\d)|^\[[^\]]*\]: |^---/) { push @out, $line; $i++; next }
        my ($first) = $line =~ /^(\s*(?:> ?)?(?:(?:[-*+]|\d+\.)\s+)?)/;
        my @block = ($line);
        $i++;
        push @block, $lines[$i++] while $i < @lines && $lines[$i] !~ /^\s*(?:```|[#|<>]|$|[-*+] |\d+\. )/ && $block[-1] !~ /(?:  |\\)$/;
        if (!grep { too_long($_) } @block) { push @out, @block; next }
        (my $rest = $first) =~ s/[^ >]/ /g;
        my @words = words_of(join ' ', map { s/^\s+|\s+$//gr } substr($block[0], length $first), @block[1 .. $#block]);
        my @filled = fill($first, $rest, @words);
        push @out, @filled;
        next if join("\n", @filled) eq join("\n", @block);
        $changed = 1;
        print "$file: a line of prose has more than $WIDTH columns: $filled[0]\n" if $check;
    }
    next unless $changed;
    $status = 1 if $check;
    next if $check;
    open(my $out, '>', $file) or die "$file: $!\n";
    print $out map { "$_\n" } @out;
}
exit $status;
