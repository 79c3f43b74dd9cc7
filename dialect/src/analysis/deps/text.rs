//! Edges as the program's own `deps` and `depset`.

use hashbrown::HashMap;

use super::graph::{Edge, Graph, Kinds, Source};
use super::sets::Sets;
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, Dep, DepKind, op_name};
use crate::ir::{Block, Cursor, Dict, Ir, NewOp, Op};

type Fixed = foldhash::fast::FixedState;

/// The edges a program states, over its instructions in text order. What names nothing is left
/// out; the verifier refuses it.
pub fn attached(ir: &Ir, func: Op) -> Graph {
    let mut stated: Vec<Op> = Vec::new();
    let mut graph = Graph::default();
    let mut number_of = Numbers::default();
    for op in ir.walk_op(func).skip(1) {
        match OpCode::of(ir, op) {
            Some(OpCode::Alloc) => {}
            Some(OpCode::Depset) => stated.push(op),
            _ => {
                if let Some(id) = ir.int_cell(COL_ID, op) {
                    number_of.insert(id, graph.ops.len() as u32);
                }
                graph.ops.push(op);
            }
        }
    }
    let mut sets = Sets::default();
    let set_of = read_sets(ir, &stated, &number_of, &mut sets);
    for at in 0..graph.ops.len() {
        let words = ir.words_cell(COL_DEPS, graph.ops[at]).unwrap_or_default();
        graph.push_edges(words.iter().filter_map(|&word| {
            let dep = Dep::from_word(word);
            let source = match dep.set {
                true => set_of.get(&dep.id).copied(),
                false => number_of.get(dep.id).map(Source::instruction),
            };
            Some(Edge::new(dep.kind, source?))
        }));
    }
    sets.move_into(&mut graph);
    graph.close_edges();
    graph
}

/// Instructions by what the program calls them: most programs count from 0, so a list will do, and
/// who asks in order finds in order.
#[derive(Default)]
struct Numbers {
    /// Per id, the number; `u32::MAX` where there is none.
    list: Vec<u32>,
    /// Ids far beyond the number of instructions.
    beyond: HashMap<u32, u32, Fixed>,
}

impl Numbers {
    /// Says what the last of so many instructions is called.
    fn insert(&mut self, id: u32, number: u32) {
        let at = id as usize;
        if at >= self.list.len() {
            if at > 4 * (number as usize + 256) {
                self.beyond.insert(id, number);
                return;
            }
            self.list.resize(at + 1, u32::MAX);
        }
        self.list[at] = number;
    }

    fn get(&self, id: u32) -> Option<u32> {
        match self.list.get(id as usize) {
            Some(&number) if number != u32::MAX => Some(number),
            _ if self.beyond.is_empty() => None,
            _ => self.beyond.get(&id).copied(),
        }
    }
}

/// Sets in an order in which members come first; those on a cycle stay out.
fn read_sets(
    ir: &Ir,
    stated: &[Op],
    number_of: &Numbers,
    sets: &mut Sets,
) -> HashMap<u32, Source, Fixed> {
    let mut of_id: HashMap<u32, Op, Fixed> = HashMap::default();
    for &op in stated {
        if let Some(id) = ir.int_cell(COL_ID, op) {
            of_id.entry(id).or_insert(op);
        }
    }
    let mut made: HashMap<u32, Source, Fixed> = HashMap::default();
    let mut open: HashMap<u32, (), Fixed> = HashMap::default();
    for &op in stated {
        let Some(id) = ir.int_cell(COL_ID, op) else {
            continue;
        };
        let mut stack = vec![id];
        while let Some(&id) = stack.last() {
            let words = of_id
                .get(&id)
                .and_then(|&op| ir.words_cell(COL_DEPS, op))
                .unwrap_or_default();
            let members = || words.iter().map(|&word| Dep::from_word(word));
            let first_visit = open.insert(id, ()).is_none();
            if made.contains_key(&id) {
                stack.pop();
                continue;
            }
            if first_visit {
                let inner = members().filter(|dep| dep.set && of_id.contains_key(&dep.id));
                stack.extend(inner.map(|dep| dep.id).filter(|id| !open.contains_key(id)));
                if stack.last() != Some(&id) {
                    continue;
                }
            }
            let list: Vec<Source> = members()
                .filter_map(|dep| match dep.set {
                    true => made.get(&dep.id).copied(),
                    false => number_of.get(dep.id).map(Source::instruction),
                })
                .collect();
            made.insert(id, sets.make(&list));
            stack.pop();
        }
    }
    made
}

/// States edges in the program, in place of those of the kinds `replaced`. Instructions that need
/// a number get one; sets stand at the end of the function's first block. Returns whether anything
/// is written otherwise than before.
pub fn attach(ir: &mut Ir, func: Op, graph: &Graph, replaced: Kinds) -> bool {
    let Some(block) = ir
        .regions(func)
        .first()
        .and_then(|&region| ir.entry(region))
    else {
        return false;
    };
    let old_sets: Vec<Op> = ir
        .walk_op(func)
        .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Depset))
        .collect();
    let has_kept = keeps_some(ir, &graph.ops, replaced);
    let merged;
    let graph = match has_kept {
        true => {
            merged = merge(graph, &attached(ir, func), replaced);
            &merged
        }
        false => graph,
    };
    let names = Names::new(ir, graph);
    let mut changed = false;
    for &(op, id) in &names.new_ids {
        ir.set_int_cell(COL_ID, op, Some(id));
        changed = true;
    }
    let mut words: Vec<u64> = Vec::new();
    for (at, &op) in (0u32..).zip(&graph.ops) {
        words.clear();
        words.extend(graph.edges(at).iter().map(|&edge| names.word(edge)));
        words.sort_unstable_by_key(|&word| {
            let dep = Dep::from_word(word);
            (dep.kind, dep.set, dep.id)
        });
        words.dedup();
        let old = ir.words_cell(COL_DEPS, op);
        if old.unwrap_or_default() == words {
            continue;
        }
        changed = true;
        ir.set_words_cell(COL_DEPS, op, (!words.is_empty()).then_some(&words[..]));
    }
    changed | write_sets(ir, block, graph, &names, &old_sets)
}

/// Removes the edges of some kinds; whether there were any.
pub fn detach(ir: &mut Ir, func: Op, kinds: Kinds) -> bool {
    let graph = attached(ir, func);
    let none = Graph {
        ops: graph.ops,
        starts: vec![0; graph.starts.len()],
        set_starts: vec![0],
        ..Graph::default()
    };
    attach(ir, func, &none, kinds)
}

fn keeps_some(ir: &Ir, ops: &[Op], replaced: Kinds) -> bool {
    if replaced == Kinds::ALL {
        return false;
    }
    ops.iter().any(|&op| {
        let words = ir.words_cell(COL_DEPS, op).unwrap_or_default();
        words
            .iter()
            .any(|&word| !replaced.has(Dep::from_word(word).kind))
    })
}

/// Edges of `graph`, and those of `old` of kinds that are not replaced.
fn merge(graph: &Graph, old: &Graph, replaced: Kinds) -> Graph {
    let mut merged = Graph {
        ops: graph.ops.clone(),
        ..Graph::default()
    };
    // Both count alike where there are no branches.
    let alike = graph.ops == old.ops;
    let rows = match alike {
        true => 0,
        false => graph.ops.iter().map(|op| op.index() + 1).max().unwrap_or(0),
    };
    let mut number = vec![u32::MAX; rows];
    for (at, op) in (0u32..).zip(&graph.ops).filter(|_| !alike) {
        number[op.index()] = at;
    }
    let here = |at: u32| {
        if alike {
            return Some(at);
        }
        let op = old.ops[at as usize];
        number.get(op.index()).copied().filter(|&at| at != u32::MAX)
    };
    let shift = graph.set_count();
    let moved = |source: Source| match source.is_set() {
        true => Some(Source::set(source.number() + shift)),
        false => here(source.number()).map(Source::instruction),
    };
    let mut sets = Sets {
        starts: graph.set_starts.clone(),
        members: graph.members.clone(),
    };
    for set in 0..old.set_count() {
        let members: Vec<Source> = old.members(set).iter().filter_map(|&m| moved(m)).collect();
        sets.make(&members);
    }
    // Where each instruction stands in the old graph.
    let mut stood = vec![u32::MAX; if alike { 0 } else { graph.ops.len() }];
    for at in (0..old.ops.len() as u32).filter(|_| !alike) {
        if let Some(to) = here(at) {
            stood[to as usize] = at;
        }
    }
    for at in 0..graph.ops.len() as u32 {
        let before = match alike {
            true => at,
            false => stood[at as usize],
        };
        let kept = match before {
            u32::MAX => &[],
            before => old.edges(before),
        };
        let kept = kept.iter().filter(|edge| !replaced.has(edge.kind()));
        let kept = kept.filter_map(|edge| Some(Edge::new(edge.kind(), moved(edge.source())?)));
        merged.push_edges(graph.edges(at).iter().copied().chain(kept));
    }
    sets.move_into(&mut merged);
    merged.close_edges();
    merged
}

/// What no instruction is numbered.
const NO_ID: u32 = u32::MAX;

/// So many numbers that no instruction has: those behind the largest, or, where too few are left
/// there, the smallest. There always are so many, as instructions are counted in fewer bits.
fn free_ids(ids: &[u32], count: usize) -> Vec<u32> {
    let taken = ids.iter().copied().filter(|&id| id != NO_ID);
    let next = taken.clone().max().map_or(0, |id| id + 1);
    if (NO_ID - next) as usize >= count {
        return (next..NO_ID).take(count).collect();
    }
    let mut taken: Vec<u32> = taken.collect();
    taken.sort_unstable();
    let mut taken = taken.into_iter().peekable();
    let is_free = |id: &u32| {
        while taken.next_if(|other| other < id).is_some() {}
        taken.peek() != Some(id)
    };
    (0..NO_ID).filter(is_free).take(count).collect()
}

/// Numbers in the program.
struct Names {
    ids: Vec<u32>,
    new_ids: Vec<(Op, u32)>,
    /// Per set of the graph, its number, from 1; 0 where nothing names it.
    sets: Vec<u32>,
    /// Sets by their number.
    in_order: Vec<u32>,
}

impl Names {
    fn new(ir: &Ir, graph: &Graph) -> Names {
        // Sets are numbered where they are needed first, members before.
        let mut sets = vec![0u32; graph.set_count() as usize];
        let mut in_order: Vec<u32> = Vec::new();
        let mut needed = vec![false; graph.ops.len()];
        let mut stack: Vec<u32> = Vec::new();
        for edge in &graph.edges {
            let source = edge.source();
            if !source.is_set() {
                needed[source.number() as usize] = true;
                continue;
            }
            stack.push(source.number());
            while let Some(&set) = stack.last() {
                if sets[set as usize] != 0 {
                    stack.pop();
                    continue;
                }
                let mut ready = true;
                // The last pushed is numbered first.
                for member in graph.members(set).iter().rev() {
                    if member.is_set() && sets[member.number() as usize] == 0 {
                        stack.push(member.number());
                        ready = false;
                    } else if !member.is_set() {
                        needed[member.number() as usize] = true;
                    }
                }
                if ready {
                    in_order.push(set);
                    sets[set as usize] = in_order.len() as u32;
                    stack.pop();
                }
            }
        }
        let stated = |&op: &Op| ir.int_cell(COL_ID, op).unwrap_or(NO_ID);
        let mut ids: Vec<u32> = graph.ops.iter().map(stated).collect();
        let unnamed = |at: &usize| needed[*at] && ids[*at] == NO_ID;
        let nameless: Vec<usize> = (0..ids.len()).filter(unnamed).collect();
        let free = free_ids(&ids, nameless.len());
        let mut new_ids = Vec::with_capacity(nameless.len());
        for (at, id) in nameless.into_iter().zip(free) {
            ids[at] = id;
            new_ids.push((graph.ops[at], id));
        }
        Names {
            ids,
            new_ids,
            sets,
            in_order,
        }
    }

    fn dep(&self, kind: DepKind, source: Source) -> Dep {
        let at = source.number() as usize;
        Dep {
            kind,
            id: match source.is_set() {
                true => self.sets[at],
                false => self.ids[at],
            },
            set: source.is_set(),
        }
    }

    fn word(&self, edge: Edge) -> u64 {
        self.dep(edge.kind(), edge.source()).word()
    }
}

/// Makes the sets of the program those of the graph; whether they were others.
fn write_sets(ir: &mut Ir, block: Block, graph: &Graph, names: &Names, old: &[Op]) -> bool {
    let mut lists: Vec<Vec<u64>> = Vec::with_capacity(names.in_order.len());
    for &set in &names.in_order {
        let members = graph.members(set).iter();
        let mut words: Vec<u64> = members
            .map(|&member| names.dep(DepKind::Ordered, member).word())
            .collect();
        words.sort_unstable();
        words.dedup();
        lists.push(words);
    }
    let same = old.len() == lists.len()
        && old.iter().zip(&lists).zip(1u32..).all(|((&op, list), id)| {
            ir.int_cell(COL_ID, op) == Some(id)
                && ir.words_cell(COL_DEPS, op).unwrap_or_default() == list
                && ir.block(op) == Some(block)
        });
    if same {
        return false;
    }
    for &op in old {
        ir.erase(op);
    }
    let end = ir.last_op(block).filter(|&op| ir.traits(op).terminator);
    for (list, id) in lists.iter().zip(1u32..) {
        let new = NewOp {
            name: op_name(OpCode::Depset),
            operands: &[],
            results: &[],
            dict: Dict::EMPTY,
            successors: &[],
            regions: 0,
            loc: None,
        };
        let cursor = match end {
            Some(end) => Cursor::Before(end),
            None => Cursor::End(block),
        };
        let op = ir.insert(cursor, new);
        ir.set_int_cell(COL_ID, op, Some(id));
        ir.set_words_cell(COL_DEPS, op, Some(list));
    }
    true
}
