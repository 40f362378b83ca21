//! From text to values.

use super::{Unit, Value};
use varve_machine::written;

/// Reads `text` as a value of `unit`; the error says what would do.
pub(super) fn read(unit: Unit, text: &str) -> Result<Value, String> {
    match unit {
        Unit::Bytes => written::bytes(text)
            .map(Value::Number)
            .ok_or("a size such as 4096, 2MiB or 96GiB".into()),
        Unit::Count => written::count(text)
            .map(Value::Number)
            .ok_or("a whole number such as 16, 10k or 1.5M".into()),
        Unit::Time => written::nanoseconds(text)
            .map(Value::Number)
            .ok_or("a time such as 100ns, 2ms or 1.5s".into()),
        Unit::Share => share(text)
            .map(Value::Share)
            .ok_or("a share such as 10% or 0.1".into()),
        Unit::Flag => choice(text, &["true", "false"]),
        Unit::Choice(words) => choice(text, words),
    }
}

fn choice(text: &str, words: &[&'static str]) -> Result<Value, String> {
    let found = words.iter().find(|word| **word == text);
    found
        .map(|word| Value::Choice(word))
        .ok_or_else(|| format!("one of {}", words.join(", ")))
}

fn share(text: &str) -> Option<f64> {
    let (text, divisor) = match text.strip_suffix('%') {
        Some(text) => (text, 100.0),
        None => (text, 1.0),
    };
    let share = text.trim().parse::<f64>().ok()? / divisor;
    (0.0..=1.0).contains(&share).then_some(share)
}
