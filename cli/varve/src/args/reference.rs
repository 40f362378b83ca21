//! The part of docs/reference.md that is made from the command line's definitions.

use super::Args;
use super::run::job::RunKind;
use super::run::{Request, help};
use clap::{Arg, Args as _, Command, CommandFactory};
use std::fmt::Write as _;
use std::path::PathBuf;

const BEGIN: &str = "<!-- made from the command line: `VARVE_ACCEPT=1 cargo test --release -p varve --bin varve` writes it -->";
const END: &str = "<!-- end of what is made from the command line -->";

/// An option's names and value, as they are written.
fn term(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names
        .first()
        .map(|name| name.to_string())
        .unwrap_or_default();
    let value = value.trim_matches(['<', '>']);
    let Some(long) = arg.get_long() else {
        return format!("`{value}`");
    };
    let short = arg.get_short().map(|c| format!("-{c}, "));
    let value = match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
        (false, _) => String::new(),
        (true, false) => format!(" {value}"),
        (true, true) => format!("[={value}]"),
    };
    format!("`{}--{long}{value}`", short.unwrap_or_default())
}

/// An option's help, with its default and its values.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_help().map(|h| h.to_string()).unwrap_or_default();
    let default = arg
        .get_default_values()
        .first()
        .map(|v| v.to_string_lossy());
    if let Some(default) = default.filter(|_| arg.get_action().takes_values()) {
        let _ = write!(text, " [default: {default}]");
    }
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() && !arg.is_hide_possible_values_set() {
        let names: Vec<&str> = values.iter().map(|v| v.get_name()).collect();
        let _ = write!(text, " [one of {}]", names.join(", "));
    }
    linked(&text)
}

/// Pages of the book are links, and what a line must not have is written otherwise.
fn linked(text: &str) -> String {
    let page = |word: &str| {
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        let page = name.strip_prefix("docs/").filter(|p| p.ends_with(".md"));
        page.map_or(word.to_string(), |p| {
            word.replace(name, &format!("[{p}]({p})"))
        })
    };
    let words: Vec<String> = text.split_whitespace().map(page).collect();
    words.join(" ")
}

/// A list item of lines of at most 160 characters.
fn item(out: &mut String, term: &str, text: &str) {
    let mut line = format!("- {term}:");
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > 160 {
            let _ = writeln!(out, "{line}");
            line = " ".into();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(out, "{line}");
}

fn list<'a>(out: &mut String, args: impl Iterator<Item = &'a Arg>) {
    for arg in args.filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
        item(out, &term(arg), &meaning(arg));
    }
}

/// A kind of run in a word or two.
fn short(kind: RunKind) -> String {
    let name = format!("{kind:?}");
    let mut short = String::new();
    for (i, c) in name.char_indices() {
        if c.is_uppercase() && i > 0 {
            short.push(' ');
        }
        short.extend(c.to_lowercase());
    }
    short
}

/// The options of `varve run`, by what they are about, with the runs that take them.
fn of_run(out: &mut String) {
    let command = help::all();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in command.get_arguments() {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    let _ = writeln!(out, "## Options of `varve run`\n");
    let _ = writeln!(out, "What is run decides which options a run takes:\n");
    for &kind in RunKind::ALL {
        let _ = writeln!(out, "- {}: {}", short(kind), kind.who());
    }
    for heading in headings {
        let _ = writeln!(out, "\n### {}\n", heading.unwrap_or("What is run"));
        let of_it = command.get_arguments();
        for arg in of_it.filter(|arg| arg.get_help_heading() == heading) {
            if arg.get_id() == "help" {
                continue;
            }
            let takes = RunKind::ALL
                .iter()
                .copied()
                .filter(|kind| kind.takes().contains(arg.get_id()));
            let takes: Vec<String> = takes.map(short).collect();
            let mut text = meaning(arg);
            if !takes.is_empty() {
                let _ = write!(text, " ({})", takes.join(", "));
            }
            item(out, &term(arg), &text);
        }
    }
}

/// The options of a command and of those below it.
fn of_command(out: &mut String, command: &Command, name: &str) {
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help" && !arg.is_global_set();
    if command.get_arguments().filter(shown).count() > 0 {
        let _ = writeln!(out, "\n### `{name}`\n");
        list(out, command.get_arguments().filter(shown));
    }
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        of_command(out, below, &format!("{name} {}", below.get_name()));
    }
}

/// All of it.
fn made() -> String {
    let mut out = String::new();
    of_run(&mut out);
    let _ = writeln!(out, "\n## Options of the other commands");
    for command in Args::command().get_subcommands() {
        if command.get_name() != "run" {
            of_command(&mut out, command, &format!("varve {}", command.get_name()));
        }
    }
    out
}

#[test]
fn the_reference_is_what_the_command_line_says() {
    let file = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference.md"
    ));
    let text = std::fs::read_to_string(&file).expect("the reference is there");
    let (before, rest) = text.split_once(BEGIN).expect("where it begins is marked");
    let (is, after) = rest.split_once(END).expect("where it ends is marked");
    let wanted = format!("\n\n{}\n", made());
    if is == wanted {
        return;
    }
    if std::env::var_os("VARVE_ACCEPT").is_some() {
        let all = format!("{before}{BEGIN}{wanted}{END}{after}");
        std::fs::write(&file, all).expect("the reference can be written");
        return;
    }
    let line = is.lines().zip(wanted.lines()).find(|(a, b)| a != b);
    panic!(
        "docs/reference.md is not what the command line says: {line:?}; VARVE_ACCEPT=1 writes it"
    );
}

#[test]
fn every_option_says_what_it_does() {
    fn look(command: &Command, name: &str) {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            assert!(
                arg.get_help().is_some_and(|h| h.to_string().len() > 5),
                "{name} {arg}"
            );
        }
        for below in command.get_subcommands() {
            look(below, &format!("{name} {}", below.get_name()));
        }
    }
    look(&Args::command(), "varve");
    look(&Request::augment_args(Command::new("run")), "varve run");
}
