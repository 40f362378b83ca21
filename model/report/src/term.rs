//! Properties of the terminal: its width, and whether colour is wanted.

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

/// Colour the signs of agreement, best and frontier in a finished text.
pub(crate) fn paint(text: String, look: Look) -> String {
    if !look.colour {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        let code = match c {
            '●' => 32,
            '◐' => 33,
            '○' => 31,
            '★' => 32,
            '◆' => 36,
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push_str(&format!("\x1b[{code}m{c}\x1b[0m"));
    }
    out
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
