//! Where locations lie: their homes, worked out before a byte is allocated.

use std::sync::Arc;

use bir_dialect::bir::attrs::Placement;
use bir_dialect::bir::files::value_file;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::symbol_name;
use bir_dialect::bir::space::{PARTITIONS, PSUM_BANK_BYTES, Space};
use bir_dialect::bir::types::MemType;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Ir, Op};
use hashbrown::HashMap;

use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::memory::Memory;
use crate::npy;
use crate::tile::Home;

use super::{Lowering, Regions};

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
    /// Whether other cores have it by the same name.
    pub(crate) shared: bool,
    /// Whether its bytes are those of a location listed already, on another core.
    pub(crate) again: bool,
    /// Whether others look at it when all is done though it is no output, and nothing else may lie there.
    pub(crate) watched: bool,
    /// Where its bytes live on another core.
    remote: Option<String>,
    /// A constant's elements, or one for all of them.
    pub(crate) value: Option<Arc<[u8]>>,
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

/// What the cores of a program have in common: the arena, and the buffers they share by name.
#[derive(Default)]
pub(crate) struct Arena {
    /// The regions there are so far.
    pub(crate) regions: Regions,
    /// Bytes of all regions.
    bytes: usize,
    /// Bytes of all locations.
    total: u128,
    /// Locations that are `space = shared`, as the first core that has one declares it.
    shared: HashMap<String, Location>,
    /// Where every other location of a program of several cores lies, by its name and core.
    local: HashMap<String, Location>,
}

/// The elements of a constant, from the text or from the file it names.
fn constant(ir: &Ir, op: Op, mem: &MemType<'_>, max_bytes: u64) -> Run<Option<Arc<[u8]>>> {
    if let Some(file) = value_file(ir, op) {
        let array = npy::read(&file, max_bytes);
        let what = format!("`{}`", file.display());
        let tensor = array.and_then(|array| array.into_tensor(mem.dtype, &what));
        let tensor = tensor.and_then(|tensor| match tensor.dims[..] == mem.dims[..] {
            true => Ok(tensor),
            false => Err(format!(
                "{what} is {}, expected {}",
                tensor.shape_text(),
                npy::shape(mem.dtype, mem.dims)
            )),
        });
        let name = symbol_name(ir, op).map_or("", |name| ir.ctx.text(name));
        return match tensor {
            Ok(tensor) => Ok(Some(tensor.bytes.into())),
            Err(what) => Err(Fault::new(FaultKind::Constant {
                name: name.to_owned(),
                what,
            })
            .at(op, "alloc")),
        };
    }
    let attr = ir.attr(op, "value").map(|attr| ir.ctx.attr(attr));
    Ok(match attr {
        Some(AttrView::Dense { hex, .. }) => Some(unhex(ir.ctx.text(hex)).into()),
        _ => None,
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes()
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&[high, low]| digit(high) << 4 | digit(low))
        .collect()
}

impl Lowering<'_> {
    /// Gives every location of a function its home, in regions added to the arena.
    pub(super) fn place_locations(
        &mut self,
        func: Op,
        max_bytes: u64,
        arena: &mut Arena,
    ) -> Run<()> {
        let ir = self.ir;
        let several = self.cores.len() > 1;
        let mut plans: Vec<Plan> = Vec::new();
        let mut shared: HashMap<Space, usize> = HashMap::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        let mut aliases: Vec<(usize, String)> = Vec::new();
        let allocs = ir
            .walk_op(func)
            .filter(|&op| OpCode::of(ir, op) == Some(OpCode::Alloc));
        let mut total = arena.total;
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
            let shares = several && view.word("space") == Some("shared");
            let number = self.locations.len();
            if shares && let Some(known) = arena.shared.get(&name) {
                let same = known.dtype == mem.dtype
                    && known.dims[..] == mem.dims[..]
                    && known.space == mem.space;
                if !same {
                    return Err(malformed(format!(
                        "`%{name}` is shared, but is another buffer on an earlier core"
                    ))
                    .at(op, "alloc"));
                }
                let mut location = known.clone();
                location.op = op;
                location.again = true;
                by_name.insert(name, number);
                self.by_value.insert(value, number);
                self.locations.push(location);
                continue;
            }
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
            if let Some(AttrView::Symbol(other)) =
                ir.attr(op, "must_alias").map(|attr| ir.ctx.attr(attr))
                && at.is_none()
            {
                aliases.push((number, ir.ctx.text(other).to_owned()));
            }
            by_name.insert(name.clone(), number);
            self.by_value.insert(value, number);
            let remote = ir
                .attr(op, "remote_target")
                .and_then(|attr| ir.ctx.attr_str(attr))
                .filter(|_| several)
                .map(str::to_owned);
            self.locations.push(Location {
                op,
                // A program of several cores has as many `%x`.
                name: if several && !shares {
                    format!("{name}@{}", self.core)
                } else {
                    name
                },
                shared: shares,
                again: false,
                watched: at.is_none()
                    && (matches!(view.word("kind"), Some("input"))
                        || view.word("space") == Some("shared")
                        || view.flag("boundary")),
                remote,
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
                value: match view.word("kind") {
                    Some("const") => constant(ir, op, &mem, max_bytes)?,
                    _ => None,
                },
            });
        }
        self.join_aliases(&mut plans, &aliases, &by_name, &shared)?;
        arena.total = total;
        self.settle(plans, max_bytes, arena)
    }

    /// Locations whose bytes live on another core lie where that one's do.
    pub(super) fn place_remote(&mut self, arena: &Arena) -> Run<()> {
        for location in &mut self.locations {
            let Some(target) = &location.remote else {
                continue;
            };
            let target = target.trim_start_matches(['@', '%']);
            let other = self.cores.iter().find(|&&core| core != self.core);
            let full = match other {
                Some(other) if self.cores.len() == 2 && !target.contains('@') => {
                    format!("{target}@{other}")
                }
                _ => target.to_owned(),
            };
            let name = location.name.clone();
            let bad = |what: String| {
                malformed(format!("the bytes of `%{name}` live at `{full}`, {what}"))
                    .at(location.op, "alloc")
            };
            let Some(there) = arena.local.get(&full) else {
                return Err(bad("which no core of the program has".to_owned()));
            };
            if there.remote.is_some() {
                return Err(bad("whose own bytes live elsewhere".to_owned()));
            }
            let (here, home) = (&location.home, &there.home);
            if (here.partitions, here.row) != (home.partitions, home.row) {
                return Err(bad("which is of another size".to_owned()));
            }
            location.home = *home;
            location.again = true;
        }
        Ok(())
    }

    /// Locations that must alias share the region of one of them.
    fn join_aliases(
        &mut self,
        plans: &mut [Plan],
        aliases: &[(usize, String)],
        by_name: &HashMap<String, usize>,
        shared: &HashMap<Space, usize>,
    ) -> Run<()> {
        // Scratchpads do not grow.
        let sized = |region: usize, plans: &[Plan]| {
            let mut pads = [Space::Sbuf, Space::Psum].into_iter();
            let is_pad = pads.any(|space| shared.get(&space) == Some(&region));
            is_pad.then(|| plans[region].bytes as usize)
        };
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
                if self.locations[other].again {
                    let op = self.locations[*number].op;
                    return Err(malformed(format!(
                        "it must alias `%{}`, whose bytes another core has",
                        self.locations[other].name
                    ))
                    .at(op, "alloc"));
                }
                let (to, from) = (self.locations[other].home, self.locations[*number].home);
                if to.region != from.region {
                    plans[from.region].bytes = 0;
                    // Partition by partition they begin at one byte: rows lie as far apart as in a scratchpad, or as
                    // the widest is wide.
                    let pitch = to.pitch.max(from.pitch);
                    for location in self.locations.iter_mut().filter(|location| !location.again) {
                        let home = &mut location.home;
                        if home.region == from.region {
                            (home.region, home.start) = (to.region, to.start);
                        } else if home.region != to.region {
                            continue;
                        }
                        if location.space != Space::Dram {
                            home.pitch = pitch;
                        }
                        if let Some(bytes) = sized(to.region, plans) {
                            let rows = bytes / PARTITIONS as usize;
                            let (partition, byte) = (home.start / rows, home.start % rows);
                            if byte.saturating_add(home.row) > rows
                                || partition.saturating_add(home.partitions) > PARTITIONS as usize
                            {
                                let (name, op) = (&location.name, location.op);
                                let message =
                                    format!("`%{name}` does not fit where its partner is placed");
                                return Err(malformed(message).at(op, "alloc"));
                            }
                        } else {
                            let bytes = home.pitch.saturating_mul(home.partitions);
                            let end = home.start.saturating_add(bytes) as u64;
                            let plan = &mut plans[to.region];
                            plan.bytes = plan.bytes.max(end);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Turns offsets within regions into offsets in the arena.
    fn settle(&mut self, plans: Vec<Plan>, max_bytes: u64, arena: &mut Arena) -> Run<()> {
        let added = Memory::arena_bytes(plans.iter().map(|plan| plan.bytes));
        let total = added + arena.bytes as u128;
        let count = (arena.regions.len() + plans.len()) as u128;
        let cores = self.cores.len() as u128;
        // The scratchpads themselves are no memory the program asked for.
        let limit = u128::from(max_bytes) + (u128::from(PARTITIONS) << 19) * cores + count * 64;
        if total > limit {
            return Err(Fault::new(FaultKind::Program(format!(
                "the program needs {total} bytes, more than the limit of {max_bytes} (--max-bytes)"
            ))));
        }
        let mut starts = Vec::with_capacity(plans.len());
        let mut next = arena.bytes as u128;
        for plan in &plans {
            starts.push(next as usize);
            next += Memory::arena_bytes([plan.bytes]);
        }
        for location in self.locations.iter_mut().filter(|location| !location.again) {
            location.home.start += starts[location.home.region];
            location.home.region += arena.regions.len();
            let known = if location.shared {
                &mut arena.shared
            } else {
                &mut arena.local
            };
            if self.cores.len() > 1 {
                known.insert(location.name.clone(), location.clone());
            }
        }
        arena.bytes = next as usize;
        let regions = plans
            .into_iter()
            .map(|plan| (plan.bytes as usize, plan.psum));
        arena.regions.extend(regions);
        Ok(())
    }
}
