"""The visual language: palette, type, icons, small controls, words for numbers."""
