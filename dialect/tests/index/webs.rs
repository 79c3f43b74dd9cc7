//! Webs of random small programs against a run that notes who wrote every column last.

use std::fmt::Write as _;

use bir_dialect::analysis::index::{Frames, FunctionIndex};
use proptest::prelude::*;

use crate::function::{name, read};

const COLUMNS: usize = 6;

/// What an instruction does with the columns of `%t`.
#[derive(Clone, Copy, Debug)]
enum Item {
    Write(usize, usize),
    Read(usize, usize),
    /// Reads as many as it writes, from a column on.
    Move {
        from: usize,
        to: usize,
        count: usize,
    },
    /// Begins a loop of some trips, two at least, so that the second reads what the first wrote.
    Loop(usize),
    End,
}

fn item() -> impl Strategy<Value = Item> {
    let range = (0..COLUMNS, 0..COLUMNS).prop_map(|(a, b)| (a.min(b), a.max(b) + 1));
    let place = || 0..COLUMNS;
    prop_oneof![
        3 => range.clone().prop_map(|(from, to)| Item::Write(from, to)),
        3 => range.prop_map(|(from, to)| Item::Read(from, to)),
        2 => (place(), place(), 1..=3usize).prop_map(|(from, to, count)| {
            let count = count.min(COLUMNS - from.max(to));
            Item::Move { from, to, count }
        }),
        1 => (2..4usize).prop_map(Item::Loop),
        1 => Just(Item::End),
    ]
}

/// Leaves out ends of nothing, and ends what is open.
fn balanced(items: Vec<Item>) -> Vec<Item> {
    let mut open = 0;
    let mut kept: Vec<Item> = Vec::new();
    for item in items {
        match item {
            Item::End if open == 0 => continue,
            Item::End => open -= 1,
            Item::Loop(_) => open += 1,
            _ => {}
        }
        kept.push(item);
    }
    kept.extend((0..open).map(|_| Item::End));
    kept
}

fn text(items: &[Item]) -> String {
    let mut text = format!(
        "%y = alloc dram<4x{COLUMNS}xf32> {{kind = output}}\n%t = alloc sbuf<4x{COLUMNS}xf32>\n"
    );
    for (at, item) in items.iter().enumerate() {
        match *item {
            Item::Write(a, b) => writeln!(text, "memset %t[:, {a}:{b}] <- 1.0"),
            Item::Read(a, b) => writeln!(text, "save %y[:, {a}:{b}] <- %t[:, {a}:{b}]"),
            Item::Move { from, to, count } => writeln!(
                text,
                "tensor_scalar add %t[:, {to}:{}] <- %t[:, {from}:{}], 1.0",
                to + count,
                from + count
            ),
            Item::Loop(trips) => writeln!(text, "loop %i{at} = 0 to {trips} {{"),
            Item::End => writeln!(text, "}}"),
        }
        .unwrap();
    }
    text
}

/// The accesses in the order of the text, and which of them must stay together.
struct Run {
    /// Per item, its first access.
    first: Vec<usize>,
    leader: Vec<usize>,
    last: [Option<usize>; COLUMNS],
}

impl Run {
    fn find(&self, mut at: usize) -> usize {
        while self.leader[at] != at {
            at = self.leader[at];
        }
        at
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.leader[a.max(b)] = a.min(b);
    }

    fn read(&mut self, access: usize, columns: std::ops::Range<usize>) {
        for column in columns {
            if let Some(writer) = self.last[column] {
                self.unite(access, writer);
            }
        }
    }

    fn items(&mut self, items: &[Item], from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let access = self.first[at];
            match items[at] {
                Item::Write(a, b) => self.last[a..b].fill(Some(access)),
                Item::Read(a, b) => self.read(access, a..b),
                Item::Move { from, to, count } => {
                    self.read(access, from..from + count);
                    self.last[to..to + count].fill(Some(access + 1));
                    if from.abs_diff(to) < count {
                        self.unite(access, access + 1);
                    }
                }
                Item::Loop(trips) => {
                    let mut depth = 0;
                    let end = (at..to).find(|&at| {
                        match items[at] {
                            Item::Loop(_) => depth += 1,
                            Item::End => depth -= 1,
                            _ => {}
                        }
                        depth == 0
                    });
                    for _ in 0..trips {
                        self.items(items, at + 1, end.unwrap());
                    }
                    at = end.unwrap();
                }
                Item::End => {}
            }
            at += 1;
        }
    }
}

/// The web of every access.
fn expected(items: &[Item]) -> Vec<u32> {
    let mut count = 0;
    let first = items.iter().map(|item| {
        let here = count;
        count += match item {
            Item::Write(..) | Item::Read(..) => 1,
            Item::Move { .. } => 2,
            Item::Loop(_) | Item::End => 0,
        };
        here
    });
    let first: Vec<usize> = first.collect();
    let mut run = Run {
        first,
        leader: (0..count).collect(),
        last: [None; COLUMNS],
    };
    run.items(items, 0, items.len());
    let mut leaders: Vec<usize> = Vec::new();
    (0..count)
        .map(|access| {
            let leader = run.find(access);
            let known = leaders.iter().position(|&known| known == leader);
            known.unwrap_or_else(|| {
                leaders.push(leader);
                leaders.len() - 1
            }) as u32
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn webs_are_what_a_run_over_columns_ties_together(
        items in proptest::collection::vec(item(), 1..14).prop_map(balanced),
    ) {
        let body = text(&items);
        let (ir, func) = read(&body);
        let index = FunctionIndex::build(&ir, func, Frames::Locations);
        let is_tile = |at: &u32| name(&ir, index.locations()[*at as usize].value) == "t";
        let tile = (0..index.locations().len() as u32).find(is_tile).unwrap();
        let found: Vec<u32> = index.webs(tile).iter().map(|web| web.web).collect();
        prop_assert_eq!(found, expected(&items), "{}", body);
    }
}
