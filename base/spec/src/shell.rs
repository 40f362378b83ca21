//! Words as shells take them.

/// A word as a shell has to be given it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_what_a_shell_takes() {
        for (word, expected) in [
            ("pagerank", "pagerank"),
            ("--scale=8", "--scale=8"),
            ("", "''"),
            ("random;static", "'random;static'"),
            ("it's", r"'it'\''s'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
