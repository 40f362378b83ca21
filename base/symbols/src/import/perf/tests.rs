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

fn counts(text: &str) -> (u64, u64, u64, u64, Vec<String>) {
    let imported = perf_script("m.txt", text.as_bytes(), |_| None).unwrap();
    let c = &imported.profile.sites[0].counts;
    (
        c.reads,
        c.misses,
        c.writes,
        c.write_misses,
        imported.missing,
    )
}

#[test]
fn samples_of_amd_are_loads_and_stores() {
    const IBS: &str = "app  812  7.510000:     400001 ibs_op//:      7f8a2c0010     26a0800a442 |OP LOAD|LVL Local RAM or L3 miss|SNP N/A|TLB L1 hit|LCK N/A|BLK N/A  300  401136 main+0x16 (/bin/p)
app  812  7.520000:     400001 ibs_op//:          404020     26a0800a442 |OP STORE|LVL L1 hit|SNP N/A|TLB L1 hit|LCK N/A|BLK N/A  3  401136 main+0x16 (/bin/p)
app  812  7.530000:     400001 ibs_op//:               0     26a0800a441 |OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK N/A  0  401139 main+0x19 (/bin/p)
";
    let (reads, misses, writes, write_misses, missing) = counts(IBS);
    assert_eq!((reads, misses, writes, write_misses), (1, 1, 1, 0));
    assert!(
        missing
            .join("\n")
            .contains("1 of 3 samples are neither loads nor stores"),
        "{missing:?}"
    );
}

/// Of each access perf makes several samples, of which `memory` has all. Before Linux 5.19 it did not print the operation.
#[test]
fn samples_of_arm_count_once() {
    const SPE: &str = "  ls 14753 [011]  3678.072400:          1      l1d-miss:  ffff00c0  88000182 L1 miss|SNP N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] ([kernel.kallsyms])
  ls 14753 [011]  3678.072400:          1    tlb-access:  ffff00c0  88000182 L1 miss|SNP N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] ([kernel.kallsyms])
  ls 14753 [011]  3678.072400:          1        memory:  ffff00c0  88000182 L1 miss|SNP N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] ([kernel.kallsyms])
  ls 14753 [011]  3678.072500:          1        memory:  ffff00c0  88000184 L3 miss|SNP N/A|TLB Walker hit|LCK No|BLK  N/A ffffa7c22b4b2a00 [unknown] ([kernel.kallsyms])
";
    let (reads, misses, writes, write_misses, missing) = counts(SPE);
    assert_eq!((reads, misses, writes, write_misses), (1, 0, 1, 1));
    let missing = missing.join("\n");
    assert!(
        missing.contains("2 samples of other events are left out: l1d-miss (1), tlb-access (1)"),
        "{missing}"
    );
    assert!(
        missing.contains("1 of 2 samples say that they missed a near cache"),
        "{missing}"
    );
}

#[test]
fn names_of_commands_are_no_events_and_stacks_no_samples() {
    const STACKS: &str = "my app:x   812/815   [003]     7.510000:          1 cpu_core/mem-loads,ldlat=30/P:   7f8a2c0010   68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A   33    5
\t          401136 main+0x16 (/bin/p)
\t          401140 mem::x:y: (inlined)
\t          401150 main
\tmain (/bin/p)
\t    7ffff7df0000 [unknown] (/lib/a b.so)

my mem-loads: (x)   812/815   [003]     7.520000:          1 cycles:   401136 main+0x16 (/bin/p)
            dead   812   [003]     7.530000: mem_load_retired.l3_miss:P:       404010
     app   812   [003]     7.540000: PERF_RECORD_MMAP2 812/812: [0x401000(0x1000) @ 0 fe:01 12 3]: r-xp /bin/p
";
    let (reads, _, writes, _, missing) = counts(STACKS);
    assert_eq!((reads, writes), (2, 0));
    let missing = missing.join("\n");
    assert!(
        missing
            .contains("2 samples of other events are left out: PERF_RECORD_MMAP2 (1), cycles (1)"),
        "{missing}"
    );
}

#[test]
fn an_operation_that_is_not_known_is_that_of_the_event() {
    let sample = |event: &str, operation: &str| {
        format!("{event}: 404010 5080184 |OP {operation}|LVL N/A|SNP N/A\n")
    };
    let text = sample("cpu/mem-stores/P", "N/A")
        + &sample("cpu/mem-loads/P", "N/A")
        + &sample("cpu/mem-loads/P", "PFETCH")
        + &sample("memory", "EXEC")
        + &sample("cycles", "N/A")
        + &sample("cycles:P", "STORE");
    let (reads, _, writes, _, missing) = counts(&text);
    assert_eq!((reads, writes), (2, 2));
    let missing = missing.join("\n");
    assert!(missing.contains("1 of 5 samples are neither"), "{missing}");
    assert!(
        missing.contains("1 samples of other events are left out: cycles (1)"),
        "{missing}"
    );
}

#[test]
fn files_without_samples_are_refused() {
    let says = |text: &str| {
        perf_script("m.txt", text.as_bytes(), |_| None)
            .unwrap_err()
            .to_string()
    };
    let other = says("p 1 2.5: cycles: 3\np 1 2.5: faults: 3\n");
    assert!(
        other.starts_with("m.txt:1: no memory event")
            && other.ends_with("the file has cycles (1), faults (1)"),
        "{other}"
    );
    assert!(other.contains("ibs_op//") && other.contains("Arm"));
    assert!(says("").starts_with("m.txt: no memory event"));
    assert!(says("PERFILE2\0\0").contains("perf script -i"));
    // no stack before the first sample, and no lines of other kinds
    assert!(says("\t  401136 main+0x16 (/bin/p)\n").starts_with("m.txt:1: no sample"));
    assert!(says("memory: 404010\n  more 404010\n").starts_with("m.txt:2: no sample"));
    assert!(says("memory: 5080184 |OP LOAD|LVL N/A|SNP N/A\n").starts_with("m.txt:1: no address"));
    assert!(says("memory: 5080184 L1 hit|SNP N/A\n").starts_with("m.txt:1: no address"));
}
