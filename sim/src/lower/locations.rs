//! Where locations lie: their homes, worked out before a byte is allocated.

use bir_dialect::bir::attrs::Placement;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::symbol_name;
use bir_dialect::bir::space::{PARTITIONS, PSUM_BANK_BYTES, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Op};
use hashbrown::HashMap;

use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::memory::Memory;
use crate::tile::Home;

use super::Lowering;

/// What a location is to the outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Internal,
    Input,
    Output,
    InOut,
    Const,
}

/// A location.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) op: Op,
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<u64>,
    pub(crate) kind: Kind,
    pub(crate) home: Home,
    /// Hex digits of a constant's elements, or of one of them.
    pub(crate) value: Option<bir_dialect::ir::Str>,
}

impl Location {
    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.home.partitions * self.home.row
    }
}

/// A region in the making.
struct Plan {
    bytes: u64,
    psum: bool,
}

impl Lowering<'_> {
    /// Gives every location of a function its home; the regions there are.
    pub(super) fn place_locations(&mut self, func: Op, max_bytes: u64) -> Run<Vec<(usize, bool)>> {
        let ir = self.ir;
        let mut plans: Vec<Plan> = Vec::new();
        let mut shared: HashMap<Space, usize> = HashMap::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        let mut aliases: Vec<(usize, String)> = Vec::new();
        let allocs = ir
            .walk_op(func)
            .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Alloc));
        let mut total = 0u128;
        for op in allocs {
            let view = OpView::new(ir, op);
            let Some(value) = ir.result(op) else { continue };
            let Some(mem) = MemType::get(&ir.ctx, ir.value_type(value)) else {
                return Err(malformed("its type is no memory").at(op, "alloc"));
            };
            let name = symbol_name(ir, op).map_or_else(
                || format!("{}", self.locations.len()),
                |name| ir.ctx.text(name).to_owned(),
            );
            let partitions = u128::from(mem.partitions());
            let row = mem
                .free_dims()
                .iter()
                .fold(u128::from(mem.dtype.size_bytes()), |bytes, &dim| {
                    bytes.saturating_mul(u128::from(dim))
                });
            let bytes = row.saturating_mul(partitions);
            total = total.saturating_add(bytes);
            if total > u128::from(max_bytes) {
                return Err(Fault::new(FaultKind::Memory {
                    name,
                    bytes,
                    total,
                    limit: max_bytes,
                })
                .at(op, "alloc"));
            }
            let at = ir
                .attr(op, "at")
                .and_then(|attr| Placement::get(&ir.ctx, attr));
            let mut home = Home {
                region: plans.len(),
                start: 0,
                pitch: row as usize,
                partitions: partitions as usize,
                row: row as usize,
            };
            match at {
                None => plans.push(Plan {
                    bytes: bytes as u64,
                    psum: mem.space == Space::Psum,
                }),
                Some(at) => {
                    let capacity = match mem.space {
                        Space::Dram => 0,
                        Space::Sbuf => self.target.sbuf_bytes(),
                        Space::Psum => self.target.psum_bytes(),
                    };
                    home.region = *shared.entry(mem.space).or_insert_with(|| {
                        plans.push(Plan {
                            bytes: capacity * u64::from(PARTITIONS),
                            psum: mem.space == Space::Psum,
                        });
                        plans.len() - 1
                    });
                    let (partition, byte) = match at {
                        Placement::Bytes { partition, byte } => (u64::from(partition), byte),
                        Placement::Bank { partition, bank } => {
                            (u64::from(partition), u64::from(bank) * PSUM_BANK_BYTES)
                        }
                        Placement::Address(address) => (0, address),
                    };
                    let plan = &mut plans[home.region];
                    if mem.space == Space::Dram {
                        home.start = byte as usize;
                        plan.bytes = plan.bytes.max(byte.saturating_add(bytes as u64));
                        total = total.max(u128::from(plan.bytes));
                    } else {
                        let fits = byte.saturating_add(row as u64) <= capacity
                            && partition.saturating_add(mem.partitions()) <= u64::from(PARTITIONS);
                        if !fits {
                            return Err(malformed(format!(
                                "`%{name}` is placed outside of `{}`",
                                mem.space
                            ))
                            .at(op, "alloc"));
                        }
                        home.pitch = capacity as usize;
                        home.start = (partition * capacity + byte) as usize;
                    }
                }
            }
            let number = self.locations.len();
            if let Some(AttrView::Symbol(other)) =
                ir.attr(op, "must_alias").map(|attr| ir.ctx.attr(attr))
                && at.is_none()
            {
                aliases.push((number, ir.ctx.text(other).to_owned()));
            }
            by_name.insert(name.clone(), number);
            self.by_value.insert(value, number);
            self.locations.push(Location {
                op,
                name,
                space: mem.space,
                dtype: mem.dtype,
                dims: mem.dims.to_vec(),
                kind: match view.word("kind") {
                    Some("input") => Kind::Input,
                    Some("output") => Kind::Output,
                    Some("inout") => Kind::InOut,
                    Some("const") => Kind::Const,
                    _ => Kind::Internal,
                },
                home,
                value: ir
                    .attr(op, "value")
                    .and_then(|attr| match ir.ctx.attr(attr) {
                        AttrView::Dense { hex, .. } => Some(hex),
                        _ => None,
                    }),
            });
        }
        self.join_aliases(&mut plans, &aliases, &by_name)?;
        self.settle(plans, max_bytes)
    }

    /// Locations that must alias share the region of one of them.
    fn join_aliases(
        &mut self,
        plans: &mut [Plan],
        aliases: &[(usize, String)],
        by_name: &HashMap<String, usize>,
    ) -> Run<()> {
        // Chains of aliases settle in as many rounds as they are long; they are short.
        for _ in 0..aliases.len().min(64) {
            for (number, other) in aliases {
                let Some(&other) = by_name.get(other) else {
                    let op = self.locations[*number].op;
                    return Err(malformed(format!(
                        "it must alias `@{other}`, which does not exist"
                    ))
                    .at(op, "alloc"));
                };
                let (to, from) = (self.locations[other].home, self.locations[*number].home);
                if to.region != from.region {
                    plans[to.region].bytes = plans[to.region].bytes.max(plans[from.region].bytes);
                    plans[from.region].bytes = 0;
                    let region = from.region;
                    for location in &mut self.locations {
                        if location.home.region == region {
                            location.home.region = to.region;
                            location.home.start = to.start;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Turns offsets within regions into offsets in the arena.
    fn settle(&mut self, plans: Vec<Plan>, max_bytes: u64) -> Run<Vec<(usize, bool)>> {
        let total = Memory::arena_bytes(plans.iter().map(|plan| plan.bytes));
        // The scratchpads themselves are no memory the program asked for.
        let limit =
            u128::from(max_bytes) + (u128::from(PARTITIONS) << 19) + (plans.len() as u128) * 64;
        if total > limit {
            return Err(Fault::new(FaultKind::Program(format!(
                "the program needs {total} bytes, more than the limit of {max_bytes} (--max-bytes)"
            ))));
        }
        let mut starts = Vec::with_capacity(plans.len());
        let mut next = 0u128;
        for plan in &plans {
            starts.push(next as usize);
            next += Memory::arena_bytes([plan.bytes]);
        }
        for location in &mut self.locations {
            location.home.start += starts[location.home.region];
        }
        Ok(plans
            .into_iter()
            .map(|plan| (plan.bytes as usize, plan.psum))
            .collect())
    }
}
