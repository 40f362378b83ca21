//! Conversations without a network: bytes in, bytes out.

mod common;

use common::{NOW, converse, input, one, reference};
use proptest::prelude::*;
use varve_serve::{Cache, Limits, Reference};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_split_of_the_input_gives_the_same_answers(
        input in input(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let whole = converse(&mut reference(), &[&input]);
        let mut cuts: Vec<usize> = cuts.iter().map(|i| i.index(input.len() + 1)).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &input[w[0]..w[1]]).collect();
        prop_assert_eq!(&converse(&mut reference(), &pieces), &whole);
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        prop_assert_eq!(&converse(&mut reference(), &bytes), &whole);
    }

    #[test]
    fn bytes_are_counted_as_they_are_kept(inputs in proptest::collection::vec(input(), 1..4)) {
        let mut cache = reference();
        for input in &inputs {
            one(&mut cache, input);
        }
        let (bytes, count) = (cache.bytes(), cache.count().unwrap());
        // A cache that opens the same store counts anew.
        let store = cache.into_store();
        let mut again = Cache::new(store, common::LIMITS, NOW).unwrap();
        prop_assert_eq!((again.bytes(), again.count().unwrap()), (bytes, count));
    }
}

fn says(cache: &mut Cache<Reference>, input: &str, expected: &str) {
    let answer = one(cache, input.as_bytes());
    assert_eq!(
        String::from_utf8_lossy(&answer),
        expected,
        "after {input:?}"
    );
}

#[test]
fn a_value_is_gone_when_its_time_has_come() {
    let mut c = reference();
    says(
        &mut c,
        "set a 0 10 1\r\nA\r\nset b 0 -1 1\r\nB\r\n",
        "STORED\r\nSTORED\r\n",
    );
    says(&mut c, "get a b\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    says(&mut c, "mg a t\r\n", "HD t10\r\n");
    c.set_now(NOW + 9).unwrap();
    says(&mut c, "get a\r\n", "VALUE a 0 1\r\nA\r\nEND\r\n");
    c.set_now(NOW + 10).unwrap();
    says(&mut c, "get a\r\nadd a 0 0 1\r\nN\r\n", "END\r\nSTORED\r\n");
    // More than 30 days is a date.
    let date = format!("set d 0 {} 1\r\nD\r\nget d\r\n", NOW + 11);
    says(&mut c, &date, "STORED\r\nVALUE d 0 1\r\nD\r\nEND\r\n");
    c.set_now(NOW + 11).unwrap();
    says(&mut c, "get d\r\ntouch d 5\r\n", "END\r\nNOT_FOUND\r\n");
}

#[test]
fn touching_gives_a_value_more_time() {
    let mut c = reference();
    says(
        &mut c,
        "set a 7 10 1\r\nA\r\ntouch a 100\r\n",
        "STORED\r\nTOUCHED\r\n",
    );
    c.set_now(NOW + 50).unwrap();
    says(&mut c, "gat 100 a\r\n", "VALUE a 7 1\r\nA\r\nEND\r\n");
    c.set_now(NOW + 149).unwrap();
    says(&mut c, "get a\r\n", "VALUE a 7 1\r\nA\r\nEND\r\n");
    c.set_now(NOW + 150).unwrap();
    says(&mut c, "get a\r\n", "END\r\n");
}

#[test]
fn a_flush_can_wait() {
    let mut c = reference();
    says(
        &mut c,
        "set a 0 0 1\r\nA\r\nflush_all 5\r\nget a\r\n",
        "STORED\r\nOK\r\nVALUE a 0 1\r\nA\r\nEND\r\n",
    );
    c.set_now(NOW + 5).unwrap();
    says(
        &mut c,
        "get a\r\nset a 0 0 1\r\nB\r\nget a\r\n",
        "END\r\nSTORED\r\nVALUE a 0 1\r\nB\r\nEND\r\n",
    );
    assert_eq!(c.count().unwrap(), 1);
}

#[test]
fn a_value_is_replaced_by_its_unique_number_once() {
    let mut c = reference();
    says(
        &mut c,
        "set a 0 0 1\r\nA\r\ngets a\r\n",
        "STORED\r\nVALUE a 0 1 1\r\nA\r\nEND\r\n",
    );
    says(&mut c, "cas a 0 0 1 1\r\nB\r\n", "STORED\r\n");
    says(&mut c, "cas a 0 0 1 1\r\nC\r\n", "EXISTS\r\n");
    says(
        &mut c,
        "cas b 0 0 1 1\r\nC\r\nget a\r\n",
        "NOT_FOUND\r\nVALUE a 0 1\r\nB\r\nEND\r\n",
    );
}

#[test]
fn one_client_replaces_a_value_that_is_out_of_date_and_the_others_hear_of_it() {
    let mut c = reference();
    says(&mut c, "ms a 1\r\nA\r\nmd a I T30\r\n", "HD\r\nHD\r\n");
    says(&mut c, "mg a v t\r\n", "VA 1 t30 X W\r\nA\r\n");
    says(&mut c, "mg a v\r\n", "VA 1 Z X\r\nA\r\n");
    says(&mut c, "ms a 1\r\nB\r\nmg a v\r\n", "HD\r\nVA 1\r\nB\r\n");
    // The same for a value that will be out of date soon, and for one that is not there.
    says(
        &mut c,
        "ms a 1 T20\r\nC\r\nmg a R30\r\nmg a R30\r\n",
        "HD\r\nHD W\r\nHD Z\r\n",
    );
    // Flags hold in their order: a value whose end is put off first is not out of date soon.
    says(
        &mut c,
        "ms a 1 T20\r\nC\r\nmg a T0 R30\r\nms a 1 T20\r\nC\r\nmg a R30 T0\r\n",
        "HD\r\nHD\r\nHD\r\nHD W\r\n",
    );
    says(
        &mut c,
        "mg new N30 v\r\nmg new N30 v\r\n",
        "VA 0 W\r\n\r\nVA 0 Z\r\n\r\n",
    );
}

#[test]
fn a_value_that_finds_no_room_is_refused_and_others_stay() {
    let limits = Limits {
        value: 1000,
        memory: 3000,
    };
    let mut c = Cache::new(Reference::default(), limits, NOW).unwrap();
    let value = "x".repeat(800);
    let set = |key: &str, ttl: i32| format!("set {key} 0 {ttl} 800\r\n{value}\r\n");
    says(
        &mut c,
        &(set("a", 0) + &set("b", 5) + &set("c", 0)),
        "STORED\r\nSTORED\r\nSTORED\r\n",
    );
    let full = "SERVER_ERROR out of memory storing object\r\n";
    says(&mut c, &set("d", 0), full);
    // One that takes the place of another needs no more room.
    says(
        &mut c,
        &(set("a", 0) + "delete d\r\n"),
        "STORED\r\nNOT_FOUND\r\n",
    );
    // Expired values make room.
    c.set_now(NOW + 5).unwrap();
    says(&mut c, &set("d", 0), "STORED\r\n");
    assert_eq!(c.counters.reclaimed, 1);
    let large = format!("set a 0 0 1001\r\n{}\r\nget a\r\n", "y".repeat(1001));
    says(
        &mut c,
        &large,
        "SERVER_ERROR object too large for cache\r\nEND\r\n",
    );
}

#[test]
fn what_is_malformed_is_refused_in_one_line_and_the_next_command_is_understood() {
    let mut c = reference();
    let format = "CLIENT_ERROR bad command line format\r\n";
    let long = "k".repeat(251);
    for (input, expected) in [
        ("hello\r\n".to_string(), "ERROR\r\n"),
        ("\r\n".into(), "ERROR\r\n"),
        ("get\r\n".into(), "ERROR\r\n"),
        ("get  \r\n".into(), "ERROR\r\n"),
        ("set a\r\n".into(), "ERROR\r\n"),
        ("set a x 0 1\r\nA\r\n".into(), format),
        ("set a 0 x 1\r\nA\r\n".into(), format),
        ("set a -1 0 1\r\nA\r\n".into(), format),
        ("set a 4294967296 0 1\r\nA\r\n".into(), format),
        ("set a 0 0 -1\r\n".into(), format),
        (
            "set a 0 0 3\r\nabcd\r\n".into(),
            "CLIENT_ERROR bad data chunk\r\n",
        ),
        (format!("set {long} 0 0 1\r\nA\r\n"), format),
        (format!("get a {long}\r\n"), format),
        (format!("get {long}{long}\r\n"), format),
        (format!("delete {long}\r\n"), format),
        (format!("incr {long} 1\r\n"), format),
        (
            "incr a x\r\n".into(),
            "CLIENT_ERROR invalid numeric delta argument\r\n",
        ),
        (
            "touch a x\r\n".into(),
            "CLIENT_ERROR invalid exptime argument\r\n",
        ),
        (
            "gat x a\r\n".into(),
            "CLIENT_ERROR invalid exptime argument\r\n",
        ),
        ("mg a Q\r\n".into(), "CLIENT_ERROR invalid flag\r\n"),
        ("mg a v v\r\n".into(), "CLIENT_ERROR duplicate flag\r\n"),
        ("ms a x\r\n".into(), format),
    ] {
        says(
            &mut c,
            &format!("{input}mn\r\n"),
            &format!("{expected}MN\r\n"),
        );
    }
}

#[test]
fn a_line_without_end_and_the_binary_protocol_end_the_conversation() {
    let line = vec![b'a'; varve_serve::MOST_LINE];
    let (answer, ended) = converse(&mut reference(), &[&line]);
    assert_eq!(
        (&answer[..], ended),
        // As in memcached: an endless line gets no answer.
        (&b""[..], true)
    );
    // In pieces, and with a key after the header.
    let get =
        b"\x80\x0c\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01abcd\x00\x00\x00\x00\x00\x00\x00\x00k";
    let (answer, ended) = converse(&mut reference(), &[&get[..7], &get[7..]]);
    assert!(answer.starts_with(b"\x81\x0c\x00\x00\x00\x00\x00\x81") && ended);
    let (header, text) = answer.split_at(24);
    assert_eq!(header[8..12], (text.len() as u32).to_be_bytes());
    assert_eq!(&header[12..16], b"abcd");
    let text = str::from_utf8(text).unwrap();
    assert!(
        text.contains("does not speak the binary protocol"),
        "{text}"
    );
}

/// libFuzzer's find: a time longer than any key was no key when it came in pieces, and no number when it came whole.
#[test]
fn a_time_without_end_is_no_time_however_it_comes() {
    for word in ["0".repeat(300), "x".repeat(300)] {
        for end in [" k\r\n", "\r\n"] {
            let line = format!("gat {word}{end}");
            let whole = one(&mut reference(), line.as_bytes());
            assert_eq!(whole, b"CLIENT_ERROR invalid exptime argument\r\n");
            let bytes: Vec<&[u8]> = line.as_bytes().chunks(1).collect();
            assert_eq!(converse(&mut reference(), &bytes).0, whole);
        }
    }
}

#[test]
fn a_retrieval_has_any_number_of_keys() {
    let mut c = reference();
    says(&mut c, "set k 0 0 1\r\nA\r\n", "STORED\r\n");
    let many = format!("get{}\r\n", " k".repeat(100_000));
    let answer = one(&mut c, many.as_bytes());
    assert_eq!(
        answer.len(),
        100_000 * "VALUE k 0 1\r\nA\r\n".len() + "END\r\n".len()
    );
}

#[test]
fn numbers_begin_again_above_and_stop_below() {
    let mut c = reference();
    says(
        &mut c,
        "set n 0 0 20\r\n18446744073709551615\r\nincr n 2\r\n",
        "STORED\r\n1\r\n",
    );
    says(
        &mut c,
        "decr n 5\r\nincr n 18446744073709551615\r\n",
        "0\r\n18446744073709551615\r\n",
    );
    says(
        &mut c,
        "incr n 18446744073709551616\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\n",
    );
}
