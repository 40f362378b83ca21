//! Which physical addresses are on which memory module, as the firmware's tables tell (SMBIOS type 20, memory device mapped address).

use super::sysfs::numbered;
use std::fs;
use std::path::Path;

/// A module, and its physical addresses: first, and the one behind the last.
pub type DimmPlace = (String, Vec<(u64, u64)>);

/// All modules with addresses, in the order of these.
///
/// # Errors
/// One line: the firmware reports none, or interleaves addresses over modules.
pub fn dimm_places(root: &Path) -> Result<Vec<DimmPlace>, String> {
    let entries = root.join("sys/firmware/dmi/entries");
    let raw = |prefix: &str| {
        let all = numbered(&entries, prefix).into_iter();
        let all = all.filter_map(|(_, folder)| fs::read(folder.join("raw")).ok());
        all.collect::<Vec<Vec<u8>>>()
    };
    let names: Vec<(u16, String)> = raw("17-").iter().filter_map(|raw| name(raw)).collect();
    let mut all: Vec<DimmPlace> = Vec::new();
    for entry in raw("20-").iter().filter_map(|raw| place(raw)) {
        if entry.interleaved {
            return Err(
                "the firmware says that addresses are interleaved over several DIMMs (SMBIOS type 20): a page is on all of them, and none can rest alone; turn channel interleaving off in the firmware's setup"
                    .into(),
            );
        }
        let known = names.iter().find(|(handle, _)| *handle == entry.device);
        let name = known.map_or_else(|| format!("{:#06x}", entry.device), |known| known.1.clone());
        match all.iter_mut().find(|dimm| dimm.0 == name) {
            Some(dimm) => dimm.1.push(entry.range),
            None => all.push((name, vec![entry.range])),
        }
    }
    all.sort_by_key(|dimm| dimm.1[0]);
    match all.is_empty() {
        true => Err(
            "the firmware does not tell which addresses are on which DIMM (no SMBIOS entries of type 20, or they may be read by root alone): give --dimm-map FILE"
                .into(),
        ),
        false => Ok(all),
    }
}

struct Entry {
    device: u16,
    range: (u64, u64),
    interleaved: bool,
}

/// An entry of type 20. Offsets from the SMBIOS reference specification (DSP0134), section 7.21.
fn place(raw: &[u8]) -> Option<Entry> {
    let formatted = raw.get(..usize::from(*raw.get(1)?))?;
    if *formatted.first()? != 20 {
        return None;
    }
    let bytes = |at: usize, n: usize| {
        let part = formatted.get(at..at + n)?;
        Some(
            part.iter()
                .rev()
                .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    };
    let (start, end) = (bytes(4, 4)?, bytes(8, 4)?);
    // Kilobytes, the last one included; all ones: bytes, in the fields at the end.
    let range = match start {
        0xffff_ffff => (bytes(0x13, 8)?, bytes(0x1b, 8)?.checked_add(1)?),
        _ => (start << 10, (end + 1) << 10),
    };
    // 0: not interleaved; 255: not known, which most firmware says where it is not.
    let position = bytes(0x11, 1)?;
    Some(Entry {
        device: bytes(0x0c, 2)? as u16,
        range,
        interleaved: !matches!(position, 0 | 0xff),
    })
}

/// The handle of an entry of type 17, and how the board calls its place.
fn name(raw: &[u8]) -> Option<(u16, String)> {
    let length = usize::from(*raw.get(1)?);
    let handle = u16::from_le_bytes([*raw.get(2)?, *raw.get(3)?]);
    let number = usize::from(*raw.get(0x10)?);
    let strings = raw.get(length..)?.split(|byte| *byte == 0);
    let text = strings.into_iter().nth(number.checked_sub(1)?)?;
    Some((handle, String::from_utf8_lossy(text).trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(root: &Path, name: &str, raw: &[u8]) {
        let folder = root.join("sys/firmware/dmi/entries").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("raw"), raw).unwrap();
    }

    fn of_type_20(device: u16, start: u32, end: u32, long: (u64, u64), position: u8) -> Vec<u8> {
        let mut raw = vec![20, 0x23, 9, 0];
        raw.extend(start.to_le_bytes());
        raw.extend(end.to_le_bytes());
        raw.extend(device.to_le_bytes());
        raw.extend([0, 0, 1, position, 0]);
        raw.extend(long.0.to_le_bytes());
        raw.extend(long.1.to_le_bytes());
        raw.extend([0, 0]);
        raw
    }

    fn of_type_17(handle: u8, name: &str) -> Vec<u8> {
        let mut raw = vec![0; 0x28];
        (raw[0], raw[1], raw[2], raw[0x10]) = (17, 0x28, handle, 1);
        raw.extend(name.as_bytes());
        raw.extend([0, 0]);
        raw
    }

    #[test]
    fn modules_have_the_addresses_that_the_firmware_tells() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(dimm_places(root).unwrap_err().contains("--dimm-map"));
        entry(root, "17-0", &of_type_17(7, "DIMM_A1"));
        entry(root, "17-1", &of_type_17(8, "DIMM_A2"));
        entry(
            root,
            "20-1",
            &of_type_20(8, u32::MAX, u32::MAX, (8 << 30, (16 << 30) - 1), 255),
        );
        entry(root, "20-0", &of_type_20(7, 0, (8 << 20) - 1, (0, 0), 0));
        let gib = |number: u64| number << 30;
        let expected = [
            ("DIMM_A1".to_string(), vec![(0, gib(8))]),
            ("DIMM_A2".to_string(), vec![(gib(8), gib(16))]),
        ];
        assert_eq!(dimm_places(root).unwrap(), expected);
        entry(root, "20-2", &of_type_20(8, 0, 1023, (0, 0), 1));
        assert!(dimm_places(root).unwrap_err().contains("interleaved"));
    }

    #[test]
    fn damaged_entries_are_none() {
        for length in 0..0x22 {
            let raw = of_type_20(7, u32::MAX, 0, (0, u64::MAX), 0);
            assert!(place(&raw[..length]).is_none());
        }
        assert!(
            place(&of_type_20(7, u32::MAX, 0, (0, u64::MAX), 0)).is_none(),
            "no end"
        );
        assert!(name(&[17, 200, 1, 0]).is_none());
    }
}
