//! Names of sites for readers: the first function that is no mere wrapper of an allocator, and as many of its
//! callers as it takes to tell sites apart. Where callers are the same, the wrappers that were called tell.
//!
//! Under a script, that is the innermost line of its own: an interpreter's functions are wrappers, and so are its libraries.

use std::collections::{HashMap, HashSet};

use super::{Frame, Key};

/// Which functions are wrappers: patterns, one a line.
const WRAPPERS: &str = include_str!("wrappers.txt");

/// Endings that compilers give to the pieces and copies of a function.
const CLONES: [&str; 6] = [
    ".constprop.",
    ".isra.",
    ".part.",
    ".cold",
    ".lto_priv.",
    ".llvm.",
];

/// A function's name without its arguments, without what it returns, and without a compiler's endings.
///
/// ```
/// use varve_sites::native::names::bare;
/// assert_eq!(bare("void std::vector<Row, A<Row> >::grow<int>(Row&&)"), "std::vector<Row, A<Row> >::grow<int>");
/// assert_eq!(bare("operator new(unsigned long)"), "operator new");
/// assert_eq!(bare("(anonymous namespace)::fill(int) const"), "(anonymous namespace)::fill");
/// ```
pub fn bare(name: &str) -> &str {
    let (mut start, mut depth) = (0, 0usize);
    let mut end = name.len();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = name.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let rest = &name.as_bytes()[at..];
        let begins = at == 0 || !is_part(bytes[at - 1]);
        if depth == 0
            && begins
            && rest.starts_with(b"operator")
            && !rest.get(8).is_some_and(|&b| is_part(b))
        {
            // what follows may be brackets of any kind, and a blank
            let symbol = at + 8;
            let call = if rest[8..].starts_with(b"()") { 2 } else { 0 };
            end = find(bytes, symbol + call, b'(');
            break;
        }
        match byte {
            b'(' if depth == 0 && !rest.starts_with(b"(anonymous") => {
                end = at;
                break;
            }
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            // an arrow closes nothing
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    let name = &name[start.min(end)..end];
    let clone = CLONES.iter().filter_map(|ending| name.find(ending)).min();
    &name[..clone.unwrap_or(name.len())]
}

fn find(bytes: &[u8], from: usize, byte: u8) -> usize {
    let found = bytes[from..].iter().position(|&b| b == byte);
    found.map_or(bytes.len(), |at| from + at)
}

/// Does this function only forward its caller's allocation?
pub fn is_wrapper(function: &str) -> bool {
    let name = bare(function);
    WRAPPERS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .any(|pattern| matches(pattern, name))
}

/// `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A function in a stack, inlined or not.
struct Step<'a> {
    /// Number of its frame.
    frame: usize,
    function: Option<&'a str>,
    line: Option<&'a str>,
}

fn steps(stack: &[Frame]) -> impl Iterator<Item = Step<'_>> {
    stack.iter().enumerate().flat_map(|(number, frame)| {
        let inlined = frame.inlined.iter().map(move |inlined| Step {
            frame: number,
            function: Some(&inlined.function),
            line: inlined.line.as_deref(),
        });
        inlined.chain([Step {
            frame: number,
            function: frame.function.as_deref(),
            line: frame.line.as_deref(),
        }])
    })
}

/// A line of code that is not in a file, such as this, is the module's own.
const TOP: &str = "<module>";

impl Step<'_> {
    fn text(&self, stack: &[Frame]) -> String {
        let frame = &stack[self.frame];
        match (self.function, self.line) {
            (Some(TOP), Some(line)) => line.into(),
            (Some(function), Some(line)) => format!("{} ({line})", bare(function)),
            (Some(function), None) if frame.module.is_empty() => bare(function).into(),
            (Some(function), None) => format!("{}!{}", frame.module, bare(function)),
            (None, _) if frame.module.is_empty() => format!("{:#x}", frame.offset),
            (None, _) => format!("{}+{:#x}", frame.module, frame.offset),
        }
    }
}

/// How many of a stack's steps are inside of the allocator: those before the first function that is no wrapper. A function without
/// a name counts as a wrapper if one follows: static functions of stripped libraries have no names.
fn inside(stack: &[Frame], steps: &[Step]) -> usize {
    let is_script = |step: &&Step| stack[step.frame].is_script();
    if let Some(line) = steps.iter().position(|step| is_script(&step)) {
        let own = steps.iter().position(|step| {
            let frame = &stack[step.frame];
            frame.is_script() && !is_library(&frame.module)
        });
        return own.unwrap_or(line);
    }
    let inner = steps
        .iter()
        .take_while(|step| step.function.is_none_or(is_wrapper));
    let last = inner
        .enumerate()
        .filter(|(_, step)| step.function.is_some())
        .last();
    last.map_or(0, |(at, _)| at + 1)
}

/// Is this file of a script in a library? Those keep the folder of their package.
fn is_library(module: &str) -> bool {
    module.contains('/') || module.starts_with("<frozen ")
}

/// The steps from the first function that is no wrapper on; none if all are.
fn asking(stack: &[Frame]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step> = steps(stack).collect();
    let inside = inside(stack, &steps);
    steps.drain(..inside);
    steps
}

/// Number of the first frame with a function that is no wrapper; the last one if there is none.
pub fn first(stack: &[Frame]) -> usize {
    let asks = asking(stack);
    let asks = asks.first();
    asks.map_or(stack.len().saturating_sub(1), |step| step.frame)
}

/// The name of a single site.
///
/// ```
/// use varve_sites::native::{Frame, Key, names::name};
/// let frame = |function: &str, line: &str| Frame {
///     function: Some(function.into()), line: Some(line.into()), ..Frame::default()
/// };
/// let site = Key::Heap(vec![frame("zmalloc", "zmalloc.c:120"), frame("dictExpand", "dict.c:214")]);
/// assert_eq!(name(&site), "dictExpand (dict.c:214)");
/// ```
pub fn name(key: &Key) -> String {
    called(key, 1).0
}

/// The calls that lead to a site's memory, for those who draw stacks: the outermost first, after what kind of memory it is. Calls inside
/// of the allocator are left out.
pub fn calls(key: &Key) -> Vec<String> {
    let kind = match key {
        Key::Heap(_) => "heap",
        Key::Mapping(_) => "mapped memory",
        Key::Static { .. } => "static variables",
        Key::Stacks => "stacks of threads",
        Key::Rest => "all other memory",
    };
    let mut calls = vec![kind.to_string()];
    if let Key::Static { module, symbol, .. } = key {
        calls.push(format!("{module}!{symbol}"));
    }
    let stack = key.stack();
    let mut asking = asking(stack);
    if asking.is_empty() {
        asking.extend(steps(stack).last());
    }
    calls.extend(asking.iter().rev().map(|step| step.text(stack)));
    calls
}

/// The functions at a place in the code, for those who draw stacks: the outermost first, after the file that they are in.
///
/// ```
/// use varve_sites::native::{Frame, Inlined, names::functions};
/// let inlined = vec![Inlined { function: "next(int)".into(), line: None }];
/// let frame = Frame { module: "db".into(), function: Some("walk(Tree&)".into()), inlined, ..Frame::default() };
/// assert_eq!(functions(&frame), ["db", "walk", "next"]);
/// ```
pub fn functions(frame: &Frame) -> Vec<String> {
    let module = match &frame.module[..] {
        "" => "code that is in no file",
        module => module,
    };
    let outer = match &frame.function {
        Some(function) => bare(function),
        None if frame.module.is_empty() => return vec![module.into()],
        None => "functions without a name",
    };
    let inlined = frame.inlined.iter().rev().map(|f| bare(&f.function));
    let functions = [module, outer].into_iter().chain(inlined);
    functions.map(String::from).collect()
}

/// Names of sites in one list: each with the fewest callers that distinguish it from the others. Sites with the same callers are
/// told apart by what they call, and where that is not enough by the address of the first call that differs.
pub fn names(keys: &[Key]) -> Vec<String> {
    let mut names = vec![String::new(); keys.len()];
    // Sites with one name at the last depth, and all of them.
    let mut open: Vec<Vec<usize>> = vec![(0..keys.len()).collect()];
    for depth in 1.. {
        for group in std::mem::take(&mut open) {
            let mut parts: Vec<(String, Vec<usize>)> = Vec::new();
            let mut places: HashMap<String, usize> = HashMap::new();
            for at in group {
                let (name, _) = called(&keys[at], depth);
                let place = *places.entry(name.clone()).or_insert(parts.len());
                match parts.get_mut(place) {
                    Some((_, part)) => part.push(at),
                    None => parts.push((name, vec![at])),
                }
            }
            for (name, part) in parts {
                match &part[..] {
                    &[one] => names[one] = name,
                    _ if have_same_callers(keys, &part) => {
                        for (at, inside) in part.iter().zip(insides(keys, &part)) {
                            names[*at] = format!("{name}{inside}");
                        }
                    }
                    _ => open.push(part),
                }
            }
        }
        if open.is_empty() {
            break;
        }
    }
    names
}

/// Is there nothing in the callers of these sites that tells them apart?
fn have_same_callers(keys: &[Key], sites: &[usize]) -> bool {
    let all = |site: &usize| called(&keys[*site], usize::MAX).0;
    let first = sites.first().map(all);
    sites.iter().all(|site| Some(all(site)) == first)
}

/// What comes behind the name of sites with the same callers: what they call, from the outermost call inwards, up to the first that
/// differs.
fn insides(keys: &[Key], sites: &[usize]) -> Vec<String> {
    let short = calls_inside(keys, sites, |function| without_parameters(bare(function)));
    // Instances of one template may be all that differs.
    let said = match are_different(&short) {
        true => short,
        false => calls_inside(keys, sites, |function| bare(function).into()),
    };
    let apart = difference(keys, sites);
    let with_place = |(site, text): (&usize, &String)| {
        let is_alone = said.iter().filter(|other| *other == text).count() == 1;
        let frame = keys[*site].stack().get(apart);
        match is_alone {
            true => text.clone(),
            false => format!("{text} at {:#x}", frame.map_or(0, |frame| frame.offset)),
        }
    };
    sites.iter().zip(&said).map(with_place).collect()
}

fn are_different(texts: &[String]) -> bool {
    let different: HashSet<&String> = texts.iter().collect();
    different.len() == texts.len()
}

/// The first call that is not the same in all of these sites, of functions by the names that `name` gives them.
fn calls_inside(keys: &[Key], sites: &[usize], name: impl Fn(&str) -> String) -> Vec<String> {
    let calls = |site: &usize| {
        let stack = keys[*site].stack();
        let steps: Vec<Step> = steps(stack).collect();
        let inside = inside(stack, &steps).min(steps.len().saturating_sub(1));
        let named = steps[..inside].iter().rev();
        let named = named.filter_map(|step| Some(name(step.function?)));
        named.collect::<Vec<String>>()
    };
    let calls: Vec<Vec<String>> = sites.iter().map(calls).collect();
    let said = |own: &Vec<String>| {
        let shared = |other: &Vec<String>| {
            let same = own.iter().zip(other).take_while(|(a, b)| a == b);
            same.count()
        };
        let others = calls.iter().filter(|other| *other != own);
        let most = others.map(shared).max()?;
        let call = own.get(most.min(own.len().checked_sub(1)?))?;
        Some(format!(" > {call}"))
    };
    calls
        .iter()
        .map(|own| said(own).unwrap_or_default())
        .collect()
}

/// A name without the parameters of templates. An operator's name may have such brackets itself.
fn without_parameters(name: &str) -> String {
    if name.contains("operator") || name.starts_with('<') {
        return name.into();
    }
    let mut depth = 0usize;
    let outside = name.chars().filter(|letter| {
        let was = depth;
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        was == 0 && depth == 0
    });
    outside.collect()
}

/// The first place in stacks at which not all of these sites are in one frame.
fn difference(keys: &[Key], sites: &[usize]) -> usize {
    let most = sites.iter().map(|&at| keys[at].stack().len()).max();
    let frame = |site: usize, at| keys[site].stack().get(at);
    let differs = |at: &usize| {
        sites
            .iter()
            .any(|&site| frame(site, *at) != frame(sites[0], *at))
    };
    (0..most.unwrap_or(0)).find(differs).unwrap_or(0)
}

/// A site's name with up to `depth` functions, and whether there are more.
fn called(key: &Key, depth: usize) -> (String, bool) {
    let stack = key.stack();
    match key {
        Key::Static { module, symbol, .. } => (format!("{module}!{symbol} (static)"), false),
        Key::Stacks => ("(stacks)".into(), false),
        Key::Rest => ("(all other memory)".into(), false),
        _ if stack.is_empty() => ("(unknown)".into(), false),
        _ => {
            let mut asking = asking(stack);
            if asking.is_empty() {
                asking.extend(steps(stack).last());
            }
            let more = asking.len() > depth;
            asking.truncate(depth);
            let mut text: Vec<String> = asking.iter().map(|step| step.text(stack)).collect();
            if let Key::Mapping(_) = key {
                text[0].push_str(" (mapped)");
            }
            (text.join(" < "), more)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Inlined;
    use super::super::tests::{frame, line};
    use super::*;

    #[test]
    fn names_lose_what_people_do_not_look_for() {
        for (name, expected) in [
            ("main", "main"),
            ("copy.constprop.0", "copy"),
            ("int* take<int>(int, A<int>)", "take<int>"),
            ("A::operator()(int) const", "A::operator()"),
            (
                "std::ostream& operator<< <char>(std::ostream&, int)",
                "operator<< <char>",
            ),
            ("operator new[](unsigned long)", "operator new[]"),
            (
                "main::{lambda(int)#1}::operator()(int) const",
                "main::{lambda(int)#1}::operator()",
            ),
            ("operators::add(int)", "operators::add"),
            (
                "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter",
                "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter",
            ),
            ("graph::main::{{closure}}", "graph::main::{{closure}}"),
            ("call<A<(B)0, C->d> >(int)", "call<A<(B)0, C->d> >"),
            ("", ""),
            ("operator", "operator"),
        ] {
            assert_eq!(bare(name), expected);
        }
    }

    #[test]
    fn stacks_are_drawn_from_the_outermost_call_on() {
        let stack = vec![frame("malloc", 1), frame("grow", 2), frame("main", 3)];
        assert_eq!(calls(&Key::Heap(stack)), ["heap", "p!main", "p!grow"]);
        assert_eq!(calls(&Key::Rest), ["all other memory"]);
    }

    #[test]
    fn wrappers_are_known_by_pattern() {
        for name in [
            "malloc",
            "operator new(unsigned long)",
            "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)",
            "std::__new_allocator<Row>::allocate(unsigned long, void const*)",
            "__gnu_cxx::new_allocator<int>::allocate(unsigned long)",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "<u64 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
            "zmalloc_usable",
            "sqlite3MallocZero",
            "_PyObject_Malloc.isra.0",
        ] {
            assert!(is_wrapper(name), "{name}");
        }
        for name in [
            "main",
            "my_malloc_user",
            "dictExpand",
            "mystd::vector::grow",
            "<my::Row as core::clone::Clone>::clone",
            "",
        ] {
            assert!(!is_wrapper(name), "{name}");
        }
        assert!(matches("a*b*c", "a1b2b3c") && !matches("a*b*c", "a1c") && !matches("ab", "abc"));
    }

    fn heap(functions: &[(&str, u64)]) -> Key {
        Key::Heap(
            functions
                .iter()
                .map(|&(name, offset)| frame(name, offset))
                .collect(),
        )
    }

    #[test]
    fn sites_have_as_many_callers_as_it_takes_to_tell_them_apart() {
        let keys = [
            heap(&[("zmalloc", 1), ("make", 2), ("left", 3), ("main", 5)]),
            heap(&[("zmalloc", 1), ("make", 2), ("right", 4), ("main", 5)]),
            heap(&[("malloc", 1), ("alone", 7), ("main", 5)]),
            heap(&[("malloc", 8), ("twice", 9)]),
            heap(&[("malloc", 8), ("twice", 10)]),
            heap(&[("zmalloc", 11)]),
            Key::Heap(vec![
                Frame {
                    function: None,
                    ..frame("", 13)
                },
                frame("sqlite3Malloc", 14),
                Frame {
                    function: None,
                    ..frame("", 15)
                },
                frame("main", 16),
            ]),
            Key::Mapping(vec![frame("alone", 12)]),
            Key::Stacks,
        ];
        let expected = [
            "p!make < p!left",
            "p!make < p!right",
            "p!alone",
            "p!twice at 0x9",
            "p!twice at 0xa",
            "p!zmalloc",
            "p+0xf",
            "p!alone (mapped)",
            "(stacks)",
        ];
        assert_eq!(names(&keys), expected);
    }

    #[test]
    fn sites_of_one_line_are_told_apart_by_what_it_calls() {
        // `log.push_back("request " + std::to_string(i))`, as a compiler without inlining of the library makes it.
        let row = |calls: &[(&str, u64)]| {
            let library = calls.iter().map(|&(name, at)| frame(name, at));
            let main = Frame {
                line: Some("vec.cpp:17".into()),
                ..frame("main", 9)
            };
            Key::Heap(library.chain([main]).collect())
        };
        let keys = [
            row(&[
                ("operator new(unsigned long)", 1),
                ("std::string::_M_create(unsigned long&)", 2),
                ("std::string::append(char const*)", 3),
            ]),
            row(&[
                ("operator new(unsigned long)", 1),
                ("void std::vector<int>::_M_realloc_insert<int>(int&&)", 4),
            ]),
            row(&[("operator new(unsigned long)", 1)]),
            row(&[("operator new(unsigned long)", 5)]),
            row(&[]),
        ];
        let expected = [
            "main (vec.cpp:17) > std::string::append",
            "main (vec.cpp:17) > std::vector<int>::_M_realloc_insert<int>",
            "main (vec.cpp:17) > operator new at 0x1",
            "main (vec.cpp:17) > operator new at 0x5",
            "main (vec.cpp:17)",
        ];
        assert_eq!(names(&keys), expected);
        assert_eq!(names(&keys[..1]), ["main (vec.cpp:17)"]);
        assert_eq!(
            names(&keys[..2]),
            [
                "main (vec.cpp:17) > std::string::append",
                "main (vec.cpp:17) > std::vector::_M_realloc_insert"
            ]
        );
        // Of calls that begin alike, the first that differs.
        let alike = |last| row(&[(last, 2), ("std::string::append(char const*)", 3)]);
        assert_eq!(
            names(&[alike("malloc"), alike("realloc")]),
            ["main (vec.cpp:17) > malloc", "main (vec.cpp:17) > realloc"]
        );
    }

    #[test]
    fn under_a_script_sites_have_the_names_of_its_own_lines() {
        let of = |calls: &[Frame], lines: &[Frame]| Key::Heap([calls, lines].concat());
        let top = |number| line("np.py", "<module>", number);
        let library = line("numpy/core/numeric.py", "ones", 191);
        let zeros = [frame("default_calloc", 1), frame("PyArray_Zeros_int", 2)];
        let keys = [
            of(&zeros, &[top(3)]),
            of(&zeros, &[library.clone(), top(5)]),
            of(&zeros, &[line("np.py", "load", 7), top(8)]),
            of(&zeros, &[line("np.py", "load", 7), top(9)]),
            of(
                &[frame("list_resize", 3)],
                &[line("np.py", "load", 7), top(9)],
            ),
            of(
                &zeros,
                &[line("<frozen importlib._bootstrap>", "_call", 241), library],
            ),
        ];
        let expected = [
            "np.py:3",
            "np.py:5",
            "load (np.py:7) < np.py:8",
            "load (np.py:7) < np.py:9 > PyArray_Zeros_int",
            "load (np.py:7) < np.py:9 > list_resize",
            "_call (<frozen importlib._bootstrap>:241)",
        ];
        assert_eq!(names(&keys), expected);
        assert_eq!(first(keys[1].stack()), 3);
        assert_eq!(calls(&keys[2]), ["heap", "np.py:8", "load (np.py:7)"]);
    }

    #[test]
    fn inlined_functions_count_as_the_callers_that_they_are_in_the_source() {
        let inlined = |function: &str, line: &str| Inlined {
            function: function.into(),
            line: Some(line.into()),
        };
        let call = Frame {
            line: Some("a.cc:30".into()),
            inlined: vec![
                inlined("std::vector<int>::push_back(int const&)", "stl_vector.h:1"),
                inlined("fill(int)", "a.cc:12"),
            ],
            ..frame("main", 64)
        };
        let stack = [frame("operator new(unsigned long)", 1), call];
        assert_eq!(first(&stack), 1);
        assert_eq!(name(&Key::Heap(stack.to_vec())), "fill (a.cc:12)");
        assert_eq!(
            called(&Key::Heap(stack.to_vec()), 2).0,
            "fill (a.cc:12) < main (a.cc:30)"
        );
    }
}
