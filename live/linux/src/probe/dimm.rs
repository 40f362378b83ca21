//! Memory modules from the firmware's tables (SMBIOS), where they can be read.

use super::sysfs::numbered;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A memory module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimm {
    /// Where it sits, as the board names it.
    pub locator: String,
    /// Capacity, bytes.
    pub bytes: u64,
    /// Memory type, such as `DDR4`, or its SMBIOS number when it has no common name.
    pub kind: String,
    /// `DRAM`, `Optane`, or another technology's SMBIOS number; empty when the firmware does not say.
    pub technology: String,
    /// Configured speed in millions of transfers per second, 0 when unknown.
    pub megatransfers_per_second: u32,
    /// Ranks, 0 when unknown.
    pub ranks: u32,
    /// Maker's part number.
    pub part: String,
}

/// All modules that are plugged in. Empty when the tables are missing (many virtual machines) or may be read by root alone.
pub fn dimms(root: &Path) -> Vec<Dimm> {
    // Entries of SMBIOS type 17 (memory device), one directory each.
    numbered(&root.join("sys/firmware/dmi/entries"), "17-")
        .into_iter()
        .filter_map(|(_, dir)| parse(&fs::read(dir.join("raw")).ok()?))
        .collect()
}

/// One entry of type 17; `None` for an empty slot or a damaged entry. Offsets from the SMBIOS reference
/// specification (DSP0134), section 7.18.
fn parse(raw: &[u8]) -> Option<Dimm> {
    let length = usize::from(*raw.get(1)?);
    let formatted = raw.get(..length)?;
    let byte = |at: usize| formatted.get(at).copied();
    let word = |at: usize| {
        Some(u16::from_le_bytes(
            formatted.get(at..at + 2)?.try_into().ok()?,
        ))
    };
    let dword = |at: usize| {
        Some(u32::from_le_bytes(
            formatted.get(at..at + 4)?.try_into().ok()?,
        ))
    };
    if byte(0)? != 17 {
        return None;
    }
    let bytes = match word(0x0C)? {
        0 | 0xffff => return None,
        0x7fff => u64::from(dword(0x1C)? & 0x7fff_ffff) << 20,
        n if n & 0x8000 != 0 => u64::from(n & 0x7fff) << 10,
        n => u64::from(n) << 20,
    };
    let strings: Vec<String> = raw[length..]
        .split(|&b| b == 0)
        .map(|s| String::from_utf8_lossy(s).trim().to_owned())
        .take_while(|s| !s.is_empty())
        .collect();
    let string = |at: usize| match byte(at) {
        Some(n) if n > 0 => strings.get(usize::from(n) - 1).cloned().unwrap_or_default(),
        _ => String::new(),
    };
    let speed = match word(0x20) {
        Some(n) if n != 0 => n,
        _ => word(0x15).unwrap_or(0),
    };
    Some(Dimm {
        locator: string(0x10),
        bytes,
        kind: kind(byte(0x12)?),
        technology: byte(0x28).map_or(String::new(), technology),
        megatransfers_per_second: if speed == 0xffff { 0 } else { speed.into() },
        ranks: byte(0x1B).map_or(0, |b| u32::from(b & 0x0f)),
        part: string(0x1A),
    })
}

fn kind(code: u8) -> String {
    // DSP0134, table "Memory Device: Type".
    match code {
        0x18 => "DDR3",
        0x1A => "DDR4",
        0x1E => "LPDDR4",
        0x1F => "logical non-volatile device",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        other => return format!("SMBIOS memory type {other}"),
    }
    .into()
}

fn technology(code: u8) -> String {
    // DSP0134, table "Memory Device: Memory Technology".
    match code {
        0x01 | 0x02 => "",
        0x03 => "DRAM",
        0x04 => "NVDIMM-N",
        0x05 => "NVDIMM-F",
        0x06 => "NVDIMM-P",
        0x07 => "Optane",
        other => return format!("SMBIOS memory technology {other}"),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: u16) -> Vec<u8> {
        let mut raw = vec![0u8; 0x54];
        raw[0] = 17;
        raw[1] = 0x54;
        raw[0x0C..0x0E].copy_from_slice(&size.to_le_bytes());
        raw[0x10] = 1;
        raw[0x12] = 0x1A;
        raw[0x1A] = 2;
        raw[0x1B] = 2;
        raw[0x1C..0x20].copy_from_slice(&(128u32 << 10).to_le_bytes());
        raw[0x20..0x22].copy_from_slice(&2666u16.to_le_bytes());
        raw[0x28] = 7;
        raw.extend(b"CPU0_DIMM_A1\0NMA1XBD128GQS\0\0");
        raw
    }

    #[test]
    fn an_optane_module_is_read_with_its_extended_size() {
        let dimm = parse(&entry(0x7fff)).unwrap();
        assert_eq!(
            (dimm.bytes, dimm.ranks, dimm.megatransfers_per_second),
            (128 << 30, 2, 2666)
        );
        assert_eq!(
            (&*dimm.locator, &*dimm.part),
            ("CPU0_DIMM_A1", "NMA1XBD128GQS")
        );
        assert_eq!((&*dimm.kind, &*dimm.technology), ("DDR4", "Optane"));
    }

    #[test]
    fn empty_slots_and_damaged_entries_are_no_modules() {
        assert_eq!(parse(&entry(0)), None);
        let whole = entry(16384);
        for cut in 0..0x54 {
            assert_eq!(parse(&whole[..cut]), None);
        }
    }
}
