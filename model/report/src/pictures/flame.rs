//! Where threads wait, by stack, as flame graphs: drawn by inferno.

use inferno::flamegraph::{self, Options};

/// Stacks that are drawn at most, and frames of each.
const MOST_STACKS: usize = 400;
const MOST_FRAMES: usize = 40;
/// A frame that is narrower is not drawn, % of the width. Without it a file could be of any size.
const NARROW: f64 = 0.05;
/// Pixels.
const WIDTH: usize = 1200;

/// Time of one stack in two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The outermost frame first.
    pub frames: Vec<String>,
    /// Time in the run with fast memory, ns.
    pub fast_ns: u64,
    /// Time in the one with slow memory, ns.
    pub slow_ns: u64,
}

/// Kind of the stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Of memory that is waited for, by the code that asked for it.
    #[default]
    Memory,
    /// Of functions that wait.
    Function,
}

/// Where threads wait in two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flame {
    /// Kind of its stacks.
    pub by: By,
    /// Title: the program.
    pub title: String,
    /// Name of the first run, as it stands in a sentence: `with all in DRAM`. `None` if there is one run only, whose
    /// times both are.
    pub fast: Option<String>,
    /// Name of the second run, likewise.
    pub slow: String,
    /// All stacks.
    pub stacks: Vec<Stack>,
}

impl Flame {
    /// The stacks as they are drawn: those in which nothing is lost are left out, the smallest are one, and of deep ones the
    /// outermost frames are.
    pub(super) fn folded(&self) -> Vec<Stack> {
        let lost = |s: &Stack| s.fast_ns.max(s.slow_ns);
        let mut stacks: Vec<Stack> = self
            .stacks
            .iter()
            .filter(|s| lost(s) > 0)
            .cloned()
            .collect();
        stacks.sort_by(|a, b| lost(b).cmp(&lost(a)).then_with(|| a.frames.cmp(&b.frames)));
        if stacks.len() > MOST_STACKS {
            let small = stacks.split_off(MOST_STACKS - 1);
            stacks.push(Stack {
                frames: vec![format!("{} smaller stacks", small.len())],
                fast_ns: small.iter().map(|s| s.fast_ns).sum(),
                slow_ns: small.iter().map(|s| s.slow_ns).sum(),
            });
        }
        for stack in &mut stacks {
            let deep = stack.frames.len().saturating_sub(MOST_FRAMES);
            if deep > 0 {
                stack
                    .frames
                    .splice(0..=deep, [format!("{} outer calls", deep + 1)]);
            }
        }
        stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
        stacks
    }

    /// The flame graph of the run with slow memory; `None` if no thread waits there.
    pub(super) fn graph(&self) -> Option<String> {
        let stacks = self.folded();
        let lines = stacks
            .iter()
            .filter(|s| s.slow_ns > 0)
            .map(|s| format!("{} {}", line(s), s.slow_ns));
        self.draw(
            lines.collect(),
            format!("{} {}", self.heading(), self.slow),
            "",
        )
    }

    /// The same, coloured by the difference to the run with fast memory.
    pub(super) fn difference(&self) -> Option<String> {
        let fast = self.fast.as_ref()?;
        let stacks = self.folded();
        let any = |s: &&Stack| s.fast_ns + s.slow_ns > 0;
        let lines = stacks
            .iter()
            .filter(any)
            .map(|s| format!("{} {} {}", line(s), s.fast_ns, s.slow_ns));
        let legend = "red: waits longer; blue: waits less; the stronger, the more";
        let title = format!("{} {}, beside that {fast}", self.heading(), self.slow);
        self.draw(lines.collect(), title, legend)
    }

    fn heading(&self) -> &'static str {
        match self.by {
            By::Memory => "Waiting for memory",
            By::Function => "Functions that wait for memory",
        }
    }

    fn draw(&self, lines: Vec<String>, title: String, legend: &str) -> Option<String> {
        if lines.is_empty() {
            return None;
        }
        let mut options = Options::default();
        options.title = title;
        options.subtitle = Some(match legend {
            "" => self.title.clone(),
            legend => format!("{} ({legend})", self.title),
        });
        options.count_name = "ns of all threads".into();
        options.image_width = Some(WIDTH);
        options.min_width = NARROW;
        // The same colour for the same name, whatever else there is.
        options.deterministic = true;
        options.no_sort = false;
        let mut svg = Vec::new();
        let drawn =
            flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg);
        drawn.ok()?;
        String::from_utf8(svg).ok()
    }
}

/// Frames as inferno reads them: it takes a semicolon for their end.
fn line(stack: &Stack) -> String {
    let frame = |name: &String| name.replace(';', ",").replace(['\n', '\r'], " ");
    stack.frames.iter().map(frame).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], fast_ns: u64, slow_ns: u64) -> Stack {
        Stack {
            frames: frames.iter().map(|f| f.to_string()).collect(),
            fast_ns,
            slow_ns,
        }
    }

    fn flame(stacks: Vec<Stack>) -> Flame {
        Flame {
            by: By::Memory,
            title: "sort on cxl-spr".into(),
            fast: Some("with all in DRAM".into()),
            slow: "with all in slow memory".into(),
            stacks,
        }
    }

    #[test]
    fn many_stacks_become_few_and_no_time_is_lost() {
        let many = (0..5000u64).map(|i| stack(&["main", &format!("f{i}")], i, 2 * i));
        let flame = flame(many.collect());
        let folded = flame.folded();
        assert_eq!(folded.len(), MOST_STACKS);
        assert_eq!(folded.iter().map(|s| s.slow_ns).sum::<u64>(), 4999 * 5000);
        assert!(folded.iter().any(|s| s.frames == ["4600 smaller stacks"]));
        let deep: Vec<String> = (0..1000).map(|i| format!("g{i}")).collect();
        let deep = Flame {
            stacks: vec![Stack {
                frames: deep,
                fast_ns: 1,
                slow_ns: 2,
            }],
            ..flame
        };
        assert_eq!(deep.folded()[0].frames.len(), MOST_FRAMES);
        assert_eq!(deep.folded()[0].frames[0], "961 outer calls");
        assert_eq!(deep.folded()[0].frames[39], "g999");
    }

    #[test]
    fn names_are_shown_as_they_are() {
        let flame = flame(vec![
            stack(&["a;b", "Vec<int>::grow()"], 10, 30),
            stack(&["main"], 5, 0),
        ]);
        let graph = flame.graph().unwrap();
        assert!(
            graph.contains("a,b (30 ns of all threads, 100.00%)"),
            "{graph}"
        );
        assert!(graph.contains("Vec&lt;int&gt;::grow()"));
        let difference = flame.difference().unwrap();
        assert!(
            difference.contains("Vec&lt;int&gt;::grow() (30 ns of all threads, 100.00%; +"),
            "{difference}"
        );
        assert_eq!(Flame::default().graph(), None);
    }
}
