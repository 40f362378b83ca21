//! The file of an instruction's address, and the name of the function there.

use super::ring::file_object;
use super::scripts::{Scripts, about, interprets};
use crate::spaces::space_of;
use crate::writer::LoadedModule;
use crate::{CallSite, Event, arch};
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::FileExt;
use std::path::Path;
use varve_sites::native::Inlined;
use varve_symbols::Binary;

/// A file mapped into the program.
struct Module {
    start: u64,
    end: u64,
    /// Offset in the file of the byte at `start`.
    offset: u64,
    /// Number in [`Modules::files`].
    file: usize,
    /// The kernel lets it run. Under QEMU that is QEMU's own: QEMU reads the program's code.
    runs: bool,
    /// Bytes of the text up to the end of its line.
    told: usize,
}

/// A file, read when one of its addresses is first asked for.
struct File {
    path: String,
    /// The link that the program was started by, if it is one.
    link: Option<String>,
    read: Option<Option<(std::fs::File, Binary)>>,
    /// Places that were asked for, by offset in the file.
    known: HashMap<u64, CallSite>,
}

/// Names return addresses.
#[derive(Default)]
pub(super) struct Modules {
    text_read: usize,
    /// By process; the latest mapping comes last.
    modules: HashMap<u32, Vec<Module>>,
    files: Vec<File>,
    /// Numbers of files, by path.
    paths: HashMap<String, usize>,
    /// Stacks of threads: process, first address, end.
    stacks: BTreeSet<(u32, u64, u64)>,
    /// What was mapped when a process began, until it is asked for.
    mapped: HashMap<u32, Vec<Event>>,
    scripts: Scripts,
    /// Programs by their paths: the paths that they were started by.
    links: HashMap<String, String>,
}

/// Stands for a path where the text has a thread's stack.
const STACK: &str = "[stack]";

impl Modules {
    /// Reads more of the text that the probe has written: lines of /proc/PID/maps with the number of the process before
    /// each, and of code of scripts.
    pub fn update(&mut self, new: &[u8]) {
        for line in new.split_inclusive(|&byte| byte == b'\n') {
            self.text_read += line.len();
            let line = String::from_utf8_lossy(line);
            match self.scripts.line(&line) {
                true => {}
                false => _ = self.line(&line),
            }
        }
    }

    /// A program was started by this path.
    fn started(&mut self, path: &str) -> Option<()> {
        let file = std::fs::canonicalize(path).ok()?;
        let (file, path) = (file.to_str()?.to_string(), path.to_string());
        let is_other = Path::new(&file).file_name() != Path::new(&path).file_name();
        if is_other {
            self.links.entry(file).or_insert(path);
        }
        Some(())
    }

    /// Parses a line, the last that was read.
    fn line(&mut self, line: &str) -> Option<()> {
        if let Some(path) = about(line, "started") {
            return self.started(path);
        }
        let mut words = line.split_ascii_whitespace();
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let process = words.next()?.parse().ok()?;
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let rights = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let (device, inode) = (words.next()?, words.next()?);
        let path = words.collect::<Vec<_>>().join(" ");
        if path == STACK {
            self.stacks.insert((process, start, end));
            return None;
        }
        let file = match self.paths.get(&path) {
            Some(&file) => file,
            None => {
                let link = self.links.get(&path).cloned();
                let number = self.files.len();
                self.paths
                    .extend(link.iter().map(|link| (link.clone(), number)));
                self.files.push(File {
                    path: path.clone(),
                    link,
                    read: None,
                    known: HashMap::new(),
                });
                self.paths.insert(path, number);
                number
            }
        };
        // lines that the probe made have no inode
        let runs = rights.contains('x') && inode != "0";
        if let (Some((major, minor)), Ok(inode @ 1..)) = (device.split_once(':'), inode.parse()) {
            let (major, minor) = (hexadecimal(major)?, hexadecimal(minor)?);
            self.mapped.entry(process).or_default().push(Event::Shared {
                addr: start ^ space_of(process),
                bytes: end - start,
                object: file_object(major, minor, inode),
                offset,
                private: rights.ends_with('p'),
            });
        }
        self.modules.entry(process).or_default().push(Module {
            start,
            end,
            offset,
            file,
            runs,
            told: self.text_read,
        });
        None
    }

    /// Bytes of text that were taken in.
    pub fn text_read(&self) -> usize {
        self.text_read
    }

    /// The module at an address when the first `text` bytes of the text had been written.
    fn find(&self, process: u32, address: u64, text: usize) -> Option<&Module> {
        // the newest mapping wins where several were at the same place
        let newest = self.modules.get(&process)?.iter().rev();
        let mut known = newest.skip_while(|module| module.told > text);
        known.find(|module| (module.start..module.end).contains(&address))
    }

    /// The place of a call in its file, and of the calls that led there, the innermost first: those whose return
    /// addresses follow a call instruction. `text`: bytes of the text that had been written when they were made.
    pub fn site(&mut self, process: u32, callers: &[u64], text: usize) -> CallSite {
        let (&first, others) = callers.split_first().unwrap_or((&0, &[]));
        let mut site = self.one(process, first, text).unwrap_or(CallSite {
            offset: first,
            ..CallSite::default()
        });
        for &address in others {
            match self.one(process, address, text) {
                Some(caller) if self.follows_call(&caller) => site.callers.push(caller),
                _ => break,
            }
        }
        site
    }

    /// The same with the lines of a script that such code was called by. Calls of an interpreter say nothing then.
    pub fn stack(
        &mut self,
        process: u32,
        callers: &[u64],
        lines: &[(u64, u32)],
        text: usize,
    ) -> CallSite {
        let mut site = self.site(process, callers, text);
        let lines = self.scripts.calls(lines);
        if !lines.is_empty() {
            let interpreter = site.callers.iter().position(interprets);
            site.callers.truncate(interpreter.unwrap_or(usize::MAX));
            site.callers.extend(lines);
        }
        site
    }

    /// The place of an address in its file.
    fn one(&mut self, process: u32, address: u64, text: usize) -> Option<CallSite> {
        let module = self.find(process, address, text)?;
        let (file, offset) = (module.file, address - module.start + module.offset);
        Some(self.files[file].site(offset))
    }

    /// The function that an instruction is of; with `short`, only the low half of its address is known. Without a module if it is in no
    /// file.
    pub fn function(&mut self, process: u32, address: u64, short: bool) -> CallSite {
        let module = match short {
            true => self.find_short(process, address as u32),
            false => {
                let module = self.find(process, address, usize::MAX);
                module.map(|module| (module, address))
            }
        };
        let Some((module, address)) = module else {
            return CallSite::default();
        };
        let (file, offset) = (module.file, address - module.start + module.offset);
        self.files[file].function(offset)
    }

    /// The newest code that has an address with this low half, and that address.
    fn find_short(&self, process: u32, low: u32) -> Option<(&Module, u64)> {
        let newest = self.modules.get(&process)?.iter().rev();
        newest.filter(|module| module.runs).find_map(|module| {
            let into = u64::from(low.wrapping_sub(module.start as u32));
            (into < module.end - module.start).then_some((module, module.start + into))
        })
    }

    /// Is there a call instruction just before?
    fn follows_call(&mut self, site: &CallSite) -> bool {
        let file = self
            .paths
            .get(&site.module)
            .map(|&file| &mut self.files[file]);
        let Some((file, _)) = file.and_then(File::read) else {
            return false;
        };
        let mut before = [0; arch::CALL_BYTES];
        let Some(start) = site.offset.checked_sub(before.len() as u64) else {
            return false;
        };
        if file.read_exact_at(&mut before, start).is_err() {
            return false;
        }
        arch::ends_in_call(&before)
    }

    /// Programs and libraries that were loaded, and where. Under QEMU, its own are left out.
    pub fn loaded(&mut self, under_qemu: bool) -> Vec<LoadedModule> {
        let mut found = BTreeSet::new();
        let mut hosts = BTreeSet::new();
        for (&process, modules) in &self.modules {
            for module in modules {
                let file = &mut self.files[module.file];
                let Some((_, binary)) = file.read() else {
                    continue;
                };
                let Some(base) = binary.base(module.start, module.offset) else {
                    continue;
                };
                let key = (process, base, module.file);
                found.insert(key);
                if module.runs && under_qemu {
                    hosts.insert(key);
                }
            }
        }
        let told = found.difference(&hosts).map(|&(process, base, file)| {
            let file = &mut self.files[file];
            let path = file.shown();
            let binary = file.read.iter().flatten().next();
            LoadedModule {
                process,
                base,
                path,
                build_id: binary.map_or(String::new(), |(_, binary)| binary.build_id().into()),
            }
        });
        told.collect()
    }

    /// What was mapped from files when a process began its program, as events.
    pub fn mapped(&mut self, process: u32) -> Vec<Event> {
        self.mapped.remove(&process).unwrap_or_default()
    }

    /// Stacks of threads: process, first address, end.
    pub fn stacks(&self) -> Vec<(u32, u64, u64)> {
        self.stacks.iter().copied().collect()
    }
}

impl File {
    fn read(&mut self) -> Option<&(std::fs::File, Binary)> {
        let path = Path::new(&self.path);
        let read = || Some((std::fs::File::open(path).ok()?, Binary::read(path).ok()?));
        // devices and the like have no bytes to wait for
        let is_file = || std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        let read = || is_file().then(read).flatten();
        self.read.get_or_insert_with(read).as_ref()
    }

    /// The path for readers: the link that the program was started by. Without a build id, the name decides which file it is, so
    /// that there the file itself is meant.
    fn shown(&mut self) -> String {
        let has_id = |read: &(std::fs::File, Binary)| !read.1.build_id().is_empty();
        let link = self.link.clone();
        let link = link.filter(|_| self.read().is_some_and(has_id));
        link.unwrap_or_else(|| self.path.clone())
    }

    /// The function at an offset, with the functions inlined there: the same for all places where these are the same.
    fn function(&mut self, offset: u64) -> CallSite {
        let mut site = CallSite {
            module: self.shown(),
            ..CallSite::default()
        };
        let Some((_, binary)) = self.read() else {
            return site;
        };
        site.build_id = binary.build_id().into();
        let Some(address) = binary.address(offset) else {
            return site;
        };
        // as if an instruction of one byte had called
        let frame = binary.frame(address + 1);
        let Some(name) = frame.function else {
            return site;
        };
        let start = binary.symbol(address).map_or(address, |symbol| symbol.1);
        site.symbol = Some(format!("{name}+0x0"));
        (site.offset, site.address) = (offset.wrapping_sub(address - start), Some(start));
        let alone = |inlined: Inlined| Inlined {
            line: None,
            ..inlined
        };
        site.inlined = frame.inlined.into_iter().map(alone).collect();
        site
    }

    /// The place at an offset.
    fn site(&mut self, offset: u64) -> CallSite {
        if let Some(site) = self.known.get(&offset) {
            return site.clone();
        }
        let mut site = CallSite {
            module: self.shown(),
            offset,
            ..CallSite::default()
        };
        if let Some((_, binary)) = self.read()
            && let Some(address) = binary.address(offset)
        {
            let frame = binary.frame(address);
            let start = binary
                .symbol(address.saturating_sub(1))
                .map_or(address, |symbol| symbol.1);
            site.symbol = frame
                .function
                .map(|name| format!("{name}+{:#x}", address - start));
            (site.address, site.build_id) = (Some(address), frame.build_id);
            (site.line, site.inlined) = (frame.line, frame.inlined);
        }
        self.known.insert(offset, site.clone());
        site
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_mapping_at_an_address_names_it() {
        let mut modules = Modules::default();
        modules.update(
            b"0 1000-3000 r-xp 00000000 00:00 5 /old file\n0 2000-3000 r-xp 00004000 00:00 6 /new\n",
        );
        let at = |modules: &mut Modules, address, text| modules.site(0, &[address], text);
        assert_eq!(
            at(&mut modules, 0x2010, usize::MAX).to_string(),
            "new+0x4010"
        );
        assert_eq!(at(&mut modules, 0x1010, usize::MAX).module, "/old file");
        assert_eq!(at(&mut modules, 0x9000, usize::MAX).to_string(), "0x9000");
        // Before its line was written, the other was there.
        let first = modules.text_read() - 1;
        assert_eq!(at(&mut modules, 0x2010, first).module, "/old file");
    }

    #[test]
    fn an_address_in_this_test_has_its_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut modules = Modules::default();
        modules.update(
            maps.lines()
                .filter(|line| line.contains('/'))
                .map(|line| format!("0 {line}\n"))
                .collect::<String>()
                .as_bytes(),
        );
        let site = modules.site(
            0,
            // behind the first byte, as a return address is
            &[an_address_in_this_test_has_its_name as *const () as usize as u64 + 1],
            usize::MAX,
        );
        assert!(site.to_string().contains("has_its_name"), "{site}");
    }

    #[test]
    fn a_program_has_the_name_that_it_was_started_by() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("server");
        let file = std::env::current_exe().unwrap().canonicalize().unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut modules = Modules::default();
        let text = format!(
            "0 started\t{}\n0 10000-11000 r-xp 0 0:0 0 {}\n0 started\t/nosuch\n0 started\t\n",
            link.display(),
            file.display()
        );
        modules.update(text.as_bytes());
        let site = modules.site(0, &[0x10010], usize::MAX);
        assert_eq!(site.frame().module, "server");
        assert_eq!(site.build_id.len(), 40, "which stays what it is");
        assert_eq!(modules.loaded(false)[0].path, link.display().to_string());
    }

    #[test]
    fn a_program_under_qemu_is_told_and_qemu_is_not() {
        let path = std::env::current_exe().unwrap();
        let path = path.display();
        let mut modules = Modules::default();
        modules.update(format!(
            "0 10000-11000 r--p 00000000 08:01 5 {path}\n0 70000-71000 r--p 00000000 08:01 5 {path}\n\
             0 70000-71000 r-xp 00000000 08:01 5 {path}\n1 30000-31000 r-xp 0 0:0 0 {path}\n\
             0 5000-9000 rw-p 0 0:0 0 [stack]\n"
        )
        .as_bytes());
        let bases: Vec<_> = modules
            .loaded(true)
            .iter()
            .map(|module| (module.process, module.base))
            .collect();
        assert_eq!(bases, [(0, 0x10000), (1, 0x30000)]);
        assert_eq!(modules.loaded(true)[0].build_id.len(), 40);
        assert_eq!(
            modules.loaded(false).len(),
            3,
            "what runs itself has no host"
        );
        assert_eq!(modules.stacks(), [(0, 0x5000, 0x9000)]);
    }
}
