//! The project that Maven builds: ours, with the user's program in the place of the programs.

use super::input::{self, Input};
use super::maven::{self, Maven};
use super::said::Shown;
use crate::ui::{Failure, failed, wrong};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The project of `programs/`: versions, and the compiler's options.
const PARENT: &str = include_str!("../../../../../programs/pom.xml");

macro_rules! sources {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../../../programs/", $path)))),*]
    };
}

/// The host library, and the library for marks.
const LIBRARY: &[(&str, &str)] = sources! {
    "api/pom.xml"
    "api/src/main/java/varve/PerfCritical.java"
    "api/src/main/java/varve/Renamed.java"
    "api/src/main/java/varve/Reports.java"
    "api/src/main/java/varve/Varve.java"
    "api/src/main/java/varve/teavm/Boxes.java"
    "api/src/main/java/varve/teavm/ClassesSection.java"
    "api/src/main/java/varve/teavm/CurrencyTransformer.java"
    "api/src/main/java/varve/teavm/DurableClasses.java"
    "api/src/main/java/varve/teavm/EnumMapTransformer.java"
    "api/src/main/java/varve/teavm/EnumMaps.java"
    "api/src/main/java/varve/teavm/Imports.java"
    "api/src/main/java/varve/teavm/Initializers.java"
    "api/src/main/java/varve/teavm/InitializersMethod.java"
    "api/src/main/java/varve/teavm/MarkTransformer.java"
    "api/src/main/java/varve/teavm/MarkedSites.java"
    "api/src/main/java/varve/teavm/MonitorTransformer.java"
    "api/src/main/java/varve/teavm/Monitors.java"
    "api/src/main/java/varve/teavm/NamelessClasses.java"
    "api/src/main/java/varve/teavm/ProgramClasses.java"
    "api/src/main/java/varve/teavm/Surviving.java"
    "api/src/main/java/varve/teavm/VarvePlugin.java"
    "api/src/main/java/varve/teavm/VarveTransformer.java"
    "api/src/main/resources/META-INF/services/org.teavm.vm.spi.TeaVMPlugin"
    "host/pom.xml"
    "host/src/main/java/varve/host/Checks.java"
    "host/src/main/java/varve/host/ChecksTransformer.java"
    "host/src/main/java/varve/host/Descriptor.java"
    "host/src/main/java/varve/host/Exhaustion.java"
    "host/src/main/java/varve/host/ExhaustionListener.java"
    "host/src/main/java/varve/host/FileSystemTransformer.java"
    "host/src/main/java/varve/host/HostFile.java"
    "host/src/main/java/varve/host/HostFileAccessor.java"
    "host/src/main/java/varve/host/HostFileSystem.java"
    "host/src/main/java/varve/host/HostPlugin.java"
    "host/src/main/java/varve/host/Memory.java"
    "host/src/main/java/varve/host/Process.java"
    "host/src/main/java/varve/host/StandardInput.java"
    "host/src/main/java/varve/host/SystemTransformer.java"
    "host/src/main/java/varve/host/Wasi.java"
    "host/src/main/resources/META-INF/services/org.teavm.vm.spi.TeaVMPlugin"
};

/// Sources and, for each, where it is in the project.
type Sources = Vec<(PathBuf, PathBuf)>;

/// A program as the compiler wants it.
pub struct SourceProgram {
    main: String,
    sources: Sources,
    /// A folder of classes that are there already.
    classes: Option<PathBuf>,
    jars: Vec<PathBuf>,
}

impl SourceProgram {
    /// The compiler's view of `input`. `main` is the main class, if the user names it.
    pub fn of(
        input: &Input,
        main: Option<&str>,
        maven: &Maven,
        scratch: &Path,
    ) -> Result<SourceProgram, Failure> {
        match input {
            Input::Sources(files) => SourceProgram::of_sources(files, main).map_err(wrong),
            Input::Jars(jars) => SourceProgram::of_jars(jars, main, maven).map_err(wrong),
            Input::Project(pom) => SourceProgram::of_project(pom, main, maven, scratch),
        }
    }

    fn of_sources(files: &[PathBuf], main: Option<&str>) -> Result<SourceProgram, String> {
        let mut sources = Sources::new();
        let mut found = None;
        for file in files {
            let say = |e: io::Error| format!("{}: {e}", file.display());
            let text = fs::read_to_string(file).map_err(say)?;
            let package = input::package(&text);
            let name = file.file_name().unwrap_or_default();
            let folder = Path::new("src/main/java").join(package.replace('.', "/"));
            sources.push((file.clone(), folder.join(name)));
            if found.is_none() && input::has_main(&text) {
                let class = file.file_stem().unwrap_or_default().to_string_lossy();
                let dot = if package.is_empty() { "" } else { "." };
                found = Some(format!("{package}{dot}{class}"));
            }
        }
        let main = main.map(String::from).or(found).ok_or_else(|| {
            format!(
                "{}: no `public static void main(String[])` here; say --main CLASS",
                files[0].display()
            )
        })?;
        Ok(SourceProgram {
            main,
            sources,
            classes: None,
            jars: vec![],
        })
    }

    fn of_jars(
        jars: &[PathBuf],
        main: Option<&str>,
        maven: &Maven,
    ) -> Result<SourceProgram, String> {
        let shown = jars[0].display();
        let jars: Vec<PathBuf> = jars
            .iter()
            .map(fs::canonicalize)
            .collect::<Result<_, _>>()
            .map_err(|e| format!("{shown}: {e}"))?;
        let main = match main {
            Some(main) => main.into(),
            None => maven.main_of_jar(&jars[0])?.ok_or_else(|| {
                format!("{shown}: its manifest names no main class; say --main CLASS")
            })?,
        };
        if !maven.jar_has(&jars[0], &class_file(&main))? {
            return Err(format!("{shown}: no class {main} in it; say --main CLASS"));
        }
        Ok(SourceProgram {
            main,
            sources: vec![],
            classes: None,
            jars,
        })
    }

    /// Has Maven compile the project where it is, and takes its classes and what they need when they run.
    fn of_project(
        pom: &Path,
        main: Option<&str>,
        maven: &Maven,
        scratch: &Path,
    ) -> Result<SourceProgram, Failure> {
        let shown = pom.display();
        let text = fs::read_to_string(pom).map_err(|e| wrong(format!("{shown}: {e}")))?;
        if text.contains("<packaging>pom</packaging>") {
            return Err(wrong(format!(
                "{shown}: has no classes of its own (packaging pom); name the pom.xml of one of its modules"
            )));
        }
        let pom = fs::canonicalize(pom).map_err(|e| wrong(format!("{shown}: {e}")))?;
        let (class_path, effective) = (scratch.join("classpath"), scratch.join("effective.xml"));
        let words = [
            "compile".to_string(),
            maven::CLASS_PATH.into(),
            "-Dmdep.includeScope=runtime".into(),
            format!("-Dmdep.outputFile={}", class_path.display()),
            maven::EFFECTIVE_POM.into(),
            format!("-Doutput={}", effective.display()),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        maven.run(&pom, &words, "building the project", &Shown::default())?;
        let read = |file: &Path| {
            fs::read_to_string(file).map_err(|e| failed(format!("{}: {e}", file.display())))
        };
        let effective = read(&effective)?;
        let build = effective.split("<build>").nth(1).unwrap_or_default();
        let classes = maven::element(build, "outputDirectory")
            .map(PathBuf::from)
            .filter(|folder| folder.is_dir())
            .ok_or_else(|| wrong(format!("{shown}: the project has no classes")))?;
        let named = ["mainClass", "exec.mainClass", "start-class", "main.class"]
            .iter()
            .find_map(|name| maven::element(&effective, name));
        let main = main.map(String::from).or(named).ok_or_else(|| {
            wrong(format!(
                "{shown}: the project names no main class; say --main CLASS"
            ))
        })?;
        if !classes.join(class_file(&main)).is_file() {
            return Err(wrong(format!(
                "{shown}: the project has no class {main}; say --main CLASS"
            )));
        }
        let paths = read(&class_path)?;
        let jars = std::env::split_paths(paths.trim()).filter(|p| !p.as_os_str().is_empty());
        Ok(SourceProgram {
            main,
            sources: vec![],
            classes: Some(classes),
            jars: jars.collect(),
        })
    }

    /// The user's names for the project's sources.
    pub fn shown(&self, scratch: &Path) -> Shown {
        let app = scratch.join("app");
        let names = self.sources.iter().map(|(user, own)| {
            let own = app.join(own).display().to_string();
            (own, user.display().to_string())
        });
        Shown(names.collect())
    }
}

/// Where a class is in a jar or a folder.
fn class_file(class: &str) -> String {
    format!("{}.class", class.replace('.', "/"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Writes the project: the folder of the program in it. `release` is the version of Java, `keep` classes that the program has though it may not
/// use them.
pub fn write(
    folder: &Path,
    program: &SourceProgram,
    file_name: &str,
    release: u32,
    keep: &[String],
) -> io::Result<PathBuf> {
    let put = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, text)
    };
    for (path, text) in LIBRARY {
        put(&folder.join(path), text)?;
    }
    put(&folder.join("pom.xml"), &parent())?;
    let app = folder.join("app");
    let text = project(program, file_name, release, keep);
    put(&app.join("pom.xml"), &text)?;
    for (user, own) in &program.sources {
        put(&app.join(own), &fs::read_to_string(user)?)?;
    }
    Ok(app)
}

/// The project of `programs/` with other modules.
fn parent() -> String {
    let (before, rest) = PARENT.split_once("<modules>").expect("a list of modules");
    let (_, after) = rest.split_once("</modules>").expect("the list's end");
    let modules = ["host", "api", "app"].map(|m| format!("<module>{m}</module>"));
    format!("{before}<modules>{}</modules>{after}", modules.concat())
}

fn project(program: &SourceProgram, file_name: &str, release: u32, keep: &[String]) -> String {
    let library = ["varve-api", "host"].map(|name| {
        format!("<dependency><groupId>varve</groupId><artifactId>{name}</artifactId><version>1</version></dependency>\n")
    });
    let jars: String = program
        .jars
        .iter()
        .enumerate()
        .map(|(i, jar)| {
            let path = escaped(&jar.display().to_string());
            format!("<dependency><groupId>varve.input</groupId><artifactId>jar{i}</artifactId><version>1</version><scope>system</scope><systemPath>{path}</systemPath></dependency>\n")
        })
        .collect();
    let classes = program.classes.as_ref().map_or(String::new(), |folder| {
        let path = escaped(&folder.display().to_string());
        format!("<outputDirectory>{path}</outputDirectory>\n")
    });
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
<modelVersion>4.0.0</modelVersion>
<parent><groupId>varve</groupId><artifactId>programs</artifactId><version>1</version></parent>
<artifactId>app</artifactId>
<properties><maven.compiler.release>{release}</maven.compiler.release></properties>
<dependencies>
{}{jars}</dependencies>
<build>
{classes}<plugins><plugin><groupId>org.teavm</groupId><artifactId>teavm-maven-plugin</artifactId>
<executions><execution><configuration>
<mainClass>{}</mainClass>
<targetFileName>{}</targetFileName>
<properties><varve.keep>{}</varve.keep></properties>
</configuration></execution></executions></plugin></plugins>
</build>
</project>
",
        library.concat(),
        escaped(&program.main),
        escaped(file_name),
        escaped(&keep.join(",")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a folder that are not made by a build.
    fn files(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("target") => {}
                true => files(&path, all),
                false => all.push(path),
            }
        }
    }

    #[test]
    fn the_library_is_all_of_its_folders() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
        let mut found = Vec::new();
        for name in ["host", "api"] {
            files(&programs.join(name), &mut found);
        }
        let mut found: Vec<_> = found
            .iter()
            .map(|f| f.strip_prefix(&programs).unwrap().display().to_string())
            .collect();
        let mut listed: Vec<String> = LIBRARY.iter().map(|l| l.0.into()).collect();
        found.sort();
        listed.sort();
        assert_eq!(listed, found, "list them in LIBRARY");
    }

    #[test]
    fn names_of_files_are_no_markup() {
        let program = SourceProgram {
            main: "a.Main".into(),
            sources: vec![],
            classes: None,
            jars: vec!["/x/a&b<c.jar".into()],
        };
        let text = project(&program, "a&b.wasm", 17, &["a.B$C".into(), "a.D".into()]);
        assert!(text.contains("<varve.keep>a.B$C,a.D</varve.keep>"));
        assert!(text.contains("<systemPath>/x/a&amp;b&lt;c.jar</systemPath>"));
        assert!(text.contains("<targetFileName>a&amp;b.wasm</targetFileName>"));
        assert!(parent().contains("<module>app</module></modules>"));
    }
}
