
use super::profile::name;
use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

const JSON: &str = r#"[{"kdamond_idx": null, "intervals": {"sample_us": "5000", "aggr_us": "100,000"}, "target_id": 18446623438842320000,
        "snapshots": [
          {"start_time": "1000000000", "end_time": "1100000000", "regions": [
            {"start": "16,384", "end": "24,576", "nr_accesses": {"samples": 10, "percent": null}, "age": {"usec": null}},
            {"start": 36864, "end": 40960, "nr_accesses": {"samples": null, "percent": 100}}]},
          {"start_time": "1100000000", "end_time": "1200000000", "regions": [
            {"start": "16,384", "end": "24,576", "nr_accesses": {"samples": "0"}},
            {"start": 0, "end": 0, "nr_accesses": {"samples": -1}}]}]}]"#;

const TRACED: &str = "
       kdamond.0  4452 [000] 1.000000: damon:damon_aggregated: target_id=7 nr_regions=2 16384-24576: 10 0
       kdamond.0  4452 [000] 1.000001: damon:damon_aggregated: target_id=7 nr_regions=2 36864-40960: 20 3
       kdamond.0  4452 [000] 1.100000: damon:damon_monitor_intervals_tune: sample_us=5000
       kdamond.0  4452 [000] 1.200000: damon:damon_aggregated: target_id=7 nr_regions=1 16384-24576: 0
";

const RAW: &str = "base_time_absolute: 8 m 59.809 s
data source: unknown

monitoring_start:                0 ns
monitoring_end:            100.000 ms
target_id: 7
nr_regions: 2
# start_addr     end_addr        length  nr_accesses   age
4000-6000 (   8.000 KiB)          10    -1
9000-a000 (   4.000 KiB)          20    -1

monitoring_start:          100.000 ms
target_id: 7
nr_regions: 1
4000-6000 (   8.000 KiB)           0    12
";

const MAPS: &str = "00004000-00006000 rw-p 00000000 00:00 0    [heap]
00009000-0000a000 rw-p 00000000 00:00 0    [stack]
";

fn read(bytes: &[u8], map: Option<&AddressMap>) -> Imported {
    damon("damon.data", bytes, map).unwrap()
}

#[test]
fn the_same_records_in_each_form_are_the_same_profile() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(JSON.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let map = AddressMap::read("m", MAPS.as_bytes()).unwrap();
    for bytes in [JSON.as_bytes(), &packed, TRACED.as_bytes(), RAW.as_bytes()] {
        let imported = read(bytes, Some(&map));
        let found: Vec<_> = imported
            .profile
            .sites
            .iter()
            .map(|site| {
                let c = &site.counts;
                (name(&site.key), c.peak_bytes, c.misses, c.uses)
            })
            .collect();
        // Two pages half of the time, and one all of it.
        assert_eq!(
            found,
            [
                ("rest".to_string(), 8192, 1, 10),
                ("stacks".into(), 4096, 1, 20)
            ]
        );
        assert_eq!(imported.profile.sampled.unwrap().looks, 2);
        let says_checks = usize::from(![JSON.as_bytes(), &packed].contains(&bytes));
        assert_eq!(
            imported.missing.len(),
            2 + says_checks,
            "{:?}",
            imported.missing
        );
    }
    let times = read(JSON.as_bytes(), None).profile.sampled.unwrap();
    assert_eq!(times.milliseconds, 200);
}

#[test]
fn without_a_map_all_is_one_site_and_a_map_of_another_process_is_told_of() {
    let imported = read(TRACED.as_bytes(), None);
    assert_eq!(imported.profile.sites.len(), 1);
    assert_eq!(imported.profile.sites[0].counts.peak_bytes, 3 * 4096);
    assert!(
        imported.missing[2].contains("/proc/PID/maps"),
        "{:?}",
        imported.missing
    );
    let other = "7f0000009000-7f000000a000 rw-p 00000000 00:00 0    [stack]\n";
    let other = AddressMap::read("m", other.as_bytes()).unwrap();
    let imported = read(TRACED.as_bytes(), Some(&other));
    assert!(
        imported.missing[2].starts_with("100 %"),
        "{:?}",
        imported.missing
    );
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let says = |bytes: &[u8]| damon("d", bytes, None).unwrap_err().to_string();
    assert!(says(b"").starts_with("d: no records of DAMON"));
    assert!(says(b"hello\nworld\n").starts_with("d: no records of DAMON"));
    assert!(says(b"PERFILE2").contains("perf script"));
    assert!(says(b"[{\"snapshots\": 1}]").starts_with("d:1: no record as"));
    assert!(says(b"\x78\x9c\x01\x02").starts_with("d: "));
    assert!(
        says(b"x 1.0: damon:damon_aggregated: target_id=1 nr_regions=2 5: 1\n")
            .starts_with("d:1: no record of damon_aggregated")
    );
    assert!(says(b"10-2x ( 4 KiB) 3 7\n").starts_with("d:1: no region"));
}
