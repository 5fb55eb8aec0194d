"""Markdown that streams in, as blocks of a Qt document."""
