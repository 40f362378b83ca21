//! What goes when a process ends, or becomes another program.

use super::{PAGE, Spaces};
use crate::format::Event;

impl Spaces {
    /// The last thread of a process has ended.
    pub(super) fn ended(&mut self, at: usize, gone: &mut Vec<Event>) {
        self.leave(at);
        // Nothing comes after the end of all.
        if self.processes.iter().all(|process| process.threads == 0) {
            return;
        }
        self.ended.push(at);
        for at in std::mem::take(&mut self.ended) {
            self.free(at, gone);
            let process = &self.processes[at];
            match process.present.is_empty() && process.children.is_empty() {
                true => self.clear(at),
                // Its children may inherit more from it yet.
                false => self.ended.push(at),
            }
        }
    }

    /// A process becomes another program, whose first thread tells it: the others are gone.
    pub(super) fn replaced(&mut self, at: usize, gone: &mut Vec<Event>) {
        self.processes[at].threads = 1;
        self.free(at, gone);
        self.clear(at);
        if let Some(parent) = self.processes[at].parent.take() {
            self.processes[parent].children.retain(|child| *child != at);
        }
    }

    fn clear(&mut self, at: usize) {
        let process = &mut self.processes[at];
        process.mappings.clear();
        process.pages.clear();
        process.writable.clear();
        process.present.clear();
        process.objects.clear();
    }

    /// Nothing can be inherited any more from a process that has ended and has no children.
    fn leave(&mut self, at: usize) {
        let mut at = at;
        while self.is_over(at)
            && let Some(parent) = self.processes[at].parent
        {
            self.processes[parent].children.retain(|child| *child != at);
            at = parent;
        }
    }

    fn is_over(&self, at: usize) -> bool {
        self.processes[at].threads == 0 && self.processes[at].children.is_empty()
    }

    /// Memory of a process goes, but for what others have too.
    fn free(&mut self, at: usize, gone: &mut Vec<Event>) {
        let present = std::mem::take(&mut self.processes[at].present);
        let (kept, mut free): (Vec<u64>, Vec<u64>) = present
            .into_iter()
            .partition(|page| self.others_have(at, *page));
        free.sort_unstable();
        let space = self.processes[at].space;
        let mut kept_pages = kept.clone();
        kept_pages.sort_unstable();
        self.processes[at].objects.retain(|&addr, &mut bytes| {
            let (first, last) = (
                (addr ^ space) / PAGE,
                ((addr ^ space).saturating_add(bytes)) / PAGE,
            );
            let next = kept_pages.partition_point(|page| *page < first);
            let stays = kept_pages.get(next).is_some_and(|page| *page <= last);
            if !stays {
                gone.push(Event::Free { addr });
            }
            stays
        });
        for pages in free.chunk_by(|page, next| *next == page + 1) {
            gone.push(Event::Unmap {
                addr: self.processes[at].own(pages[0]),
                bytes: pages.len() as u64 * PAGE,
            });
        }
        self.processes[at].present = kept.into_iter().collect();
    }

    /// Whether a page at the addresses of a process is memory of another one too.
    fn others_have(&self, at: usize, page: u64) -> bool {
        let own = self.processes[at].own(page);
        self.has_guests(&[at], page, own) || !self.heirs(at, page).is_empty()
    }

    /// Whether a page's memory at an address is that of a process that neither owns nor inherited it, and is none of `but`.
    fn has_guests(&self, but: &[usize], page: u64, memory: u64) -> bool {
        let guests = self.guests.get(&memory).map_or(&[][..], Vec::as_slice);
        guests.iter().any(|&guest| {
            !but.contains(&guest)
                && self.processes[guest].pages.get(&page) == Some(&memory)
                && self.is_needed(guest, page)
        })
    }

    /// Whether a process is the last one that has a page, from others that have ended: it need not be copied.
    pub(super) fn is_last(&self, at: usize, page: u64, memory: u64) -> bool {
        let owns = |at: usize| {
            let process = &self.processes[at];
            process.present.contains(&page) && process.own(page) == memory
        };
        if !self.heirs(at, page).is_empty() {
            return false;
        }
        let mut chain = vec![at];
        let mut holder = at;
        while !self.processes[holder].pages.contains_key(&page) && !owns(holder) {
            let Some(parent) = self.processes[holder].parent else {
                return false;
            };
            let heirs = self.heirs(parent, page);
            if self.processes[parent].threads > 0 || heirs != [holder] {
                return false;
            }
            chain.push(parent);
            holder = parent;
        }
        // An object's memory has no owner.
        let owner = match owns(holder) {
            true => Some(holder),
            false => (0..self.processes.len()).find(|at| owns(*at)),
        };
        let theirs = |owner: usize| !chain.contains(&owner) && self.is_needed(owner, page);
        owner.is_some_and(|owner| !theirs(owner)) && !self.has_guests(&chain, page, memory)
    }
}
