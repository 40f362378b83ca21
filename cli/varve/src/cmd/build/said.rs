//! The output of Maven and the compilers, as a line for each problem.

use crate::ui::{Failure, failed, wrong};
use std::collections::BTreeSet;

/// Names of files as the user has them, by those of the project that is built.
#[derive(Default)]
pub struct Shown(pub Vec<(String, String)>);

impl Shown {
    fn of(&self, path: &str) -> String {
        let user = self.0.iter().find(|(own, _)| own == path);
        user.map_or(path, |(_, user)| user).to_string()
    }

    /// A file that is known by its last part alone.
    fn named(&self, name: &str) -> String {
        let ends = |own: &str| own.rsplit('/').next() == Some(name);
        let mut found = self.0.iter().filter(|(own, _)| ends(own));
        match (found.next(), found.next()) {
            (Some((_, user)), None) => user.clone(),
            _ => name.to_string(),
        }
    }
}

/// Maven's next step, if a line names one.
pub fn step(line: &str) -> Option<String> {
    let line = line.strip_prefix("[INFO] ")?;
    if let Some(rest) = line
        .strip_prefix("Downloading from ")
        .or_else(|| line.strip_prefix("Downloaded from "))
    {
        let file = rest.split(' ').nth(1)?.rsplit('/').next()?;
        return Some(format!("fetching {file}"));
    }
    match line {
        "Running TeaVM" => Some("to WebAssembly".into()),
        _ if line.starts_with("--- maven-compiler-plugin") => Some("Java".into()),
        _ => None,
    }
}

/// The failure of a run of Maven. All but the last line is printed.
pub fn tell(lines: &[String], shown: &Shown) -> Failure {
    let mut problems = problems(lines, shown);
    let Some(last) = problems.pop() else {
        return match reason(lines) {
            Some(reason) if is_network(&reason) => failed(format!(
                "Maven could not fetch what it needs: {reason}; check the network, and the mirrors in ~/.m2/settings.xml"
            )),
            Some(reason) => wrong(reason),
            None => failed("Maven failed and printed no reason; --log FILE keeps its output"),
        };
    };
    for problem in problems {
        crate::ui::message!("varve: {problem}");
    }
    wrong(last)
}

fn is_network(reason: &str) -> bool {
    let signs = [
        "Could not transfer",
        "Could not resolve",
        "could not be resolved",
        "offline mode",
        "Unknown host",
    ];
    signs.iter().any(|s| reason.contains(s))
}

/// The end of a run says in one line why it failed.
fn reason(lines: &[String]) -> Option<String> {
    let errors = lines.iter().filter_map(|l| l.strip_prefix("[ERROR] "));
    // A heading, and then the errors.
    let is_heading = |l: &str| l.starts_with("COMPILATION ERROR");
    let mut errors = errors.filter(|l| !l.trim().is_empty() && !is_heading(l));
    let first = errors.next()?.trim();
    // The goal's name and the hint at Maven's own help say nothing here.
    let first = first.split(" -> [Help").next().unwrap_or(first);
    let text = match first.strip_prefix("Failed to execute goal ") {
        Some(rest) => rest.split_once(": ").map_or(rest, |(_, reason)| reason),
        None => first,
    };
    Some(text.trim().to_string())
}

/// A line for each problem of the program itself, each once.
fn problems(lines: &[String], shown: &Shown) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(text) = line.strip_prefix("[ERROR] ") else {
            continue;
        };
        let more: Vec<&str> = lines[i + 1..]
            .iter()
            .map_while(|l| l.strip_prefix("  ").map(str::trim))
            .collect();
        let problem = of_java(text, &more, shown).or_else(|| of_module(text, &more, shown));
        // The end of the run repeats what the compiler of Java said, with fewer words.
        let place = |p: &str| p.split(" (").next().unwrap_or(p).to_string();
        if let Some(problem) = problem
            && seen.insert(place(&problem))
        {
            all.push(problem);
        }
    }
    all
}

/// `/path/A.java:[4,11] what is wrong`, and lines with details.
fn of_java(text: &str, more: &[&str], shown: &Shown) -> Option<String> {
    let (path, rest) = text.split_once(":[")?;
    let (place, what) = rest.split_once("] ")?;
    let place = place.replace(',', ":");
    let details: Vec<String> = more.iter().map(|l| words(l)).collect();
    let details = match details.is_empty() {
        true => String::new(),
        false => format!(" ({})", details.join("; ")),
    };
    Some(format!("{}:{place}: {what}{details}", shown.of(path)))
}

/// A text with single blanks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A problem of the compiler to WebAssembly, and the calls that lead there.
fn of_module(text: &str, calls: &[&str], shown: &Shown) -> Option<String> {
    let mut calls = calls.iter().filter_map(|c| c.strip_prefix("at "));
    let first = calls.next()?;
    let (method, line) = match first.split_once('(') {
        Some((method, place)) => (method, Some(place.trim_end_matches(')'))),
        None => (first, None),
    };
    let place = match line.and_then(|l| l.split_once(':')) {
        Some((file, line)) => format!("{}:{line}: ", shown.named(file)),
        None => String::new(),
    };
    let missing = text.strip_suffix(" was not found").map(|what| {
        let (kind, name) = what.split_once(' ').unwrap_or(("", what));
        // A descriptor is for machines.
        let name = name.split('(').next().unwrap_or(name);
        format!("the {} {name}", kind.to_lowercase())
    });
    Some(match missing {
        Some(what) => format!(
            "{place}{method} needs {what}, which is neither in the program nor in the compiler's library"
        ),
        None => format!("{place}{method}: {text}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    fn shown() -> Shown {
        Shown(vec![(
            "/scratch/app/src/main/java/p/Main.java".into(),
            "src/Main.java".into(),
        )])
    }

    #[test]
    fn what_the_library_lacks_is_told_by_class_and_method() {
        let said = lines(
            "[INFO] Running TeaVM
[ERROR] Class java.net.ServerSocket was not found
    at p.Main.main(Main.java:3)
    at org.teavm.runtime.Fiber.runMain
[ERROR] Method java.lang.String.describeConstable()Ljava/util/Optional; was not found
    at p.Other.go(Other.java:9)
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.teavm:teavm-maven-plugin:0.15.0:compile (default) on project app: Unexpected error occurred: Build error -> [Help 1]",
        );
        let end = "which is neither in the program nor in the compiler's library";
        assert_eq!(
            problems(&said, &shown()),
            [
                format!(
                    "src/Main.java:3: p.Main.main needs the class java.net.ServerSocket, {end}"
                ),
                format!(
                    "Other.java:9: p.Other.go needs the method java.lang.String.describeConstable, {end}"
                ),
            ]
        );
    }

    #[test]
    fn errors_of_java_are_told_once_with_the_users_names() {
        let said = lines(
            "[ERROR] COMPILATION ERROR :
[ERROR] /scratch/app/src/main/java/p/Main.java:[4,11] incompatible types: java.lang.String cannot be converted to int
[ERROR] /scratch/app/src/main/java/p/Main.java:[5,3] cannot find symbol
  symbol:   method foo()
  location: class p.Main
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile (default-compile) on project app: Compilation failure: Compilation failure:
[ERROR] /scratch/app/src/main/java/p/Main.java:[4,11] incompatible types: java.lang.String cannot be converted to int
[ERROR] /scratch/app/src/main/java/p/Main.java:[5,3] cannot find symbol
[ERROR]   symbol:   method foo()",
        );
        assert_eq!(
            problems(&said, &shown()),
            [
                "src/Main.java:4:11: incompatible types: java.lang.String cannot be converted to int",
                "src/Main.java:5:3: cannot find symbol (symbol: method foo(); location: class p.Main)",
            ]
        );
    }

    #[test]
    fn without_a_problem_of_the_program_the_runs_own_reason_counts() {
        let said = lines(
            "[INFO] BUILD FAILURE
[ERROR] Failed to execute goal on project app: Could not resolve dependencies for project varve:app:jar:1: Cannot access central in offline mode -> [Help 1]
[ERROR] ",
        );
        assert!(problems(&said, &shown()).is_empty());
        let reason = reason(&said).unwrap();
        assert!(
            reason.starts_with("Could not resolve dependencies"),
            "{reason}"
        );
        assert!(is_network(&reason));
    }

    #[test]
    fn steps_are_what_a_reader_waits_for() {
        let line = "[INFO] Downloading from central: https://host/maven2/org/teavm/teavm-core/0.15.0/teavm-core-0.15.0.jar";
        assert_eq!(
            step(line).as_deref(),
            Some("fetching teavm-core-0.15.0.jar")
        );
        assert_eq!(
            step("[INFO] Running TeaVM").as_deref(),
            Some("to WebAssembly")
        );
        assert_eq!(step("[INFO] "), None);
    }
}
