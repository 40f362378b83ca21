//! Carries a profile over to rebuilt files: each return address is searched at the same place of the function of the same name.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment};

use crate::elf::{parse, read};
use crate::{Binary, CALL_BYTES, ends_in_call};
use varve_sites::native::{Frame, Key, Profile, Site};

/// A profile of another build, and how much of it was found again.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    /// The sites that were found, where they are now.
    pub profile: Profile,
    /// Bytes of sites that have a name, by their peaks.
    pub bytes: u64,
    /// Of these, bytes of sites that were found.
    pub found_bytes: u64,
    /// Sites that were found where they had been, or elsewhere.
    pub found: usize,
    /// Sites whose functions are gone or have changed, or have no names.
    pub lost: usize,
    /// Sites of which one may be another one now, and which were left out.
    pub ambiguous: usize,
    /// Files without names of functions.
    pub stripped: Vec<String>,
    /// Files of another build than the profile's.
    pub changed: Vec<String>,
}

/// A module's file as it is now.
struct Now {
    path: PathBuf,
    binary: Binary,
    /// Address and bytes of each piece.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Now {
    fn read(path: &Path) -> Option<Now> {
        let bytes = read(path).ok()?;
        let file = parse(path, &bytes).ok()?;
        let piece = |segment: object::Segment<'_, '_>| {
            Some((segment.address(), segment.data().ok()?.to_vec()))
        };
        Some(Now {
            binary: Binary::read(path).ok()?,
            path: path.into(),
            pieces: file.segments().filter_map(piece).collect(),
        })
    }

    fn follows_call(&self, address: u64) -> bool {
        let before = self.pieces.iter().find_map(|(start, bytes)| {
            let end = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(..end)?.last_chunk::<CALL_BYTES>()
        });
        before.is_some_and(ends_in_call)
    }

    /// Where a call is now: in the one function of its name, as far from the beginning, if there still is a call.
    fn frame(&self, frame: &Frame) -> Option<Frame> {
        let functions = self.binary.functions_named(frame.function.as_deref()?);
        let &[(start, bytes)] = &functions[..] else {
            return None;
        };
        let within = frame.within.filter(|&within| within <= bytes)?;
        let there = self.follows_call(start + within);
        there.then(|| self.binary.frame(start + within))
    }
}

/// The modules of a profile that have changed.
struct Files {
    /// By name and build id; none if it is the same build, or there is no file to ask.
    changed: HashMap<(String, String), Option<Now>>,
}

impl Files {
    fn of(profile: &Profile, find: &mut dyn FnMut(&str) -> Option<PathBuf>) -> Files {
        let mut changed = HashMap::new();
        for module in profile.modules.iter().filter(|m| !m.build_id.is_empty()) {
            let named = match module.path.is_empty() {
                true => &module.name,
                false => &module.path,
            };
            let now = find(named).and_then(|path| Now::read(&path));
            let now = now.filter(|now| now.binary.build_id() != module.build_id);
            changed.insert((module.name.clone(), module.build_id.clone()), now);
        }
        Files { changed }
    }

    fn changed(&self, module: &str, build_id: &str) -> Option<&Now> {
        let key = (module.to_string(), build_id.to_string());
        self.changed.get(&key)?.as_ref()
    }

    fn frame(&self, frame: &Frame) -> Option<Frame> {
        match self.changed(&frame.module, &frame.build_id) {
            Some(now) => now.frame(frame),
            None => Some(frame.clone()),
        }
    }

    /// The site now, without callers from the first on that is not found. Without its innermost call there is none.
    fn key(&self, key: &Key) -> Option<Key> {
        let stack = |stack: &[Frame]| {
            let now: Vec<Frame> = stack.iter().map_while(|frame| self.frame(frame)).collect();
            (!now.is_empty() || stack.is_empty()).then_some(now)
        };
        Some(match key {
            Key::Heap(frames) => Key::Heap(stack(frames)?),
            Key::Mapping(frames) => Key::Mapping(stack(frames)?),
            Key::Static {
                module,
                build_id,
                symbol,
            } => {
                let now = self.changed(module, build_id);
                Key::Static {
                    module: module.clone(),
                    build_id: now.map_or(&**build_id, |now| now.binary.build_id()).into(),
                    symbol: symbol.clone(),
                }
            }
            other => other.clone(),
        })
    }
}

/// A profile for the files that are there now. `find` finds a module's file by its path or name. What is in files of the same build
/// stays as it is.
pub fn rebuilt(profile: &Profile, find: &mut dyn FnMut(&str) -> Option<PathBuf>) -> Rebuilt {
    let files = Files::of(profile, find);
    let has_name = |site: &Site| !matches!(site.key, Key::Rest | Key::Stacks);
    let now: Vec<Option<Key>> = profile.sites.iter().map(|s| files.key(&s.key)).collect();
    let mut alike: HashMap<&Key, usize> = HashMap::new();
    for key in now.iter().flatten() {
        *alike.entry(key).or_default() += 1;
    }
    let mut result = Rebuilt::default();
    for (site, now) in profile.sites.iter().zip(&now) {
        let bytes = site.counts.peak_bytes;
        if has_name(site) {
            result.bytes += bytes;
        }
        match now {
            None => result.lost += 1,
            Some(key) if alike[key] > 1 => result.ambiguous += 1,
            Some(key) => {
                if has_name(site) {
                    result.found_bytes += bytes;
                    result.found += 1;
                }
                result.profile.sites.push(Site {
                    key: key.clone(),
                    counts: site.counts.clone(),
                });
            }
        }
    }
    let (mut stripped, mut changed) = (BTreeSet::new(), BTreeSet::new());
    for ((name, _), now) in &files.changed {
        let Some(now) = now else { continue };
        changed.insert(name.clone());
        if now.binary.is_stripped() {
            stripped.insert(name.clone());
        }
    }
    result.stripped = stripped.into_iter().collect();
    result.changed = changed.into_iter().collect();
    let modules = profile.modules.iter().map(|module| {
        let mut module = module.clone();
        if let Some(now) = files.changed(&module.name, &module.build_id) {
            module.build_id = now.binary.build_id().into();
            module.path = now.path.display().to_string();
        }
        module
    });
    result.profile = Profile {
        modules: modules.collect(),
        sites: result.profile.sites,
        program: profile.program.clone(),
        command: profile.command.clone(),
        machine: profile.machine.clone(),
        sampled: profile.sampled.clone(),
    };
    result
}
