//! The only code of this crate that depends on the host's processor. It makes the model faster and changes no result,
//! so that processors without a file of their own have `other.rs`, plain Rust, which the tests compare with.
//!
//! | item | what it must do |
//! |---|---|
//! | [`fetch`] | has a line brought near; may do nothing |
//! | [`equal_among_8`], [`equal_among_12`], [`equal_among_16`] | one bit for each number that equals another |
//! | [`Newer`] | an [`InstructionLevel`](crate::model): work is compiled once more for newer instructions, where the processor has them |

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{Newer, equal_among_8, equal_among_12, equal_among_16, fetch};

#[cfg(any(test, not(target_arch = "x86_64")))]
#[cfg_attr(test, allow(dead_code, reason = "only its numbers are compared with"))]
mod other;
#[cfg(not(target_arch = "x86_64"))]
pub use other::{Newer, equal_among_8, equal_among_12, equal_among_16, fetch};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_found_as_plain_code_finds_them(
            numbers in prop::collection::vec(0u32..6, 16),
            wanted in 0u32..7,
        ) {
            let (eight, twelve): (&[u32; 8], &[u32; 12]) =
                (numbers[..8].try_into().unwrap(), numbers[..12].try_into().unwrap());
            let sixteen: &[u32; 16] = numbers[..].try_into().unwrap();
            prop_assert_eq!(equal_among_8(eight, wanted), other::equal_among_8(eight, wanted));
            prop_assert_eq!(equal_among_12(twelve, wanted), other::equal_among_12(twelve, wanted));
            prop_assert_eq!(equal_among_16(sixteen, wanted), other::equal_among_16(sixteen, wanted));
        }
    }
}
