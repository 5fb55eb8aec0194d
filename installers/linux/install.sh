#!/bin/sh
# Puts Slipstream where this user's desktop finds it, or with --system where everybody's does.
#
#   ./install.sh [--prefix FOLDER | --system]      (~/.local, or /usr/local)
#
# Nothing is put anywhere else; uninstall.sh, beside the app, takes exactly that away again.
set -eu

prefix="${HOME:+$HOME/.local}"
system=""
while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) prefix="${2:?--prefix wants a folder}"; shift 2 ;;
        --system) prefix=/usr/local; system=yes; shift ;;
        *) echo "usage: install.sh [--prefix FOLDER | --system]" >&2; exit 2 ;;
    esac
done
fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}
[ -n "$prefix" ] || fail "HOME is not set; say where by --prefix"
case "$prefix" in
    *"
"*) fail "a line break in the folder's name cannot be written into the menu's entry" ;;
    /*) ;;
    *) prefix="./$prefix" ;;
esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

# What the system has to have, by the names that Debian and Fedora give it.
lacks=""
while read -r library debian fedora; do
    found=""
    for folder in /lib /usr/lib /lib64 /usr/lib64 /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu; do
        if [ -e "$folder/$library" ]; then found=yes; break; fi
    done
    if [ -z "$found" ]; then
        lacks="$lacks\n  $library  (Debian, Ubuntu: $debian; Fedora: $fedora)"
    fi
done < "$here/share/system-libraries"
if [ -n "$lacks" ]; then
    printf 'This system lacks libraries that the window needs:%b\n' "$lacks" >&2
    exit 1
fi
if command -v getconf >/dev/null 2>&1; then
    read -r floor < "$here/share/glibc"
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //') || libc=""
    [ -n "$libc" ] || fail "this system has another C library than glibc"
    minor=${libc#*.}
    if [ "${libc%%.*}" -lt "${floor%%.*}" ] ||
        { [ "${libc%%.*}" -eq "${floor%%.*}" ] && [ "${minor%%.*}" -lt "${floor#*.}" ]; }; then
        fail "Slipstream needs glibc $floor or newer; this system has $libc"
    fi
fi

# Others are to read it, whatever this administrator's own files are.
if [ -n "$system" ]; then umask 022; fi
# Without links and `..`: uninstall.sh knows what was put there by this name.
mkdir -p -- "$prefix"
prefix=$(CDPATH='' cd -- "$prefix" && pwd -P)
app="$prefix/lib/slipstream"
program="$prefix/bin/slipstream"
if [ -e "$app" ] && [ ! -f "$app/installed" ]; then
    fail "$app is there and was not made by this script"
fi
target=../lib/slipstream/slipstream
if [ -L "$program" ] && [ "$(readlink "$program")" = "$target" ]; then
    :
elif [ -e "$program" ] || [ -L "$program" ]; then
    fail "$program is there and was not made by this script (by pip or pipx?)"
fi

mkdir -p "$prefix/lib" "$prefix/bin" "$prefix/share"
rm -rf "$app.new" "$app.old"
mkdir "$app.new"
cp -R "$here/slipstream" "$here/_internal" "$here/uninstall.sh" "$here/share" "$here/LICENSE" \
    "$app.new/"
# Backends that `slipstream devices --add` put there, which has a list of each beside it.
backends=_internal/llama_cpp/lib/backends
for list in "$app/$backends"/*.json; do
    if [ -e "$list" ]; then
        mkdir -p "$app.new/$backends"
        for file in "$app/$backends"/*; do
            if [ ! -e "$app.new/$backends/${file##*/}" ]; then
                cp -Rp "$file" "$app.new/$backends/"
            fi
        done
        break
    fi
done
if [ -n "$system" ]; then chmod -R a+rX "$app.new"; fi
# Never half of it: in the old one may lie what only an administrator can take away.
if [ -e "$app" ]; then mv "$app" "$app.old"; fi
mv "$app.new" "$app"
rm -rf "$app.old" || printf 'install.sh: take this away yourself: %s\n' "$app.old" >&2
ln -sf "$target" "$program"
printf '%s\n' "$program" > "$app/installed"

# As the menu's entries want it: first within quotes, then as any of their texts.
quoted=$(printf '%s' "$program" | sed -e 's/[\\"`$]/\\&/g' -e 's/\\/\\\\/g' -e 's/%/%%/g')
plain=$(printf '%s' "$program" | sed -e 's/\\/\\\\/g')
(cd "$app/share/desktop" && find . -type f) | sort | while IFS= read -r file; do
    file="${file#./}"
    mkdir -p "$prefix/share/$(dirname "$file")"
    case "$file" in
        *.desktop) # names the program by its path: ~/.local/bin is not in every desktop's PATH
            while IFS= read -r line; do
                case "$line" in
                    Exec=slipstream*) line="Exec=\"$quoted\"${line#Exec=slipstream}" ;;
                    TryExec=slipstream) line="TryExec=$plain" ;;
                esac
                printf '%s\n' "$line"
            done < "$app/share/desktop/$file" > "$prefix/share/$file" ;;
        *) cp "$app/share/desktop/$file" "$prefix/share/$file" ;;
    esac
    if [ -n "$system" ]; then chmod a+r "$prefix/share/$file"; fi
    printf '%s\n' "$prefix/share/$file" >> "$app/installed"
done
for tool in update-desktop-database:applications update-mime-database:mime; do
    if command -v "${tool%%:*}" >/dev/null 2>&1; then
        "${tool%%:*}" "$prefix/share/${tool#*:}" || true
    fi
done
printf '%s\n' "Slipstream is in $app; start it from the menu, or as $program"
