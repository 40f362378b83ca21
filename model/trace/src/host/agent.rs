//! Tests of the agent inside Java virtual machines, with the output of several versions and collectors.

use crate::format as codes;

#[path = "../../probe/agent/heap.rs"]
mod heap;

use codes::{Collector, Use};
use heap::{Range, archive, code, heap as parse, metaspace, z_heap};

fn range(what: Use, start: u64, end: u64) -> Range {
    let bytes = end - start;
    Range { what, start, bytes }
}

/// The ranges of a Serial heap of 32 MiB.
fn serial() -> Vec<Range> {
    vec![
        range(Use::Young, 0xfe00_0000, 0xfeaa_0000),
        range(Use::Eden, 0xfe00_0000, 0xfe88_0000),
        range(Use::Survivor, 0xfe99_0000, 0xfeaa_0000),
        range(Use::Survivor, 0xfe88_0000, 0xfe99_0000),
        range(Use::Old, 0xfeaa_0000, 0x1_0000_0000),
    ]
}

#[test]
fn serial_of_17_and_21_says_where_its_generations_are() {
    let text = "\
 def new generation   total 9792K, used 1819K [0x00000000fe000000, 0x00000000feaa0000, 0x00000000feaa0000)
  eden space 8704K,  18% used [0x00000000fe000000, 0x00000000fe19bc58, 0x00000000fe880000)
  from space 1088K,  15% used [0x00000000fe990000, 0x00000000fe9bb000, 0x00000000feaa0000)
  to   space 1088K,   0% used [0x00000000fe880000, 0x00000000fe880000, 0x00000000fe990000)
 tenured generation   total 21888K, used 457K [0x00000000feaa0000, 0x0000000100000000, 0x0000000100000000)
   the space 21888K,   2% used [0x00000000feaa0000, 0x00000000feb12450, 0x00000000feb12600, 0x0000000100000000)
 Metaspace       used 727K, committed 896K, reserved 1114112K
  class space    used 63K, committed 128K, reserved 1048576K
";
    assert_eq!(parse(text), (Collector::Serial, serial()));
}

#[test]
fn serial_of_25_calls_them_by_other_names() {
    let text = "\
DefNew     total 9792K, used 2023K [0x00000000fe000000, 0x00000000feaa0000, 0x00000000feaa0000)
 eden space 8704K,  21% used [0x00000000fe000000, 0x00000000fe1cecf0, 0x00000000fe880000)
 from space 1088K,  15% used [0x00000000fe990000, 0x00000000fe9bb000, 0x00000000feaa0000)
 to   space 1088K,   0% used [0x00000000fe880000, 0x00000000fe880000, 0x00000000fe990000)
Tenured    total 21888K, used 380K [0x00000000feaa0000, 0x0000000100000000, 0x0000000100000000)
 the  space 21888K,   1% used [0x00000000feaa0000, 0x00000000feaff1f0, 0x0000000100000000)
";
    assert_eq!(parse(text), (Collector::Serial, serial()));
}

/// The reserved size of a generation counts, not its current one: it grows.
#[test]
fn a_generation_that_may_grow_has_all_that_is_reserved_for_it() {
    let text = "\
 def new generation   total 78656K, used 2798K [0x0000000700600000, 0x0000000705b50000, 0x00000007aeac0000)
 tenured generation   total 174784K, used 0K [0x00000007aeac0000, 0x00000007b9570000, 0x0000000800000000)
";
    let ranges = vec![
        range(Use::Young, 0x7_0060_0000, 0x7_aeac_0000),
        range(Use::Old, 0x7_aeac_0000, 0x8_0000_0000),
    ];
    assert_eq!(parse(text), (Collector::Serial, ranges));
}

#[test]
fn parallel_has_its_old_generation_below_in_all_versions() {
    let of_17 = "\
 PSYoungGen      total 9728K, used 2130K [0x00000000ff580000, 0x0000000100000000, 0x0000000100000000)
  eden space 8704K, 16% used [0x00000000ff580000,0x00000000ff6f0ac0,0x00000000ffe00000)
  from space 1024K, 64% used [0x00000000ffe00000,0x00000000ffea4010,0x00000000fff00000)
  to   space 1024K, 0% used [0x00000000fff00000,0x00000000fff00000,0x0000000100000000)
 ParOldGen       total 22016K, used 0K [0x00000000fe000000, 0x00000000ff580000, 0x00000000ff580000)
  object space 22016K, 0% used [0x00000000fe000000,0x00000000fe000000,0x00000000ff580000)
 Metaspace       used 715K, committed 896K, reserved 1114112K
";
    let of_25 = "\
PSYoungGen      total 9728K, used 2443K [0x00000000ff580000, 0x0000000100000000, 0x0000000100000000)
 eden space 8704K, 21% used [0x00000000ff580000,0x00000000ff74ec78,0x00000000ffe00000)
 from space 1024K, 57% used [0x00000000ffe00000,0x00000000ffe94010,0x00000000fff00000)
 to   space 1024K, 0% used [0x00000000fff00000,0x00000000fff00000,0x0000000100000000)
ParOldGen       total 22016K, used 0K [0x00000000fe000000, 0x00000000ff580000, 0x00000000ff580000)
 object space 22016K, 0% used [0x00000000fe000000,0x00000000fe000000,0x00000000ff580000)
";
    let ranges = vec![
        range(Use::Young, 0xff58_0000, 0x1_0000_0000),
        range(Use::Eden, 0xff58_0000, 0xffe0_0000),
        range(Use::Survivor, 0xffe0_0000, 0xfff0_0000),
        range(Use::Survivor, 0xfff0_0000, 0x1_0000_0000),
        range(Use::Old, 0xfe00_0000, 0xff58_0000),
    ];
    assert_eq!(parse(of_17), (Collector::Parallel, ranges.clone()));
    assert_eq!(parse(of_25), (Collector::Parallel, ranges));
}

#[test]
fn g1_is_one_heap() {
    let of_21 = "\
 garbage-first heap   total 32768K, used 12546K [0x00000000fe000000, 0x0000000100000000)
  region size 1024K, 13 young (13312K), 1 survivors (1024K)
 Metaspace       used 6212K, committed 6400K, reserved 1114112K
";
    let of_25 = "\
garbage-first heap   total reserved 32768K, committed 32768K, used 17760K [0x00000000fe000000, 0x0000000100000000)
 region size 1024K, 18 young (18432K), 1 survivors (1024K)
";
    for text in [of_21, of_25] {
        let heap = range(Use::Heap, 0xfe00_0000, 0x1_0000_0000);
        assert_eq!(parse(text), (Collector::G1, vec![heap]));
    }
}

/// Its output does not have the place of its heap: its mappings do.
#[test]
fn zgc_is_known_by_its_name_and_its_mappings() {
    let of_25 =
        "ZHeap            used 8M, capacity 32M, max capacity 32M\n Cache           24M (3)\n";
    let of_17 =
        " ZHeap           used 4M, capacity 32M, max capacity 32M\n Metaspace       used 716K\n";
    for text in [of_17, of_25] {
        assert_eq!(parse(text), (Collector::Z, Vec::new()));
    }
    let once = "\
800d0000-c0000000 ---p 00000000 00:00 0 
40000000000-40001000000 rw-s 00000000 00:01 91676                        /memfd:java_heap (deleted)
40001000000-40002000000 rw-s 01000000 00:01 91676                        /memfd:java_heap (deleted)
40002000000-40020000000 ---p 00000000 00:00 0 
55df0d419000-55df0d41a000 r--p 00000000 fe:00 10010667                   /usr/bin/java
";
    let heap = range(Use::Heap, 0x400_0000_0000, 0x400_2000_0000);
    assert_eq!(z_heap(once), [heap]);
    let thrice = "\
40000000000-40002000000 rw-s 00000000 00:01 92649                        /memfd:java_heap (deleted)
40002000000-40020000000 ---p 00000000 00:00 0 
80000000000-80002000000 rw-s 00000000 00:01 92649                        /memfd:java_heap (deleted)
100000000000-100002000000 rw-s 00000000 00:01 92649                      /memfd:java_heap (deleted)
";
    assert_eq!(z_heap(thrice).len(), 3);
}

#[test]
fn a_collector_that_is_not_known_is_no_guess() {
    let shenandoah = "\
Shenandoah Heap
 32768K max, 32768K soft max, 32768K committed, 6656K used
Reserved region:
 - [0x00000000fe000000, 0x0000000100000000) 
";
    assert_eq!(parse(shenandoah), (Collector::Other, Vec::new()));
    assert_eq!(parse(""), (Collector::Other, Vec::new()));
}

#[test]
fn code_is_all_that_is_reserved_for_each_heap_of_it() {
    let segmented = "\
CodeHeap 'non-profiled nmethods': size=120036Kb used=93Kb max_used=93Kb free=119942Kb
 bounds [0x00007f109cec7000, 0x00007f109d137000, 0x00007f10a4400000]
CodeHeap 'non-nmethods': size=5692Kb used=1091Kb max_used=1105Kb free=4600Kb
 bounds [0x00007f109c938000, 0x00007f109cba8000, 0x00007f109cec7000]
 total_blobs=627 nmethods=268 adapters=275
";
    assert_eq!(
        code(segmented),
        [
            range(Use::Code, 0x7f10_9cec_7000, 0x7f10_a440_0000),
            range(Use::Code, 0x7f10_9c93_8000, 0x7f10_9cec_7000),
        ]
    );
}

#[test]
fn metaspace_is_its_nodes_and_the_archive_of_classes() {
    let nodes = "\
vsl non-class-space:
- node #0: base 0x00007f1050000000: reserved=65536.00 KB, committed=768.00 KB (  1%), used=16384.00 KB ( 25%)
- total 1 nodes, 8388608 reserved words, 98304 committed words.
vsl class-space:
- node #0: base 0x00007f1055000000: reserved=1048576.00 KB, committed=128.00 KB ( <1%), used=16384.00 KB (  2%)
";
    assert_eq!(
        metaspace(nodes),
        [
            range(Use::Metaspace, 0x7f10_5000_0000, 0x7f10_5400_0000),
            range(Use::Metaspace, 0x7f10_5500_0000, 0x7f10_9500_0000),
        ]
    );
    let maps = "\
7fe4ac000000-7fe4acbc7000 rw-p 00001000 fe:00 1234                       /usr/lib/jvm/lib/server/classes.jsa
7fe4acbc7000-7fe4ad000000 ---p 00000000 00:00 0 
";
    let archived = range(Use::Metaspace, 0x7fe4_ac00_0000, 0x7fe4_acbc_7000);
    assert_eq!(archive(maps), [archived]);
}

/// Output that is not understood is left out, whatever it is.
#[test]
fn broken_words_have_no_ranges() {
    for text in [
        " def new generation total [0x1, 0x2",
        " def new generation total [nothing)",
        " PSYoungGen [0x20, 0x10, 0x10)",
        "bounds [",
        "- node #0: base 0xzz: reserved=1 KB,",
        "40000000000 rw-s /memfd:java_heap",
    ] {
        assert_eq!(parse(text).1, []);
        assert_eq!(code(text), []);
        assert_eq!(metaspace(text), []);
        assert_eq!(z_heap(text), []);
    }
}
