//! Where jumps lie in finished code.
//!
//! The code generator writes each jump with a distance of four bytes. Here those get one byte that are near enough. And some of Intel's
//! processors have an erratum about jumps (see [`avoids_boundaries`]): there, none may cross or end at a multiple of 32 bytes.
//!
//! ```text
//! byte     20    24    28    32    36    40
//! before   mov   add   cmp jl|---- mov         `jl` crosses byte 32
//! after    mov   add   nop   |cmp jl mov       it does not, is still beside its comparison, and is shorter
//! ```

mod erratum;
mod read;

pub(crate) use erratum::avoids_boundaries;
pub(crate) use read::Finished;
use read::{From, Jump, Kind, Read};

/// Bytes of which no jump may cross or end at a multiple. Pieces of code start at multiples.
pub(crate) const BOUNDARY: u32 = 32;

/// Code whose jumps are where they are to be.
pub(crate) struct Placed {
    pub code: Vec<u8>,
    moves: Moves,
}

/// By how many bytes what is behind a place moves.
struct Moves {
    /// Places in the code as it was: ascending.
    from: Vec<u32>,
    by: Vec<i32>,
}

impl Moves {
    fn byte(&self, at: u32) -> u32 {
        match self.from.partition_point(|&from| from <= at) {
            0 => at,
            n => at.wrapping_add_signed(self.by[n - 1]),
        }
    }

    fn end(&self, at: u32) -> u32 {
        self.byte(at - 1) + 1
    }
}

impl Placed {
    /// Where a byte is now.
    pub fn byte(&self, at: u32) -> u32 {
        self.moves.byte(at)
    }

    /// Where the instruction ends now that ended at `at`: what fills the space up to the next one may be behind it.
    pub fn end(&self, at: u32) -> u32 {
        self.moves.end(at)
    }
}

/// Places the jumps of code; none if it is not understood in full, and has to stay as it is.
pub(crate) fn place_jumps(finished: &Finished, avoid: bool) -> Option<Placed> {
    let read = read::read(finished)?;
    let mut layout = Layout {
        jumps: &read.jumps,
        short: read.jumps.iter().map(Jump::may_be_short).collect(),
        avoid,
        moves: Moves {
            from: Vec::with_capacity(2 * read.jumps.len()),
            by: Vec::with_capacity(2 * read.jumps.len()),
        },
    };
    // A jump that is too far for a byte gets four, which may take others out of reach. None becomes short again, so this ends.
    loop {
        layout.lay();
        if !layout.lengthen() {
            break;
        }
    }
    let code = layout.write(finished.code, &read);
    Some(Placed {
        code,
        moves: layout.moves,
    })
}

/// Bytes to fill where `len` bytes at `start` would cross a boundary or end at one.
pub(super) fn gap(start: u32, len: u32) -> u32 {
    match start % BOUNDARY {
        over if over + len >= BOUNDARY => BOUNDARY - over,
        _ => 0,
    }
}

struct Layout<'a> {
    jumps: &'a [Jump],
    /// Which of them have a distance of one byte.
    short: Vec<bool>,
    avoid: bool,
    /// Two places for each jump: what moves with it, and what is behind it.
    moves: Moves,
}

impl Jump {
    fn may_be_short(&self) -> bool {
        matches!(self.kind, Kind::If(_) | Kind::Always)
    }

    /// Its bytes.
    fn len(&self, short: bool) -> u32 {
        match self.kind {
            Kind::If(_) | Kind::Always if short => 2,
            Kind::If(_) => 6,
            Kind::Always => 5,
            Kind::Out | Kind::Constants => self.end - self.at,
        }
    }

    /// Bytes to fill before it, if it (and what is fused with it) would start at `start` with so many bytes.
    fn room(&self, start: u32, len: u32, avoid: bool) -> u32 {
        match self.kind {
            // Keeps the alignment of constants.
            Kind::Constants => self.at.wrapping_sub(start) % BOUNDARY,
            _ if avoid => gap(start, len),
            _ => 0,
        }
    }
}

impl Layout<'_> {
    fn lay(&mut self) {
        let Moves { from, by } = &mut self.moves;
        from.clear();
        by.clear();
        let mut delta = 0i32;
        for (jump, &short) in self.jumps.iter().zip(&self.short) {
            let len = jump.len(short);
            let start = jump.fused.wrapping_add_signed(delta);
            delta += jump.room(start, jump.at - jump.fused + len, self.avoid) as i32;
            from.push(jump.fused);
            by.push(delta);
            delta += len as i32 - (jump.end - jump.at) as i32;
            from.push(jump.end);
            by.push(delta);
        }
    }

    /// Takes four bytes for jumps whose targets are too far away. Whether there was one.
    fn lengthen(&mut self) -> bool {
        let mut longer = false;
        for (jump, short) in self.jumps.iter().zip(&mut self.short) {
            if *short {
                let next = self.moves.byte(jump.at) + 2;
                let distance = self.moves.byte(jump.target).wrapping_sub(next) as i32;
                *short = i8::try_from(distance).is_ok();
                longer |= !*short;
            }
        }
        longer
    }

    fn write(&self, code: &[u8], read: &Read) -> Vec<u8> {
        let mut out = Vec::with_capacity(code.len() + code.len() / 8);
        let mut at = 0;
        for (jump, &short) in self.jumps.iter().zip(&self.short) {
            out.extend_from_slice(&code[at as usize..jump.fused as usize]);
            let gap = self.moves.byte(jump.fused) as usize - out.len();
            fill(&mut out, gap);
            out.extend_from_slice(&code[jump.fused as usize..jump.at as usize]);
            let next = out.len() as u32 + jump.len(short);
            let distance = self.moves.byte(jump.target).wrapping_sub(next);
            match (jump.kind, short) {
                (Kind::If(condition), true) => out.extend([0x70 | condition, distance as u8]),
                (Kind::Always, true) => out.extend([0xeb, distance as u8]),
                (Kind::If(condition), false) => {
                    out.extend([0x0f, 0x80 | condition]);
                    out.extend(distance.to_le_bytes());
                }
                (Kind::Always, false) => {
                    out.push(0xe9);
                    out.extend(distance.to_le_bytes());
                }
                (Kind::Out | Kind::Constants, _) => {
                    out.extend_from_slice(&code[jump.at as usize..jump.end as usize]);
                }
            }
            at = jump.end;
        }
        out.extend_from_slice(&code[at as usize..]);
        for distance in &read.distances {
            let from = match distance.from {
                From::End(at) => self.moves.end(at),
                From::Start(at) => self.moves.byte(at),
            };
            let far = self.moves.byte(distance.target).wrapping_sub(from);
            let field = self.moves.byte(distance.field) as usize;
            out[field..field + 4].copy_from_slice(&far.to_le_bytes());
        }
        out
    }
}

/// Instructions that do nothing, in as few as there can be.
pub(super) fn fill(out: &mut Vec<u8>, mut gap: usize) {
    /// By their bytes. Longer ones are no better: decoders take time for more prefixes.
    const SHORT: [&[u8]; 10] = [
        &[],
        &[0x90],
        &[0x66, 0x90],
        &[0x0f, 0x1f, 0x00],
        &[0x0f, 0x1f, 0x40, 0],
        &[0x0f, 0x1f, 0x44, 0, 0],
        &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
        &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
        &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    ];
    while gap > 0 {
        let one = gap.min(SHORT.len() - 1);
        out.extend_from_slice(SHORT[one]);
        gap -= one;
    }
}

#[cfg(test)]
mod tests;
