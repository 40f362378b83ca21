//! Page placement on a live Linux machine, without a kernel patch.
