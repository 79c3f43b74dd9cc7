//! Each rule once.
//!
//! Instructions that the automaton does not tell apart are one *class*; a rule visits those of the
//! classes it is a candidate of and no others, so a rule that cannot match costs nothing per instruction.

use std::ops::Range;

use bir_dialect::ir::{Block, Ir, Op};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::Work;
use crate::automaton::{Automaton, Class, FormId};

type Fixed = foldhash::fast::FixedState;

/// Instructions by class.
struct Places {
    automaton: Automaton,
    /// Per class; those that were there from the start in program order, then those rules made.
    ops: Vec<Vec<Op>>,
    /// Per class, whether rules made some.
    grown: Vec<bool>,
    /// Per rule, the classes it is a candidate of, and where its forms stand in their lists.
    of_rule: Vec<Vec<(Class, Range<usize>)>>,
    /// Number of each block, in program order.
    blocks: HashMap<Block, u32, Fixed>,
}

/// Where an instruction stands: block and place in it, from the function's body inwards.
type Position = SmallVec<[(u32, u32); 3]>;

impl Places {
    fn new(ir: &mut Ir, work: &Work<'_>) -> Places {
        // Who wants to know why rules do not fire wants to know it of all of them.
        let automaton = match work.settings.remarks.missed() {
            true => Automaton::of_ops(work.set),
            false => Automaton::new(&mut ir.ctx, work.set, &|rule| work.on[rule]),
        };
        let mut places = Places {
            automaton,
            ops: Vec::new(),
            grown: Vec::new(),
            of_rule: vec![Vec::new(); work.set.rules.len()],
            blocks: HashMap::default(),
        };
        let func = work.flow.func();
        let mut last = None;
        for op in ir.walk_op(func) {
            let block = ir.block(op);
            if block != last
                && op != func
                && let Some(block) = block
            {
                let number = places.blocks.len() as u32;
                places.blocks.entry(block).or_insert(number);
            }
            last = block;
            places.add(ir, op);
        }
        places.grown.fill(false);
        places
    }

    /// Takes up an instruction.
    fn add(&mut self, ir: &Ir, op: Op) {
        let class = self.automaton.class(ir, op);
        if class == Class::NONE {
            return;
        }
        if self.ops.len() <= class.index() {
            self.ops.resize_with(class.index() + 1, Vec::new);
            self.grown.resize(class.index() + 1, false);
        }
        self.grown[class.index()] = true;
        let ops = &mut self.ops[class.index()];
        if ops.is_empty() {
            let mut at = 0;
            for forms in self.automaton.forms(class).chunk_by(|a, b| a.0 == b.0) {
                self.of_rule[forms[0].0 as usize].push((class, at..at + forms.len()));
                at += forms.len();
            }
        }
        ops.push(op);
    }

    /// Where a rule may match, in program order, and which of its forms.
    fn of(&self, ir: &Ir, rule: usize) -> Vec<(Op, &[FormId])> {
        let mut all: Vec<(Op, &[FormId])> = Vec::new();
        for (class, range) in &self.of_rule[rule] {
            let forms = &self.automaton.forms(*class)[range.clone()];
            all.extend(self.ops[class.index()].iter().map(|&op| (op, forms)));
        }
        all.retain(|&(op, _)| !ir.is_erased(op));
        match &self.of_rule[rule][..] {
            [] => {}
            [(class, _)] if !self.grown[class.index()] => {}
            _ => all.sort_by_cached_key(|&(op, _)| self.position(ir, op)),
        }
        all
    }

    fn position(&self, ir: &Ir, op: Op) -> Position {
        let mut position = Position::new();
        let mut at = Some(op);
        while let Some(op) = at
            && let Some(&block) = ir.block(op).and_then(|block| self.blocks.get(&block))
        {
            position.push((block, ir.order_in_block(op)));
            at = ir.parent(op);
        }
        position.reverse();
        position
    }
}

/// Applies every rule once, in order.
pub(super) fn run(ir: &mut Ir, work: &mut Work<'_>) {
    let mut places = Places::new(ir, work);
    for rule in 0..work.set.rules.len() {
        let mut made: Vec<Op> = Vec::new();
        let mut gone: HashSet<Op, Fixed> = HashSet::default();
        for (op, forms) in places.of(ir, rule) {
            if ir.is_erased(op) || gone.contains(&op) {
                continue;
            }
            if let Some(done) = work.attempt(ir, forms, op) {
                made.extend(done.made);
                gone.extend(done.gone);
            }
            if work.over() {
                return;
            }
        }
        if !made.is_empty() || !gone.is_empty() {
            work.settle(ir);
        }
        for op in made.into_iter().filter(|&op| !ir.is_erased(op)) {
            places.add(ir, op);
        }
    }
}
