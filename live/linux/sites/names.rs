//! Sites by their names: stacks of source lines, and classes. What was seen once is asked of the machine once.

use super::jvm::{self, Jni, Jvmti};
use std::collections::HashMap;

/// Sites that are told apart; more become one.
const MOST_SITES: usize = 1 << 15;

/// A method.
#[derive(Default)]
struct Method {
    class: String,
    name: String,
    file: String,
    /// Where in its bytecode lines begin, in order.
    lines: Vec<(i64, i32)>,
}

impl Method {
    /// The line of a place in the bytecode; 0 if it is not known.
    fn line(&self, at: i64) -> i32 {
        let before = self.lines.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).map_or(0, |n| self.lines[n].1)
    }
}

/// A frame as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The class's signature.
    pub class: String,
    pub method: String,
    /// Empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: i32,
}

/// A stack, innermost first, by numbers of frames; and the number of the objects' class.
pub type Site = (Vec<u32>, u32);

/// Everything that has a name, each once, by number.
pub struct Names {
    methods: HashMap<usize, Method>,
    places: HashMap<(usize, i64), u32>,
    frame_numbers: HashMap<Frame, u32>,
    pub frames: Vec<Frame>,
    class_numbers: HashMap<String, u32>,
    pub classes: Vec<String>,
    site_numbers: HashMap<Site, u32>,
    pub sites: Vec<Site>,
}

/// The machine's description of a method.
fn method(jvmti: Jvmti, jni: Jni, frame: &jvm::Frame) -> Method {
    let mut method = Method {
        name: jvmti.method_name(frame.method).unwrap_or_default(),
        ..Method::default()
    };
    if let Some(class) = jvmti.class_of(frame.method) {
        method.class = jvmti.signature(class).unwrap_or_default();
        method.file = jvmti.source_file(class).unwrap_or_default();
        jni.forget(class);
    }
    let lines = jvmti.lines(frame.method).into_iter();
    method.lines = lines.map(|line| (line.from, line.number)).collect();
    method.lines.sort_unstable();
    method
}

/// Methods for [`Names::learn`].
pub struct Learned(Vec<(usize, Method)>);

/// Asks the machine for methods, while no thread waits for the table.
pub fn ask(jvmti: Jvmti, jni: Jni, frames: &[jvm::Frame]) -> Learned {
    let asked = frames.iter();
    Learned(
        asked
            .map(|frame| (frame.method as usize, method(jvmti, jni, frame)))
            .collect(),
    )
}

impl Names {
    /// None but site 0, which all are in that have no room of their own.
    pub fn new() -> Names {
        Names {
            methods: HashMap::new(),
            places: HashMap::new(),
            frame_numbers: HashMap::new(),
            frames: Vec::new(),
            class_numbers: HashMap::from([(String::new(), 0)]),
            classes: vec![String::new()],
            site_numbers: HashMap::from([((Vec::new(), 0), 0)]),
            sites: vec![(Vec::new(), 0)],
        }
    }

    /// Frames whose methods are not known yet.
    pub fn unknown(&self, stack: &[jvm::Frame]) -> Vec<jvm::Frame> {
        let unknown = |frame: &&jvm::Frame| !self.methods.contains_key(&(frame.method as usize));
        stack.iter().filter(unknown).copied().collect()
    }

    pub fn learn(&mut self, methods: Learned) {
        self.methods.extend(methods.0);
    }

    fn frame(&mut self, frame: &jvm::Frame) -> u32 {
        let place = (frame.method as usize, frame.location);
        if let Some(&number) = self.places.get(&place) {
            return number;
        }
        let named = self.methods.get(&place.0).map(|method| Frame {
            class: method.class.clone(),
            method: method.name.clone(),
            file: method.file.clone(),
            line: method.line(frame.location),
        });
        let named = named.unwrap_or(Frame {
            class: String::new(),
            method: String::new(),
            file: String::new(),
            line: 0,
        });
        let next = self.frames.len() as u32;
        let number = *self.frame_numbers.entry(named.clone()).or_insert(next);
        if number == next {
            self.frames.push(named);
        }
        self.places.insert(place, number);
        number
    }

    /// The number of a site.
    pub fn site(&mut self, stack: &[jvm::Frame], class: &str) -> u32 {
        let full = self.sites.len() >= MOST_SITES;
        let number = match self.class_numbers.get(class) {
            Some(&number) => number,
            None if full => return 0,
            None => {
                self.classes.push(class.into());
                let number = self.classes.len() as u32 - 1;
                self.class_numbers.insert(class.into(), number);
                number
            }
        };
        let frames = stack.iter().map(|frame| self.frame(frame)).collect();
        let site = (frames, number);
        match self.site_numbers.get(&site) {
            Some(&number) => number,
            None if full => 0,
            None => {
                self.sites.push(site.clone());
                let number = self.sites.len() as u32 - 1;
                self.site_numbers.insert(site, number);
                number
            }
        }
    }
}
