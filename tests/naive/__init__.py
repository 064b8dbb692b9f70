"""Independent, slow and obvious versions of what the library does fast."""
