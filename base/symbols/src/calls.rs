//! Call instructions of 64-bit x86.

/// Bytes of a call instruction, at most.
pub const CALL_BYTES: usize = 7;

/// Is there a call instruction at the end of these bytes?
pub fn ends_in_call(before: &[u8; CALL_BYTES]) -> bool {
    // E8 and four bytes, or FF with operand /2 in two to seven bytes
    before[2] == 0xe8 || (0..=5).any(|at| before[at] == 0xff && before[at + 1] >> 3 & 7 == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_what_is_none() {
        // call rel32; call [rax+0x10]; call r12
        assert!(ends_in_call(&[0, 0, 0xe8, 1, 2, 3, 4]));
        assert!(ends_in_call(&[0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x10]));
        assert!(ends_in_call(&[0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4]));
        // jmp rax; nops
        assert!(!ends_in_call(&[0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0]));
        assert!(!ends_in_call(&[0x90; 7]));
    }
}
