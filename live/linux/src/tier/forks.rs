//! Memory that processes share since a fork: a page of a process's own memory that its parent or a child has, too, for neither of them
//! has written it since. For all of them it is one page, at one address.

use super::mapped::{SharedKind, SharedObject};
use std::rc::Rc;

/// Threads that are asked for their children. A server that forks does so from few.
const THREADS: usize = 64;

/// The program that a process runs, by where the kernel has put it: one that was forked has that of its parent until it starts
/// another. The kernel chooses these addresses by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Image {
    code: u64,
    stack: u64,
    arguments: u64,
}

/// What `/proc/PID/stat` tells.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    image: Image,
}

impl Stat {
    fn of(process: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// `None` if the kernel hides the addresses, or the process has no memory.
    fn parse(text: &str) -> Option<Stat> {
        // The name may have brackets and blanks in it.
        let (_, after) = text.rsplit_once(')')?;
        let words: Vec<&str> = after.split_whitespace().collect();
        // By the numbers of the kernel's documentation, where the name has number 2.
        let field = |number: usize| words.get(number - 3)?.parse::<u64>().ok();
        let image = Image {
            code: field(26)?,
            stack: field(28)?,
            arguments: field(48)?,
        };
        let parent = field(4)? as u32;
        (image.stack > 1).then_some(Stat { parent, image })
    }
}

/// Whether a process shares memory since a fork.
#[derive(Default)]
pub(super) struct Forks {
    /// The program with which it was seen to.
    seen_in: Option<Image>,
}

impl Forks {
    /// What the pages of its own memory are of that are not only its own; `None` where it was not forked and has not forked since its
    /// program began.
    pub fn object(&mut self, process: u32) -> Option<Rc<SharedObject>> {
        let stat = Stat::of(process)?;
        if self.seen_in != Some(stat.image) {
            let is_like = |other: u32| Stat::of(other).is_some_and(|of| of.image == stat.image);
            if !is_like(stat.parent) && !children(process).any(is_like) {
                return None;
            }
            self.seen_in = Some(stat.image);
        }
        Some(Rc::new(SharedObject {
            kind: SharedKind::Fork,
            name: program(process),
            file: (format!("{:x}", stat.image.stack), stat.image.arguments),
        }))
    }
}

/// The name of its program's file: its own name may change after a fork.
fn program(process: u32) -> String {
    let path = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn children(process: u32) -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten().take(THREADS);
    let of =
        |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    threads.filter_map(of).flat_map(|text| {
        let numbers = text.split_whitespace().map(str::parse);
        numbers.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name() {
        let numbers: Vec<String> = (5..=52).map(|number| number.to_string()).collect();
        let line = format!("17 (a) b (c)) S 4 {}", numbers.join(" "));
        let image = Image {
            code: 26,
            stack: 28,
            arguments: 48,
        };
        let stat = Stat { parent: 4, image };
        assert_eq!(Stat::parse(&line), Some(stat));
        assert_eq!(Stat::parse("17 (a) S 4 5"), None);
        assert_eq!(Stat::parse(""), None);
    }
}
