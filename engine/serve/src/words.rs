//! Words and numbers of a line.

/// The answer to a line that cannot be parsed.
pub(crate) const FORMAT: &str = "CLIENT_ERROR bad command line format";

/// The answer to a request during which the store failed.
pub(crate) const FAILED: &[u8] = b"SERVER_ERROR the store failed and begins again\r\n";

/// The words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ').filter(|w| !w.is_empty())
}

/// An unsigned number in decimal digits.
pub fn unsigned(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |n, b| {
        let digit = b.checked_sub(b'0').filter(|d| *d < 10)?;
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A number in decimal digits that may have a sign.
pub fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => unsigned(digits).and_then(|n| 0i64.checked_sub_unsigned(n)),
        None => unsigned(word.strip_prefix(b"+").unwrap_or(word))?
            .try_into()
            .ok(),
    }
}

/// Writes a number in decimal digits.
pub fn put_number(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
