//! What functions of address bits say of DIMMs. Row conflicts tell banks apart, and not which of the functions choose a channel, a
//! DIMM, a rank or a bank: that takes the number of DIMMs, and tells them only if each is one block of addresses.

use super::find::Found;
use super::gf2::Space;
use crate::tier::DimmRange;

/// Bits within a page of 4 KiB.
const IN_PAGE: u64 = 4095;

/// What is known of the DIMMs whose memory was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modules {
    /// How many.
    pub count: u32,
    /// Bytes of each, if that is known.
    pub bytes: Option<u64>,
}

/// What functions say.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// Banks that are told apart, those of all ranks, DIMMs and channels.
    pub banks: u64,
    /// Banks over which the lines of one page of 4 KiB are spread.
    pub banks_of_a_page: u64,
    /// Where each DIMM's addresses are, or why that is not known.
    pub dimms: Result<Vec<DimmRange>, String>,
}

impl Meaning {
    /// Of what was found, with what is known. `end`: the address behind the last one of the memory.
    pub fn of(found: &Found, known: Option<Modules>, end: u64) -> Meaning {
        let in_page = Space::of(found.functions.iter().map(|f| f & IN_PAGE));
        Meaning {
            banks: 1 << found.functions.len(),
            banks_of_a_page: 1 << in_page.dimension(),
            dimms: dimms(found, known, end),
        }
    }
}

fn dimms(found: &Found, known: Option<Modules>, end: u64) -> Result<Vec<DimmRange>, String> {
    let Some(known) = known else {
        return Err(
            "which functions choose the DIMM, and which a rank or bank within it, row conflicts do not tell: say how many DIMMs the memory is on, such as --dimms 4"
                .into(),
        );
    };
    let (count, functions) = (known.count, &found.functions);
    let chosen = count.checked_ilog2().unwrap_or(0) as usize;
    if !count.is_power_of_two() || count < 2 {
        return Err(match count {
            0 | 1 => "one DIMM has all addresses: there is nothing to choose".into(),
            _ => format!(
                "XORs of address bits choose among 2, 4, 8 or so DIMMs, and not among {count}: leave those of other sockets and kinds out of --dimms"
            ),
        });
    }
    if chosen > functions.len() {
        return Err(format!(
            "{count} DIMMs have {count} banks or more, and {} are told apart: leave those of other sockets and kinds out of --dimms",
            1u64 << functions.len()
        ));
    }
    // Blocks one after the other are chosen by the highest bits alone.
    let top = 64 - end.saturating_sub(1).leading_zeros();
    let lowest = top.saturating_sub(chosen as u32);
    if !(lowest..top).all(|bit| functions.contains(&(1 << bit))) {
        return Err(format!(
            "no functions of bits {lowest} to {} alone, which would choose among {count} DIMMs that are blocks of addresses one after the other: channels or DIMMs are interleaved, so that none can rest alone, or the addresses have a hole",
            top.saturating_sub(1)
        ));
    }
    let bytes = 1u64 << lowest;
    if let Some(real) = known.bytes.filter(|real| *real != bytes) {
        return Err(format!(
            "the highest bits choose among blocks of {bytes} bytes, and a DIMM has {real}: such bits may choose ranks"
        ));
    }
    let range = |i: u64| DimmRange {
        name: format!("D{i}"),
        ranges: vec![(i * bytes, (i + 1) * bytes)],
    };
    Ok((0..u64::from(count)).map(range).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(functions: &[u64]) -> Found {
        Found {
            functions: functions.into(),
            unseen: 0,
            times: (300.0, 390.0),
            predicted: (1.0, 1.0),
        }
    }

    const END: u64 = 32 << 30;
    const BANK: u64 = 1 << 14 | 1 << 18;

    #[test]
    fn blocks_of_addresses_are_dimms_if_their_number_and_size_fit() {
        let blocks = found(&[1 << 6 | 1 << 13, BANK, 1 << 33, 1 << 34]);
        let known = |count, bytes| Some(Modules { count, bytes });
        let meaning = Meaning::of(&blocks, known(4, None), END);
        assert_eq!((meaning.banks, meaning.banks_of_a_page), (16, 2));
        let dimms = meaning.dimms.unwrap();
        let gib = 1 << 30;
        assert_eq!(dimms[3].ranges, [(24 * gib, 32 * gib)]);
        assert_eq!(dimms.len(), 4);
        let two = dimms_of(&blocks, known(2, Some(16 * gib)));
        assert_eq!(two.unwrap()[1].ranges, [(16 * gib, 32 * gib)]);
        let more = Meaning::of(&blocks, known(4, None), END + 1).dimms;
        assert!(
            more.unwrap_err().contains("bits 34 to 35"),
            "memory of which nothing was timed"
        );
        let says = |known| dimms_of(&blocks, known).unwrap_err();
        assert!(says(known(4, Some(16 * gib))).contains("may choose ranks"));
        assert!(says(known(3, None)).contains("not among 3"));
        assert!(says(known(1, None)).contains("nothing to choose"));
        assert!(says(known(32, None)).contains("16 are told apart"));
        assert!(says(None).contains("--dimms 4"));
        assert!(says(known(8, None)).contains("none can rest alone"));
    }

    fn dimms_of(found: &Found, known: Option<Modules>) -> Result<Vec<DimmRange>, String> {
        Meaning::of(found, known, END).dimms
    }

    #[test]
    fn interleaved_channels_give_no_map() {
        let two = Some(Modules {
            count: 2,
            bytes: None,
        });
        let interleaved = found(&[1 << 8 | 1 << 12, BANK]);
        let why = dimms_of(&interleaved, two).unwrap_err();
        assert!(why.contains("interleaved") && !why.contains('\n'));
        // Single bits that are not the highest choose banks within blocks.
        assert!(dimms_of(&found(&[1 << 20, BANK]), two).is_err());
    }
}
