
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
        "m.txt:1: `xyz` is no hexadecimal address"
    );
}
