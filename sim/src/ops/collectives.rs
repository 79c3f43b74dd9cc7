//! Exchanges between the cores of a program. The rank of a core is its number.
//!
//! A group's order is that of its list: parts are concatenated and dealt out in it. Reductions are in
//! f32, in the order of ascending ranks, converted once at the end.

use bir_dialect::bir::num::DType;

use crate::alu::{Alu, quiet};
use crate::cores::Meeting;
use crate::fault::{Fault, FaultKind, Run, malformed};
use crate::lower::{Bound, Site, Task};
use crate::machine::Machine;
use crate::rows;
use crate::tile::Tile;

/// What an exchange reads and writes on one core.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives in a box, once per instruction"
)]
pub(crate) enum Exchange {
    /// Nothing.
    Barrier,
    /// Every element combined, everywhere.
    Reduce { op: Alu, tensors: Vec<Pair> },
    /// Every element combined, each rank its part.
    ReduceScatter { op: Alu, tensor: Pair },
    /// All parts one behind another, or side by side in each partition.
    Gather { tensor: Pair, side_by_side: bool },
    /// Part by part.
    AllToAll { tensor: Pair },
    /// Parts of different sizes.
    Varied { tensor: Pair, metadata: Tile },
    /// From some ranks to some.
    Permute {
        pairs: Vec<(u32, u32)>,
        tensor: Pair,
    },
    /// To the next of a ring.
    Ring { channels: Vec<Pair> },
    /// Two buffers combined, to the next of a ring.
    RingReduce {
        op: Alu,
        dst: Tile,
        sides: Box<[Tile; 2]>,
    },
    /// Both ways between two cores.
    Swap { tensor: Pair },
}

/// Where an exchange writes, and what it reads.
pub(crate) struct Pair {
    dst: Tile,
    src: Tile,
}

/// What a core brings to an exchange.
#[derive(Default)]
pub(crate) struct Parcel {
    core: u32,
    tensors: Vec<Packed>,
    /// Values in f32, where they are combined.
    values: Vec<Vec<f32>>,
}

/// Elements one behind another.
struct Packed {
    dtype: DType,
    bytes: Vec<u8>,
}

fn total(tile: &Tile) -> usize {
    tile.partitions * tile.elements
}

/// Bits of a source, in the order of its access.
fn pack(m: &mut Machine, tile: &Tile) -> Run<Packed> {
    let at = m.source(tile)?;
    let mut bytes = Vec::new();
    rows::pack(&m.mem, tile, at, (0, tile.partitions), &mut bytes);
    bytes.truncate(total(tile) * tile.size);
    Ok(Packed {
        dtype: tile.dtype,
        bytes,
    })
}

/// Values of a source, in the order of its access.
fn load(m: &mut Machine, tile: &Tile) -> Run<Vec<f32>> {
    let at = m.source(tile)?;
    let mut values = Vec::new();
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = m;
    let all = (0, tile.partitions);
    rows::load(*lanes, mem, tile, at, all, &mut values, &mut scratch.spare);
    values.truncate(total(tile));
    Ok(values)
}

/// Writes bits in the order of the access.
fn unpack(m: &mut Machine, tile: &Tile, bytes: &[u8]) -> Run<()> {
    let at = m.at(tile)?;
    rows::unpack(&mut m.mem, tile, at, (0, tile.partitions), bytes);
    m.mark(tile, at);
    Ok(())
}

/// Writes values in the order of the access, converted.
fn store(m: &mut Machine, tile: &Tile, values: &[f32]) -> Run<()> {
    let at = m.at(tile)?;
    let Machine {
        mem,
        scratch,
        lanes,
        ..
    } = &mut *m;
    let all = (0, tile.partitions);
    rows::store(*lanes, mem, tile, at, all, values, &mut scratch.spare);
    m.mark(tile, at);
    Ok(())
}

/// The n-th tensors of all parcels, which must be alike.
fn alike(parcels: &[Parcel], n: usize, dtype: DType, elements: usize) -> Run<Vec<&[u8]>> {
    let bytes = elements * dtype.size_bytes() as usize;
    parcels
        .iter()
        .map(|parcel| match parcel.tensors.get(n) {
            Some(packed) if packed.dtype == dtype && packed.bytes.len() == bytes => {
                Ok(packed.bytes.as_slice())
            }
            Some(packed) => Err(unlike(
                parcel.core,
                packed.bytes.len() / packed.dtype.size_bytes() as usize,
                packed.dtype.name(),
                elements,
                dtype.name(),
            )),
            None => Err(malformed(format!("core {} brings too little", parcel.core))),
        })
        .collect()
}

fn unlike(core: u32, elements: usize, dtype: &str, here: usize, own: &str) -> Box<Fault> {
    malformed(format!(
        "core {core} brings {elements} elements of `{dtype}`, but here {here} of `{own}` are expected"
    ))
}

/// The combination of the n-th values of all parcels, from element `from` on.
fn combine(
    op: Alu,
    parcels: &[Parcel],
    n: usize,
    (from, count): (usize, usize),
    expected: usize,
) -> Run<Vec<f32>> {
    let mut order: Vec<&Parcel> = parcels.iter().collect();
    order.sort_by_key(|parcel| parcel.core);
    let mut sums: Option<Vec<f32>> = None;
    for parcel in order {
        let values = parcel.values.get(n).map_or(&[][..], Vec::as_slice);
        if values.len() != expected {
            return Err(unlike(parcel.core, values.len(), "f32", expected, "f32"));
        }
        let part = &values[from..from + count];
        sums = Some(match sums {
            None => part.to_vec(),
            Some(mut sums) => {
                for (sum, &x) in sums.iter_mut().zip(part) {
                    *sum = op.apply(*sum, x);
                }
                sums
            }
        });
    }
    let mut sums = sums.unwrap_or_default();
    for sum in &mut sums {
        *sum = quiet(*sum);
    }
    Ok(sums)
}

/// Rows of the metadata of a varied exchange.
const SEND_COUNTS: usize = 0;
const SEND_OFFSETS: usize = 1;
const RECEIVE_COUNTS: usize = 2;
const RECEIVE_OFFSETS: usize = 3;

impl Exchange {
    /// What a core brings; `size` members take part.
    pub(crate) fn send(&self, m: &mut Machine, core: u32, size: usize) -> Run<Parcel> {
        let mut parcel = Parcel {
            core,
            ..Parcel::default()
        };
        match self {
            Exchange::Barrier => {}
            Exchange::Reduce { tensors, .. } => {
                for tensor in tensors {
                    parcel.values.push(load(m, &tensor.src)?);
                }
            }
            Exchange::ReduceScatter { tensor, .. } => parcel.values.push(load(m, &tensor.src)?),
            Exchange::Gather { tensor, .. }
            | Exchange::AllToAll { tensor }
            | Exchange::Permute { tensor, .. }
            | Exchange::Swap { tensor } => parcel.tensors.push(pack(m, &tensor.src)?),
            Exchange::Ring { channels } => {
                for channel in channels {
                    parcel.tensors.push(pack(m, &channel.src)?);
                }
            }
            Exchange::RingReduce { op, sides, .. } => {
                let (mut sums, others) = (load(m, &sides[0])?, load(m, &sides[1])?);
                for (sum, &x) in sums.iter_mut().zip(&others) {
                    *sum = op.apply(*sum, x);
                }
                parcel.values.push(sums);
            }
            Exchange::Varied { tensor, metadata } => {
                let numbers = read_metadata(m, metadata, size)?;
                let all = pack(m, &tensor.src)?;
                for rank in 0..size {
                    let count = numbers[SEND_COUNTS * size + rank];
                    let from = numbers[SEND_OFFSETS * size + rank];
                    let bytes = slice(m, &tensor.src, from, count)?;
                    parcel.tensors.push(Packed {
                        dtype: all.dtype,
                        bytes: all.bytes[bytes].to_vec(),
                    });
                }
            }
        }
        Ok(parcel)
    }

    /// Writes what the member at a position gets.
    pub(crate) fn receive(&self, m: &mut Machine, me: usize, parcels: &[Parcel]) -> Run<()> {
        let size = parcels.len();
        let before = (me + size - 1) % size;
        match self {
            Exchange::Barrier => Ok(()),
            Exchange::Reduce { op, tensors } => {
                for (n, tensor) in tensors.iter().enumerate() {
                    let count = total(&tensor.dst);
                    let sums = combine(*op, parcels, n, (0, count), count)?;
                    store(m, &tensor.dst, &sums)?;
                }
                Ok(())
            }
            Exchange::ReduceScatter { op, tensor } => {
                let count = total(&tensor.dst);
                let sums = combine(*op, parcels, 0, (me * count, count), size * count)?;
                store(m, &tensor.dst, &sums)
            }
            Exchange::Gather {
                tensor,
                side_by_side,
            } => {
                let Pair { dst, src } = tensor;
                let parts = alike(parcels, 0, dst.dtype, total(src))?;
                if total(dst) != size * total(src) {
                    return Err(malformed(format!(
                        "`dst` is not {size} times as large as `src`"
                    )));
                }
                let mut all = Vec::with_capacity(total(dst) * dst.size);
                if *side_by_side {
                    let row = src.elements * src.size;
                    for p in 0..src.partitions {
                        for part in &parts {
                            all.extend_from_slice(&part[p * row..][..row]);
                        }
                    }
                } else {
                    parts.iter().for_each(|part| all.extend_from_slice(part));
                }
                unpack(m, dst, &all)
            }
            Exchange::AllToAll { tensor } => {
                let dst = &tensor.dst;
                let parts = alike(parcels, 0, dst.dtype, total(dst))?;
                if !total(dst).is_multiple_of(size) {
                    return Err(malformed(format!("`src` has not {size} equal parts")));
                }
                let part = total(dst) / size * dst.size;
                let all: Vec<u8> = parts
                    .iter()
                    .flat_map(|bytes| &bytes[me * part..][..part])
                    .copied()
                    .collect();
                unpack(m, dst, &all)
            }
            Exchange::Permute { pairs, tensor } => {
                let own = parcels[me].core;
                let Some(&(source, _)) = pairs.iter().find(|&&(_, target)| target == own) else {
                    return Ok(());
                };
                let parts = alike(parcels, 0, tensor.dst.dtype, total(&tensor.dst))?;
                let from = parcels.iter().position(|parcel| parcel.core == source);
                unpack(m, &tensor.dst, parts[from.unwrap_or(me)])
            }
            Exchange::Ring { channels } => {
                for (n, channel) in channels.iter().enumerate() {
                    let dst = &channel.dst;
                    let parts = alike(parcels, n, dst.dtype, total(dst))?;
                    unpack(m, dst, parts[before])?;
                }
                Ok(())
            }
            Exchange::RingReduce { dst, .. } => {
                let values = &parcels[before].values[0];
                if values.len() != total(dst) {
                    let core = parcels[before].core;
                    return Err(unlike(core, values.len(), "f32", total(dst), "f32"));
                }
                store(m, dst, values)
            }
            Exchange::Swap { tensor } => {
                let parts = alike(parcels, 0, tensor.dst.dtype, total(&tensor.dst))?;
                unpack(m, &tensor.dst, parts[before])
            }
            Exchange::Varied { tensor, metadata } => {
                receive_varied(m, &tensor.dst, metadata, me, parcels)
            }
        }
    }
}

/// The metadata, row by row of one number per rank: three rows or four.
fn read_metadata(m: &mut Machine, metadata: &Tile, size: usize) -> Run<Vec<i64>> {
    let rows_there = total(metadata) / size;
    if !total(metadata).is_multiple_of(size) || !(3..=4).contains(&rows_there) {
        return Err(malformed(format!(
            "`metadata` of {} numbers is not three or four rows of {size}",
            total(metadata)
        )));
    }
    let at = m.at(metadata)?;
    // The counts received are written, not read.
    let received = RECEIVE_COUNTS * size..(RECEIVE_COUNTS + 1) * size;
    let offsets: Vec<i64> = crate::tile::Odometer::new(metadata.all_levels()).collect();
    for (number, offset) in offsets.iter().enumerate() {
        if !received.contains(&number) {
            let mut one = metadata.clone();
            (one.partitions, one.elements) = (1, 1);
            one.levels.clear();
            m.check_defined(&one, (at as i64 + offset) as usize)?;
        }
    }
    let mut numbers = Vec::new();
    let all = (0, metadata.partitions);
    rows::load_ints(&m.mem, metadata, at, all, &mut numbers);
    numbers.truncate(total(metadata));
    Ok(numbers)
}

/// The bytes of elements of a packed tile; a fault where it has fewer.
fn slice(m: &Machine, tile: &Tile, from: i64, count: i64) -> Run<std::ops::Range<usize>> {
    let end = from + count;
    if end > total(tile) as i64 {
        return Err(Fault::of_operand(
            FaultKind::OutOfBounds {
                name: m.names[tile.location].clone(),
                what: format!("elements {from} to {} of {}", end - 1, total(tile)),
            },
            tile.operand,
        ));
    }
    Ok(from as usize * tile.size..end as usize * tile.size)
}

fn receive_varied(
    m: &mut Machine,
    dst: &Tile,
    metadata: &Tile,
    me: usize,
    parcels: &[Parcel],
) -> Run<()> {
    let size = parcels.len();
    let mut numbers = read_metadata(m, metadata, size)?;
    let slot = (total(dst) / size) as i64;
    let to = m.at(dst)?;
    let offsets: Vec<i64> = crate::tile::Odometer::new(dst.all_levels()).collect();
    for (rank, parcel) in parcels.iter().enumerate() {
        let Some(packed) = parcel.tensors.get(me).filter(|p| p.dtype == dst.dtype) else {
            return Err(malformed(format!(
                "core {} brings nothing of `{}`",
                parcel.core, dst.dtype
            )));
        };
        let count = (packed.bytes.len() / dst.size) as i64;
        let start = match numbers.get(RECEIVE_OFFSETS * size + rank) {
            Some(&start) => start,
            None if count > slot => {
                return Err(malformed(format!(
                    "core {} sends {count} elements to a slot of {slot}",
                    parcel.core
                )));
            }
            None => slot * rank as i64,
        };
        slice(m, dst, start, count)?;
        for (n, element) in packed.bytes.chunks_exact(dst.size).enumerate() {
            let at = (to as i64 + offsets[start as usize + n]) as usize;
            m.mem.bytes_mut()[at..at + dst.size].copy_from_slice(element);
            m.mem.mark(dst.home.region, at..at + dst.size);
        }
        numbers[RECEIVE_COUNTS * size + rank] = count;
    }
    let at = m.at(metadata)?;
    let all = (0, metadata.partitions);
    rows::store_ints(&mut m.mem, metadata, at, all, &numbers);
    m.mark(metadata, at);
    Ok(())
}

/// The ranks of the own group of `groups`, all of them cores of the program.
fn own_group(site: &Site<'_>) -> Run<Vec<u32>> {
    let core = site.core();
    let group = site
        .lists("groups")
        .into_iter()
        .find(|group| group.contains(&core))
        .ok_or_else(|| malformed(format!("core {core} is in none of its groups")))?;
    all_there(site, &group)?;
    Ok(group)
}

fn all_there(site: &Site<'_>, ranks: &[u32]) -> Run<()> {
    match ranks.iter().find(|rank| !site.cores().contains(rank)) {
        None => Ok(()),
        Some(rank) => Err(malformed(format!(
            "it exchanges data with rank {rank}, but the program's cores are {:?}",
            site.cores()
        ))),
    }
}

fn meeting(members: Vec<u32>, name: String, exchange: Exchange) -> Run<Option<Meeting>> {
    Ok(Some(Meeting {
        members,
        name,
        exchange,
    }))
}

fn pair(site: &Site<'_>) -> Run<Pair> {
    let (dst, src) = (site.tile("dst")?, site.tile("src")?);
    if dst.dtype != src.dtype {
        return Err(malformed("`dst` and `src` differ in dtype"));
    }
    Ok(Pair { dst, src })
}

fn pairs(site: &Site<'_>) -> Run<Vec<Pair>> {
    let (dsts, srcs) = (site.tiles("dsts")?, site.tiles("srcs")?);
    let fits = dsts.len() == srcs.len()
        && dsts
            .iter()
            .zip(&srcs)
            .all(|(dst, src)| dst.dtype == src.dtype && total(dst) == total(src));
    if !fits {
        return Err(malformed("its destinations and sources differ"));
    }
    Ok(dsts
        .into_iter()
        .zip(srcs)
        .map(|(dst, src)| Pair { dst, src })
        .collect())
}

/// The operation, and the name of a meeting that has one.
fn operation(site: &Site<'_>, name: &str) -> Run<(Alu, String)> {
    let word = site.word("op").unwrap_or_default();
    Ok((site.alu("op")?, format!("`{name} {word}`")))
}

pub(super) fn all_reduce(site: &Site<'_>) -> Run<Option<Meeting>> {
    let (op, name) = operation(site, "all_reduce")?;
    let tensors = pairs(site)?;
    meeting(own_group(site)?, name, Exchange::Reduce { op, tensors })
}

pub(super) fn reduce_scatter(site: &Site<'_>) -> Run<Option<Meeting>> {
    let (op, name) = operation(site, "reduce_scatter")?;
    let tensor = pair(site)?;
    meeting(
        own_group(site)?,
        name,
        Exchange::ReduceScatter { op, tensor },
    )
}

pub(super) fn all_gather(site: &Site<'_>) -> Run<Option<Meeting>> {
    let tensor = pair(site)?;
    let side_by_side = site.int("dim", 0) == 1;
    if side_by_side && tensor.dst.partitions != tensor.src.partitions {
        return Err(malformed("`dst` and `src` differ in partitions"));
    }
    let exchange = Exchange::Gather {
        tensor,
        side_by_side,
    };
    meeting(own_group(site)?, "`all_gather`".to_owned(), exchange)
}

pub(super) fn all_to_all(site: &Site<'_>) -> Run<Option<Meeting>> {
    let tensor = pair(site)?;
    if total(&tensor.dst) != total(&tensor.src) {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    meeting(
        own_group(site)?,
        "`all_to_all`".to_owned(),
        Exchange::AllToAll { tensor },
    )
}

/// `all_gather_v` and `all_to_all_v`: both send what their metadata say to each rank.
pub(super) fn varied(site: &Site<'_>) -> Run<Option<Meeting>> {
    let exchange = Exchange::Varied {
        tensor: pair(site)?,
        metadata: site.tile("metadata")?,
    };
    meeting(own_group(site)?, format!("`{}`", site.name()), exchange)
}

pub(super) fn permute(site: &Site<'_>) -> Run<Option<Meeting>> {
    let pairs: Vec<(u32, u32)> = site
        .lists("pairs")
        .iter()
        .filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)))
        .collect();
    let mut members: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    members.sort_unstable();
    members.dedup();
    if !members.contains(&site.core()) {
        return Ok(None);
    }
    all_there(site, &members)?;
    let tensor = pair(site)?;
    meeting(
        members,
        "`collective_permute`".to_owned(),
        Exchange::Permute { pairs, tensor },
    )
}

pub(super) fn ring(site: &Site<'_>) -> Run<Option<Meeting>> {
    let channels = pairs(site)?;
    meeting(
        own_group(site)?,
        "`collective_permute_implicit`".to_owned(),
        Exchange::Ring { channels },
    )
}

pub(super) fn ring_reduce(site: &Site<'_>) -> Run<Option<Meeting>> {
    let (op, name) = operation(site, "collective_permute_implicit_reduce")?;
    let (dst, sides) = (site.tile("dst")?, [site.tile("lhs")?, site.tile("rhs")?]);
    if sides.iter().any(|side| total(side) != total(&dst)) {
        return Err(malformed("its operands differ in shape"));
    }
    let sides = Box::new(sides);
    meeting(
        own_group(site)?,
        name,
        Exchange::RingReduce { op, dst, sides },
    )
}

pub(super) fn sendrecv(site: &Site<'_>) -> Run<Option<Meeting>> {
    let peer = u32::try_from(site.int("send_to", 0)).unwrap_or(0);
    let tensor = pair(site)?;
    if total(&tensor.dst) != total(&tensor.src) {
        return Err(malformed("`dst` and `src` differ in shape"));
    }
    let mut members = vec![site.core(), peer];
    all_there(site, &members)?;
    members.sort_unstable();
    members.dedup();
    let name = format!("`sendrecv` of pipe {}", site.int("pipe_id", 0));
    meeting(members, name, Exchange::Swap { tensor })
}

pub(super) fn core_barrier(site: &Site<'_>) -> Run<Option<Meeting>> {
    // Where one core is simulated alone there is nobody to wait for.
    if site.cores().len() == 1 {
        return Ok(None);
    }
    let mut members: Vec<u32> = site
        .ints("cores")
        .into_iter()
        .filter_map(|core| u32::try_from(core).ok())
        .collect();
    if members.is_empty() {
        members = vec![0, 1];
    }
    members.sort_unstable();
    if !members.contains(&site.core()) {
        return Err(malformed(format!(
            "core {} is none of those that meet",
            site.core()
        )));
    }
    all_there(site, &members)?;
    meeting(members, "`core_barrier`".to_owned(), Exchange::Barrier)
}

struct Rank {
    register: u32,
    rank: i64,
}

impl Task for Rank {
    fn run(&self, m: &mut Machine) -> Run<()> {
        m.regs[self.register as usize] = self.rank;
        Ok(())
    }
}

/// `rank_id` and `core_id`.
pub(super) fn rank(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (register, _) = site.register_out()?;
    let rank = i64::from(site.core());
    Ok(Box::new(Rank { register, rank }))
}

struct ProcessingRank {
    register: u32,
    iteration: Bound,
    group: Vec<u32>,
    position: i64,
}

impl Task for ProcessingRank {
    fn run(&self, m: &mut Machine) -> Run<()> {
        let iteration = match self.iteration {
            Bound::Number(number) => number,
            Bound::Register(slot) => i64::from(m.regs[slot as usize] as i32),
        };
        let at = (self.position - iteration).rem_euclid(self.group.len() as i64);
        m.regs[self.register as usize] = i64::from(self.group[at as usize]);
        Ok(())
    }
}

pub(super) fn processing_rank(site: &Site<'_>) -> Run<Box<dyn Task>> {
    let (register, _) = site.register_out()?;
    let group = own_group(site)?;
    let position = group.iter().position(|&rank| rank == site.core());
    Ok(Box::new(ProcessingRank {
        register,
        iteration: site.bound("iter")?,
        position: position.unwrap_or(0) as i64,
        group,
    }))
}
