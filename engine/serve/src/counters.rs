//! Counters of a server.

/// Counts since the start, or since `stats reset`.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Keys asked for.
    pub cmd_get: u64,
    /// Values sent to be stored.
    pub cmd_set: u64,
    /// Commands to forget all.
    pub cmd_flush: u64,
    /// Commands for a new expiry.
    pub cmd_touch: u64,
    /// Keys asked for with a value.
    pub get_hits: u64,
    /// Keys asked for without one.
    pub get_misses: u64,
    /// Keys asked for whose value had expired.
    pub get_expired: u64,
    /// Values forgotten on demand.
    pub delete_hits: u64,
    /// Values to be forgotten that were not there.
    pub delete_misses: u64,
    /// Numbers counted up.
    pub incr_hits: u64,
    /// Numbers to be counted up that were not there.
    pub incr_misses: u64,
    /// Numbers counted down.
    pub decr_hits: u64,
    /// Numbers to be counted down that were not there.
    pub decr_misses: u64,
    /// Values replaced by their unique number.
    pub cas_hits: u64,
    /// Values to be replaced that were not there.
    pub cas_misses: u64,
    /// Values not replaced, since they had another unique number.
    pub cas_badval: u64,
    /// New expiries.
    pub touch_hits: u64,
    /// New expiries for values that were not there.
    pub touch_misses: u64,
    /// Expired values found by scans.
    pub reclaimed: u64,
    /// Values stored.
    pub total_items: u64,
    /// Values not stored for lack of room.
    pub no_memory: u64,
    /// Values not stored since they were larger than values may be.
    pub too_large: u64,
    /// Values that made room for others before their time.
    pub evictions: u64,
}

impl Counters {
    /// A key was asked for, with a new expiry or without, and had a value or not.
    pub fn asked(&mut self, touches: bool, found: bool) {
        let (all, hits, misses) = match touches {
            true => (
                &mut self.cmd_touch,
                &mut self.touch_hits,
                &mut self.touch_misses,
            ),
            false => (&mut self.cmd_get, &mut self.get_hits, &mut self.get_misses),
        };
        *all += 1;
        *(if found { hits } else { misses }) += 1;
    }

    /// The counts with their names for `stats`.
    pub fn list(&self) -> [(&'static str, u64); 23] {
        [
            ("cmd_get", self.cmd_get),
            ("cmd_set", self.cmd_set),
            ("cmd_flush", self.cmd_flush),
            ("cmd_touch", self.cmd_touch),
            ("get_hits", self.get_hits),
            ("get_misses", self.get_misses),
            ("get_expired", self.get_expired),
            ("delete_hits", self.delete_hits),
            ("delete_misses", self.delete_misses),
            ("incr_hits", self.incr_hits),
            ("incr_misses", self.incr_misses),
            ("decr_hits", self.decr_hits),
            ("decr_misses", self.decr_misses),
            ("cas_hits", self.cas_hits),
            ("cas_misses", self.cas_misses),
            ("cas_badval", self.cas_badval),
            ("touch_hits", self.touch_hits),
            ("touch_misses", self.touch_misses),
            ("reclaimed", self.reclaimed),
            ("total_items", self.total_items),
            ("store_no_memory", self.no_memory),
            ("store_too_large", self.too_large),
            ("evictions", self.evictions),
        ]
    }
}
