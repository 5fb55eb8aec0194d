#!/bin/sh
# Puts Slipstream where this user's desktop finds it, or with --system where everybody's does.
#
#   ./install.sh [--prefix FOLDER | --system]      (~/.local, or /usr/local)
#
# Nothing is put anywhere else; uninstall.sh, beside the app, takes exactly that away again.
set -eu

prefix="$HOME/.local"
while [ $# -gt 0 ]; do
    case "$1" in
        --prefix) prefix="${2:?--prefix wants a folder}"; shift 2 ;;
        --system) prefix=/usr/local; shift ;;
        *) echo "usage: install.sh [--prefix FOLDER | --system]" >&2; exit 2 ;;
    esac
done
case "$prefix" in
    /*) ;;
    *) prefix="$PWD/$prefix" ;;
esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
app="$prefix/lib/slipstream"
if [ -e "$app" ] && [ ! -f "$app/installed" ]; then
    echo "install.sh: $app is there and was not made by this script" >&2
    exit 1
fi

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

mkdir -p "$prefix/lib" "$prefix/bin" "$prefix/share"
rm -rf "$app.new"
mkdir "$app.new"
cp -R "$here/slipstream" "$here/_internal" "$here/uninstall.sh" "$here/share" "$app.new/"
rm -rf "$app"
mv "$app.new" "$app"
ln -sf ../lib/slipstream/slipstream "$prefix/bin/slipstream"
echo "$prefix/bin/slipstream" > "$app/installed"

(cd "$app/share/desktop" && find . -type f) | sort | while read -r file; do
    file="${file#./}"
    mkdir -p "$prefix/share/$(dirname "$file")"
    case "$file" in
        *.desktop) # names the program by its path: ~/.local/bin is not in every desktop's PATH
            sed -e "s|^Exec=slipstream|Exec=\"$prefix/bin/slipstream\"|" \
                -e "s|^TryExec=slipstream|TryExec=$prefix/bin/slipstream|" \
                "$app/share/desktop/$file" > "$prefix/share/$file" ;;
        *) cp "$app/share/desktop/$file" "$prefix/share/$file" ;;
    esac
    echo "$prefix/share/$file" >> "$app/installed"
done
for tool in update-desktop-database:applications update-mime-database:mime; do
    if command -v "${tool%%:*}" >/dev/null 2>&1; then
        "${tool%%:*}" "$prefix/share/${tool#*:}" || true
    fi
done
echo "Slipstream is in $app; start it from the menu, or as $prefix/bin/slipstream"
