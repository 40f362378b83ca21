//! Boxes of memory in text, beside each other.

/// Columns of a terminal that the picture takes at most.
const WIDTH: usize = 78;

/// A memory: its title, and what is in it.
pub struct Memory {
    pub title: String,
    pub holds: Vec<String>,
}

impl Memory {
    pub fn new(title: &str, holds: &[&str]) -> Memory {
        Memory {
            title: title.into(),
            holds: holds.iter().map(|what| what.to_string()).collect(),
        }
    }
}

/// The memories beside each other, as wide as text is.
pub fn boxes(memories: &[Memory]) -> String {
    let inner = (WIDTH + 1) / memories.len().max(1) - 5;
    let columns: Vec<Vec<String>> = memories.iter().map(|m| wrapped(&m.holds, inner)).collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut lines = vec![String::new(); rows + 2];
    for (memory, column) in memories.iter().zip(&columns) {
        let title: String = memory.title.chars().take(inner - 2).collect();
        let rest = inner - title.chars().count();
        lines[0].push_str(&format!("┌ {title} {}┐ ", "─".repeat(rest)));
        for row in 0..rows {
            let text = column.get(row).map_or("", String::as_str);
            let pad = " ".repeat(inner - text.chars().count());
            lines[row + 1].push_str(&format!("│ {text}{pad} │ "));
        }
        lines[rows + 1].push_str(&format!("└{}┘ ", "─".repeat(inner + 2)));
    }
    let lines: Vec<&str> = lines.iter().map(|l| l.trim_end()).collect();
    lines.join("\n")
}

/// Lines of at most `width` characters; what goes on begins further right.
fn wrapped(texts: &[String], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for text in texts {
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::replace(&mut line, " ".into()));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line.chars().take(width).collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_as_high_as_the_fullest_and_no_wider_than_text() {
        let memory = Memory::new;
        let long = "what survives and was written to since it came to the place where it is now";
        for all in [
            vec![
                memory("fast memory", &["young", "tables"]),
                memory("slow", &[long]),
            ],
            vec![
                memory("a", &[]),
                memory("b", &[]),
                memory("c", &[]),
                memory("d", &[long]),
            ],
        ] {
            let text = boxes(&all);
            let widths: Vec<usize> = text.lines().map(|l| l.chars().count()).collect();
            assert!(
                widths.iter().all(|w| *w == widths[0] && *w <= WIDTH),
                "{text}"
            );
            assert!(
                text.contains("what survives") && text.contains("now"),
                "{text}"
            );
        }
    }
}
