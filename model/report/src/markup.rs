//! A writer of elements that cannot forget to escape a text or to close a tag.

use std::fmt::{Display, Write};

/// An element's attributes.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// Markup in the making, well-formed both as HTML and as XML.
#[derive(Default)]
pub struct Markup {
    out: String,
    open: Vec<&'static str>,
}

impl Markup {
    /// Begin an element; [`Markup::close`] ends it.
    pub fn open(&mut self, tag: &'static str, attributes: Attributes) {
        self.start(tag, attributes);
        self.out.push('>');
        self.open.push(tag);
    }

    /// End the element that was begun last.
    pub fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            let _ = write!(self.out, "</{tag}>");
            if !matches!(
                tag,
                "a" | "text" | "tspan" | "title" | "span" | "code" | "b" | "summary"
            ) {
                self.out.push('\n');
            }
        }
    }

    /// An element without content.
    pub fn empty(&mut self, tag: &'static str, attributes: Attributes) {
        self.start(tag, attributes);
        self.out.push_str("/>\n");
    }

    /// An element with only a text.
    pub fn leaf(&mut self, tag: &'static str, attributes: Attributes, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close();
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// A text whose parts between backticks are code.
    pub fn prose(&mut self, text: &str) {
        for (i, part) in text.split('`').enumerate() {
            let closed = text.matches('`').count() > i;
            match i % 2 {
                1 if closed => self.leaf("code", &[], part),
                // A backtick without its partner stands for itself.
                1 => self.text(&format!("`{part}")),
                _ => self.text(part),
            }
        }
    }

    /// An element with a text whose parts between backticks are code.
    pub fn prose_leaf(&mut self, tag: &'static str, attributes: Attributes, text: &str) {
        self.open(tag, attributes);
        self.prose(text);
        self.close();
    }

    /// Text of our own that is not to be escaped, such as the style sheet.
    pub fn raw(&mut self, text: &'static str) {
        self.out.push_str(text);
    }

    /// The whole, with every element closed.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn start(&mut self, tag: &str, attributes: Attributes) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            let _ = write!(self.out, " {name}=\"");
            escape(&value.to_string(), &mut self.out);
            self.out.push('"');
        }
    }
}

/// Escapes characters that markup uses itself, and replaces those that XML does not allow.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

/// A coordinate with one decimal at most: a tenth of a pixel is enough.
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        // Never "-0".
        write!(f, "{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}
