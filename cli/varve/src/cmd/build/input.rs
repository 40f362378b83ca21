//! The input of a build: sources, a jar with its dependencies, or a Maven project.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum Input {
    /// Files of Java, the one with the main class first.
    Sources(Vec<PathBuf>),
    /// The program, then what it needs.
    Jars(Vec<PathBuf>),
    /// A project's `pom.xml`.
    Project(PathBuf),
}

impl Input {
    /// The input that the command line names. Folders stand for the sources in them.
    ///
    /// # Errors
    /// A line on what is missing or does not go together.
    pub fn of(words: &[PathBuf]) -> Result<Input, String> {
        let mut files = Vec::new();
        for word in words {
            match word.is_dir() {
                true => sources_in(word, &mut files)?,
                false => files.push(word.clone()),
            }
        }
        for file in &files {
            fs::File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
        }
        let all = |extension: &str| files.iter().all(|f| has_extension(f, extension));
        if all("java") {
            return Ok(Input::Sources(files));
        }
        if all("jar") {
            return Ok(Input::Jars(files));
        }
        match &files[..] {
            [file] if has_extension(file, "xml") => Ok(Input::Project(file.clone())),
            [file] => Err(format!(
                "{}: cannot be built; name a jar, files of Java, or the pom.xml of a project",
                file.display()
            )),
            _ => Err("files of several kinds do not go together; name jars, files of Java, or one pom.xml".into()),
        }
    }

    /// The module in the working directory that is named after the program: after the jar, the first file, or the project's folder.
    pub fn default_output(&self) -> PathBuf {
        let name = match self {
            Input::Sources(files) | Input::Jars(files) => files[0].file_stem().map(PathBuf::from),
            Input::Project(pom) => fs::canonicalize(pom)
                .ok()
                .and_then(|pom| pom.parent()?.file_name().map(PathBuf::from)),
        };
        let mut name = name.unwrap_or_else(|| "program".into()).into_os_string();
        name.push(".wasm");
        name.into()
    }
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|e| e == extension)
}

/// Adds the files of Java in a folder, in the order of their names.
fn sources_in(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let say = |e| format!("{}: {e}", folder.display());
    let entries = fs::read_dir(folder).map_err(say)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(say)?;
    paths.sort();
    let before = files.len();
    for path in paths {
        if path.is_dir() {
            // Of folders without sources only the one that was named is an error.
            let _ = sources_in(&path, files);
        } else if has_extension(&path, "java") {
            files.push(path);
        }
    }
    match files.len() > before {
        true => Ok(()),
        false => Err(format!(
            "{}: no files of Java in this folder",
            folder.display()
        )),
    }
}

/// The package that a file of Java says it is in; empty for none.
pub fn package(source: &str) -> String {
    let line = code(source).find_map(|l| {
        let name = l.strip_prefix("package ")?;
        Some(name.split(';').next()?.trim().to_string())
    });
    line.unwrap_or_default()
}

/// Whether a file of Java has a method that programs begin with.
pub fn has_main(source: &str) -> bool {
    code(source).any(|l| l.contains("static") && l.contains("void main("))
}

/// Lines without those that are comments.
fn code(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().map(str::trim);
    lines.filter(|l| !l.starts_with("//") && !l.starts_with('*') && !l.starts_with("/*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_what_the_code_says_and_not_a_comment() {
        let source = "// package no;\n/* package\n * none;\n */\npackage a.b ;\nclass C {\n  public static void main(String[] a) {}";
        assert_eq!(package(source), "a.b");
        assert!(has_main(source));
        assert_eq!(package("class Main {}"), "");
        assert!(!has_main("// static void main(String[] a)"));
    }

    #[test]
    fn a_folder_stands_for_its_sources_and_kinds_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("p")).unwrap();
        for name in ["B.java", "p/A.java", "notes.txt", "x.jar"] {
            fs::write(at(name), "").unwrap();
        }
        let Ok(Input::Sources(files)) = Input::of(&[folder.path().into()]) else {
            panic!("sources")
        };
        assert_eq!(files, [at("B.java"), at("p/A.java")]);
        let refused = |words: &[PathBuf]| Input::of(words).unwrap_err();
        assert!(refused(&[at("x.jar"), at("B.java")]).contains("do not go together"));
        assert!(refused(&[at("notes.txt")]).contains("cannot be built"));
        assert!(refused(&[at("gone.jar")]).contains("gone.jar"));
        assert_eq!(
            Input::of(&[at("x.jar")]).unwrap().default_output(),
            Path::new("x.wasm")
        );
    }
}
