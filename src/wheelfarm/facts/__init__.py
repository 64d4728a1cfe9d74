"""What a file says of itself: ELF, PE, fat binaries, wheel metadata. Read once, never judged."""
