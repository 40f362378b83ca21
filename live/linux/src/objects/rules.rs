//! From `.eh_frame`: how to get from a return address to the caller's. Computed here, so that the program itself needs no
//! unwinder. Written for x86-64.

use super::format::Rule;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};
use object::{Object, ObjectSection};
use std::path::Path;

/// The unwind tables of a file, and its build id.
pub struct Rules {
    build_id: Vec<u8>,
    section: Vec<u8>,
    bases: BaseAddresses,
    /// First address, the one behind the last, and where the description is; ascending.
    functions: Vec<(u64, u64, usize)>,
}

impl Rules {
    /// Reads a program or library.
    ///
    /// # Errors
    /// A line that names the file.
    pub fn read(path: &Path) -> Result<Rules, String> {
        let say = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let bytes = std::fs::read(path).map_err(|e| say(&e))?;
        let file = object::File::parse(&*bytes).map_err(|e| say(&e))?;
        let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
        let section = match file.section_by_name(".eh_frame") {
            Some(section) => section
                .uncompressed_data()
                .map_err(|e| say(&e))?
                .into_owned(),
            None => Vec::new(),
        };
        let mut rules = Rules {
            build_id: file.build_id().ok().flatten().unwrap_or_default().to_vec(),
            section,
            bases: BaseAddresses::default()
                .set_eh_frame(address(".eh_frame"))
                .set_text(address(".text"))
                .set_got(address(".got")),
            functions: Vec::new(),
        };
        rules.functions = rules.list().map_err(|e| say(&e))?;
        Ok(rules)
    }

    /// The build id, empty if the file has none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    fn frames(&self) -> EhFrame<gimli::EndianSlice<'_, LittleEndian>> {
        let mut frames = EhFrame::new(&self.section, LittleEndian);
        frames.set_address_size(8);
        frames
    }

    fn list(&self) -> gimli::Result<Vec<(u64, u64, usize)>> {
        let frames = self.frames();
        let mut entries = frames.entries(&self.bases);
        let mut functions = Vec::new();
        while let Some(entry) = entries.next()? {
            if let gimli::CieOrFde::Fde(partial) = entry {
                let offset = partial.offset();
                let fde = partial.parse(|section, bases, at| section.cie_from_offset(bases, at))?;
                functions.push((fde.initial_address(), fde.end_address(), offset));
            }
        }
        functions.sort_unstable();
        Ok(functions)
    }

    /// The rule at a return address, as the linker numbers addresses. `None`: there is none, or it is beyond the form that the
    /// shim carries out (assembly with expressions, for example).
    pub fn at(&self, return_address: u64) -> Option<Rule> {
        // The call is before the address that it returns to, which may be another function's.
        let call = return_address.checked_sub(1)?;
        let next = self.functions.partition_point(|f| f.0 <= call);
        let &(_, end, offset) = self.functions[..next].last()?;
        if call >= end {
            return None;
        }
        let frames = self.frames();
        let fde = frames
            .fde_from_offset(&self.bases, offset.into(), |section, bases, at| {
                section.cie_from_offset(bases, at)
            })
            .ok()?;
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&frames, &self.bases, &mut context, call)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return None;
        };
        let by_frame_pointer = match register {
            X86_64::RBP => true,
            X86_64::RSP => false,
            _ => return None,
        };
        if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
            return None;
        }
        let frame_pointer_at = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => None,
            Some(RegisterRule::Offset(at)) => Some(i16::try_from(at).ok().filter(|at| *at <= -16)?),
            _ => return None,
        };
        let above = i32::try_from(offset).ok().filter(|above| *above >= 8)?;
        Some(Rule {
            by_frame_pointer,
            above,
            frame_pointer_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of this very test: each return address on the stack leads to the next, as the C library's walk says.
    #[test]
    fn rules_lead_from_frame_to_frame() {
        let own = std::env::current_exe().unwrap();
        let rules = Rules::read(&own).unwrap();
        let mut with_rule = 0;
        for &(start, end, _) in rules.functions.iter().filter(|f| f.1 > f.0 + 16).take(2000) {
            let rule = rules.at(end - 1);
            with_rule += usize::from(
                rule.is_some_and(|r| r.above % 8 == 0 && Rule::unpacked(r.packed()) == Some(r)),
            );
            // Behind the call instruction that enters a function nothing is pushed yet: the return address is on top.
            let entry = rules.at(start + 1);
            if let Some(entry) = entry {
                assert_eq!(
                    (entry.above, entry.by_frame_pointer),
                    (8, false),
                    "at {start:#x}"
                );
            }
        }
        assert!(
            with_rule > 1000,
            "{with_rule} of 2000 functions have a rule"
        );
        assert_eq!(rules.at(0), None);
        assert_eq!(rules.at(u64::MAX), None);
    }

    #[test]
    fn what_is_no_program_is_said_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("letter");
        std::fs::write(&path, "Dear Sir").unwrap();
        let why = Rules::read(&path).err().unwrap();
        assert!(
            why.starts_with(&path.display().to_string()) && !why.contains('\n'),
            "{why}"
        );
    }
}
