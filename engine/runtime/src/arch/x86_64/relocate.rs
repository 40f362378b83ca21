//! Addresses in machine code that are only known where the code will run.

use cranelift_codegen::binemit::Reloc;

/// The kinds of fields. Kept code has their places in this list: another order is another format.
pub(crate) const RELOCATIONS: [Reloc; 3] = [Reloc::X86CallPCRel4, Reloc::X86PCRel4, Reloc::Abs8];

/// Bytes of a field.
pub(crate) fn width(kind: Reloc) -> usize {
    match kind {
        Reloc::Abs8 => 8,
        _ => 4,
    }
}

/// Has the field at byte `at` of `code`, which will run at `base`, lead to `target`: the address that is meant, with the relocation's addend.
///
/// # Errors
/// A message, for a target out of reach and for kinds that the code generator does not make here.
pub(crate) fn relocate(
    code: &mut [u8],
    base: usize,
    at: usize,
    kind: Reloc,
    target: i64,
) -> Result<(), String> {
    match kind {
        Reloc::X86CallPCRel4 | Reloc::X86PCRel4 => {
            let relative = target - (base + at) as i64;
            let relative = i32::try_from(relative).map_err(|_| "a call out of reach")?;
            code[at..at + 4].copy_from_slice(&relative.to_le_bytes());
        }
        Reloc::Abs8 => code[at..at + 8].copy_from_slice(&target.to_le_bytes()),
        other => return Err(format!("relocation {other:?}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_relative_to_where_the_code_will_run() {
        let mut code = [0xAA; 12];
        // The processor counts from the end of the field, which is the addend of -4.
        relocate(&mut code, 0x1000, 2, Reloc::X86CallPCRel4, 0x2000 - 4).unwrap();
        assert_eq!(code[2..6], 0xFFAi32.to_le_bytes());
        relocate(&mut code, 0x1000, 4, Reloc::Abs8, 0x1234_5678_9ABC).unwrap();
        assert_eq!(code[4..], 0x1234_5678_9ABCi64.to_le_bytes());
        assert_eq!(code[..2], [0xAA; 2]);
    }

    #[test]
    fn a_call_that_does_not_reach_is_an_error_and_changes_nothing() {
        let mut code = [0xAA; 4];
        let far = relocate(&mut code, 0, 0, Reloc::X86CallPCRel4, 1 << 31);
        assert_eq!(far.unwrap_err(), "a call out of reach");
        let strange = relocate(&mut code, 0, 0, Reloc::Arm64Call, 0);
        assert_eq!(strange.unwrap_err(), "relocation Arm64Call");
        assert_eq!(code, [0xAA; 4]);
    }
}
