//! The state of a run: memory, registers, accumulators, room for intermediate rows.

use std::cell::RefCell;
use std::ops::Range;

use bir_dialect::bir::space::Target;
use bir_dialect::ir::Op;

use crate::fault::{Fault, FaultKind, Run};
use crate::hidden::Hidden;
use crate::memory::Memory;
use crate::run::MxScale;
use crate::runs::Row;
use crate::simd::Lanes;
use crate::tile::{Home, Tile};

/// Partitions an accumulator has a value for.
const PARTITIONS: usize = 128;

/// An engine's accumulator: one f32 per partition, some undefined.
pub(crate) struct Accumulator {
    values: [f32; PARTITIONS],
    defined: [bool; PARTITIONS],
    engine: &'static str,
}

impl Accumulator {
    fn new(engine: &'static str) -> Accumulator {
        Accumulator {
            values: [0.0; PARTITIONS],
            defined: [false; PARTITIONS],
            engine,
        }
    }

    /// The value of a partition.
    pub(crate) fn get(&self, partition: usize) -> Run<f32> {
        match self.defined.get(partition) {
            Some(true) => Ok(self.values[partition]),
            _ => Err(Fault::new(FaultKind::Accumulator {
                engine: self.engine,
                partition,
            })),
        }
    }

    /// Sets the value of a partition.
    pub(crate) fn set(&mut self, partition: usize, value: f32) {
        if let Some(cell) = self.values.get_mut(partition) {
            *cell = value;
            self.defined[partition] = true;
        }
    }

    /// Every partition is undefined from now on.
    pub(crate) fn poison(&mut self) {
        self.defined = [false; PARTITIONS];
    }
}

/// Room for intermediate values, kept from instruction to instruction.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Rows of f32, one per operand.
    pub(crate) rows: [Row; 4],
    /// A row of results.
    pub(crate) out: Row,
    /// Bytes in between.
    pub(crate) spare: Vec<u8>,
    /// Copies of operands that overlap the destination.
    pub(crate) copies: [Vec<u8>; 4],
    /// Integers.
    pub(crate) ints: [Vec<i64>; 3],
}

/// A read of bytes that nothing wrote.
#[derive(Clone, Debug)]
pub(crate) struct UndefinedRead {
    /// Where the location lies.
    pub(crate) home: Home,
    /// Location and sub-range.
    pub(crate) text: String,
    pub(crate) operand: usize,
    /// The instruction, once it is known.
    pub(crate) op: Option<(Op, &'static str)>,
}

/// The first read of undefined bytes of each location, in order.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) reads: Vec<UndefinedRead>,
}

impl Trace {
    /// Names the instruction that did the reads of late.
    pub(crate) fn settle(&mut self, op: Op, name: &'static str) {
        for read in self.reads.iter_mut().rev() {
            if read.op.is_some() {
                break;
            }
            read.op = Some((op, name));
        }
    }
}

/// The state of a run.
pub(crate) struct Machine {
    pub(crate) mem: Memory,
    pub(crate) regs: Vec<i64>,
    pub(crate) lanes: Lanes,
    pub(crate) mx_scale: MxScale,
    pub(crate) target: Target,
    pub(crate) act: Accumulator,
    pub(crate) dve: Accumulator,
    pub(crate) hidden: Hidden,
    pub(crate) scratch: Scratch,
    /// Names of the locations, for messages.
    pub(crate) names: Vec<String>,
    /// Where undefined reads are no error: which there were.
    pub(crate) trace: Option<RefCell<Trace>>,
}

impl Machine {
    pub(crate) fn new(
        mem: Memory,
        registers: usize,
        lanes: Lanes,
        target: Target,
        names: Vec<String>,
    ) -> Machine {
        Machine {
            mem,
            regs: vec![0; registers],
            lanes,
            mx_scale: MxScale::Isa,
            target,
            act: Accumulator::new("activation"),
            dve: Accumulator::new("vector"),
            hidden: Hidden::default(),
            scratch: Scratch::default(),
            names,
            trace: None,
        }
    }

    /// Where a tile starts now.
    #[inline]
    pub(crate) fn at(&self, tile: &Tile) -> Run<usize> {
        self.shifted(tile, 0)
    }

    /// Where a tile starts now, bytes added.
    #[inline]
    pub(crate) fn shifted(&self, tile: &Tile, bytes: i64) -> Run<usize> {
        match tile.shifted(&self.regs, bytes) {
            Some(at) => Ok(at),
            None => Err(self.out_of_bounds(tile, bytes)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, tile: &Tile, bytes: i64) -> Box<Fault> {
        let (mut partition, mut byte) = (tile.partition, tile.byte.saturating_add(bytes));
        for term in &tile.terms {
            let by = term.factor.saturating_mul(self.regs[term.slot as usize]);
            if term.partitions {
                partition = partition.saturating_add(by);
            } else {
                byte = byte.saturating_add(by);
            }
        }
        let home = &tile.home;
        let size = tile.size as i64;
        let (first, last) = (
            byte.saturating_add(tile.low) / size,
            byte.saturating_add(tile.high) / size - 1,
        );
        let mut what = format!(
            "elements {first} to {last} of a partition of {}",
            home.row as i64 / size
        );
        if partition < 0 || partition + tile.partitions as i64 > home.partitions as i64 {
            what = format!(
                "partitions {partition} to {} of {}",
                partition + tile.partitions as i64 - 1,
                home.partitions
            );
        }
        Fault::of_operand(
            FaultKind::OutOfBounds {
                name: self.names[tile.location].clone(),
                what,
            },
            tile.operand,
        )
    }

    /// Checks that everything a tile reads is defined.
    #[inline]
    pub(crate) fn check_defined(&self, tile: &Tile, at: usize) -> Run<()> {
        if !self.watches_undefined(tile) {
            return Ok(());
        }
        self.check_ranges(tile, at)
    }

    /// Whether a tile might read undefined bytes, and somebody wants to know.
    #[inline]
    pub(crate) fn watches_undefined(&self, tile: &Tile) -> bool {
        !self.mem.regions[tile.home.region].defined.is_full()
            && (self.mem.checked || self.trace.is_some())
    }

    /// Names the instruction that did the undefined reads of late.
    #[inline]
    pub(crate) fn settle(&mut self, op: Op, name: &'static str) {
        if let Some(trace) = &mut self.trace {
            trace.get_mut().settle(op, name);
        }
    }

    fn check_ranges(&self, tile: &Tile, at: usize) -> Run<()> {
        let known = |trace: &RefCell<Trace>| {
            let reads = &trace.borrow().reads;
            reads.iter().any(|read| read.home == tile.home)
        };
        if self.trace.as_ref().is_some_and(known) {
            return Ok(());
        }
        let region = tile.home.region;
        let undefined = |range: Range<usize>| self.mem.first_undefined(region, range).is_some();
        if !tile.ranges(at).any(undefined) {
            return Ok(());
        }
        let location = self.describe(tile, at, |mem, range| mem.first_undefined(region, range));
        if let Some(trace) = &self.trace {
            trace.borrow_mut().reads.push(UndefinedRead {
                home: tile.home,
                text: location,
                operand: tile.operand,
                op: None,
            });
            return Ok(());
        }
        Err(Fault::of_operand(
            FaultKind::Undefined { location },
            tile.operand,
        ))
    }

    /// Marks everything a tile writes as defined.
    #[inline]
    pub(crate) fn mark(&mut self, tile: &Tile, at: usize) {
        let region = &self.mem.regions[tile.home.region];
        if region.defined.is_full() && region.matmult.is_empty() {
            return;
        }
        for range in tile.ranges(at) {
            self.mem.mark(tile.home.region, range);
        }
    }

    /// The box of the elements of a tile for which `find` finds a byte in their range.
    #[cold]
    pub(crate) fn describe(
        &self,
        tile: &Tile,
        at: usize,
        find: impl Fn(&Memory, Range<usize>) -> Option<usize>,
    ) -> String {
        let home = &tile.home;
        let (mut partitions, mut bytes) = ((usize::MAX, 0), (usize::MAX, 0));
        for range in tile.ranges(at) {
            let mut from = range.start;
            while let Some(byte) = find(&self.mem, from..range.end) {
                let relative = byte - home.start;
                let (partition, byte_in) =
                    (relative / home.pitch.max(1), relative % home.pitch.max(1));
                partitions = (partitions.0.min(partition), partitions.1.max(partition));
                bytes = (bytes.0.min(byte_in), bytes.1.max(byte_in));
                from = byte + 1;
            }
        }
        describe_box(&self.names[tile.location], tile, partitions, bytes)
    }
}

/// `%t[64:128, 0:512]`: partitions and elements behind one another.
pub(crate) fn describe_box(
    name: &str,
    tile: &Tile,
    partitions: (usize, usize),
    bytes: (usize, usize),
) -> String {
    let elements = (bytes.0 / tile.size, bytes.1 / tile.size + 1);
    let whole = tile.home.row / tile.size;
    if tile.home.partitions == 1 && tile.home.pitch == tile.home.row {
        return format!(
            "`%{name}`, elements {} to {} of {whole}",
            elements.0,
            elements.1 - 1
        );
    }
    format!(
        "`%{name}`, partitions {} to {}, elements {} to {} of {whole}",
        partitions.0,
        partitions.1,
        elements.0,
        elements.1 - 1
    )
}
