//! The site map: which allocation sites' objects go to which memory. Written down for the shim.

use super::format::{self, Rule};
use super::rules::Rules;
use crate::nodes::Kinds;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Fast memory, of which there is little.
    Fast,
    /// Slow memory.
    Slow,
}

/// A frame of a stack: the address to which a call returns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameRef {
    /// The program's or library's file: a name, or a path that ends in it.
    pub module: String,
    /// Its build id in hexadecimal digits, empty if it is not known. A module of another build is not placed.
    pub build_id: String,
    /// The return address, as the linker numbers addresses in the file (before it is loaded somewhere).
    pub offset: u64,
}

/// An allocation site.
#[derive(Clone, Debug)]
pub struct Site {
    /// From the return address of `malloc` (or `mmap`) outwards. All known callers; only as many are compared as
    /// are needed to tell sites of different tiers apart.
    pub stack: Vec<FrameRef>,
    /// Where its objects go.
    pub tier: Tier,
    /// Fast memory that is kept for it, bytes. What it takes beyond is taken while there is room.
    pub promised_bytes: u64,
    /// How much it deserves fast memory: 0 most.
    pub rank: u32,
}

/// A static variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// As in [`FrameRef`].
    pub module: String,
    /// As in [`FrameRef`].
    pub build_id: String,
    /// Its first address, as the linker numbers them.
    pub address: u64,
    /// Its size. Only pages that it has alone are placed.
    pub bytes: u64,
    /// Where it goes.
    pub tier: Tier,
}

/// Where a program's objects go.
#[derive(Clone, Debug)]
pub struct SiteMap {
    /// The sites, in any order.
    pub sites: Vec<Site>,
    /// Static variables.
    pub variables: Vec<Variable>,
    /// Objects of which no site decides; `None` leaves them to the kernel.
    pub default_tier: Option<Tier>,
    /// Fast memory for objects of all processes of the run together, bytes.
    pub budget_bytes: u64,
    /// The nodes of each tier.
    pub kinds: Kinds,
}

/// Sites that are placed as one: of the same tier, and reached by calls that need not be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// Indices of [`SiteMap::sites`].
    Sites(Vec<usize>),
    /// Of which no site decides.
    Undecided,
    /// Objects that the program itself requested in a tier (`varve.h`).
    Asked(Tier),
}

/// A map as the shim reads it.
pub(crate) struct Compiled {
    pub words: Vec<u64>,
    pub groups: Vec<Group>,
    /// Failures, a line each.
    pub notes: Vec<String>,
}

impl Compiled {
    /// The file that the shim reads.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// A return address, seen from those that it called.
struct Node {
    parent: Option<usize>,
    module: usize,
    address: u64,
    /// Sites whose stacks end here.
    ends: Vec<usize>,
    /// The group that is known here without asking callers.
    decided: Option<usize>,
    /// The group of `ends`, where callers have to be asked.
    ended: Option<usize>,
}

#[derive(Default)]
struct Trie {
    /// Path or name, and build id.
    modules: Vec<(String, String)>,
    nodes: Vec<Node>,
    /// By node that was called (none for the allocator), module and address.
    index: BTreeMap<(Option<usize>, usize, u64), usize>,
}

impl Trie {
    fn module(&mut self, path: &str, build_id: &str) -> usize {
        let same = |m: &(String, String)| base_name(&m.0) == base_name(path) && m.1 == build_id;
        self.modules.iter().position(same).unwrap_or_else(|| {
            self.modules.push((path.into(), build_id.into()));
            self.modules.len() - 1
        })
    }

    fn add(&mut self, site: usize, stack: &[FrameRef]) {
        let mut parent = None;
        for frame in stack {
            let module = self.module(&frame.module, &frame.build_id);
            let new = self.nodes.len();
            let node = *self
                .index
                .entry((parent, module, frame.offset))
                .or_insert(new);
            if node == new {
                let (ends, decided, ended) = (Vec::new(), None, None);
                let address = frame.offset;
                self.nodes.push(Node {
                    parent,
                    module,
                    address,
                    ends,
                    decided,
                    ended,
                });
            }
            parent = Some(node);
        }
        if let Some(last) = parent {
            self.nodes[last].ends.push(site);
        }
    }

    fn children(&self, of: Option<usize>) -> Vec<usize> {
        let from = (of, 0, 0)..=(of, usize::MAX, u64::MAX);
        self.index.range(from).map(|(_, node)| *node).collect()
    }

    /// All sites whose stacks go through a node.
    fn below(&self, node: usize, sites: &mut Vec<usize>) {
        sites.extend(&self.nodes[node].ends);
        for child in self.children(Some(node)) {
            self.below(child, sites);
        }
    }

    /// Puts sites that need not be told apart together, from a node outwards.
    fn decide(&mut self, node: usize, sites: &[Site], groups: &mut Vec<Vec<usize>>) {
        let mut below = Vec::new();
        self.below(node, &mut below);
        below.sort_unstable();
        if below.iter().all(|s| sites[*s].tier == sites[below[0]].tier) {
            self.nodes[node].decided = Some(groups.len());
            return groups.push(below);
        }
        if !self.nodes[node].ends.is_empty() {
            self.nodes[node].ended = Some(groups.len());
            groups.push(self.nodes[node].ends.clone());
        }
        for child in self.children(Some(node)) {
            self.decide(child, sites, groups);
        }
    }
}

/// The last part of a path.
pub(super) fn base_name(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// The number of a tier in the file.
fn word(tier: Tier) -> u64 {
    match tier {
        Tier::Fast => format::FAST,
        Tier::Slow => format::SLOW,
    }
}

impl SiteMap {
    /// Writes the map down. `find` finds a module's file by its name; it is read where callers have to be asked.
    ///
    /// # Errors
    /// A line about what is wrong with the map.
    pub(crate) fn compile(
        &self,
        find: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<Compiled, String> {
        let mut trie = Trie::default();
        let mut stacks: BTreeMap<&[FrameRef], usize> = BTreeMap::new();
        for (index, site) in self.sites.iter().enumerate() {
            if site.stack.is_empty() {
                return Err(format!(
                    "site {index} has no stack: give at least the return address of its call"
                ));
            }
            let first = *stacks.entry(&site.stack).or_insert(index);
            if self.sites[first].tier != site.tier {
                return Err(format!(
                    "sites {first} and {index} have the same stack and different memory"
                ));
            }
            trie.add(index, &site.stack);
        }
        let mut groups = Vec::new();
        for root in trie.children(None) {
            trie.decide(root, &self.sites, &mut groups);
        }
        if groups.len() > format::MOST_GROUPS {
            let most = format::MOST_GROUPS;
            return Err(format!(
                "{} groups of sites are more than {most}: leave out those with the fewest bytes",
                groups.len()
            ));
        }
        // The worthiest first; among equals, as given.
        let worth = |g: &Vec<usize>| g.iter().map(|s| self.sites[*s].rank).min();
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|g| (worth(&groups[*g]), groups[*g][0]));
        let mut place = vec![0; groups.len()];
        for (position, group) in order.iter().enumerate() {
            place[*group] = position;
        }
        let group_word = |group: Option<usize>| group.map_or(0, |g| place[g] as u64 + 1);

        let (rules, notes) = self.rules(&trie, find)?;
        let variables: Vec<[u64; 4]> = self
            .variables
            .iter()
            .map(|v| {
                let module = trie.module(&v.module, &v.build_id);
                [module as u64, v.address, v.bytes, word(v.tier)]
            })
            .collect();

        let own_groups = [
            (
                self.default_tier.map_or(format::ANYWHERE, word),
                Group::Undecided,
            ),
            (format::FAST, Group::Asked(Tier::Fast)),
            (format::SLOW, Group::Asked(Tier::Slow)),
        ];
        let mut words = vec![format::MAGIC, self.budget_bytes, own_groups[0].0];
        words.extend(
            [
                trie.modules.len(),
                trie.nodes.len(),
                groups.len() + own_groups.len(),
                variables.len(),
            ]
            .map(|n| n as u64),
        );
        words.push(0);
        for nodes in [&self.kinds.fast, &self.kinds.slow] {
            let mut mask = [0u64; format::MASK_WORDS];
            for node in nodes {
                mask[*node as usize / 64] |= 1 << (node % 64);
            }
            words.extend(mask);
        }
        let mut text = Vec::new();
        let mut put = |bytes: &[u8]| {
            let first = text.len() as u64;
            text.extend(bytes);
            [first, bytes.len() as u64]
        };
        for (module, build_id) in &trie.modules {
            words.extend(put(base_name(module).as_bytes()));
            let id = bytes_of(build_id).ok_or_else(|| {
                format!("the build id {build_id:?} of {module} is not a hexadecimal number")
            })?;
            words.extend(put(&id));
        }
        for (index, node) in trie.nodes.iter().enumerate() {
            let parent = node.parent.map_or(0, |p| p as u64 + 1);
            let rule = rules.get(&index).map_or(0, |r| r.packed());
            let (decided, ended) = (group_word(node.decided), group_word(node.ended));
            words.extend([
                parent,
                node.module as u64,
                node.address,
                decided,
                ended,
                rule,
            ]);
        }
        for group in &order {
            let sites = groups[*group].iter().map(|s| &self.sites[*s]);
            let promised = sites.fold(0u64, |sum, s| sum.saturating_add(s.promised_bytes));
            words.extend([word(self.sites[groups[*group][0]].tier), promised]);
        }
        words.extend(own_groups.iter().flat_map(|(tier, _)| [*tier, 0]));
        words.extend(variables.concat());
        text.resize(text.len().next_multiple_of(8), 0);
        words.extend(text.as_chunks().0.iter().map(|c| u64::from_le_bytes(*c)));

        let groups = order.iter().map(|g| Group::Sites(groups[*g].clone()));
        let groups = groups.chain(own_groups.map(|(_, group)| group)).collect();
        Ok(Compiled {
            words,
            groups,
            notes,
        })
    }

    /// The rules of return addresses whose callers have to be asked.
    fn rules(
        &self,
        trie: &Trie,
        find: &mut dyn FnMut(&str) -> Option<PathBuf>,
    ) -> Result<(BTreeMap<usize, Rule>, Vec<String>), String> {
        let mut files: BTreeMap<usize, Option<Rules>> = BTreeMap::new();
        let (mut rules, mut notes) = (BTreeMap::new(), Vec::new());
        let mut without: BTreeMap<usize, u64> = BTreeMap::new();
        for (index, node) in trie.nodes.iter().enumerate() {
            let above_decided = std::iter::successors(node.parent, |p| trie.nodes[*p].parent);
            if node.decided.is_some()
                || above_decided
                    .into_iter()
                    .any(|p| trie.nodes[p].decided.is_some())
            {
                continue;
            }
            let (name, build_id) = &trie.modules[node.module];
            let file =
                files
                    .entry(node.module)
                    .or_insert_with(|| match read(name, build_id, find) {
                        Ok(rules) => Some(rules),
                        Err(why) => {
                            notes.push(why);
                            None
                        }
                    });
            match file.as_ref().map(|f| f.at(node.address)) {
                Some(Some(rule)) => _ = rules.insert(index, rule),
                Some(None) => *without.entry(node.module).or_default() += 1,
                None => {}
            }
        }
        notes.extend(without.iter().map(|(module, count)| {
            format!("{}: no rule leads on from {count} return addresses, so their callers are not distinguished", trie.modules[*module].0)
        }));
        Ok((rules, notes))
    }
}

fn read(
    name: &str,
    build_id: &str,
    find: &mut dyn FnMut(&str) -> Option<PathBuf>,
) -> Result<Rules, String> {
    let blind = "so callers beyond it are not distinguished";
    let path = find(name).ok_or_else(|| format!("no file of module {name} is found, {blind}"))?;
    let rules = Rules::read(Path::new(&path)).map_err(|why| format!("{why}, {blind}"))?;
    let same = build_id.is_empty() || bytes_of(build_id).is_some_and(|id| id == rules.build_id());
    if same {
        Ok(rules)
    } else {
        Err(format!(
            "{} is another build than the profile's, {blind}",
            path.display()
        ))
    }
}

/// Hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?, 16).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: u64) -> FrameRef {
        FrameRef {
            module: "service".into(),
            build_id: String::new(),
            offset,
        }
    }

    fn site(stack: &[u64], tier: Tier, rank: u32) -> Site {
        Site {
            stack: stack.iter().copied().map(frame).collect(),
            tier,
            promised_bytes: 10,
            rank,
        }
    }

    fn compiled(sites: &[Site]) -> Result<Compiled, String> {
        let map = SiteMap {
            sites: sites.to_vec(),
            variables: Vec::new(),
            default_tier: None,
            budget_bytes: 100,
            kinds: Kinds {
                fast: vec![0],
                slow: vec![65],
            },
        };
        map.compile(&mut |_| None)
    }

    #[test]
    fn sites_of_one_tier_behind_one_call_are_one_group() {
        use Tier::{Fast, Slow};
        let compiled = compiled(&[
            site(&[1, 2], Slow, 5),
            site(&[1, 3], Slow, 4),
            site(&[9], Fast, 1),
        ])
        .unwrap();
        assert_eq!(
            compiled.groups[..2],
            [Group::Sites(vec![2]), Group::Sites(vec![0, 1])]
        );
        assert_eq!(
            compiled.notes,
            Vec::<String>::new(),
            "no caller is asked, so no file is read"
        );
    }

    #[test]
    fn sites_of_different_tiers_behind_one_call_are_told_apart() {
        use Tier::{Fast, Slow};
        let compiled = compiled(&[
            site(&[1, 2], Fast, 0),
            site(&[1, 3], Slow, 1),
            site(&[1], Slow, 2),
        ])
        .unwrap();
        let groups = [0, 1, 2].map(|s| Group::Sites(vec![s]));
        assert_eq!(compiled.groups[..3], groups);
        assert!(
            compiled.notes[0].contains("no file of module service"),
            "{:?}",
            compiled.notes
        );
        let mask = &compiled.words[format::SLOW_NODES..][..2];
        assert_eq!(mask, [0, 2], "node 65");
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let same = compiled(&[site(&[1, 2], Tier::Fast, 0), site(&[1, 2], Tier::Slow, 1)]);
        assert!(same.err().unwrap().contains("sites 0 and 1"));
        assert!(
            compiled(&[site(&[], Tier::Fast, 0)])
                .err()
                .unwrap()
                .contains("site 0")
        );
        assert_eq!(bytes_of("0aF"), None);
        assert_eq!(bytes_of("0aff"), Some(vec![10, 255]));
    }
}
