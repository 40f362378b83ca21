//! Where a recorded program's objects are: as its own allocator laid them out, in one memory or by site in two tiers; or anew, in arenas
//! of two tiers.

use super::address_map::{AddressMap, GRANULE, LINE, MappedByte, PAGE};
use super::arena::{Arena, MOST_SMALL};
use super::groups::Groups;
use super::hinted::Hinted;
use super::live_bytes::LiveBytes;
use super::tally::Tally;
use super::tiers::{self, SLOW_BASE, TierPlaces, is_fast};
use super::trace_sites::TraceSites;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use varve_access::{Kind, Op};
use varve_trace::{Event, Listener, unmaps};

/// The number of the site that stands for all memory without a reported site: code, small variables, stacks, the
/// allocator's own. Sites of the trace have their number there and 1.
pub const REST: u32 = 0;

/// Where the arena of fast memory begins.
const FAST_BASE: u64 = 1 << 44;
/// Bytes that allocators keep right before an object.
const HEADER: u64 = 16;

/// An object that is alive.
struct Object {
    bytes: u64,
    site: u32,
    /// Bytes that the program had allocated when it was born.
    born: u64,
    at: At,
}

/// Where it is.
enum At {
    /// Where the program's own allocator put it.
    Home,
    /// There, in a tier: whether that is the fast one.
    Tier(bool),
    /// In one piece of an arena.
    Small(u64),
    /// On pages of its own.
    Pages(Vec<u64>),
}

/// A piece of a site on the copy of a page.
struct PartCopy {
    place: u64,
    bytes: u64,
    site: u32,
}

/// Memory that a site has besides objects.
struct Region {
    end: u64,
    site: u32,
    /// The program mapped it, and may unmap it; otherwise it is there from beginning to end.
    mapped: bool,
}

/// How much fast memory the objects of each site may take, bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By number of the site; those that are missing have none.
    pub bytes: Vec<u64>,
}

impl Quotas {
    fn of(&self, site: u32) -> u64 {
        self.bytes.get(site as usize).copied().unwrap_or(0)
    }
}

/// Where memory goes.
enum Rooms {
    /// Where it was.
    Home,
    /// Where it was, in the tier of its site.
    Tiers(TierPlaces),
    /// Into one of two arenas.
    Arenas { fast: Arena, slow: Arena },
}

/// See the module.
pub struct Layout {
    map: AddressMap,
    objects: HashMap<u64, Object>,
    tallies: Vec<Tally>,
    live: LiveBytes,
    allocated: u64,
    /// Memory that belongs to no object, by its first byte.
    regions: BTreeMap<u64, Region>,
    /// Pages that were placed when they were touched, and the group that each is of.
    touched: HashMap<u64, u32>,
    /// Copies of parts of pages, by the page that a child has them on.
    copies: HashMap<u64, Vec<PartCopy>>,
    /// Which stacks are one site; each its own where that is not said.
    groups: Groups,
    /// Memory that the program itself called hot or cold, where that counts.
    hinted: Option<Hinted>,
    quotas: Quotas,
    rooms: Rooms,
    /// Bytes in fast memory by quotas, and the most of them at a time.
    fast_bytes: u64,
    most_fast_bytes: u64,
}

impl Layout {
    /// As the program's own allocator laid it out.
    pub fn as_it_was(sites: &TraceSites) -> Layout {
        let fixed = |(range, site): &(Range<u64>, u32)| {
            let region = Region {
                end: range.end,
                site: *site,
                mapped: false,
            };
            (range.start, region)
        };
        Layout {
            regions: sites.ranges.iter().map(fixed).collect(),
            touched: HashMap::new(),
            copies: HashMap::new(),
            map: AddressMap::new(),
            objects: HashMap::new(),
            tallies: Vec::new(),
            live: LiveBytes::default(),
            allocated: 0,
            groups: Groups::default(),
            hinted: None,
            quotas: Quotas::default(),
            rooms: Rooms::Home,
            fast_bytes: 0,
            most_fast_bytes: 0,
        }
    }

    /// As the program's own allocator laid it out, each group of stacks with a quota of fast memory. What is beyond it is in slow
    /// memory.
    pub fn by_site(sites: &TraceSites, groups: Groups, quotas: Quotas) -> Layout {
        Layout::grouped(sites, groups, quotas, Rooms::Tiers(TierPlaces::default()))
    }

    /// Laid out anew, in an arena for each tier: each group of stacks has a quota of fast memory, and all together `fast_pages`. Objects
    /// that find no room there are in slow memory.
    pub fn in_arenas(
        sites: &TraceSites,
        groups: Groups,
        quotas: Quotas,
        fast_pages: u64,
    ) -> Layout {
        let rooms = Rooms::Arenas {
            fast: Arena::new(FAST_BASE, fast_pages),
            slow: Arena::new(SLOW_BASE, u64::MAX),
        };
        Layout::grouped(sites, groups, quotas, rooms)
    }

    fn grouped(sites: &TraceSites, groups: Groups, quotas: Quotas, rooms: Rooms) -> Layout {
        let mut layout = Layout::as_it_was(sites);
        for region in layout.regions.values_mut() {
            region.site = groups.group(region.site);
        }
        Layout {
            hinted: groups.hinted.map(Hinted::new),
            groups,
            quotas,
            rooms,
            ..layout
        }
    }

    /// The most bytes that were in fast memory by quotas at a time.
    pub fn most_fast_bytes(&self) -> u64 {
        self.most_fast_bytes
    }

    /// The tallies, by number of the site.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// The memory of each site over the course of the run.
    pub fn live(&self) -> &LiveBytes {
        &self.live
    }

    /// The site of an address.
    pub fn site(&self, address: u64) -> u32 {
        self.map.get(address).map_or(REST, |place| place.site)
    }

    fn tally(&mut self, site: u32) -> &mut Tally {
        let at = site as usize;
        if at >= self.tallies.len() {
            self.tallies.resize(at + 1, Tally::default());
        }
        &mut self.tallies[at]
    }

    /// A site has more bytes from now on.
    fn grow(&mut self, bytes: u64, site: u32) {
        let tally = self.tally(site);
        tally.live_bytes += bytes;
        tally.peak_bytes = tally.peak_bytes.max(tally.live_bytes);
        let now = tally.live_bytes;
        self.live.set(site, now, bytes);
    }

    fn shrink(&mut self, bytes: u64, site: u32) {
        let tally = self.tally(site);
        tally.live_bytes -= bytes;
        let now = tally.live_bytes;
        self.live.set(site, now, bytes);
    }

    fn place(&mut self, address: u64) -> MappedByte {
        let mapped = match self.map.get(address) {
            Some(mapped) => mapped,
            None => self.place_rest(address),
        };
        match self.rooms {
            // An allocator's own bytes are of the object beside them, and where they were.
            Rooms::Home => MappedByte { address, ..mapped },
            Rooms::Tiers(_) => tiers::place(&self.map, address, mapped),
            Rooms::Arenas { .. } => mapped,
        }
    }

    /// The site of the color that the program gave to a whole page.
    fn hint_of_page(&self, page: u64) -> Option<u32> {
        self.hinted.as_ref()?.of_page(page)
    }

    /// The site of all memory without a reported stack.
    fn rest(&self) -> u32 {
        self.groups.group(REST)
    }

    /// Memory of which nothing is known is placed by the page, when it is first touched.
    #[cold]
    fn place_rest(&mut self, address: u64) -> MappedByte {
        let page = address / PAGE * PAGE;
        let region = self.regions.range(..=address).next_back();
        let region = region.filter(|(_, region)| address < region.end);
        let site = region.map_or_else(|| self.rest(), |(_, region)| region.site);
        let site = self.hint_of_page(page).unwrap_or(site);
        let to = self.take_page(page, site);
        self.grow(PAGE, site);
        self.map.set_page(page, to, site);
        self.touched.insert(page, site);
        MappedByte {
            address: to + address % PAGE,
            site,
        }
    }

    /// Whether a site has room for more bytes in its quota of fast memory.
    fn has_room(&mut self, bytes: u64, site: u32) -> bool {
        self.tally(site).fast_bytes + bytes <= self.quotas.of(site)
    }

    /// Bytes of a site are in fast memory from now on.
    fn hold(&mut self, bytes: u64, site: u32) {
        self.tally(site).fast_bytes += bytes;
        self.fast_bytes += bytes;
        self.most_fast_bytes = self.most_fast_bytes.max(self.fast_bytes);
    }

    fn release(&mut self, bytes: u64, site: u32) {
        self.tally(site).fast_bytes -= bytes;
        self.fast_bytes -= bytes;
    }

    /// A place for a page of the program that is of a site, in the tier that it has room in.
    fn take_page(&mut self, own: u64, site: u32) -> u64 {
        let mut fast = self.has_room(PAGE, site);
        let page = match &mut self.rooms {
            Rooms::Home => return own,
            Rooms::Tiers(tiers) => tiers.at(own, fast),
            Rooms::Arenas { fast: arena, slow } => {
                let page = fast.then(|| arena.take_page()).flatten();
                fast = page.is_some();
                page.unwrap_or_else(|| slow.take_page().expect("slow memory has no limit"))
            }
        };
        if fast {
            self.hold(PAGE, site);
        }
        page
    }

    fn give_page(&mut self, page: u64, site: u32) {
        match &mut self.rooms {
            Rooms::Home => return,
            Rooms::Tiers(_) => {}
            Rooms::Arenas { fast, .. } if is_fast(page) => fast.give_page(page),
            Rooms::Arenas { slow, .. } => slow.give_page(page),
        }
        if is_fast(page) {
            self.release(PAGE, site);
        }
    }

    fn allocate(&mut self, address: u64, bytes: u64, site: u32) {
        let hint = (self.hinted.as_ref()).and_then(|hinted| hinted.at(address));
        self.free(address);
        // A large one has the color of each of its pages.
        let site = hint.filter(|_| bytes <= MOST_SMALL).unwrap_or(site);
        let born = self.allocated;
        self.allocated += bytes;
        let tally = self.tally(site);
        tally.objects += 1;
        tally.bytes += bytes;
        self.grow(bytes, site);
        let at = match self.rooms {
            Rooms::Home => At::Home,
            _ if bytes > MOST_SMALL => {
                let pages = pages(address, bytes);
                let take = |page| {
                    let (from, end) = (address.max(page), (address + bytes).min(page + PAGE));
                    let of_piece = self.hint_of_piece(from, end, site);
                    self.take_page(page, of_piece)
                };
                let pages = pages.map(take).collect();
                if let Some(hinted) = &mut self.hinted {
                    hinted.born(address, bytes);
                }
                At::Pages(pages)
            }
            Rooms::Tiers(_) => {
                let fast = self.has_room(bytes, site);
                if fast {
                    self.hold(bytes, site);
                }
                At::Tier(fast)
            }
            Rooms::Arenas { .. } => At::Small(self.take(room(address, bytes), site)),
        };
        self.map_object(address, bytes, site, &at);
        let object = Object {
            bytes,
            site,
            born,
            at,
        };
        self.objects.insert(address, object);
    }

    /// The site of a piece of a large object of another site, as the program colored it.
    fn hint_of_piece(&mut self, from: u64, end: u64, site: u32) -> u32 {
        let Some(hinted) = &mut self.hinted else {
            return site;
        };
        let hint = hinted.over(from, end);
        if let Some(hint) = hint {
            hinted.set_piece(from, hint);
        }
        hint.unwrap_or(site)
    }

    /// The program gives memory a color: pages that have a place get one in its memory. Small objects keep theirs.
    fn color(&mut self, address: u64, bytes: u64, hot: bool, before: &mut Vec<Op>) {
        let Some(hinted) = &mut self.hinted else {
            return;
        };
        let site = hinted.site(hot);
        let end = address.saturating_add(bytes).min(ADDRESSES);
        if address >= end {
            return;
        }
        hinted.color(address, end, site);
        let mut page = address.saturating_add(PAGE - 1) / PAGE * PAGE;
        while page + PAGE <= end {
            match self.map.next_known(page) {
                Some(known) if known > page => {
                    page = known;
                    continue;
                }
                Some(_) => self.color_page(page, site, before),
                None => break,
            }
            page += PAGE;
        }
    }

    fn color_page(&mut self, page: u64, site: u32, before: &mut Vec<Op>) {
        let Some(old) = self.map.whole(page).filter(|old| old.site != site) else {
            return;
        };
        let touched = self.touched.contains_key(&page);
        let place = if touched {
            self.give_rest(page);
            let place = self.take_page(page, site);
            self.grow(PAGE, site);
            self.touched.insert(page, site);
            place
        } else {
            let Some(place) = self.color_object(page, old, site) else {
                return;
            };
            place
        };
        self.map.set_page(page, place, site);
        if place == old.address {
            return;
        }
        if touched {
            before.extend(copy(old.address, place));
        }
        if matches!(self.rooms, Rooms::Tiers(_)) {
            before.extend(unmaps(old.address, PAGE));
        }
    }

    /// Another place for a page of a large object; none if the page is of none.
    fn color_object(&mut self, page: u64, old: MappedByte, site: u32) -> Option<u64> {
        let hinted = self.hinted.as_mut()?;
        let start = hinted.object_of(page)?;
        hinted.set_piece(page, site);
        self.give_page(old.address, old.site);
        let place = self.take_page(page, site);
        if let Some(Object {
            at: At::Pages(pages),
            ..
        }) = self.objects.get_mut(&start)
            && let Some(own) = pages.get_mut(((page - start / PAGE * PAGE) / PAGE) as usize)
        {
            *own = place;
        }
        Some(place)
    }

    /// A place for a small object in an arena.
    fn take(&mut self, bytes: u64, site: u32) -> u64 {
        let wanted = self.has_room(bytes, site);
        let Rooms::Arenas { fast, slow } = &mut self.rooms else {
            unreachable!("a layout in arenas");
        };
        match wanted.then(|| fast.take(bytes)).flatten() {
            Some(at) => {
                self.hold(bytes, site);
                at
            }
            None => slow.take(bytes).expect("slow memory has no limit"),
        }
    }

    /// An address of the program in a tier; in other layouts as it is.
    fn in_tier(&mut self, own: u64, fast: bool) -> u64 {
        match &mut self.rooms {
            Rooms::Tiers(tiers) => tiers.at(own, fast),
            _ => own,
        }
    }

    fn map_object(&mut self, address: u64, bytes: u64, site: u32, at: &At) {
        for (number, page) in pages(address, bytes).enumerate() {
            let from = address.max(page);
            let end = (address + bytes.max(1)).min(page + PAGE);
            let to = match at {
                At::Home => from,
                At::Tier(fast) => self.in_tier(from, *fast),
                At::Small(to) => to + address % GRANULE + (from - address),
                At::Pages(all) => all[number] + from % PAGE,
            };
            self.give_rest(page);
            let hint = self
                .hinted
                .as_ref()
                .and_then(|hinted| hinted.over(from, end));
            let site = hint.unwrap_or(site);
            match end - from == PAGE && !matches!(at, At::Small(_)) {
                true => self.map.set_page(page, to, site),
                false => self.map.set_part(from, end - from, to, site),
            }
        }
        // An object that begins a page has no header on the page before.
        if address % PAGE >= HEADER {
            let header = address - HEADER;
            let to = match (at, &self.rooms) {
                (At::Home, _) => header,
                (At::Tier(fast), _) => self.in_tier(header, *fast),
                (At::Small(to), _) => *to,
                (At::Pages(all), Rooms::Tiers(_)) => all[0] + header % PAGE,
                (At::Pages(all), _) => all[0] + address % PAGE,
            };
            self.map.set_free_granule(header, to, site);
        }
    }

    /// How many of the `size` bytes from address `from` on, which now is `addr`, are on its page or belong to the
    /// object of the first. Fast code for strings reads past the end of objects, as far as a page goes; here that may
    /// be another page, which no object has.
    fn within(&self, from: u64, size: u64, addr: u64) -> u16 {
        let left = PAGE - addr % PAGE;
        let is_last = |place: MappedByte| place.address == addr + size - 1;
        match size <= left || self.map.get(from + size - 1).is_some_and(is_last) {
            true => size as u16,
            false => left as u16,
        }
    }

    /// An access that goes on behind its page: the next page may be anywhere.
    #[cold]
    fn pieces(&mut self, op: Op, first: u64, out: &mut Vec<Op>) {
        let end = op.addr + u64::from(op.size);
        let mut size = PAGE - op.addr % PAGE;
        out.push(Op {
            addr: first,
            size: self.within(op.addr, size, first),
            ..op
        });
        let mut at = op.addr + size;
        while at < end {
            size = PAGE.min(end - at);
            let addr = self.place(at).address;
            out.push(Op {
                addr,
                size: self.within(at, size, addr),
                instructions: 0,
                dependent: 0,
                ..op
            });
            at += size;
        }
    }

    /// An access that goes on behind its line, which may be in another tier.
    fn lines(&mut self, op: Op, out: &mut Vec<Op>) {
        let end = op.addr + u64::from(op.size);
        let mut at = op.addr;
        let mut last: Option<Op> = None;
        while at < end {
            let next = (at / LINE * LINE + LINE).min(end);
            let addr = self.place(at).address;
            let size = (next - at) as u16;
            match &mut last {
                // A page has one place in each tier.
                Some(piece)
                    if piece.addr + u64::from(piece.size) == addr && !at.is_multiple_of(PAGE) =>
                {
                    piece.size += size
                }
                _ => {
                    let rest = Op {
                        instructions: 0,
                        dependent: 0,
                        ..op
                    };
                    let first = if at == op.addr { op } else { rest };
                    out.extend(last.replace(Op {
                        addr,
                        size,
                        ..first
                    }));
                }
            }
            at = next;
        }
        out.extend(last);
    }

    /// A page that was placed when it was touched, if it was, is for something else.
    fn give_rest(&mut self, page: u64) {
        let Some(site) = self.touched.remove(&page) else {
            return;
        };
        self.shrink(PAGE, site);
        if let Some(place) = self.map.whole(page) {
            self.give_page(place.address, site);
        }
    }

    /// The copies of parts of a page are gone, if there are any.
    fn give_copies(&mut self, page: u64) {
        for PartCopy { place, bytes, site } in self.copies.remove(&page).unwrap_or_default() {
            self.shrink(bytes, site);
            let fast = is_fast(place);
            match &mut self.rooms {
                Rooms::Home => continue,
                Rooms::Tiers(_) => {}
                Rooms::Arenas { fast: arena, .. } if fast => arena.give(place, bytes),
                Rooms::Arenas { slow, .. } => slow.give(place, bytes),
            }
            if fast {
                self.release(bytes, site);
            }
        }
    }

    /// The program maps memory itself.
    fn map_region(&mut self, address: u64, bytes: u64, site: u32) {
        let region = Region {
            end: address + bytes,
            site,
            mapped: true,
        };
        self.regions.insert(address, region);
        let tally = self.tally(site);
        tally.objects += 1;
        tally.bytes += bytes;
        tally.mapped = true;
    }

    /// An object is gone. Its bytes stay where they are until another object has them: allocators keep lists there.
    fn free(&mut self, address: u64) {
        let Some(object) = self.objects.remove(&address) else {
            return;
        };
        let lived = self.allocated - object.born;
        let tally = self.tally(object.site);
        tally.freed += 1;
        tally.lifetime_bytes += lived;
        self.shrink(object.bytes, object.site);
        if let Some(hinted) = &mut self.hinted {
            hinted.freed(address, object.bytes);
        }
        match object.at {
            At::Home => {}
            At::Tier(fast) => {
                if fast {
                    self.release(object.bytes, object.site);
                }
                self.map.release(address, object.bytes);
            }
            At::Pages(pages) => {
                let first = address / PAGE * PAGE;
                for (own, page) in (first..).step_by(PAGE as usize).zip(pages) {
                    let piece = (self.hinted.as_mut())
                        .and_then(|hinted| hinted.take_piece(address.max(own)));
                    self.give_page(page, piece.unwrap_or(object.site));
                }
                self.map.release(address, object.bytes);
            }
            At::Small(at) => {
                let bytes = room(address, object.bytes);
                let Rooms::Arenas { fast, slow } = &mut self.rooms else {
                    unreachable!("a layout in arenas");
                };
                match is_fast(at) {
                    true => {
                        fast.give(at, bytes);
                        self.release(bytes, object.site);
                    }
                    false => slow.give(at, bytes),
                }
            }
        }
    }

    /// Pages are new, or gone.
    fn forget(&mut self, address: u64, bytes: u64) {
        let gone = self.regions.range(address..address + bytes);
        let gone = gone.filter(|(_, region)| region.mapped);
        let gone: Vec<u64> = gone.map(|(&start, _)| start).collect();
        for start in gone {
            self.regions.remove(&start);
        }
        if let Some(hinted) = &mut self.hinted {
            hinted.forget(address, address + bytes);
        }
        for page in pages(address, bytes) {
            self.give_rest(page);
            self.give_copies(page);
            self.map.forget(page);
        }
    }
}

/// Bytes of a small object in an arena. Some allocators align small ones to 8 bytes; here they keep their place in a
/// granule.
fn room(address: u64, bytes: u64) -> u64 {
    bytes + address % GRANULE
}

/// The first bytes of the pages that a range touches.
fn pages(address: u64, bytes: u64) -> impl Iterator<Item = u64> {
    let first = address / PAGE * PAGE;
    (first..address + bytes.max(1)).step_by(PAGE as usize)
}

impl Listener for Layout {
    fn ops(&mut self, ops: &[Op], out: &mut Vec<Op>) {
        for &op in ops {
            if op.kind == Kind::Touch {
                let addr = self.place(op.addr).address;
                out.push(Op { addr, ..op });
                continue;
            }
            if !op.kind.is_access() {
                out.push(op);
                continue;
            }
            let place = self.place(op.addr);
            let tally = self.tally(place.site);
            tally.reads += u64::from(matches!(op.kind, Kind::Read | Kind::Update));
            tally.writes += u64::from(matches!(
                op.kind,
                Kind::Write | Kind::Update | Kind::NtWrite
            ));
            let addr = place.address;
            if matches!(self.rooms, Rooms::Tiers(_)) {
                match op.addr % LINE + u64::from(op.size) <= LINE {
                    true => out.push(Op { addr, ..op }),
                    false => self.lines(op, out),
                }
                continue;
            }
            match op.addr % PAGE + u64::from(op.size) <= PAGE {
                true => {
                    let size = self.within(op.addr, u64::from(op.size), addr);
                    out.push(Op { addr, size, ..op });
                }
                false => self.pieces(op, addr, out),
            }
        }
    }

    /// What is on the page is on another one too, of the same sites: each piece of an object has a place of its own there.
    fn copied(&mut self, from: u64, to: u64) {
        self.give_rest(to);
        self.give_copies(to);
        if let Some(place) = self.map.whole(from) {
            let page = self.take_page(to, place.site);
            self.grow(PAGE, place.site);
            self.touched.insert(to, place.site);
            return self.map.set_page(to, page, place.site);
        }
        let mut copies = Vec::new();
        for (offset, bytes, site) in self.map.parts(from) {
            let place = match self.rooms {
                Rooms::Home => to + offset,
                Rooms::Tiers(_) => {
                    let fast = self.has_room(bytes, site);
                    if fast {
                        self.hold(bytes, site);
                    }
                    self.in_tier(to + offset, fast)
                }
                Rooms::Arenas { .. } => self.take(bytes, site),
            };
            self.grow(bytes, site);
            self.map.set_part(to + offset, bytes, place, site);
            copies.push(PartCopy { place, bytes, site });
        }
        if !copies.is_empty() {
            self.copies.insert(to, copies);
        }
    }

    fn gone(&mut self, addr: u64, bytes: u64, out: &mut Vec<Op>) {
        self.event(&Event::Unmap { addr, bytes }, out);
    }

    fn event(&mut self, event: &Event, before: &mut Vec<Op>) {
        match *event {
            Event::Alloc { site, addr, bytes } => {
                self.allocate(addr, bytes, self.groups.group(site + 1))
            }
            Event::Free { addr } => self.free(addr),
            Event::Colored { addr, bytes, hot } => self.color(addr, bytes, hot, before),
            Event::MapSite { site, addr, bytes } => {
                self.map_region(addr, bytes, self.groups.group(site + 1));
            }
            Event::Map { addr, bytes } => self.forget(addr, bytes),
            Event::Unmap { addr, bytes } => {
                self.forget(addr, bytes);
                match &mut self.rooms {
                    Rooms::Home => before.extend(unmaps(addr, bytes)),
                    Rooms::Tiers(tiers) => {
                        let mut at = addr;
                        while at < addr + bytes {
                            let end = TierPlaces::end(at).min(addr + bytes);
                            for fast in [true, false] {
                                before.extend(unmaps(tiers.at(at, fast), end - at));
                            }
                            at = end;
                        }
                    }
                    Rooms::Arenas { .. } => {}
                }
            }
            _ => {}
        }
    }
}

/// Addresses of programs are below this one.
const ADDRESSES: u64 = 1 << 48;

/// Ops that copy a page, as the kernel does.
fn copy(from: u64, to: u64) -> impl Iterator<Item = Op> {
    let line = move |at| {
        [
            Op::read(from + at, LINE as u16, 1),
            Op::write(to + at, LINE as u16, 1),
        ]
    };
    (0..PAGE).step_by(LINE as usize).flat_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use varve_sites::native::Key;

    #[derive(Clone, Debug)]
    enum Step {
        Alloc {
            bytes: u64,
            site: u32,
        },
        Free(prop::sample::Index),
        Access {
            object: prop::sample::Index,
            at: prop::sample::Index,
        },
        Elsewhere(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = prop_oneof![1u64..300, 1u64..200_000];
        let step = prop_oneof![
            (bytes, 0u32..4).prop_map(|(bytes, site)| Step::Alloc { bytes, site }),
            any::<prop::sample::Index>().prop_map(Step::Free),
            any::<(prop::sample::Index, prop::sample::Index)>()
                .prop_map(|(object, at)| Step::Access { object, at }),
            (0u64..1 << 20).prop_map(Step::Elsewhere),
        ];
        prop::collection::vec(step, 1..120)
    }

    /// The ops of a program's steps in a layout, those of each step by themselves.
    fn carried_out(steps: &[Step], layout: &mut Layout) -> Vec<Vec<Op>> {
        let mut next = 1 << 30;
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        let mut all = Vec::new();
        for step in steps {
            let mut out = Vec::new();
            match step {
                Step::Alloc { bytes, site } => {
                    let (addr, bytes, site) = (next + 16, *bytes, *site);
                    next = (addr + bytes).next_multiple_of(8);
                    layout.event(&Event::Alloc { site, addr, bytes }, &mut out);
                    live.insert(addr, bytes);
                }
                Step::Free(which) if !live.is_empty() => {
                    let addr = *live.keys().nth(which.index(live.len())).unwrap();
                    live.remove(&addr);
                    layout.event(&Event::Free { addr }, &mut out);
                }
                Step::Access { object, at } if !live.is_empty() => {
                    let (addr, bytes) = live.iter().nth(object.index(live.len())).unwrap();
                    let at = addr + at.index(*bytes as usize) as u64;
                    layout.ops(&[Op::read(at, 100, 1)], &mut out);
                }
                Step::Elsewhere(at) => layout.ops(&[Op::write((1 << 40) + at, 64, 1)], &mut out),
                _ => {}
            }
            all.push(out);
        }
        all
    }

    fn by_site(quotas: &[u64]) -> Layout {
        let groups = Groups {
            of: (0..5).collect(),
            keys: vec![Key::Rest; 5],
            hinted: None,
        };
        let bytes = quotas.to_vec();
        Layout::by_site(&TraceSites::default(), groups, Quotas { bytes })
    }

    /// A layout by what the program says, with room for some hot bytes.
    fn by_hints(fast: u64) -> Layout {
        let bytes = vec![0, fast, 0];
        Layout::by_site(
            &TraceSites::default(),
            Groups::by_hints(2),
            Quotas { bytes },
        )
    }

    fn fast(layout: &mut Layout, address: u64) -> bool {
        let mut out = Vec::new();
        layout.ops(&[Op::write(address, 8, 1)], &mut out);
        is_fast(out[0].addr)
    }

    #[test]
    fn a_page_is_in_the_memory_of_its_color_while_there_is_room() {
        let (mut layout, start, mut moves) = (by_hints(2 * PAGE), 1 << 40, Vec::new());
        let color = |addr, bytes, hot| Event::Colored { addr, bytes, hot };
        layout.event(
            &Event::Map {
                addr: start,
                bytes: 8 * PAGE,
            },
            &mut moves,
        );
        assert!(!fast(&mut layout, start));
        moves.clear();
        // Only whole pages have the color; the one that is there is copied.
        layout.event(&color(start, 3 * PAGE + 5, true), &mut moves);
        let copied = moves.iter().filter(|op| op.kind.is_access()).count() as u64;
        assert_eq!(copied, 2 * PAGE / LINE);
        let pages =
            |layout: &mut Layout| [0, 1, 2, 3].map(|page| fast(layout, start + page * PAGE));
        assert_eq!(pages(&mut layout), [true, true, false, false]);
        layout.event(&color(start, PAGE, false), &mut moves);
        assert!(!fast(&mut layout, start));
        layout.event(
            &Event::Unmap {
                addr: start,
                bytes: 8 * PAGE,
            },
            &mut moves,
        );
        assert_eq!((layout.fast_bytes, layout.most_fast_bytes), (0, 2 * PAGE));
        layout.event(
            &Event::Map {
                addr: start,
                bytes: 8 * PAGE,
            },
            &mut moves,
        );
        assert_eq!(pages(&mut layout), [false; 4]);
    }

    #[test]
    fn an_object_has_the_color_of_its_bytes_until_it_is_freed() {
        let (mut layout, start, mut moves) = (by_hints(1 << 30), (1 << 40) + 16, Vec::new());
        for bytes in [100, 5000, 70_000, 300_001] {
            let (addr, site) = (start, 0);
            // Born with it, as from `varve_malloc`; or it gets one later, but for pages that it shares.
            layout.event(
                &Event::Colored {
                    addr,
                    bytes,
                    hot: true,
                },
                &mut moves,
            );
            layout.event(&Event::Alloc { site, addr, bytes }, &mut moves);
            assert!(fast(&mut layout, addr) && fast(&mut layout, addr + bytes - 8));
            layout.event(&Event::Free { addr }, &mut moves);
            assert_eq!(layout.fast_bytes, 0, "{bytes}");
            layout.event(&Event::Alloc { site, addr, bytes }, &mut moves);
            // The old header stays, and has its line in fast memory.
            assert!(!fast(&mut layout, addr + bytes / 2), "{bytes}");
            for hot in [true, true, false, true] {
                layout.event(&Event::Colored { addr, bytes, hot }, &mut moves);
                let within = fast(&mut layout, addr + bytes / 2);
                assert_eq!(within, hot && bytes > MOST_SMALL, "{bytes}");
            }
            layout.event(&Event::Free { addr }, &mut moves);
            assert_eq!(layout.fast_bytes, 0, "{bytes}");
        }
    }

    #[test]
    fn a_color_may_be_of_any_addresses() {
        let (mut layout, mut moves) = (by_hints(PAGE), Vec::new());
        for (addr, bytes) in [
            (0, u64::MAX),
            (u64::MAX, 1),
            (u64::MAX - 5, u64::MAX),
            (7, 0),
        ] {
            layout.event(
                &Event::Colored {
                    addr,
                    bytes,
                    hot: true,
                },
                &mut moves,
            );
        }
        assert!(fast(&mut layout, 1 << 46));
    }

    proptest! {
        /// Plans by site differ from all in one memory in the memory of each line, and in nothing else: the same bytes of the same pages.
        #[test]
        fn plans_by_site_leave_addresses_as_they_were(all in steps(), quotas in prop::collection::vec(0u64..400_000, 5)) {
            let own = carried_out(&all, &mut Layout::as_it_was(&TraceSites::default()));
            for (quotas, fast) in [(vec![], Some(false)), (vec![u64::MAX / 2; 5], Some(true)), (quotas, None)] {
                let mut layout = by_site(&quotas);
                let placed = carried_out(&all, &mut layout);
                let sum: u64 = quotas.iter().sum();
                prop_assert!(layout.most_fast_bytes() <= sum);
                let mut pages = HashMap::new();
                for (own, placed) in own.iter().zip(&placed) {
                    let bytes = |ops: &[Op]| -> Vec<u64> {
                        ops.iter().flat_map(|op| (op.addr..op.addr + u64::from(op.size)).collect::<Vec<_>>()).collect()
                    };
                    let (own, placed) = (bytes(own), bytes(placed));
                    prop_assert_eq!(own.len(), placed.len());
                    for (own, placed) in own.iter().zip(&placed) {
                        prop_assert_eq!(own % PAGE, placed % PAGE);
                        prop_assert!(fast.is_none_or(|fast| fast == is_fast(*placed)));
                        let page = *pages.entry(own / PAGE).or_insert(placed % SLOW_BASE / PAGE);
                        prop_assert_eq!(page, placed % SLOW_BASE / PAGE);
                    }
                }
            }
        }

        /// A program that allocates, frees and accesses: bytes of live objects never share a place, an access goes where its
        /// object is, and fast memory holds no more than there is.
        #[test]
        fn objects_keep_their_bytes_apart(
            all in steps(), quotas in prop::collection::vec(0u64..400_000, 5), fast_pages in 0u64..80
        ) {
            let groups = Groups { of: (0..5).collect(), keys: vec![Key::Rest; 5], hinted: None };
            let mut layout = Layout::in_arenas(&TraceSites::default(), groups, Quotas { bytes: quotas }, fast_pages);
            let mut fast = std::collections::HashSet::new();
            // as a simple allocator would: one after the other, with a header
            let mut next = 1 << 30;
            let mut live: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
            let mut out = Vec::new();
            for step in all {
                match step {
                    Step::Alloc { bytes, site } => {
                        let addr = next + 16;
                        next = (addr + bytes).next_multiple_of(8);
                        layout.event(&Event::Alloc { site, addr, bytes }, &mut out);
                        live.insert(addr, (bytes, site + 1));
                    }
                    Step::Free(which) if !live.is_empty() => {
                        let addr = *live.keys().nth(which.index(live.len())).unwrap();
                        live.remove(&addr);
                        layout.event(&Event::Free { addr }, &mut out);
                    }
                    Step::Access { object, at } if !live.is_empty() => {
                        let (&addr, &(bytes, site)) = live.iter().nth(object.index(live.len())).unwrap();
                        let offset = at.index(bytes as usize) as u64;
                        prop_assert_eq!(layout.site(addr + offset), site);
                        let before = layout.place(addr + offset).address;
                        out.clear();
                        // Reads of a vector go on behind the end of an object.
                        layout.ops(&[Op::read(addr + offset, 64, 1)], &mut out);
                        prop_assert_eq!(out[0].addr, before);
                    }
                    Step::Elsewhere(at) => {
                        out.clear();
                        layout.ops(&[Op::write((1 << 40) + at, 64, 1)], &mut out);
                        prop_assert_eq!(out.iter().map(|op| u64::from(op.size)).sum::<u64>(), 64);
                    }
                    _ => {}
                }
                for op in out.iter().filter(|op| is_fast(op.addr)) {
                    fast.extend(op.addr / PAGE..=(op.addr + u64::from(op.size) - 1) / PAGE);
                }
                prop_assert!(fast.len() as u64 <= fast_pages);
            }
            let mut places: BTreeMap<u64, u64> = BTreeMap::new();
            for (&addr, &(bytes, _)) in &live {
                for at in (addr..addr + bytes).step_by(16) {
                    let place = layout.place(at).address;
                    prop_assert_eq!(places.insert(place, at), None, "{:#x} is there twice", place);
                }
            }
            let alive: u64 = live.values().map(|(bytes, _)| bytes).sum();
            let counted: u64 = layout.tallies().iter().skip(1).map(|t| t.live_bytes).sum();
            prop_assert_eq!(alive, counted);
        }
    }
}
