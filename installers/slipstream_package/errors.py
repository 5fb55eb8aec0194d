from __future__ import annotations


class PackageError(Exception):
    """Ends the build; the text says what is to be done."""
