//! Doubly linked lists of small integers in four flat arrays: an item is in one list at most.
//!
//! Links hold the item plus one, so that memory that was never touched (zeros) means "no link".

/// Lists `0..lists` over items `0..items`. The caller remembers which list an item is in.
#[derive(Clone, Debug)]
pub struct Lists {
    next: Vec<u32>,
    prev: Vec<u32>,
    head: Vec<u32>,
    tail: Vec<u32>,
}

impl Lists {
    /// Empty lists.
    pub fn new(items: usize, lists: usize) -> Lists {
        Lists {
            next: vec![0; items],
            prev: vec![0; items],
            head: vec![0; lists],
            tail: vec![0; lists],
        }
    }

    /// The first item of `list`.
    #[inline]
    pub fn front(&self, list: usize) -> Option<u32> {
        self.head[list].checked_sub(1)
    }

    /// Is `list` empty?
    #[inline]
    pub fn is_empty(&self, list: usize) -> bool {
        self.head[list] == 0
    }

    /// The item after `item` in its list.
    #[inline]
    pub fn after(&self, item: u32) -> Option<u32> {
        self.next[item as usize].checked_sub(1)
    }

    /// Appends an item that is in no list.
    #[inline]
    pub fn push_back(&mut self, list: usize, item: u32) {
        let last = self.tail[list];
        self.prev[item as usize] = last;
        self.next[item as usize] = 0;
        self.tail[list] = item + 1;
        match last {
            0 => self.head[list] = item + 1,
            last => self.next[last as usize - 1] = item + 1,
        }
    }

    /// Takes `item` out of `list`, where it must be.
    #[inline]
    pub fn remove(&mut self, list: usize, item: u32) {
        let (prev, next) = (self.prev[item as usize], self.next[item as usize]);
        match prev {
            0 => self.head[list] = next,
            prev => self.next[prev as usize - 1] = next,
        }
        match next {
            0 => self.tail[list] = prev,
            next => self.prev[next as usize - 1] = prev,
        }
    }

    /// Moves all of `from` behind the end of `to`, in one step.
    pub fn append(&mut self, to: usize, from: usize) {
        let (head, tail) = (self.head[from], self.tail[from]);
        if to == from || head == 0 {
            return;
        }
        match self.tail[to] {
            0 => self.head[to] = head,
            last => {
                self.next[last as usize - 1] = head;
                self.prev[head as usize - 1] = last;
            }
        }
        self.tail[to] = tail;
        (self.head[from], self.tail[from]) = (0, 0);
    }

    /// The items of `list`, in order.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.front(list), |&item| self.after(item))
    }

    /// Limit of the memory that they may use, bytes.
    pub fn bytes(&self) -> u64 {
        4 * (self.next.len() + self.prev.len() + self.head.len() + self.tail.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_agree_with_plain_vectors(
            steps in prop::collection::vec((0u8..4, 0usize..4, 0u32..12), 1..300),
        ) {
            let mut fast = Lists::new(12, 4);
            let mut slow: Vec<Vec<u32>> = vec![Vec::new(); 4];
            for (what, list, item) in steps {
                let home = slow.iter().position(|l| l.contains(&item));
                match (what, home) {
                    (0, None) => {
                        fast.push_back(list, item);
                        slow[list].push(item);
                    }
                    (1, Some(home)) => {
                        fast.remove(home, item);
                        slow[home].retain(|&i| i != item);
                    }
                    (2, _) => prop_assert_eq!(fast.front(list), slow[list].first().copied()),
                    (3, _) => {
                        let to = (list + 1 + item as usize % 3) % 4;
                        let tail = std::mem::take(&mut slow[list]);
                        slow[to].extend(tail);
                        fast.append(to, list);
                    }
                    _ => {}
                }
                for (list, items) in slow.iter().enumerate() {
                    prop_assert_eq!(&fast.iter(list).collect::<Vec<_>>(), items);
                    prop_assert_eq!(fast.is_empty(list), items.is_empty());
                }
            }
        }
    }
}
