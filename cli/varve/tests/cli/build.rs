//! `varve build`: programs of Java become modules. Needs a JDK, and Maven with what it has fetched before or can fetch.

use crate::common::{Said, command, has, varve_in};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Greets, by a class of another package in another file, and marks an object.
const MAIN: &str = "\
package a;

import b.Greeting;

public class Main {
    public static void main(String[] names) throws Exception {
        Object[] kept = varve.Varve.critical(new Object[10]);
        for (String name : names) {
            System.out.println(Greeting.of(name) + kept.length);
        }
        System.out.println(new java.io.File(\"note.txt\").length());
    }
}
";

const GREETING: &str = "\
package b;

public class Greeting {
    public static String of(String name) {
        return \"Hello, \" + name + \" \";
    }
}
";

/// Whether there is a JDK, Maven and the compiler; otherwise says that a test is skipped.
pub fn can_build() -> bool {
    let there = has("javac", "openjdk-17-jdk-headless") && has("mvn", "maven");
    let home = std::env::var("HOME").unwrap_or_default();
    let fetched = Path::new(&home).join(".m2/repository/org/teavm/teavm-core");
    if there && !fetched.exists() {
        varve_skip::skip!("Maven has not fetched TeaVM: `programs/build hello` does");
    }
    there && fetched.exists()
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Said {
    varve_in(folder, &[&["run", program, "--"], arguments].concat())
}

#[test]
fn sources_a_jar_and_a_project_become_modules_that_run() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(
        at,
        &[
            ("Main.java", MAIN),
            ("lib/b/Greeting.java", GREETING),
            ("note.txt", "twelve bytes"),
        ],
    );
    let expected = "Hello, Ada 10\n12\n";
    let said = varve_in(at, &["build", "Main.java", "lib"]).well();
    assert!(said.err.contains("wrote Main.wasm"), "{}", said.err);
    assert!(at.join("Main.wasm.map").exists());
    assert_eq!(run(at, "Main.wasm", &["Ada"]).well().out, expected);

    // As a jar without marks, whose manifest names the class, and which needs another.
    let plain = MAIN.replace("varve.Varve.critical(new Object[10])", "new Object[10]");
    write(at, &[("src/main/java/a/Main.java", &plain)]);
    let java = |words: &[&str]| {
        let (tool, words) = words.split_first().unwrap();
        let done = Command::new(tool).args(words).current_dir(at).status();
        assert!(done.unwrap().success());
    };
    java(&["javac", "-d", "lib-classes", "lib/b/Greeting.java"]);
    java(&["jar", "cf", "lib.jar", "-C", "lib-classes", "."]);
    java(&[
        "javac",
        "-cp",
        "lib.jar",
        "-d",
        "classes",
        "src/main/java/a/Main.java",
    ]);
    java(&["jar", "cfe", "app.jar", "a.Main", "-C", "classes", "."]);
    varve_in(at, &["build", "app.jar", "lib.jar", "-o", "out.wasm"]).well();
    assert_eq!(run(at, "out.wasm", &["Ada"]).well().out, expected);
    let said = varve_in(at, &["build", "app.jar", "--main", "a.Other"]);
    said.refuses(2, &["app.jar", "no class a.Other", "--main CLASS"]);

    let pom = "<project><modelVersion>4.0.0</modelVersion>
        <groupId>g</groupId><artifactId>greets</artifactId><version>1</version>
        <properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target>
            <exec.mainClass>a.Main</exec.mainClass></properties>
    </project>";
    write(
        at,
        &[
            ("pom.xml", pom),
            ("src/main/java/b/Greeting.java", GREETING),
        ],
    );
    let said = varve_in(at, &["build", "pom.xml", "-o", "project.wasm"]);
    if said.err.contains("could not fetch") {
        return varve_skip::skip!("a project of Maven: {}", said.err);
    }
    said.well();
    assert_eq!(run(at, "project.wasm", &["Ada"]).well().out, expected);
}

#[test]
fn what_cannot_be_compiled_is_told_by_place_class_and_method() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(
        at,
        &[
            (
                "Server.java",
                "public class Server {
    public static void main(String[] a) throws Exception {
        new java.net.ServerSocket(80).accept();
    }
}",
            ),
            (
                "Wrong.java",
                "public class Wrong {
    public static void main(String[] a) {
        int n = \"text\";
    }
}",
            ),
            ("Library.java", "public class Library {}"),
        ],
    );
    varve_in(at, &["build", "Server.java"]).refuses(
        2,
        &["Server.java:3: Server.main", "class java.net.ServerSocket"],
    );
    varve_in(at, &["build", "Wrong.java"]).refuses(2, &["Wrong.java:3:", "incompatible types"]);
    varve_in(at, &["build", "Library.java"]).refuses(2, &["Library.java", "--main CLASS"]);
    assert!(!at.join("Server.wasm").exists() && !at.join("Wrong.wasm").exists());
}

/// References that a collector may clear are never cleared here; dates are in UTC.
const REFERENCES: &str = "\
import java.lang.ref.*;
import java.util.*;

public class References {
    public static void main(String[] a) {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        WeakReference<Object> weak = new WeakReference<>(new int[5], queue);
        SoftReference<Object> soft = new SoftReference<>(\"soft\");
        Map<Object, String> map = new WeakHashMap<>();
        map.put(new StringBuilder(\"key\"), \"value\");
        for (int i = 0; i < 200; i++) {
            map.put(new byte[100_000], \"large\");
        }
        System.out.println(((int[]) weak.get()).length + \" \" + soft.get() + \" \" + map.size() + \" \" + queue.poll());
        weak.clear();
        System.out.println(weak.get() + \" \" + (new String(new char[] {'x'}).intern() == \"x\"));
        Date date = new Date(100, 1, 28, 23, 59, 61);
        System.out.println(date + \" \" + date.getYear() + \" \" + date.getMonth() + \" \" + date.getDate() + \" \" + date.getHours()
                + \" \" + date.getDay());
        date.setMonth(13);
        date.setHours(-1);
        System.out.println(date + \" \" + date.toGMTString() + \" \" + Date.UTC(70, 0, 1, 0, 0, 1));
    }
}
";

#[test]
fn weak_references_and_dates_are_there() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, &[("References.java", REFERENCES)]);
    varve_in(at, &["build", "References.java"]).well();
    assert_eq!(
        run(at, "References.wasm", &[]).well().out,
        "5 soft 201 null
null true
Tue Feb 29 00:00:01 UTC 2000 100 1 29 0 2
Wed Feb 28 23:00:01 UTC 2001 28 Feb 2001 23:00:01 GMT 1000
"
    );
}

/// A module that could not start is not left.
#[test]
fn threads_are_refused_by_the_method_that_starts_one() {
    if !can_build() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source = "package p;
public class Service {
    static class Worker extends Thread {
        public void run() { System.out.println(\"works\"); }
    }
    static void begin(int n) {
        for (int i = 0; i < n; i++) new Worker().start();
    }
    public static void main(String[] a) {
        if (a.length > 5) begin(a.length);
    }
}";
    write(at, &[("Service.java", source)]);
    let said = varve_in(at, &["build", "Service.java"]);
    said.refuses(
        2,
        &[
            "Service.java: p.Service",
            "threads",
            "Thread.start",
            "one thread",
        ],
    );
    assert!(!at.join("Service.wasm").exists() && !at.join("Service.wasm.map").exists());
}

#[test]
fn what_is_missing_is_one_line_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, &[("Main.java", GREETING), ("notes.txt", "")]);
    varve_in(at, &["build", "notes.txt"]).refuses(2, &["notes.txt", "pom.xml"]);
    varve_in(at, &["build", "gone.jar"]).refuses(2, &["gone.jar"]);
    varve_in(at, &["build", "Main.java", "-o", "nowhere/x.wasm"]).refuses(2, &["nowhere", "-o"]);
    let mut alone = command(&["build", "Main.java"]);
    alone
        .current_dir(at)
        .env("PATH", at)
        .env_remove("JAVA_HOME");
    Said::of(alone.output().unwrap()).refuses(2, &["JDK", "apt install"]);
}

/// Maven stands still in this story until it is ended.
#[test]
fn ctrl_c_ends_maven_too_and_leaves_nothing() {
    if !has("javac", "openjdk-17-jdk-headless") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (bin, scratch) = (folder.path().join("bin"), folder.path().join("scratch"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&scratch).unwrap();
    let told = folder.path().join("told");
    assert!(
        Command::new("mkfifo")
            .arg(&told)
            .status()
            .unwrap()
            .success()
    );
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exit\necho $$ > {}\nexec tail -f /dev/null\n",
        told.display()
    );
    fs::write(bin.join("mvn"), script).unwrap();
    assert!(
        Command::new("chmod")
            .arg("+x")
            .arg(bin.join("mvn"))
            .status()
            .unwrap()
            .success()
    );
    fs::write(folder.path().join("Main.java"), MAIN).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let child = command(&["build", "Main.java"])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("TMPDIR", &scratch)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut maven = String::new();
    BufReader::new(fs::File::open(&told).unwrap())
        .read_line(&mut maven)
        .unwrap();
    let done = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(done.unwrap().success());
    let said = Said::of(child.wait_with_output().unwrap());
    said.refuses(130, &["interrupted", "nothing was left behind"]);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    assert!(
        !Path::new(&format!("/proc/{}", maven.trim())).exists(),
        "Maven still runs"
    );
}
