//! Memory samples of perf, as text: `perf mem record PROGRAM`, then `perf script -F event,addr,data_src,weight,ip,sym`.
//!
//! A sample says which address was accessed, and from where. It does not name the allocation site of that memory, so this is
//! half a profile: a map of the process's objects completes it.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::{ImportError, Imported, lines};
use varve_sites::Counts;
use varve_sites::native::{Key, Profile, Site};

/// Imports memory samples. `file` is named in errors. `place` says whose memory an address is, if that is known, such as
/// a static variable or a stack; all others are of the rest.
///
/// Reads and writes are numbers of samples. A sample without `data_src` is a read if its event's name does not have
/// `store` in it, and no miss.
///
/// # Errors
/// It cannot be read, is compressed, or a line is no sample.
pub fn perf_script(
    file: &str,
    input: impl BufRead,
    place: impl Fn(u64) -> Option<Key>,
) -> Result<Imported, ImportError> {
    let mut sites: BTreeMap<Key, Counts> = BTreeMap::new();
    let (mut unplaced, mut without_level, mut all) = (0u64, 0u64, 0u64);
    lines(file, input, |line| {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let sample = sample(line)?;
        all += 1;
        without_level += u64::from(sample.misses.is_none());
        let key = place(sample.address);
        unplaced += u64::from(key.is_none());
        let counts = sites.entry(key.unwrap_or(Key::Rest)).or_default();
        let misses = u64::from(sample.misses == Some(true));
        match sample.writes {
            true => (counts.writes += 1, counts.write_misses += misses),
            false => (counts.reads += 1, counts.misses += misses),
        };
        Ok(())
    })?;
    let mut missing = vec![
        "perf's samples have no allocations: no objects, bytes, peaks or lifetimes".to_string(),
        "reads and writes are numbers of samples".into(),
    ];
    if unplaced > 0 {
        missing.push(format!(
            "{unplaced} of {all} samples are at addresses whose site is not known, and count as all other memory; a copy of /proc/PID/maps beside the file (FILE.maps, or --maps) identifies static variables and stacks, `varve trace record` of sites"
        ));
    }
    if without_level > 0 {
        missing.push(format!(
            "{without_level} of {all} samples do not say where they hit, so their misses are not counted; ask perf script for the field data_src"
        ));
    }
    let sites = sites.into_iter().map(|(key, counts)| Site { key, counts });
    Ok(Imported {
        profile: Profile {
            sites: sites.collect(),
            ..Profile::default()
        },
        missing,
    })
}

struct Sample {
    address: u64,
    writes: bool,
    /// Whether it missed all caches, if the sample says where it hit.
    misses: Option<bool>,
}

/// `cpu/mem-loads,ldlat=30/P:   7f8a2c0010  68100142 |OP LOAD|LVL L1 hit|... 33  401136 main+0x16 (/bin/p)`. Whatever
/// stands before the event is ignored.
fn sample(line: &str) -> Result<Sample, String> {
    let mut words = line.split_ascii_whitespace();
    let is_event = |word: &&str| word.ends_with(':') && word.contains("mem");
    let event = words
        .find(is_event)
        .ok_or("no memory event such as `cpu/mem-loads/:`")?;
    let address = words
        .next()
        .ok_or("no address; ask perf script for the field addr")?;
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)
        .map_err(|_| format!("`{address}` is not a hexadecimal address"))?;
    let source: Vec<&str> = line.split('|').collect();
    let part = |name: &str| {
        source
            .iter()
            .find_map(|part| part.trim().strip_prefix(name))
    };
    let writes = part("OP ").map_or(event.contains("store"), |operation| {
        operation.contains("STORE")
    });
    let level = part("LVL ").filter(|level| *level != "N/A");
    // below the last cache there is RAM of whatever kind and distance
    let is_miss = |level: &str| {
        ["RAM", "PMEM", "CXL"]
            .iter()
            .any(|memory| level.contains(memory))
            || level == "L3 miss"
    };
    Ok(Sample {
        address,
        writes,
        misses: level.map(is_miss),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: &str = "
# a comment
  p  812 7.51:  1 cpu/mem-loads,ldlat=30/P:  7f8a2c0010  68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A  33  401136 main+0x16 (/bin/p)
cpu/mem-loads,ldlat=30/P:  404010  68100842 |OP LOAD|LVL Local RAM hit|SNP None|TLB L1 or L2 hit|LCK No  333  401136 main+0x16 (/bin/p)
cpu/mem-stores/P:  404020  5080184 |OP STORE|LVL N/A|SNP N/A|TLB N/A|LCK N/A  0  401139 main
cpu/mem-stores/P:  404028  401139 main
";

    #[test]
    fn samples_count_where_somebody_knows_what_is_there_and_as_the_rest_elsewhere() {
        let table = || Key::Static {
            module: "p".into(),
            build_id: String::new(),
            symbol: "table".into(),
        };
        let place = |address| (0x404000..0x405000).contains(&address).then(table);
        let imported = perf_script("mem.txt", SAMPLES.as_bytes(), place).unwrap();
        let found = |key: &Key| {
            let site = imported
                .profile
                .sites
                .iter()
                .find(|site| site.key == *key)
                .unwrap();
            let c = &site.counts;
            (c.reads, c.misses, c.writes, c.write_misses)
        };
        assert_eq!(found(&table()), (1, 1, 2, 0));
        assert_eq!(found(&Key::Rest), (1, 0, 0, 0));
        let missing = imported.missing.join("\n");
        for says in [
            "no allocations",
            "1 of 4 samples are at addresses",
            "2 of 4 samples do not say where",
        ] {
            assert!(missing.contains(says), "{missing}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let says = |text: &str| {
            perf_script("m.txt", text.as_bytes(), |_| None)
                .unwrap_err()
                .to_string()
        };
        assert!(says("\nmain 1 2: cycles: 3\n").starts_with("m.txt:2: no memory event"));
        assert!(says("cpu/mem-loads/:\n").starts_with("m.txt:1: no address"));
        assert_eq!(
            says("cpu/mem-loads/: xyz\n"),
            "m.txt:1: `xyz` is not a hexadecimal address"
        );
    }
}
