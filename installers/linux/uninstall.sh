#!/bin/sh
# Takes away what install.sh put there. Chats, models and settings stay where they are.
set -eu

app=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
prefix=${app%/lib/slipstream}
if [ "$prefix" = "$app" ] || [ ! -f "$app/installed" ]; then
    printf 'uninstall.sh: this is no installed Slipstream: %s\n' "$app" >&2
    exit 1
fi
while IFS= read -r file; do
    case "$file" in
        "$prefix"/*) rm -f -- "$file" ;;
    esac
done < "$app/installed"
for tool in update-desktop-database:applications update-mime-database:mime; do
    if command -v "${tool%%:*}" >/dev/null 2>&1 && [ -d "$prefix/share/${tool#*:}" ]; then
        "${tool%%:*}" "$prefix/share/${tool#*:}" || true
    fi
done
rm -rf -- "$app"
printf 'Slipstream is gone from %s; chats, models and settings are kept:\n' "$prefix"
home="${HOME:-the home}"
printf '  %s\n' "${XDG_DATA_HOME:-$home/.local/share}/slipstream"
printf '  %s\n' "${XDG_CONFIG_HOME:-$home/.config}/slipstream"
