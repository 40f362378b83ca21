//! Compare a text with the accepted one in `tests/golden`.

use std::path::Path;

/// Set this to accept the current output as the new golden text.
const ACCEPT: &str = "VARVE_ACCEPT";

/// Panics with both texts, and the command that accepts the change.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os(ACCEPT).is_some_and(|v| v == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if golden == text {
        return;
    }
    let first = golden
        .lines()
        .zip(text.lines())
        .take_while(|(a, b)| a == b)
        .count()
        + 1;
    panic!(
        "tests/golden/{name} differs from line {first} on\n--- accepted\n{golden}\n--- now\n{text}\n\
         If the new text is right, accept it with:\n    {ACCEPT}=1 cargo test -p varve-report --test it\n"
    );
}
