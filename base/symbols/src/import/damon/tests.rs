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

fn reads(text: &str) -> u64 {
    read(text.as_bytes(), None).profile.sites[0].counts.reads
}

/// There is no blank before a size of 12 columns, as of 1000 MiB.
#[test]
fn a_region_with_a_wide_size_counts() {
    const BIG: &str = "base_time_absolute: 1 m 0 s
data source: unknown

monitoring_start:                0 ns
monitoring_end:            100.000 ms
target_id: 7
nr_regions: 2
# start_addr     end_addr        length  nr_accesses   age
100000000000-10003f400000 (1012.000 MiB)          20    -1
200000000000-200006400000 ( 100.000 MiB)           0    -1
";
    assert_eq!(reads(BIG), 259_072);
    let small = BIG.replace("10003f400000 (1012.000", "100006400000 ( 100.000");
    assert_eq!(reads(&small), 25_600);
    let damaged = BIG.replace("(1012.000 MiB) ", "(1012.000 MiB");
    assert_eq!(
        damon("d", damaged.as_bytes(), None)
            .unwrap_err()
            .to_string(),
        "d:9: no region, such as `1000-2000 ( 4.000 KiB) 3 7`"
    );
}

#[test]
fn a_record_that_lacks_regions_is_refused() {
    let says = |text: &str| damon("d", text.as_bytes(), None).unwrap_err().to_string();
    let head = "monitoring_start: 0 ns\ntarget_id: 1\nnr_regions: 2\n1000-2000 ( 4 KiB) 3 7\n";
    assert_eq!(
        says(head),
        "d:4: the record before ends with 1 of its 2 regions: is the file cut?"
    );
    assert!(
        says(&format!("{head}\nmonitoring_start: 1 ns\n")).starts_with("d:6: the record before")
    );
    assert!(
        says(&format!("{head}2000 3000 (4 KiB) 3 7\n"))
            .starts_with("d:5: `2000 3000 (4 KiB) 3 7` is no region")
    );
    assert!(
        says(&format!("{head}3000-2000 (4 KiB) 3 7\n"))
            .starts_with("d:5: a region ends at 2000, before")
    );
    assert!(
        says(&format!("{head}2000-3000 (4 KiB) -3 7\n"))
            .starts_with("d:5: the region at 2000 was in use -3")
    );
    assert!(
        says(&format!(
            "{head}2000-3000 (4 KiB) 3 7\n4000-5000 (4 KiB) 3 7\n"
        ))
        .starts_with("d:6: the record has more")
    );
    assert!(says("monitoring_start: soon\n").starts_with("d:1: `soon` is no time"));
}

/// In all versions: 1.2.7, 1.2.8, since 1.2.9, with `--raw_number`, and with a share of the checks.
#[test]
fn each_form_of_a_line_is_the_same() {
    for line in [
        "4000-6000(   8.000 KiB):\t10",
        "4000-6000(   8.000 KiB):\t10 (age: -1)",
        "000000004000-000000006000 (   8.000 KiB)          10    -1",
        "000000004000-000000006000 (        8192)          10    12",
        "4000-6000 (8.000 KiB) 50 % 1 s 200 ms",
        "0-th record\n0-th snapshot\n16384-24576 (8192): 50 1200000",
        "0-th record\nintervals: 5000 100000\n0-th snapshot\nsnapshot sample interval: 5000\n16384-24576 (8192): 10 12",
    ] {
        let imported = read(line.as_bytes(), None);
        let counts = &imported.profile.sites[0].counts;
        assert_eq!(
            (counts.reads, counts.uses, counts.peak_bytes),
            (1, 10, 8192),
            "{line}"
        );
    }
}

/// `damo report raw` of records that damo has merged to a second each.
#[test]
fn more_uses_than_the_default_of_checks_are_not_cut() {
    let merged = "target_id: 1\nnr_regions: 2\n0-4000 ( 16.000 KiB) 210 -1\n4000-8000 ( 16.000 KiB) 105 -1\n";
    let imported = read(merged.as_bytes(), None);
    assert_eq!(imported.profile.sites[0].counts.reads, 4 + 2);
    assert!(
        imported.missing[3].contains("210 times, more than damo's default of 20"),
        "{:?}",
        imported.missing
    );
    let usual = read(b"target_id: 1\n0-4000 ( 16.000 KiB) 20 -1\n", None);
    assert!(usual.missing[3].contains("default of 20 is taken, which scales all sites alike"));
    // What the file says of its checks is believed, and so is said to be wrong.
    let json = JSON.replace("\"samples\": 10", "\"samples\": 30");
    let imported = read(json.as_bytes(), None);
    assert_eq!(imported.profile.sites[0].counts.reads, 3);
    assert!(
        imported.missing[3].starts_with("1 regions were found in use more often"),
        "{:?}",
        imported.missing
    );
}

#[test]
fn checks_are_what_a_file_says_and_what_it_does_not_say_is_told() {
    let json = |intervals: &str, more: &str, accesses: &str| {
        format!(
            r#"[{{"intervals": {intervals}, "snapshots": [{{"start_time": "1 s", "end_time": "1 s 400 ms"{more},
                "regions": [{{"start": "0", "end": "32,768"{accesses}}}]}}]}}]"#
        )
    };
    let half = r#", "nr_accesses": {"samples": 20, "percent": null}"#;
    assert_eq!(
        reads(&json(
            r#"{"sample_us": "10 ms", "aggr_us": "400 ms"}"#,
            "",
            half
        )),
        4
    );
    assert_eq!(
        reads(&json("null", r#", "sample_interval_us": "10,000""#, half)),
        4
    );
    assert_eq!(reads(&json("null", "", half)), 8);
    let percent = r#", "nr_accesses": {"samples": null, "percent": "25 %"}"#;
    assert_eq!(reads(&json("null", "", percent)), 2);
    let imported = read(json("null", "", "").as_bytes(), None);
    assert_eq!(imported.profile.sites[0].counts.reads, 0);
    let missing = imported.missing.join("\n");
    assert!(
        missing.contains("1 regions do not say how often"),
        "{missing}"
    );
    let wrong = json("null", "", r#", "nr_accesses": {"samples": "many"}"#);
    let said = damon("d", wrong.as_bytes(), None).unwrap_err().to_string();
    assert!(
        said.starts_with("d:2: no record as") && said.contains("\"many\" is no number"),
        "{said}"
    );
}

/// damo ends files with a single record with an empty one.
#[test]
fn what_damo_adds_to_a_single_record_is_no_record() {
    let trace = "k x x 1.0: damon:damon_aggregated: target_id=None nr_regions=1 4096-8192: 20 -1
k x x 1.1: damon:damon_aggregated: target_id=None nr_regions=1 0-0: -1 -1
";
    let imported = read(trace.as_bytes(), None);
    assert_eq!(imported.profile.sites[0].counts.reads, 1);
    assert_eq!(imported.profile.sampled.unwrap().looks, 1);
}

#[test]
fn records_of_a_trace_that_lack_regions_and_events_that_repeat_others_are_told_of() {
    let line = |event: &str, range: &str| {
        format!("k 1 [0] 1.0: damon:{event}: target_id=0 nr_regions=2 {range}: 5 1\n")
    };
    let lost =
        ["0-4096", "8192-12288", "0-4096", "0-4096"].map(|range| line("damon_aggregated", range));
    let text = lost.concat() + &line("damon_region_aggregated", "0-4096");
    let imported = read(text.as_bytes(), None);
    assert_eq!(imported.profile.sampled.unwrap().looks, 3);
    let missing = imported.missing.join("\n");
    assert!(missing.contains("2 of 3 records lack some"), "{missing}");
    assert!(
        missing.contains("1 lines of damon_region_aggregated are left out"),
        "{missing}"
    );
}

#[test]
fn files_of_other_tools_are_told_what_to_do() {
    let says = |bytes: &[u8]| damon("d", bytes, None).unwrap_err().to_string();
    assert!(says(b"\x17\x08\x44tracing6\0").contains("trace-cmd report"));
    assert!(says(b"damon_recfmt_ver\x02").contains("damo report raw"));
    let shown = "0   addr 86.082 TiB   size 15.336 MiB  access 0 %  age 0 ns\n";
    assert!(says(shown.as_bytes()).contains("--raw_form"));
}

#[test]
fn a_region_of_json_that_cannot_be_is_named_with_its_line() {
    let says = |region: &str| {
        let text = format!("[{{\"snapshots\": [{{\n\"regions\": [\n{region}]}}]}}]");
        damon("d", text.as_bytes(), None).unwrap_err().to_string()
    };
    let said = says(r#"{"start": "8,192", "end": 4096}"#);
    assert!(
        said.starts_with("d:3: ") && said.contains("ends at 1000, before its start at 2000"),
        "{said}"
    );
    let said = says(r#"{"start": "0", "end": "4096", "nr_accesses": {"samples": -1}}"#);
    assert!(
        said.starts_with("d:3: ") && said.contains("in use -1 times"),
        "{said}"
    );
    let said = says(r#"{"start": "4 KiB", "end": 8192}"#);
    assert!(said.contains("\"4 KiB\" is no address"), "{said}");
}
