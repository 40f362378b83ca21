//! Loops whose first iterations are code of their own, and which know in others what the first one found out: random loops over fields,
//! arrays, globals and functions by reference do what they do when each step is done by hand.

use std::fmt::Write;
use varve_runtime::*;

const OBJECTS: usize = 3;
const ELEMENTS: usize = 8;

/// A step of a loop's body. `k` is an object.
#[derive(Clone, Debug)]
enum Step {
    /// Takes a field into the sum.
    Read {
        k: usize,
        second: bool,
    },
    Write {
        k: usize,
        second: bool,
    },
    /// The field of the object that is next to this one, if there is one.
    ReadNext {
        k: usize,
    },
    SetNext {
        k: usize,
        to: Option<usize>,
    },
    Global,
    Element {
        k: usize,
    },
    SetElement {
        k: usize,
    },
    /// Gives an object the array of another.
    SetArray {
        k: usize,
        from: usize,
    },
    /// Calls the function that the object has.
    Call {
        k: usize,
    },
    SetFunction {
        k: usize,
        to: usize,
    },
    /// Another object in the local.
    Exchange {
        k: usize,
        with: usize,
    },
    Sometimes {
        every: i32,
        at: i32,
        then: Vec<Step>,
    },
    /// Not in the first iteration, which the compiler knows of.
    Later {
        then: Vec<Step>,
    },
    Continue {
        every: i32,
        at: i32,
    },
    Leave {
        at: i32,
    },
    /// A loop from a constant to a constant, which the compiler may count. It has a way out at its beginning, and leaves out one round.
    Few {
        from: i32,
        limit: i32,
        by: i32,
        without: i32,
        way: Way,
        then: Vec<Step>,
    },
}

/// How a loop of few iterations asks whether it is over.
#[derive(Clone, Copy, Debug)]
enum Way {
    Reached,
    NotBefore,
    Equal,
    AtEnd,
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

fn step(n: &mut Numbers, nested: bool) -> Step {
    let k = n.below(OBJECTS);
    let second = n.below(2) == 1;
    match n.below(if nested { 11 } else { 23 }) {
        0 | 1 => Step::Read { k, second },
        2 => Step::Write { k, second },
        3 => Step::ReadNext { k },
        4 => {
            let to = n.below(OBJECTS + 1);
            Step::SetNext {
                k,
                to: (to < OBJECTS).then_some(to),
            }
        }
        5 => Step::Global,
        6 => Step::Element { k },
        7 => Step::SetElement { k },
        8 => Step::SetArray {
            k,
            from: n.below(OBJECTS),
        },
        9 => Step::SetFunction { k, to: n.below(3) },
        10 => Step::Exchange {
            k,
            with: n.below(OBJECTS),
        },
        11 | 12 => Step::Call { k },
        13 | 14 => {
            let every = 1 + n.below(90) as i32;
            let at = n.below(every as usize) as i32;
            let then = (0..1 + n.below(2)).map(|_| step(n, true)).collect();
            Step::Sometimes { every, at, then }
        }
        15..=17 => {
            let then = (0..1 + n.below(2)).map(|_| step(n, true)).collect();
            Step::Later { then }
        }
        18 => {
            let every = 2 + n.below(50) as i32;
            Step::Continue {
                every,
                at: n.below(every as usize) as i32,
            }
        }
        19..=21 => {
            let by = [1, 1, 2, 3, -1, -2][n.below(6)];
            let (from, rounds) = (n.below(9) as i32 - 4, n.below(11) as i32);
            let way = [Way::Reached, Way::NotBefore, Way::Equal, Way::AtEnd][n.below(4)];
            Step::Few {
                from,
                limit: from + by * rounds,
                by,
                without: from + by * n.below(11) as i32,
                way,
                then: (0..n.below(3)).map(|_| step(n, true)).collect(),
            }
        }
        _ => Step::Leave {
            at: 150 + n.below(600) as i32,
        },
    }
}

// ---- by hand ----------------------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy)]
struct Object {
    fields: [i32; 2],
    next: Option<usize>,
    array: usize,
    function: usize,
}

struct ByHand {
    objects: [Object; OBJECTS],
    locals: [usize; OBJECTS],
    arrays: [[i32; ELEMENTS]; OBJECTS],
    global: i32,
    sum: i32,
}

enum Then {
    On,
    Again,
    Out,
}

fn mixed(sum: i32, value: i32) -> i32 {
    sum.wrapping_mul(31).wrapping_add(value)
}

impl ByHand {
    fn new() -> ByHand {
        let object = |k| Object {
            fields: [k as i32, 10 * k as i32],
            next: None,
            array: k,
            function: k,
        };
        ByHand {
            objects: [0, 1, 2].map(object),
            locals: [0, 1, 2],
            arrays: [[0; ELEMENTS]; OBJECTS],
            global: 0,
            sum: 1,
        }
    }

    fn step(&mut self, i: i32, step: &Step) -> Then {
        let own = |k: usize| self.locals[k];
        let element = i as usize % ELEMENTS;
        match *step {
            Step::Read { k, second } => {
                let value = self.objects[own(k)].fields[usize::from(second)];
                self.sum = mixed(self.sum, value);
            }
            Step::Write { k, second } => {
                self.objects[own(k)].fields[usize::from(second)] = self.sum.wrapping_add(i);
            }
            Step::ReadNext { k } => {
                if let Some(next) = self.objects[own(k)].next {
                    self.sum = mixed(self.sum, self.objects[next].fields[0]);
                }
            }
            Step::SetNext { k, to } => self.objects[own(k)].next = to.map(own),
            Step::Global => {
                self.global = self.global.wrapping_add(self.sum);
                self.sum ^= self.global;
            }
            Step::Element { k } => {
                let value = self.arrays[self.objects[own(k)].array][element];
                self.sum = mixed(self.sum, value);
            }
            Step::SetElement { k } => {
                self.arrays[self.objects[own(k)].array][element] = self.sum;
            }
            Step::SetArray { k, from } => {
                self.objects[own(k)].array = self.objects[own(from)].array;
            }
            Step::Call { k } => {
                let object = &mut self.objects[own(k)];
                let value = match object.function {
                    0 => {
                        object.fields[0] = object.fields[0].wrapping_add(3);
                        object.fields[0]
                    }
                    1 => object.fields[1],
                    // Only makes garbage.
                    _ => 40,
                };
                self.sum = mixed(self.sum, value);
            }
            Step::SetFunction { k, to } => self.objects[own(k)].function = to,
            Step::Exchange { k, with } => self.locals.swap(k, with),
            Step::Sometimes {
                every,
                at,
                ref then,
            } => {
                if i % every == at {
                    for step in then {
                        self.step(i, step);
                    }
                }
            }
            Step::Later { ref then } => {
                if i != 0 {
                    for step in then {
                        self.step(i, step);
                    }
                }
            }
            Step::Continue { every, at } => {
                if i % every == at {
                    return Then::Again;
                }
            }
            Step::Leave { at } => {
                if i == at {
                    return Then::Out;
                }
            }
            Step::Few {
                from,
                limit,
                by,
                without,
                way,
                ref then,
            } => {
                let at_least = i32::from(matches!(way, Way::AtEnd));
                for round in 0..((limit - from) / by).max(at_least) {
                    let j = from + by * round;
                    if j != without {
                        self.sum = mixed(self.sum, j);
                        for step in then {
                            self.step(i, step);
                        }
                    }
                }
            }
        }
        Then::On
    }

    fn run(mut self, body: &[Step], times: i32) -> i32 {
        'rounds: for i in 0..times {
            for step in body {
                match self.step(i, step) {
                    Then::On => {}
                    Then::Again => continue 'rounds,
                    Then::Out => break 'rounds,
                }
            }
        }
        for object in self.objects {
            self.sum = mixed(self.sum, object.fields[0]);
            self.sum = mixed(self.sum, object.fields[1]);
        }
        self.sum
    }
}

// ---- as a module ------------------------------------------------------------------------------------------------------------------

fn write_step(out: &mut String, step: &Step) {
    let mix = |value: &str| {
        format!("(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) {value}))")
    };
    let own = |k: usize| format!("(local.get $o{k})");
    let field = |second: bool| if second { "$b" } else { "$a" };
    let array = |k: usize| format!("(struct.get $s $array {})", own(k));
    let element = "(i32.and (local.get $i) (i32.const 7))";
    let when = |every: i32, at: i32| {
        format!("(i32.eq (i32.rem_s (local.get $i) (i32.const {every})) (i32.const {at}))")
    };
    let text = match *step {
        Step::Read { k, second } => mix(&format!("(struct.get $s {} {})", field(second), own(k))),
        Step::Write { k, second } => format!(
            "(struct.set $s {} {} (i32.add (local.get $sum) (local.get $i)))",
            field(second),
            own(k)
        ),
        Step::ReadNext { k } => {
            let next = format!("(struct.get $s $next {})", own(k));
            let value = mix(&format!(
                "(struct.get $s $a (struct.get $s $next {}))",
                own(k)
            ));
            format!("(if (i32.eqz (ref.is_null {next})) (then {value}))")
        }
        Step::SetNext { k, to } => {
            let to = to.map_or("(ref.null $s)".to_string(), own);
            format!("(struct.set $s $next {} {to})", own(k))
        }
        Step::Global => "(global.set $g (i32.add (global.get $g) (local.get $sum)))
            (local.set $sum (i32.xor (local.get $sum) (global.get $g)))"
            .to_string(),
        Step::Element { k } => mix(&format!("(array.get $v {} {element})", array(k))),
        Step::SetElement { k } => format!("(array.set $v {} {element} (local.get $sum))", array(k)),
        Step::SetArray { k, from } => format!("(struct.set $s $array {} {})", own(k), array(from)),
        Step::Call { k } => {
            let function = format!("(struct.get $s $function {})", own(k));
            mix(&format!("(call_ref $f {} {function})", own(k)))
        }
        Step::SetFunction { k, to } => {
            format!("(struct.set $s $function {} (ref.func $f{to}))", own(k))
        }
        Step::Exchange { k, with } => format!(
            "{} {} (local.set $o{k}) (local.set $o{with})",
            own(k),
            own(with)
        ),
        Step::Sometimes {
            every,
            at,
            ref then,
        } => {
            let mut inner = String::new();
            then.iter().for_each(|s| write_step(&mut inner, s));
            format!("(if {} (then {inner}))", when(every, at))
        }
        Step::Later { ref then } => {
            let mut inner = String::new();
            then.iter().for_each(|s| write_step(&mut inner, s));
            format!("(block $first (br_if $first (i32.eqz (local.get $i))) {inner})")
        }
        Step::Continue { every, at } => format!("(br_if $body {})", when(every, at)),
        Step::Leave { at } => {
            format!("(br_if $out (i32.eq (local.get $i) (i32.const {at})))")
        }
        Step::Few {
            from,
            limit,
            by,
            without,
            way,
            ref then,
        } => {
            let mut inner = mix("(local.get $j)");
            then.iter().for_each(|s| write_step(&mut inner, s));
            let both = format!("(local.get $j) (i32.const {limit})");
            let (is_over, is_before) = match by > 0 {
                true => ("i32.ge_s", "i32.lt_s"),
                false => ("i32.le_s", "i32.gt_s"),
            };
            let begin = match way {
                Way::Reached => format!("(br_if $over ({is_over} {both}))"),
                Way::NotBefore => format!("(br_if $over (i32.eqz ({is_before} {both})))"),
                Way::Equal => format!("(br_if $over (i32.eq {both}))"),
                Way::AtEnd => String::new(),
            };
            let end = match way {
                Way::AtEnd => format!("(br_if $few ({is_before} {both}))"),
                _ => "(br $few)".to_string(),
            };
            format!(
                "(local.set $j (i32.const {from}))
                (block $over
                    (loop $few
                        {begin}
                        (block $next
                            (br_if $next (i32.eq (local.get $j) (i32.const {without})))
                            {inner})
                        (local.set $j (i32.sub (local.get $j) (i32.const {})))
                        {end}))",
                -by
            )
        }
    };
    writeln!(out, "{text}").unwrap();
}

fn module(body: &[Step]) -> String {
    let mut steps = String::new();
    body.iter().for_each(|s| write_step(&mut steps, s));
    let object = |k: usize| {
        format!(
            "(local.set $o{k} (struct.new $s (i32.const {k}) (i32.const {}) (ref.null $s)
                (array.new_default $v (i32.const {ELEMENTS})) (ref.func $f{k})))
             (local.set $p{k} (local.get $o{k}))",
            10 * k
        )
    };
    let objects: String = (0..OBJECTS).map(object).collect();
    let last = |k: usize| {
        format!(
            "(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (struct.get $s $a (local.get $p{k}))))
             (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (struct.get $s $b (local.get $p{k}))))"
        )
    };
    let last: String = (0..OBJECTS).map(last).collect();
    format!(
        r#"(module
        (type $v (array (mut i32)))
        (rec (type $f (func (param (ref null $s)) (result i32)))
             (type $s (struct (field $a (mut i32)) (field $b (mut i32)) (field $next (mut (ref null $s)))
                (field $array (mut (ref $v))) (field $function (mut (ref $f))))))
        (global $g (mut i32) (i32.const 0))
        (elem declare func $f0 $f1 $f2)
        (func $f0 (type $f)
            (struct.set $s $a (local.get 0) (i32.add (struct.get $s $a (local.get 0)) (i32.const 3)))
            (struct.get $s $a (local.get 0)))
        (func $f1 (type $f) (struct.get $s $b (local.get 0)))
        (func $f2 (type $f) (array.len (array.new_default $v (i32.const 40))))
        (func (export "run") (param $times i32) (result i32)
            (local $o0 (ref null $s)) (local $o1 (ref null $s)) (local $o2 (ref null $s))
            (local $p0 (ref null $s)) (local $p1 (ref null $s)) (local $p2 (ref null $s))
            (local $i i32) (local $j i32) (local $sum i32)
            (global.set $g (i32.const 0))
            (local.set $sum (i32.const 1))
            {objects}
            (block $out
                (loop $l
                    (br_if $out (i32.ge_s (local.get $i) (local.get $times)))
                    (block $body
                        {steps})
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br $l)))
            {last}
            (local.get $sum)))"#
    )
}

fn run(config: &Config, wat: &str, times: &[i32]) -> Vec<i32> {
    let engine = Engine::new(config.clone());
    let module = Module::new(&engine, &wat::parse_str(wat).unwrap()).unwrap();
    let mut store = Store::new(&engine, ()).unwrap();
    let instance = Linker::new(&engine)
        .instantiate(&mut store, &module)
        .unwrap();
    let f = instance
        .get_typed_func::<i32, i32>(&mut store, "run")
        .unwrap();
    times
        .iter()
        .map(|&n| f.call(&mut store, n).unwrap())
        .collect()
}

#[test]
fn random_loops_do_what_they_do_by_hand() {
    let mut n = Numbers(2026);
    for _ in 0..500 {
        let body: Vec<Step> = (0..2 + n.below(4)).map(|_| step(&mut n, false)).collect();
        // Hot by its calls or by one loop.
        let mut times = [0, 1, 2, 5, 700, 3, 40, 701, 6000].to_vec();
        if n.below(2) == 0 {
            times.splice(0..0, [21; 20]);
        }
        let expected: Vec<i32> = times.iter().map(|&t| ByHand::new().run(&body, t)).collect();
        let wat = module(&body);
        for tier in [Tier::Auto, Tier::Optimizing, Tier::Baseline] {
            let config = Config {
                tier,
                hot: 60,
                background: false,
                nursery: 64 << 10,
                heap_max: 16 << 20,
                ..Config::default()
            };
            assert_eq!(
                run(&config, &wat, &times),
                expected,
                "{tier:?} of {body:?}\n{wat}"
            );
        }
    }
}

/// Fields stored only by later iterations are not assumed to be as the first one left them, though only the first one's code is known to make no
/// calls.
#[test]
fn what_later_iterations_store_is_read_again() {
    let body = [
        Step::Read {
            k: 1,
            second: false,
        },
        Step::Call { k: 1 },
        Step::Later {
            then: vec![Step::Write {
                k: 1,
                second: false,
            }],
        },
    ];
    let times = [20; 40].map(|t| t + 1);
    let expected = times.map(|t| ByHand::new().run(&body, t)).to_vec();
    let config = Config {
        hot: 60,
        background: false,
        ..Config::default()
    };
    assert_eq!(run(&config, &module(&body), &times), expected);
}

/// A loop that constants never end, and no count: its body is not repeated without end.
#[test]
fn a_condition_that_stays_as_it_is_does_not_count_iterations() {
    let wat = r#"(module
        (func $next (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
        (func (export "run") (param $times i32) (result i32) (local $i i32) (local $zero i32)
            (block $out
                (loop $l
                    (br_if $out (i32.ne (local.get $zero) (i32.const 0)))
                    (br_if $out (i32.ge_s (local.get $i) (local.get $times)))
                    (local.set $i (call $next (local.get $i)))
                    (br $l)))
            (local.get $i)))"#;
    for tier in [Tier::Auto, Tier::Optimizing] {
        let config = Config {
            tier,
            hot: 60,
            background: false,
            ..Config::default()
        };
        assert_eq!(run(&config, wat, &[0, 700, 3]), [0, 700, 3]);
    }
}
