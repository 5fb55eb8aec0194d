#!/bin/bash
# The disk image for macOS: python3 dev.py package, signed, packed, notarised. Never built, never
# run: there was no such machine.
#
#   installers/macos/build.sh
#
# SIGN="Developer ID Application: ..." signs; without it the app is signed for this machine alone.
# NOTARY=PROFILE, of `xcrun notarytool store-credentials PROFILE`, has Apple look at it.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd -P)
dist="$root/dist"
cd "$root"
python3 dev.py package
version=$(python3 -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
sizes="$dist/slipstream-$version.sizes.json"
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$sizes" "$1"; }
app="$(dirname "$(value folder)")/Slipstream.app"
image="$dist/slipstream-$version-macos-$(uname -m).dmg"

# From the inside out: the signature of a bundle covers those of what it holds.
sign=(codesign --force --options runtime --timestamp --sign "${SIGN:--}")
if [ -z "${SIGN:-}" ]; then sign=(codesign --force --sign -); fi
# By what they are, not by name: the libraries in Qt's frameworks have no suffix.
find "$app/Contents" -type f ! -path "$app/Contents/MacOS/*" -print0 |
    while IFS= read -r -d '' file; do
        case "$(file -b "$file")" in Mach-O*) "${sign[@]}" "$file" ;; esac
    done
"${sign[@]}" --entitlements "$root/installers/macos/entitlements.plist" "$app"
codesign --verify --deep --strict "$app"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp -R "$app" "$stage/"
ln -s /Applications "$stage/Applications"
hdiutil create -volname Slipstream -srcfolder "$stage" -fs HFS+ -format ULFO -ov "$image"
if [ -n "${NOTARY:-}" ]; then
    xcrun notarytool submit "$image" --keychain-profile "$NOTARY" --wait
    xcrun stapler staple "$image"
    spctl --assess --type open --context context:primary-signature "$image"
fi
echo "$image"
