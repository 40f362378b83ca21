//! Text of others on a terminal.

use std::borrow::Cow;

/// Text of which a terminal takes no character as a command: control characters, but line feeds and tabs, are `?`, as `ps` has
/// them.
pub fn shown(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && c != '\n' && c != '\t';
    match text.contains(commands) {
        true => text.replace(commands, "?").into(),
        false => text.into(),
    }
}

/// A name in a line: line feeds and tabs are `?` too.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => name.replace(char::is_control, "?").into(),
        false => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_all_else_is_kept() {
        let name = "a) R (\n\u{1b}[31mb\u{7f}\u{9b}1mé";
        assert_eq!(shown(name), "a) R (\n?[31mb??1mé");
        assert_eq!(shown_name(name), "a) R (??[31mb??1mé");
        assert!(matches!(shown("a\tb\n"), Cow::Borrowed(_)));
    }
}
