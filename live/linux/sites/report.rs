//! The agent's report at the machine's end, or on request: a line of JSON.

use super::follow::{Counts, Followed, Sum, class_end};
use super::names::Names;
use core::fmt::Write;

/// A text in quotes.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A list of what each item becomes.
fn list<T>(items: impl IntoIterator<Item = T>, each: impl Fn(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(each).collect();
    format!("[{}]", items.join(","))
}

fn sum(sum: &Sum) -> String {
    format!("[{:.3},{:.0}]", sum.objects, sum.bytes)
}

/// A list of sums without the zeros at its end.
fn sums(all: &[Sum]) -> String {
    let used = all.iter().rposition(|s| s.objects > 0.0);
    list(&all[..used.map_or(0, |last| last + 1)], sum)
}

fn site(stack: &[u32], class: u32, c: &Counts) -> String {
    format!(
        "{{\"stack\":{},\"class\":{class},\"samples\":{},\"born\":{},\"survived\":{},\"died\":{},\"old\":{},\"old_freed\":{},\"freed\":{},\"lifetime_bytes\":{:.0},\"live\":{},\"looks\":{:?},\"looked_bytes\":[{:.0},{:.0}]}}",
        list(stack, u32::to_string),
        c.samples,
        sum(&c.born),
        sums(&c.survived),
        sums(&c.died),
        sum(&c.old),
        sum(&c.old_freed),
        sum(&c.freed),
        c.lifetime,
        sum(&c.live),
        c.looks,
        c.looked[0],
        c.looked[1],
    )
}

/// The part of the report that is about sites.
pub fn sites<H: Copy>(names: &Names, followed: &Followed<H>) -> String {
    let frames = list(&names.frames, |f| {
        let texts = [&f.class, &f.method, &f.file].map(|text| quoted(text));
        format!("[{},{}]", texts.join(","), f.line)
    });
    let classes = list(&names.classes, |class| quoted(class));
    let counted = names.sites.iter().zip(&followed.sites);
    let counted = counted.filter(|(_, counts)| counts.samples > 0);
    let all = list(counted, |((stack, class), counts)| {
        site(stack, *class, counts)
    });
    let lived = followed.lifetimes.iter().enumerate();
    let lived = lived.filter(|(_, bytes)| **bytes >= 0.5);
    let lifetimes = list(lived, |(class, bytes)| {
        format!("[{:.0},{bytes:.0}]", class_end(class))
    });
    format!(
        "\"thinned\":{},\"late\":{},\"kept_bytes\":{:.0},\"undecided_bytes\":{:.0},\"lifetimes\":{lifetimes},\"frames\":{frames},\"classes\":{classes},\"sites\":{all}",
        followed.thinned, followed.late, followed.kept, followed.undecided
    )
}
