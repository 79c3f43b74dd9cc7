//! Loops, branches, registers; ids, dependences, semaphores and what else goes with any
//! instruction.

use bir_dialect::bir::access::Target as TermTarget;
use bir_dialect::bir::attrs::{Sem, SemEvent, SemOp};
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{
    COL_DEPS, COL_ID, COL_ORDER, Dep, DepKind, OrderTerm, names, op_name, order_words,
};
use bir_dialect::bir::space::{DTypeSet, Engine, Space, SpaceSet};
use bir_dialect::bir::types::reg_type;
use bir_dialect::ir::{Annot, Block, Comment, Cursor, NewOp, NewOperand, Op, SourceLoc, Value};
use smallvec::SmallVec;

use super::draft::{Draft, Tile};
use super::features::Feature;
use super::part::Pairs;
use super::tiles::Want;
use super::{Config, Generator, Index, Register};
use crate::random::Random;

/// Constructs inside one another.
const DEPTH: usize = 3;
/// Registers looked at for one to use: the latest.
const RECENT: usize = 8;
/// Semaphores pairs of instructions use; the others are cleared or left alone.
const PAIRED: u32 = 240;

/// Numbers of instructions, and signals nobody waits for yet.
pub(super) struct Sync {
    ids: bool,
    next: u32,
    /// Numbers of the latest instructions of the present block.
    recent: Vec<u32>,
    semaphore: u32,
    pending: Vec<(u32, i64)>,
    /// Members of each `depset` named so far.
    sets: Vec<Vec<u64>>,
}

impl Sync {
    pub(super) fn new(config: &Config, random: &mut Random) -> Sync {
        Sync {
            ids: !config.without.has(Feature::Ids) && random.below(2) == 0,
            next: 0,
            recent: Vec::new(),
            semaphore: 0,
            pending: Vec::new(),
            sets: Vec::new(),
        }
    }
}

/// What is visible before a construct and stays so behind it.
struct Scope {
    pools: [usize; 3],
    registers: usize,
}

impl Generator<'_> {
    /// A loop or a branch with statements inside.
    pub(super) fn construct(&mut self) {
        if self.depth >= DEPTH {
            return self.instruction();
        }
        match self.structure.below(6) {
            0 if self.depth == 0 && self.may(Feature::Branch) => self.branch(),
            1 if self.may(Feature::RegisterLoop) => self.register_loop(),
            2 if self.may(Feature::While) => self.while_loop(),
            3..6 if self.may_loop() => self.constant_loop(),
            _ => self.instruction(),
        }
    }

    fn may_loop(&self) -> bool {
        self.may(Feature::Loop) && (self.loops.is_empty() || self.may(Feature::NestedLoop))
    }

    fn open(&self) -> Scope {
        Scope {
            pools: std::array::from_fn(|space| self.pools[space].len()),
            registers: self.registers.len(),
        }
    }

    /// Registers defined inside do not reach what follows; locations defined inside do where
    /// the inside has been executed for certain.
    fn close(&mut self, scope: &Scope, certain: bool) {
        self.registers.truncate(scope.registers);
        if !certain {
            for (pool, &len) in self.pools.iter_mut().zip(&scope.pools) {
                pool.truncate(len);
            }
        }
        self.sync.recent.clear();
    }

    /// Makes statements at the end of a block, then goes back.
    fn inside(&mut self, block: Block, statements: u64) {
        let before = (self.at, self.block);
        (self.at, self.block) = (Cursor::End(block), block);
        self.depth += 1;
        self.sync.recent.clear();
        for _ in 0..statements {
            self.statement();
        }
        self.depth -= 1;
        (self.at, self.block) = before;
    }

    fn some_statements(&mut self) -> u64 {
        1 + self.structure.below(6)
    }

    /// A `loop` op with its empty body; bounds are literals or a register.
    fn loop_op(&mut self, bounds: (i64, i64, i64), upper: Option<Value>) -> (Block, Value) {
        let (low, high, step) = bounds;
        let ctx = &mut self.ir.ctx;
        let mut attrs: SmallVec<[_; 4]> = SmallVec::new();
        attrs.push((names::LOWER, ctx.int(low)));
        let mut operands: SmallVec<[NewOperand; 1]> = SmallVec::new();
        match upper {
            Some(value) => operands.push(NewOperand {
                value,
                role: OpCode::Loop.def().find_role("upper").unwrap_or(1) as u8,
                annot: Annot::UNIT,
            }),
            None => attrs.push((names::UPPER, ctx.int(high))),
        }
        if step != 1 {
            attrs.push((names::STEP, ctx.int(step)));
        }
        let dict = ctx.dict(&attrs);
        let index = ctx.index_type();
        let op = self.ir.insert(
            self.at,
            NewOp {
                operands: &operands,
                dict,
                regions: 1,
                ..NewOp::new(op_name(OpCode::Loop))
            },
        );
        self.counts.op(OpCode::Loop);
        let region = self.ir.regions(op)[0];
        let body = self.ir.append_block(region);
        self.ir.set_args(body, &[index]);
        // A body has the argument it was just given.
        let args: SmallVec<[Value; 1]> = self.ir.args(body).collect();
        let value = args[0];
        self.name(value, b'i', self.made);
        (body, value)
    }

    /// A loop of so many trips, empty; its body.
    pub(super) fn open_loop(&mut self, trips: i64) -> Block {
        self.loop_op((0, trips, 1), None).0
    }

    /// A loop that fills a tile, or holds nothing.
    pub(super) fn loop_around(&mut self, trips: i64, tile: Option<Tile>) {
        let body = self.open_loop(trips);
        let before = self.at;
        self.at = Cursor::End(body);
        self.depth += 1;
        self.sync.recent.clear();
        if let Some(tile) = tile {
            self.fill(tile);
        }
        self.depth -= 1;
        self.at = before;
        self.sync.recent.clear();
    }

    fn constant_loop(&mut self) {
        self.counts.feature(Feature::Loop);
        if !self.loops.is_empty() {
            self.counts.feature(Feature::NestedLoop);
        }
        let low = self.random.below(3) as i64;
        let step = 1 + self.random.below(3) as i64;
        let trips = self.between(1, 4) as i64;
        // The end need not be reached by whole steps.
        let slack = self.random.below(step as u64) as i64;
        let high = low + step * (trips - 1) + 1 + slack;
        let (body, value) = self.loop_op((low, high, step), None);
        let scope = self.open();
        self.loops.push(Index {
            value,
            low,
            high: low + step * (trips - 1),
        });
        let statements = self.some_statements();
        self.inside(body, statements);
        self.loops.pop();
        self.close(&scope, true);
    }

    fn register_loop(&mut self) {
        self.counts.feature(Feature::RegisterLoop);
        let bound = self.bounded_register(4);
        let (body, _) = self.loop_op((0, 0, 1), Some(bound));
        let scope = self.open();
        let statements = self.some_statements();
        self.inside(body, statements);
        self.close(&scope, false);
    }

    /// `while %r { …; register_alu subtract %r <- %r, 1 }`
    fn while_loop(&mut self) {
        self.counts.feature(Feature::While);
        let count = self.bounded_register(4);
        let op = self.ir.insert(
            self.at,
            NewOp {
                operands: &[NewOperand {
                    value: count,
                    role: 0,
                    annot: Annot::UNIT,
                }],
                regions: 1,
                ..NewOp::new(op_name(OpCode::While))
            },
        );
        self.counts.op(OpCode::While);
        let region = self.ir.regions(op)[0];
        let body = self.ir.append_block(region);
        let scope = self.open();
        let statements = self.some_statements();
        self.inside(body, statements);
        let (before, at) = (self.at, Cursor::End(body));
        self.at = at;
        let mut draft = Draft::new(OpCode::RegisterAlu);
        self.word(&mut draft, "op", "subtract");
        draft.value("dst", count);
        draft.value("lhs", count);
        self.int(&mut draft, "rhs", 1);
        self.emit(&mut draft);
        self.at = before;
        self.close(&scope, false);
    }

    /// `cond_br`, two arms, and a block where they meet.
    fn branch(&mut self) {
        self.counts.feature(Feature::Branch);
        let register = self.any_register();
        let region = self.ir.block_region(self.block);
        let arms = [self.ir.append_block(region), self.ir.append_block(region)];
        let join = self.ir.append_block(region);
        self.ir.insert(
            self.at,
            NewOp {
                operands: &[NewOperand {
                    value: register,
                    role: 0,
                    annot: Annot::UNIT,
                }],
                successors: &arms,
                ..NewOp::new(op_name(OpCode::CondBr))
            },
        );
        self.counts.op(OpCode::CondBr);
        for arm in arms {
            let scope = self.open();
            let statements = self.some_statements();
            self.inside(arm, statements);
            self.ir.insert(
                Cursor::End(arm),
                NewOp {
                    successors: &[join],
                    ..NewOp::new(op_name(OpCode::Br))
                },
            );
            self.counts.op(OpCode::Br);
            self.close(&scope, false);
        }
        (self.at, self.block) = (Cursor::End(join), join);
    }

    /// Writes a tile slice by slice, one in each iteration of a loop.
    pub(super) fn fill_in_loop(&mut self, tile: Tile) {
        let trips = (2..=tile.elems.min(8))
            .find(|n| tile.elems.is_multiple_of(*n))
            .unwrap_or(tile.elems.min(64));
        let slice = tile.elems / trips;
        if slice * trips != tile.elems {
            return self.fill(tile);
        }
        let (body, value) = self.loop_op((0, trips as i64, 1), None);
        let before = self.at;
        self.at = Cursor::End(body);
        self.sync.recent.clear();
        self.depth += 1;
        let mut part = tile;
        part.whole = false;
        part.defines = false;
        part.elems = slice;
        part.access.pairs = Pairs::run(slice);
        part.access.follows = Some((TermTarget::Offset, slice as i32));
        part.index = Some(value);
        self.fill(part);
        self.depth -= 1;
        self.at = before;
        self.sync.recent.clear();
    }

    /// A loop of `matmult`s of which the first overwrites.
    pub(super) fn unless_first_loop(&mut self, psum: usize, sides: Vec<Tile>) {
        let trips = self.between(1, 4) as i64;
        let (body, value) = self.loop_op((0, trips, 1), None);
        let before = self.at;
        self.at = Cursor::End(body);
        self.depth += 1;
        self.sync.recent.clear();
        let mut draft = Draft::new(OpCode::Matmult);
        for (role, tile) in ["stationary", "moving"].into_iter().zip(sides) {
            draft.tile(role, tile);
        }
        draft.tile("dst", self.whole(psum));
        draft.unless_first(value);
        self.emit(&mut draft);
        self.depth -= 1;
        self.at = before;
        self.sync.recent.clear();
    }

    /// A register of `i32` from 0 to below `end`.
    pub(super) fn bounded_register(&mut self, end: i64) -> Value {
        let recent = self.registers.iter().rev().take(RECENT);
        let known = { recent }.find(|register| {
            register.dtype == DType::I32
                && register
                    .range
                    .is_some_and(|(low, high)| low >= 0 && high < end)
        });
        if let Some(known) = known.copied()
            && self.chance(2)
        {
            return self.copy_register(known);
        }
        if self.chance(2) {
            let value = self.random.below(end as u64) as i64;
            return self.constant_register(value);
        }
        let any = self.any_register();
        let mut draft = Draft::new(OpCode::RegisterAlu);
        self.word(&mut draft, "op", "mod_int");
        draft.value("lhs", any);
        self.int(&mut draft, "rhs", end);
        self.define_register(&mut draft, DType::I32, Some((0, end - 1)))
    }

    pub(super) fn constant_register(&mut self, value: i64) -> Value {
        let mut draft = Draft::new(OpCode::RegisterMove);
        self.int(&mut draft, "value", value);
        self.define_register(&mut draft, DType::I32, Some((value, value)))
    }

    /// A `while` counts its register down, so it has one of its own.
    fn copy_register(&mut self, from: Register) -> Value {
        let mut draft = Draft::new(OpCode::RegisterMove);
        draft.value("value", from.value);
        self.define_register(&mut draft, from.dtype, None)
    }

    /// Any register of `i32`.
    pub(super) fn any_register(&mut self) -> Value {
        let i32s: SmallVec<[Value; 8]> = self
            .registers
            .iter()
            .rev()
            .take(RECENT)
            .filter(|register| register.dtype == DType::I32)
            .map(|register| register.value)
            .collect();
        if !i32s.is_empty() && !self.chance(3) {
            return self.pick(&i32s);
        }
        self.loaded_register()
    }

    /// A register loaded from one element.
    pub(super) fn loaded_register(&mut self) -> Value {
        let mut draft = Draft::new(OpCode::RegisterLoad);
        let want = Want {
            parts: 1,
            elems: 1,
            spaces: SpaceSet::of(&[Space::Sbuf, Space::Dram]),
            dtypes: DTypeSet::of(&[DType::I32]),
            aligned: true,
        };
        self.read_as(&mut draft, "src", want);
        self.define_register(&mut draft, DType::I32, None)
    }

    /// Emits an instruction whose result is a register.
    pub(super) fn define_register(
        &mut self,
        draft: &mut Draft,
        dtype: DType,
        range: Option<(i64, i64)>,
    ) -> Value {
        let ty = reg_type(&mut self.ir.ctx, dtype);
        draft.result(ty);
        let op = self.emit(draft);
        let value = self.ir.made_result(op);
        self.name(value, b'r', self.made);
        self.registers.push(Register {
            value,
            dtype,
            range,
        });
        value
    }

    /// Waits and signals: each semaphore is raised once and waited for once, later in the text,
    /// outside of loops and arms.
    pub(super) fn synchronise(&mut self, draft: &mut Draft) {
        if self.depth > 0 || !self.may(Feature::Semaphores) {
            return;
        }
        let Some(engines) = draft.def.engines else {
            return;
        };
        let engine = draft.engine.unwrap_or(engines.default_on(self.target));
        if !self.sync.pending.is_empty() && self.chance(12) {
            let n = self.random.below(self.sync.pending.len() as u64) as usize;
            let (id, value) = self.sync.pending.swap_remove(n);
            let wait = Sem {
                id,
                op: SemOp::Ge,
                value,
                event: SemEvent::Default,
            };
            let wait = wait.intern(&mut self.ir.ctx);
            let list = self.ir.ctx.array(&[wait]);
            draft.attr(names::WAIT, list);
            self.counts.feature(Feature::Semaphores);
        }
        if self.sync.semaphore < PAIRED && self.chance(24) {
            let id = self.sync.semaphore;
            self.sync.semaphore += 1;
            let value = if engine == Engine::Dma { 16 } else { 1 };
            let signal = Sem {
                id,
                op: SemOp::Inc,
                value,
                event: self.pick(&[SemEvent::Default, SemEvent::Complete]),
            };
            let signal = signal.intern(&mut self.ir.ctx);
            let list = self.ir.ctx.array(&[signal]);
            draft.attr(names::SIGNAL, list);
            self.sync.pending.push((id, value));
        }
    }

    /// Columns, location and comment of a new instruction.
    pub(super) fn annotate(&mut self, op: Op, indices: usize) {
        if self.sync.ids {
            let id = self.sync.next;
            self.sync.next += 1;
            self.ir.set_int_cell(COL_ID, op, Some(id));
            self.counts.feature(Feature::Ids);
            if !self.sync.recent.is_empty() && self.uses(Feature::Deps, 8) {
                let kind = self.pick(DepKind::ALL);
                let set = self.chance(4);
                let id = if set {
                    self.depset()
                } else {
                    let n = self.random.below(self.sync.recent.len() as u64);
                    self.sync.recent[n as usize]
                };
                let word = Dep { kind, id, set };
                self.ir.set_words_cell(COL_DEPS, op, Some(&[word.word()]));
            }
            if self.sync.recent.len() == 8 {
                self.sync.recent.remove(0);
            }
            self.sync.recent.push(id);
        }
        if self.uses(Feature::Order, 16) {
            let constant = self.random.below(64) as i64;
            let mut term = OrderTerm {
                constant,
                terms: SmallVec::new(),
            };
            if indices > 0 {
                term.terms.push((0, 64));
            }
            self.ir
                .set_words_cell(COL_ORDER, op, Some(&order_words(&[term])));
        }
        if self.uses(Feature::Loc, 12) {
            let loc = SourceLoc {
                file: self.file,
                line: self.made as u32,
                col: 5,
            };
            let loc = self.ir.ctx.loc(loc);
            self.ir.set_loc(op, Some(loc));
        }
        if self.uses(Feature::Comment, 64) {
            let text = format!("// instruction {}", self.made);
            let comment = Comment::Line(text.into());
            self.ir.trivia_mut(op).before.push(comment);
        }
    }

    /// A set of the latest instructions; its number.
    fn depset(&mut self) -> u32 {
        let member = |&id: &u32| {
            let dep = Dep {
                kind: DepKind::Ordered,
                id,
                set: false,
            };
            dep.word()
        };
        let members = self.sync.recent.iter().map(member).collect();
        self.sync.sets.push(members);
        (self.sync.sets.len() - 1) as u32
    }

    /// Writes the sets instructions name behind all of them.
    pub(super) fn depsets(&mut self) {
        for (number, members) in std::mem::take(&mut self.sync.sets).iter().enumerate() {
            let op = self.ir.insert(self.at, NewOp::new(op_name(OpCode::Depset)));
            self.ir.set_int_cell(COL_ID, op, Some(number as u32));
            self.ir.set_words_cell(COL_DEPS, op, Some(members));
            self.counts.op(OpCode::Depset);
        }
    }

    /// `nop`
    pub(super) fn nop(&mut self) {
        let mut draft = Draft::new(OpCode::Nop);
        self.emit(&mut draft);
    }
}
