//! A shard's dispatcher: it executes requests, or passes them to the shard that has the key.

use crate::answer::{After, Stats, answer};
use crate::exchange::{Answers, Asks, Extra, Letter, Place};
use crate::keeper::Keeper;
use crate::list::Listed;
use crate::request::{Request, Verb};
use crate::round::Wait;
use crate::route::Route;
use crate::session::Next;
use crate::settings::{Error, Host};
use crate::shared::Shared;
use crate::stats::{Sums, Traffic, put};
use crate::store::Store;
use crate::words::FAILED;
use std::sync::atomic::Ordering;

/// Most answers of other shards that a connection waits for: each may have a value.
const MOST_WAITS: usize = 32;

/// Appends a line for each connection of the shard.
pub(crate) type List<'a> = &'a dyn Fn(&mut Vec<u8>);

pub(crate) struct Desk<'a, H: Host> {
    number: usize,
    pub shared: &'a Shared<'a>,
    pub keeper: Keeper<'a, H>,
    pub traffic: Traffic,
    /// Messages that go to each shard at the end of the turn.
    pub letters: Vec<Letter>,
}

impl<'a, H: Host> Desk<'a, H> {
    pub fn new(number: usize, shared: &'a Shared<'a>, keeper: Keeper<'a, H>) -> Self {
        let shards = 0..shared.settings.shards;
        let letter = |_| Letter {
            from: number,
            ..Letter::default()
        };
        Desk {
            number,
            shared,
            keeper,
            traffic: Traffic::default(),
            letters: shards.map(letter).collect(),
        }
    }

    /// Answers a client's request, or records in `waits` that the answer comes from elsewhere.
    ///
    /// # Errors
    /// A store that cannot go on.
    pub fn request(
        &mut self,
        client: usize,
        request: Request<'_>,
        out: &mut Vec<u8>,
        waits: &mut Vec<Wait>,
        list: List<'_>,
    ) -> Result<Next, Error> {
        let place = Place {
            client,
            answer: waits.len(),
        };
        let begin = out.len();
        let shards = self.letters.len();
        if let Request::List { listing } = request {
            return Ok(Next::after(self.shared.lists().begin(listing, out)));
        }
        match Route::of(&request, shards) {
            Route::One(shard) if shard != self.number => {
                self.letters[shard].asks.push(place, &request);
                self.traffic.handed_over += 1;
                let part = matches!(request, Request::Get { .. });
                if matches!(request, Request::ListPart { .. }) {
                    waits.push(Wait::one(begin, false));
                    // The result comes with the answer.
                    return Ok(Next::Listed(Listed::More));
                }
                waits.push(Wait::one(begin, part));
            }
            Route::Here | Route::One(_) => {
                let part = match request {
                    Request::ListPart { part } => Some(part),
                    _ => None,
                };
                let (after, extra) = self.carry_out(request, out, list)?;
                if let (After::Stats(which), Extra::Sums(sums)) = (after, extra) {
                    put(which, &sums, &self.shared.world(), out);
                }
                match (after, part) {
                    (After::Close, _) => return Ok(Next::End),
                    (After::Listed(last), Some(part)) => {
                        return Ok(Next::Listed(part.over(last, shards, out)));
                    }
                    // The store failed: its error ends the list.
                    (_, Some(_)) => return Ok(Next::Listed(Listed::All)),
                    _ => {}
                }
            }
            Route::All => {
                let others = (0..self.letters.len()).filter(|shard| *shard != self.number);
                for shard in others {
                    self.letters[shard].asks.push(place, &request);
                    self.traffic.handed_over += 1;
                }
                let (after, extra) = self.carry_out(request, out, list)?;
                let sums = match (after, extra) {
                    (After::Stats(which), Extra::Sums(sums)) => Some((which, sums)),
                    _ => None,
                };
                let text = out.split_off(begin);
                waits.push(Wait::all(begin, self.letters.len() - 1, text, sums));
            }
        }
        Ok(match waits.len() {
            ..MOST_WAITS => Next::Request,
            _ => Next::Pause,
        })
    }

    /// Carries a request out here: the answer is appended, but for numbers, which come back.
    fn carry_out(
        &mut self,
        request: Request<'_>,
        out: &mut Vec<u8>,
        list: List<'_>,
    ) -> Result<(After, Extra), Error> {
        let begin = out.len();
        match self.keeper.with(|cache| answer(cache, request, out))? {
            Some(After::Stats(which)) => {
                if let Some(sums) = self.sums(which, list)? {
                    return Ok((After::Stats(which), Extra::Sums(Box::new(sums))));
                }
            }
            Some(after) => return Ok((after, Extra::None)),
            None => {}
        }
        out.truncate(begin);
        out.extend_from_slice(FAILED);
        Ok((After::Next, Extra::None))
    }

    fn sums(&mut self, which: Stats, list: List<'_>) -> Result<Option<Sums>, Error> {
        let mut sums = Sums::default();
        if which == Stats::Connections {
            list(&mut sums.connections);
            return Ok(Some(sums));
        }
        let done = self.keeper.with(|cache| {
            sums.counts = cache.counters.list().to_vec();
            sums.bytes = cache.bytes();
            sums.items = cache.count()? as u64;
            sums.memory = cache.limits().memory;
            sums.evicts = cache.evicts();
            sums.store = cache.store().describe();
            Ok(())
        })?;
        self.traffic.restarts = self.keeper.failed;
        sums.traffic = self.traffic.clone();
        Ok(done.map(|()| sums))
    }

    /// Executes the requests of another shard.
    ///
    /// # Errors
    /// A store that cannot go on.
    pub fn carry_out_all(&mut self, from: usize, asks: &Asks, list: List<'_>) -> Result<(), Error> {
        let mut answers = std::mem::take(&mut self.letters[from].answers);
        let most = self.shared.settings.buffers;
        for (place, request) in asks.iter() {
            let waiting = self.shared.buffered.load(Ordering::Relaxed) + answers.bytes.len() as u64;
            if waiting > most && gives_value(&request) {
                answers.push(place, Extra::TooMuch);
                continue;
            }
            let losses = self.keeper.losses;
            let part = match request {
                Request::ListPart { part } => Some(part),
                _ => None,
            };
            let (after, mut extra) = self.carry_out(request, &mut answers.bytes, list)?;
            if let Some(part) = part {
                let shards = self.shared.settings.shards;
                extra = Extra::Listed(match after {
                    After::Listed(last) => part.over(last, shards, &mut answers.bytes),
                    _ => Listed::All,
                });
            }
            answers.push(place, extra);
            if self.keeper.losses != losses {
                answers.replace_all(FAILED);
                self.take_back();
            }
        }
        self.letters[from].answers = answers;
        Ok(())
    }

    /// Revokes the answers to other shards of this turn: replaces each by an error.
    pub fn take_back(&mut self) {
        for letter in &mut self.letters {
            letter.answers.replace_all(FAILED);
        }
    }

    /// Sends other shards their messages: requests, and answers too if those may be known.
    pub fn post(&mut self, with_answers: bool) {
        for (shard, letter) in self.letters.iter_mut().enumerate() {
            if shard == self.number || letter.is_empty() {
                continue;
            }
            let answers = match with_answers {
                true => Answers::default(),
                false => std::mem::take(&mut letter.answers),
            };
            let next = Letter {
                from: self.number,
                answers,
                ..Letter::default()
            };
            let letter = std::mem::replace(letter, next);
            if !letter.is_empty() {
                let held = letter.held();
                self.shared.buffered.fetch_add(held, Ordering::Relaxed);
                self.shared.mailboxes[shard].post(letter);
            }
        }
    }
}

/// Whether the answer may be as long as a value.
fn gives_value(request: &Request<'_>) -> bool {
    matches!(
        request,
        Request::Get { .. }
            | Request::Meta {
                verb: Verb::Get,
                ..
            }
            | Request::ListPart { .. }
    )
}
