//! Makes a program smaller while it stays interesting.
//!
//! A candidate is the best program so far with one thing simplified. It is kept if it is still
//! valid (where that is asked for) and the caller's test says yes. What takes away most is tried
//! first: what all outputs but one need, runs of instructions, then loops and branches, locations, operands, accesses, shapes,
//! attributes and numbers; round after round, until nothing helps.
//!
//! Invariants:
//!
//! * the result is interesting: it is the last candidate the test said yes to, or the input;
//! * no candidate is tested twice; their order depends on the program alone;
//! * every step makes the program smaller by `measure`, so it ends.

mod access;
mod attributes;
mod cones;
mod control;
mod locations;
mod ops;

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::{Ir, Op};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, PrintOptions, parse, print};
use hashbrown::HashSet;

/// How to reduce.
#[derive(Clone, Copy, Debug)]
pub struct ReduceOptions {
    /// Only programs that verify clean at every level are tested.
    pub keep_valid: bool,
    /// Most candidates tested.
    pub max_tests: usize,
}

impl Default for ReduceOptions {
    fn default() -> ReduceOptions {
        ReduceOptions {
            keep_valid: true,
            max_tests: 100_000,
        }
    }
}

/// What has been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReduceStats {
    /// Candidates made.
    pub candidates: usize,
    /// Candidates that were not valid, or tested before.
    pub dropped: usize,
    /// Candidates tested.
    pub tests: usize,
    /// Candidates kept.
    pub kept: usize,
}

/// Whether a program verifies clean at every level.
pub fn is_valid(ir: &Ir) -> bool {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    !diags.has_errors()
}

/// Instructions of a program: everything executed or branched on, and no locations.
pub fn instructions(ir: &Ir) -> usize {
    ir.walk()
        .ops()
        .filter(|&op| {
            !matches!(
                OpCode::of(ir, op),
                Some(OpCode::Module | OpCode::Func | OpCode::Alloc)
            )
        })
        .count()
}

/// What every step makes smaller: instructions, then their operands, then the text and the
/// numbers in it.
type Measure = (usize, usize, usize, u64);

fn measure(ir: &Ir, text: &str) -> Measure {
    let mut sum = 0u64;
    let mut number = 0u64;
    for byte in text.bytes() {
        if byte.is_ascii_digit() {
            number = number
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'));
        } else {
            sum = sum.saturating_add(number);
            number = 0;
        }
    }
    let operands = ir.walk().ops().map(|op| ir.operands(op).len()).sum();
    let sum = sum.saturating_add(number);
    (instructions(ir), operands, text.len(), sum)
}

/// Reduces a program that `interesting` says yes to.
///
/// `progress` hears of every improvement.
pub fn reduce(
    ir: &Ir,
    options: ReduceOptions,
    interesting: &mut dyn FnMut(&Ir) -> bool,
    progress: &mut dyn FnMut(&Ir, ReduceStats),
) -> (Ir, ReduceStats) {
    let mut reducer = Reducer {
        size: measure(ir, &print(ir, PrintOptions::default())),
        best: ir.clone(),
        options,
        interesting,
        progress,
        seen: HashSet::default(),
        hasher: BuildHasherDefault::default(),
        stats: ReduceStats::default(),
    };
    reducer.run();
    (reducer.best, reducer.stats)
}

struct Reducer<'a> {
    best: Ir,
    size: Measure,
    options: ReduceOptions,
    interesting: &'a mut dyn FnMut(&Ir) -> bool,
    progress: &'a mut dyn FnMut(&Ir, ReduceStats),
    /// Texts of candidates.
    seen: HashSet<u64, BuildHasherDefault<DefaultHasher>>,
    hasher: BuildHasherDefault<DefaultHasher>,
    stats: ReduceStats,
}

/// A family of candidates; whether any was kept.
type Step = fn(&mut Reducer<'_>) -> bool;

/// In order of benefit.
const STEPS: &[Step] = &[
    cones::keep_cones,
    ops::drop_runs,
    control::straighten,
    control::inline_loops,
    locations::freeze,
    ops::replace_by_fills,
    ops::drop_operands,
    locations::drop_unused,
    locations::merge,
    access::simplify,
    access::shrink_shapes,
    attributes::drop_annotations,
    attributes::drop_attributes,
    attributes::simplify_numbers,
];

impl Reducer<'_> {
    fn run(&mut self) {
        loop {
            let mut progress = false;
            for step in STEPS {
                while !self.is_exhausted() && step(self) {
                    progress = true;
                }
                self.compact();
            }
            if !progress || self.is_exhausted() {
                return;
            }
        }
    }

    fn is_exhausted(&self) -> bool {
        self.stats.tests >= self.options.max_tests
    }

    /// Tests the best program with something done to it; keeps it if it is still interesting.
    /// `edit` says whether it changed anything.
    fn attempt(&mut self, edit: impl FnOnce(&mut Ir) -> bool) -> bool {
        if self.is_exhausted() {
            return false;
        }
        self.stats.candidates += 1;
        let mut candidate = self.best.clone();
        if !edit(&mut candidate) {
            self.stats.dropped += 1;
            return false;
        }
        let text = print(&candidate, PrintOptions::default());
        let size = measure(&candidate, &text);
        let is_new = self.seen.insert(self.hasher.hash_one(&text));
        if !is_new || size >= self.size || self.options.keep_valid && !is_valid(&candidate) {
            self.stats.dropped += 1;
            return false;
        }
        self.stats.tests += 1;
        if !(self.interesting)(&candidate) {
            return false;
        }
        self.stats.kept += 1;
        self.best = candidate;
        self.size = size;
        (self.progress)(&self.best, self.stats);
        true
    }

    /// The operations that are still there, in program order.
    fn ops(&self) -> Vec<Op> {
        self.best.walk().ops().collect()
    }

    /// Whether an operation of an earlier list is still there.
    fn is_there(&self, op: Op) -> bool {
        !self.best.is_erased(op)
    }

    /// Erased operations cost time in every candidate: reads the best program anew when most of
    /// its rows are dead.
    fn compact(&mut self) {
        let live = self.best.walk().ops().count();
        if self.best.op_rows() < 2 * live + 64 {
            return;
        }
        let text = print(&self.best, PrintOptions::default());
        let mut ir = new_ir();
        let mut diags = Diagnostics::new();
        let options = ParseOptions::default();
        parse(&text, 0..text.len(), &mut ir, options, &mut diags);
        if !diags.has_errors() && print(&ir, PrintOptions::default()) == text {
            self.best = ir;
        }
    }
}
