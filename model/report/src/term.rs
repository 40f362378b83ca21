//! Properties of the terminal: its width, and whether colour is wanted.

use std::borrow::Cow;
use std::io::IsTerminal;
use terminal_size::terminal_size_of;

/// Columns where the output has no width: files, pipes.
pub const WIDTH: usize = 80;

/// Nothing is printed wider or narrower than this, in columns: longer lines are hard to read, shorter ones hold no table.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=120;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether signs are coloured. Nothing is said by colour alone.
    pub colour: bool,
}

impl Look {
    /// Plain text of [`WIDTH`] columns, for files, pipes and tests.
    pub fn plain() -> Look {
        Look {
            width: WIDTH,
            colour: false,
        }
    }

    /// As standard output wants it: colour only on a terminal, and not where `NO_COLOR` is set
    /// (<https://no-color.org>) or the terminal is `dumb`; as wide as `COLUMNS` says, else as the terminal is, from 40 to 120 columns; [`WIDTH`] where it
    /// is no terminal.
    pub fn stdout() -> Look {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let said = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let terminal = || terminal_size_of(std::io::stdout()).map(|(w, _)| usize::from(w.0));
        let columns = said.or_else(terminal).unwrap_or(WIDTH);
        Look {
            width: columns.clamp(*WIDTHS.start(), *WIDTHS.end()),
            colour: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }
}

/// Signs of agreement, best and frontier, with their colours: numbers of ECMA-48.
const SIGNS: [(char, u8); 5] = [('●', 32), ('◐', 33), ('○', 31), ('★', 32), ('◆', 36)];

fn painted(sign: char, colour: u8) -> String {
    format!("\x1b[{colour}m{sign}\x1b[0m")
}

/// Colour the signs in a finished text.
pub(crate) fn paint(text: String, look: Look) -> String {
    if !look.colour {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match SIGNS.iter().find(|(sign, _)| *sign == c) {
            Some((sign, colour)) => out.push_str(&painted(*sign, *colour)),
            None => out.push(c),
        }
    }
    out
}

/// A text with tables of ours, as a terminal may have it: of names of others in it, control characters are `?`. Signs keep their
/// colours.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return varve_spec::shown(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let (before, from) = rest.split_at(at);
        out.push_str(&varve_spec::shown(before));
        let signs = SIGNS.map(|(sign, colour)| painted(sign, colour));
        match signs.iter().find(|sign| from.starts_with(&***sign)) {
            Some(sign) => {
                out.push_str(sign);
                rest = &from[sign.len()..];
            }
            None => {
                out.push('?');
                rest = &from[1..];
            }
        }
    }
    out.push_str(&varve_spec::shown(rest));
    out.into()
}

/// Break a text into lines of at most `width` characters, between words where possible; all but the
/// first begin with `indent`, and the first leaves as much room.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(indent.chars().count()).max(8);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if !line.is_empty() && line.chars().count() + 1 + word.len() > room {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > room {
            lines.push(word.drain(..room).collect());
        }
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines.join(&format!("\n{indent}"))
}

/// The same text without characters that would move the cursor or end the line.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_commands_and_signs_keep_their_colours() {
        let look = Look {
            width: 80,
            colour: true,
        };
        let painted = paint("★ 1.00\u{1b}[31m bad\u{7} ◆\n".into(), look);
        let expected = "\u{1b}[32m★\u{1b}[0m 1.00?[31m bad? \u{1b}[36m◆\u{1b}[0m\n";
        assert_eq!(shown(&painted), expected);
        assert!(matches!(shown("plain\n"), Cow::Borrowed(_)));
    }
}
