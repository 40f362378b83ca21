//! The file of a sweep: options of `varve run` with one value or several.

use crate::args::Request;
use clap::{Args, Command};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use varve_machine::Problem;

/// Options that a sweep gives itself, or that mean nothing to it.
const NOT_SWEPT: [&str; 6] = ["json", "out", "help", "live", "seeds", "set"];
/// The subject of the runs, and its arguments.
pub const WORK: &str = "work";
pub const ARGUMENTS: &str = "arguments";
pub const COMMAND: &str = "command";
/// Axes `set.KEY` change a key of the machine.
pub const SET: &str = "set.";
/// Keys of a picture.
const PICTURE: [&str; 7] = ["x", "y", "lines", "over", "title", "x_title", "y_title"];
/// More points than anybody means.
const MOST_POINTS: u64 = 10_000_000;

/// An option and its values, in the order in which they are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    pub name: String,
    /// Words of each value: several only for arguments and commands.
    pub values: Vec<Vec<String>>,
    /// Line of the file.
    pub line: usize,
}

/// The chart of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureSpec {
    /// The axis along the bottom.
    pub x: String,
    /// The figure of each run, as its JSON calls it.
    pub y: String,
    /// The axis with a line for each value.
    pub lines: String,
    /// The value of `lines` that all others are divided by.
    pub over: Option<String>,
    /// Its title and the labels of its axes, for readers who do not know the options.
    pub title: Option<String>,
    pub x_title: Option<String>,
    pub y_title: Option<String>,
}

/// A sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub about: String,
    /// Where its paths are seen from.
    pub folder: PathBuf,
    /// The file's name without its end.
    pub stem: String,
    pub axes: Vec<Axis>,
    pub picture: Option<PictureSpec>,
    file: String,
}

/// Reads a sweep.
///
/// # Errors
/// All problems of the file, one a line.
pub fn load(path: &Path) -> Result<Sweep, String> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        format!("{shown}: {e}; give the file of a sweep, such as examples/budget.toml")
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_path_buf(),
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&text, &shown, folder, &stem).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        lines.join("\nvarve: ")
    })
}

/// Problems of a file, with their lines.
struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text[..at.min(self.text.len())].matches('\n').count()
    }

    fn wrong(&mut self, span: Range<usize>, key: &str, what: impl Into<String>, remedy: &str) {
        self.problems.push(Problem {
            file: self.file.into(),
            line: self.line(span.start),
            key: key.into(),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// One value as words.
    fn words(&mut self, key: &str, value: &DeValue<'_>, span: Range<usize>) -> Option<Vec<String>> {
        let several = key == ARGUMENTS || key == COMMAND;
        match value {
            DeValue::String(text) if several => {
                Some(text.split_whitespace().map(String::from).collect())
            }
            DeValue::String(text) => Some(vec![text.to_string()]),
            DeValue::Integer(number) => Some(vec![number.to_string()]),
            DeValue::Float(number) => Some(vec![number.to_string()]),
            DeValue::Boolean(true) => Some(Vec::new()),
            DeValue::Array(words) if several => {
                let words = words.iter().map(|word| word.get_ref().as_str());
                let words: Option<Vec<String>> = words.map(|w| w.map(String::from)).collect();
                if words.is_none() {
                    self.wrong(
                        span,
                        key,
                        "words of a command are texts",
                        "put each into quotes",
                    );
                }
                words
            }
            _ => {
                self.wrong(
                    span,
                    key,
                    "is neither a text nor a number",
                    "write a value, or several in [ ]",
                );
                None
            }
        }
    }

    fn axis(&mut self, name: &str, value: &DeValue<'_>, span: Range<usize>) -> Option<Axis> {
        let line = self.line(span.start);
        let values: Option<Vec<Vec<String>>> = match value {
            DeValue::Array(values) => values
                .iter()
                .map(|v| self.words(name, v.get_ref(), v.span()))
                .collect(),
            value => self
                .words(name, value, span.clone())
                .map(|words| vec![words]),
        };
        let values = values?;
        if values.is_empty() {
            self.wrong(
                span,
                name,
                "has no value",
                "write one, or leave the key out",
            );
            return None;
        }
        let mut seen = HashSet::new();
        if let Some(twice) = values.iter().position(|value| !seen.insert(value)) {
            let what = format!("has `{}` twice", values[twice].join(" "));
            self.wrong(span, name, what, "leave one of them out");
            return None;
        }
        Some(Axis {
            name: name.into(),
            values,
            line,
        })
    }

    fn picture(&mut self, value: &DeValue<'_>, span: Range<usize>) -> Option<PictureSpec> {
        let DeValue::Table(table) = value else {
            self.wrong(
                span,
                "picture",
                "is not a section",
                "write [picture] with x and lines",
            );
            return None;
        };
        let mut keys: BTreeMap<&str, String> = BTreeMap::new();
        for (key, value) in table.iter() {
            let key: &str = key.get_ref();
            let text = value.get_ref().as_str();
            match (PICTURE.contains(&key), text) {
                (true, Some(text)) => drop(keys.insert(key, text.into())),
                (true, None) => {
                    self.wrong(value.span(), key, "is not a string", "put it into quotes")
                }
                (false, _) => {
                    self.wrong(
                        value.span(),
                        key,
                        "is not a key of a picture",
                        &format!("there are {}", PICTURE.join(", ")),
                    );
                }
            }
        }
        let (Some(x), Some(lines)) = (keys.remove("x"), keys.remove("lines")) else {
            self.wrong(
                span,
                "picture",
                "needs x and lines",
                "name an option for each",
            );
            return None;
        };
        Some(PictureSpec {
            x,
            lines,
            y: keys.remove("y").unwrap_or_else(|| "seconds".into()),
            over: keys.remove("over"),
            title: keys.remove("title"),
            x_title: keys.remove("x_title"),
            y_title: keys.remove("y_title"),
        })
    }
}

/// Options of `varve run` that can be swept.
fn options() -> Vec<String> {
    let command = Request::augment_args(Command::new("run"));
    let long = command.get_arguments().filter_map(|a| a.get_long());
    let long = long.filter(|name| !NOT_SWEPT.contains(name));
    long.map(String::from).collect()
}

fn parse(text: &str, file: &str, folder: PathBuf, stem: &str) -> Result<Sweep, Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        file,
        problems: Vec::new(),
    };
    for e in &errors {
        let what = format!("not TOML: {}", e.message().replace('\n', " "));
        reader.wrong(
            e.span().unwrap_or(0..0),
            "",
            what,
            "write it as `key = value`",
        );
    }
    if !errors.is_empty() {
        return Err(reader.problems);
    }
    let options = options();
    let (mut about, mut picture) = (String::new(), None);
    let mut axes: Vec<(usize, Axis)> = Vec::new();
    for (key, value) in root.get_ref().iter() {
        let (name, span): (&str, _) = (key.get_ref(), key.span());
        let value = value.get_ref();
        match (name, value) {
            ("about", DeValue::String(text)) => about = text.to_string(),
            ("picture", value) => picture = reader.picture(value, span),
            ("set", DeValue::Table(keys)) => {
                for (key, value) in keys.iter() {
                    let name = format!("{SET}{}", key.get_ref());
                    let axis = reader.axis(&name, value.get_ref(), key.span());
                    axes.extend(axis.map(|axis| (key.span().start, axis)));
                }
            }
            ("set", _) => reader.wrong(
                span,
                name,
                "is not a section",
                "write [set] with keys such as \"core.ipc\" = [1, 2]",
            ),
            (WORK | ARGUMENTS | COMMAND, value) => {
                let axis = reader.axis(name, value, span.clone());
                axes.extend(axis.map(|axis| (span.start, axis)));
            }
            (name, value) if options.iter().any(|o| o == name) => {
                let axis = reader.axis(name, value, span.clone());
                axes.extend(axis.map(|axis| (span.start, axis)));
            }
            (name, _) if NOT_SWEPT.contains(&name) => {
                reader.wrong(
                    span,
                    name,
                    "cannot be swept",
                    "leave it out; several seeds are seed = [1, 2, 3]",
                );
            }
            (name, _) => {
                let remedy = match varve_spec::nearest(name, options.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "`varve run --help=all` lists them".into(),
                };
                reader.wrong(span, name, "is not an option of `varve run`", &remedy);
            }
        }
    }
    axes.sort_by_key(|(at, _)| *at);
    let axes: Vec<Axis> = axes.into_iter().map(|(_, axis)| axis).collect();
    let has = |name: &str| axes.iter().any(|axis| axis.name == name);
    if has(WORK) == has(COMMAND) && reader.problems.is_empty() {
        reader.wrong(
            0..0,
            "",
            "needs something to run",
            "write work = \"FILE or WORKLOAD\", or command = \"COMMAND\", and not both",
        );
    }
    let points = axes
        .iter()
        .map(|a| a.values.len() as u64)
        .try_fold(1u64, u64::checked_mul);
    if points.is_none_or(|n| n > MOST_POINTS) {
        reader.wrong(
            0..0,
            "",
            format!("has more than {MOST_POINTS} points"),
            "leave some values out",
        );
    }
    if let Some(picture) = &picture
        && let Some(missing) = [&picture.x, &picture.lines]
            .into_iter()
            .find(|name| !has(name))
    {
        reader.wrong(
            0..0,
            "picture",
            format!("`{missing}` is not a key of this sweep"),
            "name one that has several values",
        );
    }
    match reader.problems.is_empty() {
        true => Ok(Sweep {
            about,
            folder,
            stem: stem.into(),
            axes,
            picture,
            file: file.into(),
        }),
        false => Err(reader.problems),
    }
}

impl Sweep {
    /// How many runs it is.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The value of each axis at a point; the last axis changes fastest.
    pub fn at(&self, mut number: usize) -> Vec<usize> {
        let mut at = vec![0; self.axes.len()];
        for (place, axis) in at.iter_mut().zip(&self.axes).rev() {
            *place = number % axis.values.len();
            number /= axis.values.len();
        }
        at
    }

    /// The axes that have several values.
    pub fn varying(&self) -> impl Iterator<Item = usize> {
        (0..self.axes.len()).filter(|&axis| self.axes[axis].values.len() > 1)
    }

    /// A value as it is shown.
    pub fn shown(&self, axis: usize, value: usize) -> String {
        self.axes[axis].values[value].join(" ")
    }

    /// The problem of a value, with its line.
    pub fn problem(&self, axis: usize, what: &str) -> String {
        let Axis { name, line, .. } = &self.axes[axis];
        format!("{}:{line}: {name}: {what}", self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Sweep, String> {
        parse(text, "s.toml", ".".into(), "s").map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
            lines.join("\n")
        })
    }

    #[test]
    fn points_are_all_combinations_in_the_order_of_the_file() {
        let text = "work = \"gups\"\nseed = [1, 2]\npolicy = [\"static\", \"linux\"]\n[set]\n\"core.ipc\" = [1.5]\n";
        let sweep = read(text).unwrap();
        let names: Vec<&str> = sweep.axes.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["work", "seed", "policy", "set.core.ipc"]);
        assert_eq!(sweep.points(), 4);
        let all: Vec<Vec<usize>> = (0..4).map(|n| sweep.at(n)).collect();
        assert_eq!(
            all,
            [[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]]
        );
        assert_eq!(sweep.varying().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(sweep.shown(3, 0), "1.5");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_remedy() {
        for (text, said) in [
            (
                "work = \"gups\"\npolicie = \"static\"",
                "s.toml:2: policie: is not an option of `varve run`; did you mean `policy`?",
            ),
            ("work = \"gups\"\nseed = []", "s.toml:2: seed: has no value"),
            (
                "work = \"gups\"\nseed = [1, 1]",
                "s.toml:2: seed: has `1` twice",
            ),
            (
                "work = \"gups\"\nlive = true",
                "s.toml:2: live: cannot be swept",
            ),
            ("seed = 1", "needs something to run"),
            ("work = \"a\"\ncommand = \"b\"", "and not both"),
            ("work = 'gups'\nseed = {}", "s.toml:2: seed: is neither"),
            ("work = ", "s.toml:1: not TOML"),
            (
                "work = 'gups'\n[picture]\nx = 'fast'",
                "s.toml:2: picture: needs x and lines",
            ),
            (
                "work = 'gups'\n[picture]\nx = 'fast'\nlines = 'plan'",
                "`fast` is not a key of this sweep",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn arguments_are_words_and_may_be_given_one_by_one() {
        let sweep = read("work = 'x.wasm'\narguments = ['a  b', ['c d', 'e']]").unwrap();
        assert_eq!(sweep.axes[1].values, [vec!["a", "b"], vec!["c d", "e"]]);
    }
}
