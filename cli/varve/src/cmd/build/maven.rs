//! Maven and the JDK: where they are, and a run of Maven that can be stopped.

use super::said::{self, Shown};
use crate::ui::{self, Failure, failed, interrupted};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Plugins by name, of which Maven takes these versions whatever a project says.
pub const CLASS_PATH: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath";
pub const EFFECTIVE_POM: &str = "org.apache.maven.plugins:maven-help-plugin:3.5.1:effective-pom";

/// The oldest JDK that builds our library.
const OLDEST: u32 = 17;
/// The newest version of Java that the compiler reads.
const NEWEST: u32 = 25;

pub struct Maven {
    /// Of the JDK, as the user's sources are compiled for it.
    pub release: u32,
    jdk: Option<PathBuf>,
    /// Where all that Maven says is written.
    log: Option<PathBuf>,
}

/// A tool of the JDK that Maven uses too.
fn tool(jdk: Option<&Path>, name: &str) -> Command {
    match jdk {
        Some(jdk) => Command::new(jdk.join("bin").join(name)),
        None => Command::new(name),
    }
}

impl Maven {
    /// # Errors
    /// The missing tool, and how to get it.
    pub fn find(log: Option<&Path>) -> Result<Maven, String> {
        const REMEDY: &str = "install a JDK of 17 or later and Maven, on Debian `apt install openjdk-17-jdk-headless maven`";
        let jdk = std::env::var_os("JAVA_HOME").map(PathBuf::from);
        let said = tool(jdk.as_deref(), "javac")
            .arg("-version")
            .output()
            .map_err(|_| format!("no JDK (javac) here; {REMEDY}"))?;
        let release = version(&String::from_utf8_lossy(&said.stdout))
            .or_else(|| version(&String::from_utf8_lossy(&said.stderr)))
            .ok_or_else(|| format!("javac does not print its version; {REMEDY}"))?;
        if release < OLDEST {
            return Err(format!("the JDK is of version {release}; {REMEDY}"));
        }
        let there = Command::new("mvn")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match there {
            Ok(_) => Ok(Maven {
                release: release.min(NEWEST),
                jdk,
                log: log.map(PathBuf::from),
            }),
            Err(_) => Err(format!("no Maven (mvn) here; {REMEDY}")),
        }
    }

    /// Runs Maven on a project. Its progress is shown, and what went wrong is printed.
    pub fn run(
        &self,
        project: &Path,
        words: &[&str],
        what: &str,
        shown: &Shown,
    ) -> Result<(), Failure> {
        let mut command = Command::new("mvn");
        command
            .args(["--batch-mode", "--file"])
            .arg(project)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is for this process, which then ends Maven.
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|e| failed(format!("cannot run mvn: {e}")))?;
        let (lines, well) = follow(child, what)?;
        if let Some(log) = &self.log {
            fs::write(log, lines.join("\n") + "\n")
                .map_err(|e| failed(format!("{}: {e}; choose another --log", log.display())))?;
        }
        match well {
            true => Ok(()),
            false => Err(said::tell(&lines, shown)),
        }
    }

    /// The main class that a jar's manifest names.
    pub fn main_of_jar(&self, jar: &Path) -> Result<Option<String>, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        self.jar(&["xf"], jar, &["META-INF/MANIFEST.MF"], folder.path())?;
        let manifest = fs::read_to_string(folder.path().join("META-INF/MANIFEST.MF"));
        // Long lines are continued by ones that begin with a blank.
        let manifest = manifest
            .unwrap_or_default()
            .replace("\r\n", "\n")
            .replace("\n ", "");
        let mut lines = manifest.lines();
        let main = lines.find_map(|l| l.strip_prefix("Main-Class:"));
        Ok(main.map(|m| m.trim().into()))
    }

    pub fn jar_has(&self, jar: &Path, entry: &str) -> Result<bool, String> {
        let listed = self.jar(&["tf"], jar, &[entry], Path::new("/"))?;
        Ok(listed.lines().any(|l| l == entry))
    }

    fn jar(&self, how: &[&str], jar: &Path, what: &[&str], at: &Path) -> Result<String, String> {
        let out = tool(self.jdk.as_deref(), "jar")
            .args(how)
            .arg(jar)
            .args(what)
            .current_dir(at)
            .output()
            .map_err(|e| format!("cannot run jar of the JDK: {e}"))?;
        match out.status.success() {
            true => Ok(String::from_utf8_lossy(&out.stdout).into()),
            false => Err(format!("{}: is not a jar, or is damaged", jar.display())),
        }
    }
}

/// The first number of `javac 17.0.15`; of `javac 1.8.0` the second.
fn version(said: &str) -> Option<u32> {
    let numbers = said.trim().strip_prefix("javac ")?;
    let mut parts = numbers.split(|c: char| !c.is_ascii_digit());
    match parts.next()?.parse().ok()? {
        1 => parts.next()?.parse().ok(),
        n => Some(n),
    }
}

/// The text of the first element of a name.
pub fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.trim();
    let plain = !text.is_empty() && !text.contains('$');
    plain.then(|| text.replace("&lt;", "<").replace("&amp;", "&"))
}

/// Reads what Maven says until it ends: all of it, and whether it ended well.
fn follow(mut child: Child, what: &str) -> Result<(Vec<String>, bool), Failure> {
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let (send, receive) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in out.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_string();
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let bar = ui::spinner(what);
    let mut lines = Vec::new();
    let ended = loop {
        if ui::stopped() {
            end(&mut child);
            break Err(interrupted());
        }
        match receive.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                if let Some(step) = said::step(&line) {
                    bar.set_message(step);
                }
                lines.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    bar.finish_and_clear();
    let status = child
        .wait()
        .map_err(|e| failed(format!("cannot wait for mvn: {e}")))?;
    let _ = reader.join();
    ended.map(|()| (lines, status.success()))
}

/// Ends Maven with all that it has started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok();
    if let Some(group) = group.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_old_and_new_compilers_are_read() {
        assert_eq!(version("javac 17.0.15\n"), Some(17));
        assert_eq!(version("javac 21-ea"), Some(21));
        assert_eq!(version("javac 1.8.0_292"), Some(8));
        assert_eq!(version("ecj"), None);
    }

    #[test]
    fn an_element_is_found_unless_it_stands_for_something_else() {
        let xml = "<a><mainClass> p.A&amp;B </mainClass></a><b>${x}</b>";
        assert_eq!(element(xml, "mainClass").as_deref(), Some("p.A&B"));
        assert_eq!(element(xml, "b"), None);
    }
}
