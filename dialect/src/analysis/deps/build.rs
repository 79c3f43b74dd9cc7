//! From the accesses of a function to its edges.

use super::super::index::collect::Collected;
use super::super::index::event::{Event, Writes};
use super::super::index::storage::Part;
use super::super::index::walk::is_rewritten;
use super::super::index::{Frames, RANGE_LIMIT};
use super::graph::{Edge, Graph, Kinds, Source};
use super::level::Levels;
use super::ordered;
use super::sets::Sets;
use crate::bir::ops::{OpCode, Syntax};
use crate::bir::program::DepKind;
use crate::bir::types::MemType;
use crate::ir::{Def, Ir, Op};

/// Edges as they are found.
pub(super) struct Builder {
    pub(super) wanted: Kinds,
    pub(super) edges: Vec<(u32, Edge)>,
    pub(super) sets: Sets,
}

impl Builder {
    /// Adds edges from each of a list to an instruction, which is not in it.
    pub(super) fn all(&mut self, kind: DepKind, from: &[Source], to: u32) {
        if self.wanted.has(kind) {
            let edges = from.iter().map(|&source| (to, Edge::new(kind, source)));
            self.edges.extend(edges);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.edges.capacity() * size_of::<(u32, Edge)>() + self.sets.heap_bytes()
    }

    pub(super) fn one(&mut self, kind: DepKind, from: u32, to: u32) {
        self.edges
            .push((to, Edge::new(kind, Source::instruction(from))));
    }
}

impl Graph {
    /// The edges of a function, of the kinds wanted. Instructions are numbered in program order,
    /// blocks in reverse postorder; loops and branches are numbered with them.
    pub fn build(ir: &Ir, func: Op, wanted: Kinds) -> Graph {
        Graph::build_within(ir, func, wanted, RANGE_LIMIT)
    }

    /// The same with room for so many ranges of bytes, past which costly accesses count as all
    /// between their first and last byte.
    pub fn build_within(ir: &Ir, func: Op, wanted: Kinds, limit: usize) -> Graph {
        let mut all = Collected::new(ir, func, Frames::Addresses, limit);
        all.add_registers();
        let mut graph = Graph {
            ops: std::mem::take(&mut all.ops),
            capped: all.events.atoms.capped(),
            ..Graph::default()
        };
        let mut builder = Builder {
            wanted,
            edges: Vec::with_capacity(all.touches.len()),
            sets: Sets::default(),
        };
        // What the accesses take, and the most that one storage takes beside.
        let (held, mut most) = (all.heap_bytes(), 0);
        let memory = [DepKind::Flow, DepKind::Anti, DepKind::Output];
        if memory.iter().any(|&kind| wanted.has(kind)) {
            let mut levels = Levels::new(&all);
            let mut lists = Lists::default();
            for part in &all.events.parts {
                match is_simple(&all, part) {
                    true => lists.storage(&all, part, &mut builder),
                    false => levels.storage(part, &mut builder),
                }
            }
            most = levels.peak();
        }
        let peak = held + most + builder.heap_bytes();
        drop(all);
        if wanted.has(DepKind::Flow) {
            registers(ir, &graph.ops, &mut builder);
        }
        if wanted.has(DepKind::Ordered) {
            ordered::edges(ir, &graph.ops, &mut builder);
        }
        let found = builder.heap_bytes();
        let Builder { edges, sets, .. } = builder;
        sets.move_into(&mut graph);
        graph.set_edges(edges);
        graph.peak = peak.max(found + graph.heap_bytes());
        graph
    }
}

/// FLOW from what defines a register to what uses it, for registers nobody else writes.
fn registers(ir: &Ir, ops: &[Op], builder: &mut Builder) {
    let mut number: Vec<u32> = Vec::new();
    for (at, &op) in (0u32..).zip(ops) {
        if ir.result(op).is_some_and(|value| !is_rewritten(ir, value)) {
            if number.is_empty() {
                number.resize(ir.op_rows(), u32::MAX);
            }
            number[op.index()] = at;
        }
    }
    if number.is_empty() {
        return;
    }
    for (at, &op) in (0u32..).zip(ops) {
        let is_instruction =
            OpCode::of(ir, op).is_none_or(|code| code.def().syntax == Syntax::Instruction);
        if !is_instruction {
            continue;
        }
        for operand in ir.operands(op) {
            if MemType::get(&ir.ctx, ir.value_type(operand.value)).is_some() {
                continue;
            }
            if let Def::Result { op: from, .. } = ir.def(operand.value) {
                let from = number[from.index()];
                // The others are storages.
                if from < at {
                    builder.one(DepKind::Flow, from, at);
                }
            }
        }
    }
}

/// Whether a storage is one atom in one stretch outside of all loops.
fn is_simple(all: &Collected, part: &Part) -> bool {
    let events = all.events.of(part);
    let Some(first) = events.first() else {
        return true;
    };
    let segments = &all.flow.segments;
    let chain = segments[first.segment as usize].chain;
    part.map.count() == 1
        && events.iter().all(|event| {
            let segment = &segments[event.segment as usize];
            segment.chain == chain && segment.innermost.is_none()
        })
}

/// Who wrote and who read since, as lists: all that one atom needs.
#[derive(Default)]
struct Lists {
    writers: Vec<Source>,
    readers: Vec<Source>,
}

impl Lists {
    fn storage(&mut self, all: &Collected, part: &Part, builder: &mut Builder) {
        let events = all.events.of(part);
        self.writers.clear();
        self.readers.clear();
        let order = |event: &Event| all.order(event);
        let print = |event: &Event| all.events.extents[event.extent as usize].all;
        let atoms = &all.events.atoms;
        let mut from = 0;
        while from < events.len() {
            let to = order(&events[from]);
            let mut end = from + 1;
            while end < events.len() && order(&events[end]) == to {
                end += 1;
            }
            let own = &events[from..end];
            from = end;
            let touching = |event: &&Event| !atoms.ranges(print(event)).is_empty();
            let reads = own.iter().filter(touching).any(|e| e.effect.is_read());
            let writes = own.iter().filter(touching).any(|e| e.effect.is_write());
            if reads && builder.wanted.has(DepKind::Flow) {
                builder.sets.freeze(&mut self.writers);
                builder.all(DepKind::Flow, &self.writers, to);
            }
            if writes {
                if builder.wanted.has(DepKind::Output) {
                    builder.sets.freeze(&mut self.writers);
                    builder.all(DepKind::Output, &self.writers, to);
                }
                if builder.wanted.has(DepKind::Anti) {
                    builder.sets.freeze(&mut self.readers);
                    builder.all(DepKind::Anti, &self.readers, to);
                }
            }
            let must = own
                .iter()
                .filter(touching)
                .any(|e| e.effect.writes == Writes::Must && !atoms.is_hull(print(e)));
            if must {
                self.writers.clear();
                self.readers.clear();
            } else if reads {
                self.readers.push(Source::instruction(to));
            }
            if writes {
                self.writers.push(Source::instruction(to));
            }
        }
    }
}
