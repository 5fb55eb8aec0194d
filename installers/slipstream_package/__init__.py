"""The installed app out of an environment: `python -m slipstream_package`, what `dev.py package`
runs in an environment that has what installers/lock/package.txt names, the engine and the app.

    freeze.py    PyInstaller's folder, made small and the same each time
    lighter.py   what of others' libraries nothing calls, taken out
    elf.py       what programs and libraries ask of a system
    parts.py     whose work is inside: from where each file came, and under which licence
    crates.py    and what wheels say that they have inside
    sbom.py      the same for machines, as CycloneDX
    archive.py   tar.zst: owners, times and order are always the same
    deb.py       Debian's package
    compare.py   two builds of one commit, byte by byte
    desktop.py   what a desktop wants to know: entry, icons, metadata, type of chats, manual page
"""
