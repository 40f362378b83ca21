//! Arguments of the functions that are called, the same for both engines.

use crate::seen::Value;

/// What a parameter can be given, by what engines call its type.
pub enum Kind {
    I32,
    I64,
    F32,
    F64,
    V128,
    /// A reference that may be null.
    Nullable,
    /// A reference that may be a 31-bit integer, and must not be null.
    Small,
    /// A reference that nobody but the module can make.
    Other,
}

/// The arguments of one call: none if the module alone can make one of them.
pub fn arguments(
    kinds: impl IntoIterator<Item = Kind>,
    bytes: &[u8],
    call: usize,
) -> Option<Vec<Value>> {
    let value = |(i, kind)| {
        let n = number(bytes, call * 7 + i);
        Some(match kind {
            Kind::I32 => Value::I32(n as i32),
            Kind::I64 => Value::I64(n as i64),
            // Small whole numbers and fractions: no NaN, which neither engine has to keep as it is.
            Kind::F32 => Value::F32((n as i16 as f32 / 8.0).to_bits()),
            Kind::F64 => Value::F64((n as i32 as f64 / 8.0).to_bits()),
            Kind::V128 => Value::V128(u128::from(n) << 64 | u128::from(!n)),
            Kind::Nullable => Value::Null,
            Kind::Small => Value::I31(n as i32 >> 1),
            Kind::Other => return None,
        })
    };
    kinds.into_iter().enumerate().map(value).collect()
}

/// A number that is near zero, near a power of two, or any.
fn number(bytes: &[u8], at: usize) -> u64 {
    let byte = |i: usize| bytes.get(i % bytes.len().max(1)).copied().unwrap_or(1) as u64;
    let (how, n) = (byte(at), byte(at + 1));
    match how % 4 {
        0 => n,
        1 => (n as i8) as u64,
        2 => (1u64 << (n % 64)).wrapping_sub(n >> 7),
        _ => (0..8).fold(n, |all, i| all << 8 ^ byte(at + i)),
    }
}
