//! Mistakes of clients, and memcached's newer commands.

mod common;

use common::{NOW, converse, one, reference};
use varve_serve::{Cache, Limits, Lists, Pause, Reference, Session, answer_alone};

fn says(cache: &mut Cache<Reference>, input: &str, expected: &str) {
    let answer = one(cache, input.as_bytes());
    let text = String::from_utf8_lossy(&answer);
    assert_eq!(text, expected, "after {input:?}");
}

const FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";

#[test]
fn who_wants_no_answers_gets_none_to_what_is_refused() {
    let mut c = reference();
    let large = "x".repeat(5000);
    let long = "k".repeat(251);
    says(&mut c, "set n 0 0 1\r\nN\r\n", "STORED\r\n");
    for refused in [
        format!("set a 0 0 5000 noreply\r\n{large}\r\n"),
        format!("add a 0 0 5000 noreply\r\n{large}\r\n"),
        format!("cas a 0 0 5000 1 noreply\r\n{large}\r\n"),
        format!("set {long} 0 0 1 noreply\r\nA\r\n"),
        "set a x 0 1 noreply\r\nA\r\n".into(),
        "set a 0 x 1 noreply\r\nA\r\n".into(),
        "set a 0 0 x noreply\r\n".into(),
        "cas a 0 0 1 x noreply\r\nA\r\n".into(),
        "cas a 0 0 1 noreply\r\nA\r\n".into(),
        "set a 0 0 1 noreply\r\nABCD\r\n".into(),
        "incr n x noreply\r\n".into(),
        "incr n 1 noreply\r\n".into(),
        format!("decr {long} 1 noreply\r\n"),
        "touch n x noreply\r\n".into(),
        format!("touch {long} 1 noreply\r\n"),
        format!("delete {long} noreply\r\n"),
        "delete n 5 noreply\r\n".into(),
        "flush_all x noreply\r\n".into(),
        "verbosity x noreply\r\n".into(),
        "cache_memlimit 7 noreply\r\n".into(),
    ] {
        says(&mut c, &format!("{refused}mn\r\n"), "MN\r\n");
    }
    // How many words there should have been is not known of these.
    for (refused, answer) in [
        ("hello noreply\r\n", "ERROR\r\n"),
        ("set a noreply\r\n", "ERROR\r\n"),
        ("incr noreply\r\n", "ERROR\r\n"),
    ] {
        says(
            &mut c,
            &format!("{refused}mn\r\n"),
            &format!("{answer}MN\r\n"),
        );
    }
}

#[test]
fn a_value_too_large_takes_the_old_one_with_it_if_it_would_have_replaced_it() {
    let large = "x".repeat(5000);
    for (command, stays) in [
        ("set k 0 0 5000", false),
        ("add k 0 0 5000", true),
        ("append k 0 0 5000", true),
        ("cas k 0 0 5000 1", true),
        ("ms k 5000", false),
        ("ms az== 5000 b", false),
    ] {
        let mut c = reference();
        says(&mut c, "set k 0 0 1\r\nK\r\n", "STORED\r\n");
        let refused = "SERVER_ERROR object too large for cache\r\n";
        says(&mut c, &format!("{command}\r\n{large}\r\n"), refused);
        let left = if stays { "VALUE k 0 1\r\nK\r\n" } else { "" };
        says(&mut c, "get k\r\n", &format!("{left}END\r\n"));
        assert_eq!(c.counters.too_large, 1, "{command}");
    }
}

#[test]
fn the_value_of_a_command_that_is_refused_is_no_command() {
    let mut c = reference();
    let long = "k".repeat(251);
    for (line, answer) in [
        // Two errors, as memcached 1.6.18 has it.
        ("cas k 0 0 11", "ERROR\r\nERROR\r\n"),
        ("cas k 0 0 11 x", FORMAT),
        ("set k 0 0 11 1 2 3", "ERROR\r\n"),
        ("set k 0 0 11 noreply 2", "ERROR\r\n"),
        ("cas k 0 0 11 1 noreply 3", "ERROR\r\n"),
        (&format!("set {long} 0 0 11"), FORMAT),
        (&format!("ms {long} 11"), FORMAT),
        ("ms k 11 Q", "CLIENT_ERROR invalid flag\r\n"),
    ] {
        says(
            &mut c,
            &format!("{line}\r\nflush_all 9\r\nmn\r\n"),
            &format!("{answer}MN\r\n"),
        );
    }
    assert_eq!(c.counters.cmd_flush, 0);
}

#[test]
fn a_key_too_long_in_a_retrieval_is_all_that_is_answered() {
    let mut c = reference();
    says(&mut c, "set a 0 0 1\r\nA\r\n", "STORED\r\n");
    let long = "k".repeat(251);
    says(
        &mut c,
        &format!("get a a {long} a\r\nmn\r\n"),
        &format!("{FORMAT}MN\r\n"),
    );
    says(
        &mut c,
        &format!("gats 0 a {long}\r\nmn\r\n"),
        &format!("{FORMAT}MN\r\n"),
    );
    // A line that is too long is answered before it ends: then the conversation ends, so that no side waits for the rest.
    let many = " a".repeat(2000);
    let (answer, ended) = converse(&mut c, &[format!("get{many} {long}\r\nmn\r\n").as_bytes()]);
    assert!(answer.ends_with(FORMAT.as_bytes()) && ended);
}

#[test]
fn a_value_from_before_an_invalidation_stays_out_of_date() {
    let mut c = reference();
    says(
        &mut c,
        "ms k 1 c T90\r\nA\r\nmg k c\r\n",
        "HD c1\r\nHD c1\r\n",
    );
    says(
        &mut c,
        "md k I T30\r\nmg k t c\r\n",
        "HD\r\nHD t30 c2 X W\r\n",
    );
    // An older number: the time to live stays, and the one client that won the right to replace it stays the only one.
    says(&mut c, "ms k 1 I C1 T600\r\nB\r\n", "HD\r\n");
    says(&mut c, "mg k t v\r\n", "VA 1 t30 Z X\r\nB\r\n");
    says(&mut c, "mg k v\r\n", "VA 1 Z X\r\nB\r\n");
    // Modes that do not replace are no way around the number.
    says(&mut c, "ms k 1 I C1 MA\r\nC\r\n", "EX\r\n");
}

#[test]
fn a_client_may_choose_the_unique_number() {
    let mut c = reference();
    says(
        &mut c,
        "ms a 1 E973 c\r\nA\r\nmg a c\r\n",
        "HD c973\r\nHD c973\r\n",
    );
    says(&mut c, "ms a 1 C973 E4000 c\r\nB\r\n", "HD c4000\r\n");
    says(&mut c, "ms a 1 MA E5000 c s\r\nC\r\n", "HD c5000 s2\r\n");
    says(
        &mut c,
        "mg n N30 E77 c\r\nmg n c E5\r\n",
        "HD c77 W\r\nHD c77 Z\r\n",
    );
    says(
        &mut c,
        "ma m N0 J5 E88 c v\r\nma m E99 c v\r\n",
        "VA 1 c88\r\n5\r\nVA 1 c99\r\n6\r\n",
    );
    says(
        &mut c,
        "md a I E6000\r\nmg a c\r\n",
        "HD\r\nHD c6000 X W\r\n",
    );
    // One of the server's own follows, and the greatest of all is no reason to begin again.
    says(
        &mut c,
        "ms a 1 E18446744073709551615\r\nB\r\nms b 1 c\r\nB\r\n",
        "HD\r\nHD c1\r\n",
    );
    let mut c = Cache::new(c.into_store(), common::LIMITS, NOW).unwrap();
    let answer = one(&mut c, b"ms b 1 c\r\nC\r\nms b 1 c\r\nD\r\n");
    assert_eq!(answer.iter().filter(|&&b| b == b'c').count(), 2);
}

#[test]
fn a_value_is_emptied_or_appended_to_where_there_is_none() {
    let mut c = reference();
    says(
        &mut c,
        "ms a 2 T50 F7\r\nAA\r\nmd a x\r\nmg a v t f\r\n",
        "HD\r\nHD\r\nVA 0 t-1 f0\r\n\r\n",
    );
    says(
        &mut c,
        "ms a 2\r\nAA\r\nmd a x I\r\nmg a v\r\n",
        "HD\r\nHD\r\nVA 0 X W\r\n\r\n",
    );
    says(
        &mut c,
        "ms new 2 MA N30\r\nmo\r\nms new 2 MP N30 s\r\nko\r\n",
        "HD\r\nHD s4\r\n",
    );
    says(
        &mut c,
        "mg new v t\r\nms none 1 MA\r\nX\r\n",
        "VA 4 t30\r\nkomo\r\nNS\r\n",
    );
    // A client that has the value already does not get it again.
    says(
        &mut c,
        "ms b 1 E5\r\nB\r\nmg b v C5\r\nmg b v C6\r\n",
        "HD\r\nHD\r\nVA 1\r\nB\r\n",
    );
}

#[test]
fn it_is_known_when_a_value_was_last_asked_for() {
    let mut c = reference();
    says(&mut c, "set a 0 0 1\r\nA\r\n", "STORED\r\n");
    c.set_now(NOW + 5).unwrap();
    says(
        &mut c,
        "mg a h l u\r\nmg a h l\r\nmg a h l t\r\n",
        "HD h0 l5\r\nHD h0 l5\r\nHD h1 l0 t-1\r\n",
    );
    c.set_now(NOW + 7).unwrap();
    let me = one(&mut c, b"me a\r\n");
    assert_eq!(
        String::from_utf8_lossy(&me),
        "ME a exp=-1 la=2 cas=1 fetch=yes cls=1 size=1\r\n"
    );
    says(
        &mut c,
        "get a\r\nset a 0 0 1\r\nB\r\nmg a h l\r\n",
        "VALUE a 0 1\r\nA\r\nEND\r\nSTORED\r\nHD h0 l0\r\n",
    );
    // Values from before the server's start count as young.
    let mut c = Cache::new(c.into_store(), common::LIMITS, NOW + 60).unwrap();
    c.set_now(NOW + 63).unwrap();
    says(&mut c, "mg a h l\r\n", "HD h0 l3\r\n");
}

fn small(bytes: u64) -> Cache<Reference> {
    let limits = Limits {
        value: 3000,
        memory: bytes,
    };
    Cache::new(Reference::default(), limits, NOW)
        .unwrap()
        .evict()
}

fn set(c: &mut Cache<Reference>, key: &str) {
    let value = "v".repeat(800);
    says(
        c,
        &format!("set {key} 0 0 800\r\n{value}\r\n"),
        "STORED\r\n",
    );
}

fn there(c: &mut Cache<Reference>, key: &str) -> bool {
    one(c, format!("mg {key} u\r\n").as_bytes()) == b"HD\r\n"
}

#[test]
fn what_was_not_asked_for_makes_room() {
    let mut c = small(100_000);
    for i in 0..90 {
        set(&mut c, &format!("cold{i}"));
    }
    set(&mut c, "hot");
    for i in 0..2000 {
        c.set_now(NOW + i).unwrap();
        one(&mut c, b"get hot\r\n");
        set(&mut c, &format!("new{i}"));
        assert!(c.bytes() <= 100_000);
    }
    assert!(there(&mut c, "hot"), "it was asked for all the time");
    let cold = (0..90)
        .filter(|i| there(&mut c, &format!("cold{i}")))
        .count();
    assert!(cold <= 5, "{cold} that were never requested are left");
    assert!(c.counters.evictions >= 1900 && c.counters.no_memory == 0);
    // Old ones went before new ones.
    let new = (1900..2000)
        .filter(|i| there(&mut c, &format!("new{i}")))
        .count();
    assert!(new >= 50, "{new} of the last 100 are left");
}

#[test]
fn a_value_that_expired_goes_before_one_that_did_not() {
    let mut c = small(10_000);
    set(&mut c, "a");
    let value = "v".repeat(800);
    for i in 0..8 {
        says(
            &mut c,
            &format!("set short{i} 0 5 800\r\n{value}\r\n"),
            "STORED\r\n",
        );
    }
    c.set_now(NOW + 5).unwrap();
    for i in 0..8 {
        set(&mut c, &format!("new{i}"));
    }
    assert_eq!(c.counters.evictions, 0);
    assert!(there(&mut c, "a"));
}

#[test]
fn another_limit_is_possible_while_it_runs() {
    let mut c = small(100 << 20).up_to(200 << 20);
    let says_limit = |c: &mut Cache<Reference>, megabytes: &str, answer: &str| {
        says(
            c,
            &format!("cache_memlimit {megabytes}\r\n"),
            &format!("{answer}\r\n"),
        );
    };
    says_limit(
        &mut c,
        "7",
        "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
    );
    says_limit(&mut c, "200", "OK");
    assert_eq!(c.limits().memory, 200 << 20);
    says_limit(
        &mut c,
        "201",
        "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
    );
    says_limit(
        &mut c,
        "2000000000",
        "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
    );
    says_limit(&mut c, "x", "ERROR");
}

#[test]
fn all_keys_are_listed_part_by_part() {
    let mut c = Cache::new(Reference::default(), Limits::default(), NOW).unwrap();
    for i in 0..20_000 {
        one(
            &mut c,
            format!("set key{i} 0 0 1 noreply\r\nv\r\n").as_bytes(),
        );
    }
    one(
        &mut c,
        b"set gone 0 -1 1\r\nv\r\nset a%b 0 60 3\r\nabc\r\nms AAE= 1 b\r\nv\r\n",
    );
    let (mut session, mut lists) = (Session::new(1000), Lists::default());
    let (mut all, mut input) = (Vec::new(), &b"lru_crawler metadump all\r\nmn\r\n"[..]);
    loop {
        let mut out = Vec::new();
        let (used, pause) = session
            .converse(input, &mut out, &mut |request, out| {
                answer_alone(&mut c, &mut lists, request, out)
            })
            .unwrap();
        assert!(
            out.len() <= varve_serve::ENOUGH + 2048,
            "{} bytes at a time",
            out.len()
        );
        input = &input[used..];
        // Another client's list has to wait.
        if !all.is_empty() && all.len() < 1_000_000 {
            let mut heard = Vec::new();
            Session::new(1000)
                .converse(
                    b"lru_crawler metadump all\r\n",
                    &mut heard,
                    &mut |request, out| answer_alone(&mut c, &mut lists, request, out),
                )
                .unwrap();
            assert_eq!(heard, b"BUSY currently processing crawler request\r\n");
        }
        all.extend(out);
        if pause != Pause::Output {
            break;
        }
    }
    let text = String::from_utf8(all).unwrap();
    assert!(text.ends_with("END\r\nMN\r\n"));
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("key=key"))
            .count(),
        20_000
    );
    assert!(text.contains(&format!(
        "key=a%25b exp={} la={NOW} cas=20002 fetch=no cls=1 size=166\n",
        NOW + 60
    )));
    assert!(!text.contains("key=gone"));
    says(
        &mut c,
        "flush_all\r\nms AAE= 1 b\r\nv\r\nset b 0 0 1\r\nv\r\n",
        "OK\r\nHD\r\nSTORED\r\n",
    );
    says(
        &mut c,
        "lru_crawler mgdump all\r\n",
        "mg AAE= b\r\nmg b\r\nEN\r\n",
    );
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_list_lets_others_list() {
    let mut c = reference();
    for i in 0..3000 {
        one(
            &mut c,
            format!("set key{i} 0 0 1 noreply\r\nv\r\n").as_bytes(),
        );
    }
    let input = b"lru_crawler metadump all\r\n";
    let mut lists = Lists::default();
    for most in [1000, 2000, 3001] {
        let (mut session, mut lines) = (Session::new(1000), 0);
        let mut rest = &input[..];
        while lines < most {
            let mut out = Vec::new();
            let part = std::mem::take(&mut rest);
            session
                .converse(part, &mut out, &mut |request, out| {
                    answer_alone(&mut c, &mut lists, request, out)
                })
                .unwrap();
            lines += out.iter().filter(|&&b| b == b'\n').count();
            assert!(!out.starts_with(b"BUSY"));
        }
    }
}

/// At each byte of a command and its value, the client is gone: nothing of it is kept, and nothing else is changed.
#[test]
fn a_client_that_leaves_at_any_byte_of_a_command_leaves_nothing_of_it() {
    for command in [
        "set k 0 0 10\r\n0123456789\r\n",
        "ms k 10 I C1\r\n0123456789\r\n",
        "append k 0 0 3 noreply\r\nabc\r\n",
    ] {
        for end in 0..command.len() {
            let mut c = reference();
            says(&mut c, "set k 5 0 3\r\nold\r\n", "STORED\r\n");
            let (answer, _) = converse(&mut c, &[&command.as_bytes()[..end]]);
            assert_eq!(answer, b"", "{command:?} up to {end}");
            says(&mut c, "get k\r\n", "VALUE k 5 3\r\nold\r\nEND\r\n");
            assert_eq!(c.count().unwrap(), 1);
        }
    }
}

#[test]
fn a_clock_that_is_set_back_brings_nothing_back_and_keeps_no_value_longer() {
    let mut c = reference();
    says(&mut c, "set a 0 10 1\r\nA\r\n", "STORED\r\n");
    c.set_now(NOW + 20).unwrap();
    c.set_now(NOW - 1_000_000).unwrap();
    assert_eq!(c.now(), NOW + 20);
    says(
        &mut c,
        "get a\r\nset b 0 10 1\r\nB\r\nmg b t\r\n",
        "END\r\nSTORED\r\nHD t10\r\n",
    );
}

#[test]
fn a_clock_far_ahead_is_no_reason_to_fail() {
    let mut c = reference();
    says(
        &mut c,
        "set a 0 10 1\r\nA\r\nset b 0 0 1\r\nB\r\nflush_all 100\r\n",
        "STORED\r\nSTORED\r\nOK\r\n",
    );
    c.set_now(1 << 50).unwrap();
    says(
        &mut c,
        "get a b\r\nset c 0 10 1\r\nC\r\nmg c t h\r\n",
        "END\r\nSTORED\r\nHD t10 h0\r\n",
    );
    // Neither is a time that a client makes up.
    let mut c = reference();
    says(
        &mut c,
        "set a 0 9223372036854775807 1\r\nA\r\nget a\r\n",
        "STORED\r\nVALUE a 0 1\r\nA\r\nEND\r\n",
    );
    says(
        &mut c,
        "flush_all 9223372036854775807\r\nget a\r\n",
        "OK\r\nVALUE a 0 1\r\nA\r\nEND\r\n",
    );
    says(
        &mut c,
        "touch a -9223372036854775808\r\nget a\r\n",
        "TOUCHED\r\nEND\r\n",
    );
}

#[test]
fn a_flush_that_was_promised_comes_though_the_server_was_gone_meanwhile() {
    let mut c = reference();
    says(
        &mut c,
        "set a 0 0 1\r\nA\r\nflush_all 3\r\n",
        "STORED\r\nOK\r\n",
    );
    let mut c = Cache::new(c.into_store(), common::LIMITS, NOW + 2).unwrap();
    says(&mut c, "get a\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    let mut c = Cache::new(c.into_store(), common::LIMITS, NOW + 10).unwrap();
    says(&mut c, "get a\r\nset a 0 0 1\r\nB\r\n", "END\r\nSTORED\r\n");
    // Once.
    let mut c = Cache::new(c.into_store(), common::LIMITS, NOW + 20).unwrap();
    says(&mut c, "get a\r\n", "VALUE a 0 1\r\nB\r\nEND\r\n");
    // The later command counts.
    says(
        &mut c,
        "flush_all 3\r\nflush_all\r\nset a 0 0 1\r\nC\r\n",
        "OK\r\nOK\r\nSTORED\r\n",
    );
    c.set_now(NOW + 60).unwrap();
    says(&mut c, "get a\r\n", "VALUE a 0 1\r\nC\r\nEND\r\n");
}
