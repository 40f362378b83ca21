//! The functions that compilers import by default where a program needs no system: `env` of AssemblyScript, `spectest` of MoonBit.
//!
//! | import | type | function |
//! |---|---|---|
//! | `env` `abort` | `i32 i32 i32 i32 ->` | ends the program: a message and a file, strings of AssemblyScript; line and column |
//! | `env` `seed` | `-> f64` | bits that random numbers begin with |
//! | `spectest` `print_char` | `i32 ->` | a UTF-16 code unit for standard output |

use super::State;
use super::console::out_failed;
use crate::{Caller, Error, Extern, Linker, Result};

/// Defines them.
pub fn link(linker: &mut Linker<State>) {
    linker.func_wrap("env", "abort", abort);
    linker.func_wrap("env", "seed", |mut c: Caller<'_, State>| -> Result<f64> {
        let mut bits = [0; 8];
        let random = c.data_mut().wasi.random(&mut bits);
        random.map_err(|e| Error::Host(Box::new(e)))?;
        Ok(f64::from_bits(u64::from_le_bytes(bits)))
    });
    linker.func_wrap(
        "spectest",
        "print_char",
        |mut c: Caller<'_, State>, unit: i32| -> Result<()> {
            c.data_mut()
                .console
                .out
                .put(unit as u16)
                .map_err(out_failed)
        },
    );
}

fn abort(mut c: Caller<'_, State>, message: u32, file: u32, line: u32, column: u32) -> Result<()> {
    let memory = c.get_export("memory").and_then(Extern::into_memory);
    let (message, file) = match memory {
        Some(memory) => {
            let (bytes, _) = c.memory_and_data(memory)?;
            (text(bytes, message), text(bytes, file))
        }
        None => (None, None),
    };
    Err(Error::Host(
        format!(
            "the program aborted at {}:{line}:{column}: {}",
            file.unwrap_or_else(|| "an unknown file".into()),
            message.unwrap_or_else(|| "no message".into())
        )
        .into(),
    ))
}

/// A string of AssemblyScript: UTF-16, its size in bytes in the word before. None for null, and for any other value.
fn text(memory: &[u8], at: u32) -> Option<String> {
    let at = at as usize;
    let size = memory.get(at.checked_sub(4)?..at)?;
    let size = u32::from_le_bytes(size.try_into().ok()?) as usize;
    let bytes = memory.get(at..at.checked_add(size)?)?;
    let units = bytes
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(text.collect())
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_string_is_as_long_as_the_word_before_it_says() {
        let memory = [9, 9, 4, 0, 0, 0, b'o', 0, b'k', 0, 255, 255, 255, 255];
        assert_eq!(text(&memory, 6).as_deref(), Some("ok"));
        for wrong in [0, 3, 14, 15, u32::MAX] {
            assert_eq!(text(&memory, wrong), None, "{wrong}");
        }
    }
}
