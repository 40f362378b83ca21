//! Whether the engine defines all that a module imports. If not, the module could never start.

use crate::ui::{Failure, failed, wrong};
use std::fs;
use std::path::Path;
use varve_runtime::host::{Console, State, Wasi, teavm};
use varve_runtime::{Clock, Config, Engine, Error, Module, Store};

/// Packages and classes that no user wrote.
const LIBRARY: [&str; 10] = [
    "java.",
    "javax.",
    "kotlin.",
    "org.teavm.",
    "org.threeten.",
    "varve.Reports",
    "varve.Varve",
    "varve.host.",
    "varve.teavm.",
    "teavm",
];

/// Refuses a module that could not start. `input` is what the user had built.
pub fn check(module: &Path, input: &Path) -> Result<(), Failure> {
    let say = |e: &dyn std::fmt::Display| failed(format!("{}: {e}", module.display()));
    let bytes = fs::read(module).map_err(|e| say(&e))?;
    let problem = problem(&bytes).map_err(|e| say(&e))?;
    match problem {
        Some(problem) => Err(wrong(format!("{}: {problem}", input.display()))),
        None => Ok(()),
    }
}

fn problem(bytes: &[u8]) -> Result<Option<String>, Error> {
    let engine = Engine::new(Config::default());
    let module = Module::new(&engine, bytes)?;
    let state = State {
        console: Console::inherit(),
        wasi: Wasi::new(),
        clock: Clock::default(),
    };
    let mut store = Store::new(&engine, state)?;
    let mut undefined = teavm::undefined(&mut store, &module)?;
    // A thread needs much else of JavaScript, which would say less.
    undefined.sort_by_key(|(m, _)| *m != "teavmAsync");
    let Some(&first) = undefined.first() else {
        return Ok(None);
    };
    let place = undefined
        .iter()
        .find_map(|&(m, n)| Some((m, n, module.caller_of_import(m, n, is_users)?)));
    let Some((from, name, (caller, callee))) = place else {
        return Ok(Some(reason(first.0, first.1)));
    };
    // The compiler may have put Java's own method into its caller.
    let place = match callee.starts_with("java.") {
        true => format!("{} needs {}", java(&caller), java(&callee)),
        false => java(&caller),
    };
    let reason = reason(from, name);
    Ok(Some(format!("{place}: {reason}")))
}

fn is_users(function: &str) -> bool {
    function.contains("::") && !LIBRARY.iter().any(|p| function.starts_with(p))
}

/// A method as Java names it.
fn java(function: &str) -> String {
    function.replace("::", ".")
}

/// Why there is no such function, and what to use instead.
fn reason(module: &str, name: &str) -> String {
    match module {
        "teavmAsync" => "threads, timers and waiting (Thread.start, Thread.sleep, Object.wait, Timer) cannot run here: a program has one thread; \
                         call the work itself"
            .into(),
        "teavmJso" => format!(
            "it needs JavaScript ({name}), which is not here; use another class of Java's library, or one of your own"
        ),
        _ => format!(
            "it needs the function {name} of {module}, which is not here; leave out what calls it"
        ),
    }
}
