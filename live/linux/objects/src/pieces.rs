//! Mappings that are counted until they are freed: pieces of addresses, each with its group and tier.

/// A piece of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First address, and the one behind the last.
    pub start: usize,
    pub end: usize,
    pub group: usize,
    pub tier: u64,
}

const NONE: Piece = Piece {
    start: 0,
    end: 0,
    group: 0,
    tier: 0,
};

impl Piece {
    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// The same a little elsewhere.
    pub fn moved(self, from: usize, to: usize) -> Piece {
        Piece {
            start: self.start.wrapping_sub(from).wrapping_add(to),
            end: self.end.wrapping_sub(from).wrapping_add(to),
            ..self
        }
    }
}

/// Up to `N` pieces, none on another, in any order.
#[derive(Clone)]
pub struct Pieces<const N: usize> {
    all: [Piece; N],
    used: usize,
}

impl<const N: usize> Pieces<N> {
    pub const fn new() -> Pieces<N> {
        Pieces {
            all: [NONE; N],
            used: 0,
        }
    }

    pub fn all(&self) -> &[Piece] {
        &self.all[..self.used]
    }

    pub fn all_mut(&mut self) -> &mut [Piece] {
        &mut self.all[..self.used]
    }

    /// False if there is no room: then the piece is not tracked, and its counts stay.
    pub fn add(&mut self, piece: Piece) -> bool {
        let room = self.used < N;
        if room && piece.start < piece.end {
            self.all[self.used] = piece;
            self.used += 1;
        }
        room
    }

    /// Removes the part from `start` to `end`, and calls `taken` for each piece.
    pub fn take(&mut self, start: usize, end: usize, mut taken: impl FnMut(Piece)) {
        let mut at = 0;
        while at < self.used {
            let piece = self.all[at];
            let part = Piece {
                start: piece.start.max(start),
                end: piece.end.min(end),
                ..piece
            };
            if part.start >= part.end {
                at += 1;
                continue;
            }
            self.used -= 1;
            self.all[at] = self.all[self.used];
            // The rest on either side is scanned again, and is outside.
            self.add(Piece {
                end: part.start,
                ..piece
            });
            self.add(Piece {
                start: part.end,
                ..piece
            });
            taken(part);
        }
    }

    pub fn sort(&mut self) {
        self.all[..self.used].sort_unstable_by_key(|piece| piece.start);
    }
}
