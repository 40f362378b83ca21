//! Pages in use, now and when most were: by owner and memory, and by DIMM and colour.
//!
//! [`Placement`](crate::Placement) counts, since it knows each page that comes, goes, moves or changes its colour. A
//! policy around the policy could count as well. But it would have to pass on every call of the trait. A call that it
//! does not pass on, or that is added later, would silently run the trait's default body. With nothing in between, no
//! call is lost.

use crate::trays::{Dimm, DimmMap};

/// Pages in use at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// By number of the owner: pages in slow and in fast memory, or cold and hot ones where DIMMs are counted.
    pub owners: Vec<[u64; 2]>,
    /// By DIMM: hot pages, cold pages. Empty where DIMMs are not counted.
    pub dimms: Vec<(u32, u32)>,
}

impl InUse {
    /// Pages of all owners in fast memory, or hot ones.
    pub fn fast(&self) -> u64 {
        self.owners.iter().map(|pages| pages[1]).sum()
    }

    /// Pages of all owners in slow memory, or cold ones.
    pub fn slow(&self) -> u64 {
        self.owners.iter().map(|pages| pages[0]).sum()
    }

    fn all(&self) -> u64 {
        self.owners.iter().flatten().sum()
    }
}

/// Counts pages in use.
pub struct Counting {
    /// Maps a virtual page to its owner.
    owner: Box<dyn Fn(u64) -> usize + Send>,
    /// Which frames are on which DIMM, if pages have colours.
    dimms: Option<DimmMap>,
    now: InUse,
    most: InUse,
    most_fast: u64,
}

impl Counting {
    /// Counts pages of `owners` owners. `owner` gives the number of a virtual page's owner, from 0 on, and the same one
    /// each time.
    pub fn new(owners: usize, owner: impl Fn(u64) -> usize + Send + 'static) -> Counting {
        let none = InUse {
            owners: vec![[0; 2]; owners],
            dimms: Vec::new(),
        };
        Counting {
            owner: Box::new(owner),
            dimms: None,
            now: none.clone(),
            most: none,
            most_fast: 0,
        }
    }

    /// Counts all pages as those of one owner.
    pub fn of_one() -> Counting {
        Counting::new(1, |_| 0)
    }

    /// The same for a policy that knows colours: a hot page counts as one in fast memory, and pages are counted by DIMM too.
    pub fn on(mut self, dimms: DimmMap) -> Counting {
        self.now.dimms = vec![(0, 0); dimms.dimms().len()];
        self.most.dimms = self.now.dimms.clone();
        self.dimms = Some(dimms);
        self
    }

    /// The pages in use.
    pub fn now(&self) -> &InUse {
        &self.now
    }

    /// The pages that were in use when most were; of several such times the last.
    pub fn most(&self) -> &InUse {
        &self.most
    }

    /// The most pages in fast memory at a time, or hot ones. That need not be the time of [`Counting::most`].
    pub fn most_fast(&self) -> u64 {
        self.most_fast
    }

    /// Do hot pages count as those in fast memory?
    pub(crate) fn is_by_colour(&self) -> bool {
        self.dimms.is_some()
    }

    /// A page is in a frame from now on, in fast memory or not.
    pub(crate) fn comes(&mut self, vpn: u64, frame: u32, fast: bool) {
        let (pages, on_dimm) = self.counts(vpn, frame, fast);
        *pages += 1;
        on_dimm.into_iter().for_each(|pages| *pages += 1);
        self.most_fast = self.most_fast.max(self.now.fast());
        if self.now.all() >= self.most.all() {
            self.most.clone_from(&self.now);
        }
    }

    /// A page is no longer in a frame, where it was in fast memory or not.
    pub(crate) fn goes(&mut self, vpn: u64, frame: u32, fast: bool) {
        let (pages, on_dimm) = self.counts(vpn, frame, fast);
        *pages -= 1;
        on_dimm.into_iter().for_each(|pages| *pages -= 1);
    }

    /// The counters of a page in a frame: its owner's pages, and those of the frame's DIMM.
    fn counts(&mut self, vpn: u64, frame: u32, fast: bool) -> (&mut u64, Option<&mut u32>) {
        let InUse { owners, dimms } = &mut self.now;
        let is_here = |dimm: &Dimm| frame.wrapping_sub(dimm.first) < dimm.frames;
        let all = self.dimms.iter().flat_map(DimmMap::dimms);
        let here = all.zip(dimms).find(|(dimm, _)| is_here(dimm));
        let on_dimm = here.map(|(_, (hot, cold))| if fast { hot } else { cold });
        let owner = (self.owner)(vpn);
        (&mut owners[owner][usize::from(fast)], on_dimm)
    }
}
