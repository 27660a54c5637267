#!/bin/sh
# Installs toolbox @VERSION@, with manual and completions, after it has verified what it installs.
#
# usage: install.sh [--prefix DIR] [--from URL|DIR] [--key FILE] [--dry-run]
#
#   --prefix DIR   where to: DIR/bin, DIR/share (/usr/local for root, else ~/.local)
#   --from WHERE   the release: a folder, or what curl or wget can fetch (the folder of this script where it has one, else @URL@)
#   --key FILE     the public key (PEM) by which SHA256SUMS has to be signed; default: the one that this script was released with, if any
#   --dry-run      verify, and say what would be installed
#   -h, --help     this text
#
# Exit status: 0 installed, 1 not: nothing was changed, 2 usage.
# Example: ./install.sh --prefix ~/.local
set -eu
umask 022
LC_ALL=C
export LC_ALL

version='@VERSION@'
url='@URL@'
key='@KEY@'

say() { printf 'install.sh: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}
usage() {
    say "$*"
    say "try 'install.sh --help'"
    exit 2
}

prefix='' from='' key_file='' dry=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit
        ;;
    --dry-run) dry=yes ;;
    --prefix | --from | --key)
        [ $# -ge 2 ] || usage "$1 needs an argument"
        case $1 in
        --prefix) prefix=$2 ;;
        --from) from=$2 ;;
        --key) key_file=$2 ;;
        esac
        shift
        ;;
    *) usage "what is '$1'?" ;;
    esac
    shift
done

[ "$(uname -s)" = Linux ] || die "toolbox runs on Linux; on other systems the Python package puts it into containers: pip install toolbox-sandbox"
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) die "there is no self-contained program for a $(uname -m) machine: take toolbox-$version-linux-ARCH of the release" ;;
esac

if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
fi
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
if [ -z "$from" ]; then
    if [ -f "$here/SHA256SUMS" ] && [ -f "$0" ]; then from=$here; else from=$url; fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT PIPE TERM

get() { # NAME: a file of the release, into $work
    case $from in
    *://*)
        if command -v curl >/dev/null; then
            curl -fsSL --proto '=https,http,file' -o "$work/$1" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$work/$1" "$from/$1"
        else
            die 'neither curl nor wget is here: fetch the release, and use --from DIR'
        fi
        ;;
    *) cp "$from/$1" "$work/$1" ;;
    esac || die "can't get $1 from $from"
}

get SHA256SUMS
if [ -n "$key_file" ]; then
    cp "$key_file" "$work/key.pem"
elif [ -n "$key" ]; then
    printf '%s\n' '-----BEGIN PUBLIC KEY-----' "$key" '-----END PUBLIC KEY-----' | fold -w 64 >"$work/key.pem"
fi
if [ -f "$work/key.pem" ]; then
    command -v openssl >/dev/null || die 'no openssl here, which verifies the signature: install it'
    get SHA256SUMS.sig
    openssl dgst -sha256 -verify "$work/key.pem" -signature "$work/SHA256SUMS.sig" "$work/SHA256SUMS" >/dev/null 2>&1 ||
        die "$from/SHA256SUMS is not signed by the key: nothing is installed"
    say 'the signature is right'
else
    say 'this release is unsigned (no key; --key FILE names one): its sums alone are verified'
fi

program=toolbox-$version-linux-$arch-all
share=toolbox-$version-share.tar.gz
for name in "$program" "$share"; do
    get "$name"
    wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$work/SHA256SUMS")
    found=$(sha256sum <"$work/$name")
    [ "${found%% *}" = "$wanted" ] || die "$name has sha256 ${found%% *}, SHA256SUMS says ${wanted:-nothing of it}: nothing is installed"
done
chmod 755 "$work/$program"
"$work/$program" --version >"$work/version" || die "$program does not run here"

if [ -n "$dry" ]; then
    say "verified; would install $(cat "$work/version") to $prefix/bin/toolbox, manual and completions below $prefix/share"
    exit
fi
mkdir -p "$prefix/bin" "$prefix/share" || die "can't write to $prefix: --prefix DIR, or as root"
gzip -dc "$work/$share" | tar -xf - -C "$prefix" || die "can't write to $prefix/share: --prefix DIR, or as root"
cp "$work/$program" "$prefix/bin/.toolbox.new" || die "can't write to $prefix/bin: --prefix DIR, or as root"
chmod 755 "$prefix/bin/.toolbox.new"
mv "$prefix/bin/.toolbox.new" "$prefix/bin/toolbox"
say "$(cat "$work/version") is $prefix/bin/toolbox"
case :$PATH: in *":$prefix/bin:"*) ;; *) say "$prefix/bin is not on the PATH" ;; esac
