//! The README and the book keep their word: every shell command in them runs, and every output that stands below one
//! is what comes out.
//!
//! A ```` ```sh ```` block is run by bash in a scratch folder that shows the sources' `traces`, `machines`, floors,
//! `docs`, `programs` and `examples`; the blocks of a page run in order in the same folder. A ```` ```text ```` block right below one is its output:
//! the words must be the same, numbers within a quarter, and a line `...` stands for any lines. After a change that is
//! meant to change output, `VARVE_ACCEPT=1 cargo test --release -p varve --test docs` writes the new one.
//!
//! A comment on the line above a block says when it is run:
//! `<!-- needs: qemu-user, sqlite3 -->`, `<!-- slow -->` (with `VARVE_SLOW=1` only), `<!-- not run: why -->`.
//! With `VARVE_SLOW=only`, pages that have no slow block are left out.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Finds out whether this host has something.
type Check = fn() -> bool;

/// Requirements of a block: the name in the comment, and the check for it.
const NEEDS: &[(&str, Check)] = &[
    ("qemu-user", || on_path("qemu-x86_64")),
    ("sqlite3", || on_path("sqlite3")),
    ("python3", || on_path("python3")),
    ("cc", || on_path("cc")),
    ("java", || on_path("java")),
    ("javac", || on_path("javac")),
    ("valgrind", || on_path("valgrind")),
    ("jq", || on_path("jq")),
    ("frame-numbers", frames_readable),
];

/// A block of commands, and what they should print.
#[derive(Debug, Default)]
struct Block {
    line: usize,
    marks: Vec<String>,
    script: String,
    /// First and one past the last line of the expected output, counted from 0.
    output: Option<(usize, usize)>,
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Does the kernel show this process its frame numbers? Without the right it shows zeros.
fn frames_readable() -> bool {
    use std::io::{Read, Seek, SeekFrom};
    let here = vec![1u8; 4096];
    let mut entry = [0u8; 8];
    let read = fs::File::open("/proc/self/pagemap").and_then(|mut map| {
        map.seek(SeekFrom::Start(here.as_ptr() as u64 / 4096 * 8))?;
        map.read_exact(&mut entry)
    });
    read.is_ok() && u64::from_le_bytes(entry) & ((1 << 55) - 1) != 0
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the sources are there")
}

/// The README and every page of the book, without the contents of its site.
fn pages() -> Vec<PathBuf> {
    let book = fs::read_dir(home().join("docs")).expect("the book is there");
    let mut pages: Vec<PathBuf> = book
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .filter(|path| !path.ends_with("SUMMARY.md"))
        .collect();
    pages.sort();
    pages.insert(0, home().join("README.md"));
    pages
}

fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].trim_end() != "```sh" {
            at += 1;
            continue;
        }
        let end = fence(&lines, at + 1);
        let above = lines[..at]
            .iter()
            .rev()
            .take_while(|l| l.starts_with("<!--"));
        let marks = above.map(|l| {
            l.trim_start_matches("<!--")
                .trim_end_matches("-->")
                .trim()
                .to_string()
        });
        let mut block = Block {
            line: at + 1,
            marks: marks.collect(),
            script: lines[at + 1..end].join("\n"),
            output: None,
        };
        at = end + 1;
        let next = (at..lines.len()).find(|&i| !lines[i].trim().is_empty());
        if let Some(next) = next.filter(|&i| lines[i].trim_end() == "```text") {
            let end = fence(&lines, next + 1);
            block.output = Some((next + 1, end));
            at = end + 1;
        }
        found.push(block);
    }
    found
}

/// The line that closes a block which begins at `from`.
fn fence(lines: &[&str], from: usize) -> usize {
    (from..lines.len())
        .find(|&i| lines[i].trim_end() == "```")
        .expect("a block is closed")
}

/// Why this block is not run here, if it is not.
fn why_not(block: &Block, place: &str) -> Option<String> {
    for mark in &block.marks {
        if let Some(needs) = mark.strip_prefix("needs:") {
            for need in needs.split(',').map(str::trim) {
                let known = NEEDS.iter().find(|(name, _)| *name == need);
                let (_, met) = known.unwrap_or_else(|| panic!("{place}: `{need}` is unknown"));
                if !met() {
                    return Some(format!("needs {need}"));
                }
            }
        } else if let Some(why) = mark.strip_prefix("not run:") {
            return Some(why.trim().into());
        } else if mark == "slow" {
            if std::env::var_os("VARVE_SLOW").is_none() {
                return Some("slow; VARVE_SLOW=1 runs it".into());
            }
        } else {
            panic!("{place}: `<!-- {mark} -->` is unknown");
        }
    }
    None
}

/// Runs a script in `folder` and returns what it printed on standard output.
fn run(script: &str, folder: &Path) -> Result<String, String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_varve"));
    let mut path = binary
        .parent()
        .expect("a file is in a folder")
        .as_os_str()
        .to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args([
            "-euo",
            "pipefail",
            "-c",
            &script.replace("cargo run --release --", "varve"),
        ])
        .current_dir(folder)
        .env("PATH", path)
        .env("XDG_CACHE_HOME", folder.join(".cache"))
        .env_remove("VARVE_MACHINES")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(format!(
        "{}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The words of a line: what only draws a table is left out.
fn words(line: &str) -> Vec<String> {
    let drawn = |w: &str| w.chars().all(|c| "─│┼┬┴├┤-=+|_".contains(c));
    line.split_whitespace()
        .filter(|w| !drawn(w))
        .map(String::from)
        .collect()
}

/// The number in a word such as `12,345`, `97%` or `1.73x`.
fn number(word: &str) -> Option<f64> {
    word.trim_matches(['(', ')', ',', '.', ';', ':', '%', 'x'])
        .replace(',', "")
        .parse()
        .ok()
}

fn alike(expected: &str, actual: &str) -> bool {
    let (expected, actual) = (words(expected), words(actual));
    let same = |(e, a): (&String, &String)| match (number(e), number(a)) {
        (Some(e), Some(a)) => (e - a).abs() <= 0.25 * e.abs().max(a.abs()) + 0.1,
        _ => e == a,
    };
    expected.len() == actual.len() && expected.iter().zip(&actual).all(same)
}

/// The first expected line that is missing, if one is.
fn missing<'a>(expected: &[&'a str], actual: &str) -> Option<&'a str> {
    let solid = |l: &&str| !words(l).is_empty();
    let mut actual = actual.lines().filter(solid);
    let mut skip = false;
    for line in expected.iter().copied().filter(solid) {
        if line.trim() == "..." {
            skip = true;
            continue;
        }
        let found = if skip {
            actual.any(|a| alike(line, a))
        } else {
            actual.next().is_some_and(|a| alike(line, a))
        };
        if !found {
            return Some(line);
        }
        skip = false;
    }
    if skip {
        None
    } else {
        actual.next().map(|_| "(the end)")
    }
}

/// A folder that shows what a reader who stands among the sources sees, and where new files vanish afterwards.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for the commands");
    for name in [
        "traces", "machines", "base", "model", "live", "engine", "cli", "docs", "programs",
        "examples",
    ] {
        std::os::unix::fs::symlink(home().join(name), folder.path().join(name))
            .expect("a link to the sources");
    }
    folder
}

/// How the commands of a page went.
#[derive(Default)]
struct Went {
    ran: usize,
    wrong: Vec<String>,
}

/// Runs the commands of a page in a folder of its own. With `accept` the page gets the outputs that are new.
fn went(page: &Path, accept: bool) -> Went {
    let mut went = Went::default();
    let text = fs::read_to_string(page).expect("a page is readable");
    let lines: Vec<&str> = text.lines().collect();
    let blocks = blocks(&text);
    let slow = |b: &Block| b.marks.iter().any(|m| m == "slow");
    if std::env::var_os("VARVE_SLOW").is_some_and(|s| s == "only") && !blocks.iter().any(slow) {
        return went;
    }
    let mut changed: Vec<(usize, usize, String)> = Vec::new();
    let folder = stage();
    for block in blocks {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let place = format!("{name}:{}", block.line);
        if let Some(why) = why_not(&block, &place) {
            eprintln!("{place}:");
            varve_skip::skip!("{why}");
            continue;
        }
        went.ran += 1;
        match run(&block.script, folder.path()) {
            Err(said) => went
                .wrong
                .push(format!("{place}: {}\n{said}", block.script)),
            Ok(said) => {
                let Some((from, to)) = block.output else {
                    continue;
                };
                let Some(line) = missing(&lines[from..to], &said) else {
                    continue;
                };
                if accept && !lines[from..to].iter().any(|l| l.trim() == "...") {
                    changed.push((from, to, said));
                } else {
                    went.wrong
                        .push(format!("{place}: no longer prints\n  {line}\nbut\n{said}"));
                }
            }
        }
    }
    if !changed.is_empty() {
        fs::write(page, replaced(&lines, &changed)).expect("a page is writable");
    }
    went
}

#[test]
fn every_command_runs_and_prints_what_the_page_says() {
    let accept = std::env::var_os("VARVE_ACCEPT").is_some();
    let pages = Mutex::new(pages().into_iter());
    let all = Mutex::new(Went::default());
    // Most commands have one thread.
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(page) = pages.lock().expect("nobody panics with it").next() else {
                        return;
                    };
                    let Went { ran, wrong } = went(&page, accept);
                    let mut all = all.lock().expect("nobody panics with it");
                    all.ran += ran;
                    all.wrong.extend(wrong);
                }
            });
        }
    });
    let Went { ran, wrong } = all.into_inner().expect("nobody panicked with it");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(ran > 10, "only {ran} blocks of commands were found");
}

/// The page with new outputs.
fn replaced(lines: &[&str], changed: &[(usize, usize, String)]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for (from, to, said) in changed {
        for line in &lines[at..*from] {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(said.trim_end());
        text.push('\n');
        at = *to;
    }
    text.push_str(&lines[at..].join("\n"));
    text.push('\n');
    text
}

/// Links between pages, and to files of the sources, lead somewhere: to a file, and to a heading of it where they name one.
#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let more = [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "traces/README.md",
        "base/README.md",
        "model/README.md",
        "live/README.md",
        "live/linux/README.md",
        "engine/README.md",
        "cli/README.md",
    ]
    .map(|name| home().join(name));
    for page in pages().into_iter().chain(more) {
        let text = fs::read_to_string(&page).expect("a page is readable");
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = page.parent().expect("a file is in a folder");
            let file = match file {
                "" => page.clone(),
                file => folder.join(file),
            };
            if !file.exists() || !(heading.is_empty() || anchors(&file).contains(heading)) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The anchors of a page's headings: in small letters, without marks, with dashes for blanks.
fn anchors(page: &Path) -> HashSet<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let heading = |line: &str| {
        Some(
            line.trim_start_matches('#')
                .strip_prefix(' ')?
                .to_lowercase(),
        )
    };
    let anchor = |heading: String| -> String {
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines()
        .filter(|line| line.starts_with('#'))
        .filter_map(heading)
        .map(anchor)
        .collect()
}

/// Most words of a sentence. What is longer, a reader has to take apart.
const LONGEST: usize = 45;

#[test]
fn no_sentence_is_longer_than_45_words() {
    let mut long = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page is readable");
        for sentence in paragraphs(&text).iter().flat_map(|p| sentences(p)) {
            if sentence.len() > LONGEST {
                let name = page.strip_prefix(home()).unwrap_or(&page).display();
                long.push(format!(
                    "{name}: {} words: {}",
                    sentence.len(),
                    sentence.join(" ")
                ));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The paragraphs and list items of a page, without code, drawings, tables, headings and comments.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let (mut code, mut drawing, mut above) = (false, false, "");
    for line in text.lines() {
        let bare = line.trim();
        let fence = bare.starts_with("```");
        code ^= fence;
        // A drawing is indented by four blanks and stands below an empty line.
        drawing = line.starts_with("    ") && (drawing || above.is_empty());
        above = bare;
        let (item, words) = list_item(bare);
        let apart = fence || code || drawing || bare.starts_with(['|', '#']);
        let apart = apart || bare.is_empty() || bare.starts_with("<!--");
        if apart || item {
            found.push(String::new());
        }
        if !apart {
            let paragraph = found.last_mut().expect("there is always one");
            paragraph.push(' ');
            paragraph.push_str(words);
        }
    }
    found.retain(|paragraph| !paragraph.is_empty());
    found
}

/// Whether a line begins an item of a list, and its words.
fn list_item(line: &str) -> (bool, &str) {
    let Some((mark, words)) = line.split_once(' ') else {
        return (false, line);
    };
    let number = mark.strip_suffix('.').unwrap_or_default();
    let counts = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    match mark == "-" || counts {
        true => (true, words),
        false => (false, line),
    }
}

/// The sentences of a paragraph, as words. Where links lead is left out.
fn sentences(paragraph: &str) -> Vec<Vec<String>> {
    let mut links = paragraph.split("](");
    let mut text = links.next().unwrap_or_default().to_string();
    for rest in links {
        text.push(']');
        text.push_str(rest.split_once(')').map_or(rest, |(_, after)| after));
    }
    let mut found = vec![Vec::new()];
    for word in text.split_whitespace() {
        if word.chars().any(char::is_alphanumeric) {
            let sentence = found.last_mut().expect("there is always one");
            sentence.push(word.to_string());
        }
        let end = word.trim_end_matches([')', ']', '"', '\'', '*', '_', '`']);
        if end.ends_with(['.', '!', '?']) && !["e.g.", "i.e.", "al."].contains(&end) {
            found.push(Vec::new());
        }
    }
    found
}

/// The contents of the book name every page.
/// Code under `<!-- code: FILE PART -->` is that of a part of a file, which a test compiles and runs.
#[test]
fn code_of_the_tutorial_is_that_of_its_tests() {
    let mut found = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page is readable");
        for rest in text.split("<!-- code: ").skip(1) {
            let (place, rest) = rest.split_once(" -->\n```rust\n").expect("code follows");
            let (code, _) = rest.split_once("\n```\n").expect("code ends");
            let (file, part) = place.split_once(' ').expect("a file and a part of it");
            let source = fs::read_to_string(home().join(file)).expect("the file is there");
            let begin = format!("// begin: {part}\n");
            let (_, after) = source.split_once(&begin).expect("the part begins");
            let (expected, _) = after
                .split_once(&format!("// end: {part}"))
                .expect("the part ends");
            assert_eq!(code.trim(), expected.trim(), "{}: {place}", page.display());
            found += 1;
        }
    }
    assert!(found >= 3, "{found}");
}

/// All pages below a folder, by their names from `top` on.
fn names_below(folder: &Path, top: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            names_below(&path, top, names);
        } else if path.extension().is_some_and(|e| e == "md") {
            let name = path.strip_prefix(top).expect("it is below");
            names.push(name.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn the_contents_of_the_book_and_of_its_site_name_every_page() {
    let docs = home().join("docs");
    let mut names = Vec::new();
    names_below(&docs, &docs, &mut names);
    names.retain(|name| name != "SUMMARY.md");
    let read = |name| fs::read_to_string(docs.join(name)).expect("the contents are there");
    let (contents, site) = (read("README.md"), read("SUMMARY.md"));
    for name in names {
        let link = format!("({name})");
        assert!(site.contains(&link), "{name} is not in docs/SUMMARY.md");
        // Pages of studies are below the page of all studies.
        let listed =
            name == "README.md" || name.starts_with("studies/") || contents.contains(&link);
        assert!(listed, "{name} is not in docs/README.md");
    }
}

#[test]
fn an_output_is_recognized_whatever_its_numbers_but_not_whatever_its_words() {
    let page = [
        "  policy   time",
        "  static   9.8 ms",
        "...",
        "Advice: use `static`.",
    ];
    let good = "policy      time\n----------------\nstatic    10.1 ms\nrandom  20 ms\n\nAdvice: use `static`.\n";
    assert_eq!(missing(&page, good), None);
    assert_eq!(missing(&page, &good.replace("10.1", "30")), Some(page[1]));
    assert_eq!(
        missing(
            &page,
            &good.replace("Advice: use `static`", "Advice: use `random`")
        ),
        Some(page[3])
    );
    assert_eq!(missing(&page[..2], good), Some("(the end)"));
}

#[test]
fn a_sentence_ends_at_its_full_stop_and_not_within_a_name() {
    let page = "# A heading. With two.\n\nRead `a.rs` in [the book](docs/start.md#x). It\nis *short.* And\n\n```sh\nno prose here\n```\n\n\
                1. an item\n   goes on\n- another\n\n    a drawing\n    of two lines\n\n| a | table |\n";
    let lengths = |p: &String| sentences(p).iter().map(Vec::len).collect::<Vec<_>>();
    let found: Vec<_> = paragraphs(page).iter().map(lengths).collect();
    assert_eq!(found, [vec![5, 3, 1], vec![4], vec![1]]);
}
