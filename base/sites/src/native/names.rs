//! Names of sites for readers: the first function that is no mere wrapper of an allocator, and as many of its
//! callers as it takes to tell sites apart.

use std::collections::HashMap;

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

impl Step<'_> {
    fn text(&self, stack: &[Frame]) -> String {
        let frame = &stack[self.frame];
        match (self.function, self.line) {
            (Some(function), Some(line)) => format!("{} ({line})", bare(function)),
            (Some(function), None) if frame.module.is_empty() => bare(function).into(),
            (Some(function), None) => format!("{}!{}", frame.module, bare(function)),
            (None, _) if frame.module.is_empty() => format!("{:#x}", frame.offset),
            (None, _) => format!("{}+{:#x}", frame.module, frame.offset),
        }
    }
}

/// The steps from the first function that is no wrapper on; none if all are. A function without a name counts as a
/// wrapper if one follows: static functions of stripped libraries have no names.
fn asking(stack: &[Frame]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step> = steps(stack).collect();
    let inner = steps
        .iter()
        .take_while(|step| step.function.is_none_or(is_wrapper));
    let last = inner
        .enumerate()
        .filter(|(_, step)| step.function.is_some())
        .last();
    let skip = last.map_or(0, |(at, _)| at + 1);
    steps.drain(..skip);
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

/// Names of sites in one list: each with the fewest callers that distinguish it from the others,
/// and where that is not enough with the address of the first call that differs.
pub fn names(keys: &[Key]) -> Vec<String> {
    let mut names = vec![String::new(); keys.len()];
    let mut open: Vec<usize> = (0..keys.len()).collect();
    for depth in 1.. {
        let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
        let mut has_more = false;
        for &at in &open {
            let (name, more) = called(&keys[at], depth);
            has_more |= more;
            groups.entry(name).or_default().push(at);
        }
        open.clear();
        for (name, group) in groups {
            match &group[..] {
                &[one] => names[one] = name,
                _ if has_more => open.extend(group),
                _ => {
                    let apart = difference(keys, &group);
                    for at in group {
                        let frame = keys[at].stack().get(apart);
                        let offset = frame.map_or(0, |frame| frame.offset);
                        names[at] = format!("{name} at {offset:#x}");
                    }
                }
            }
        }
        if open.is_empty() {
            break;
        }
    }
    names
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
    use super::super::tests::frame;
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
