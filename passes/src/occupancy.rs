//! Which locations a function holds, and from which instruction to which: the live intervals of
//! the memory index, with what reports say of locations.

use bir_dialect::analysis::index::{Frames, FunctionIndex, Live};
use bir_dialect::bir::space::Space;
use bir_dialect::bir::types::MemType;
use bir_dialect::ir::{Ir, Op};

/// One location.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) name: String,
    /// `sbuf<128x512xf32>`
    pub(crate) ty: String,
    pub(crate) space: Space,
    /// Bytes in each partition; in all for DRAM.
    pub(crate) bytes: u64,
    pub(crate) partitions: u64,
    /// First partition and byte, where placed.
    pub(crate) place: Option<(u64, u64)>,
    /// Numbers of the first and last instruction, both included; `None` where there is no access.
    pub(crate) span: Option<(u32, u32)>,
}

/// The most bytes held at once, per partition on chip, and the first instruction with so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) at: u32,
}

/// What a function holds.
pub(crate) struct Occupancy {
    /// Its locations in order.
    pub(crate) held: Vec<Held>,
    /// The peak of each space, in the order of [`Space::ALL`].
    pub(crate) peaks: Vec<(Space, Peak)>,
}

impl Occupancy {
    /// Looks at a function.
    pub(crate) fn of(ir: &Ir, func: Op) -> Occupancy {
        let index = FunctionIndex::build(ir, func, Frames::Locations);
        let live = Live::new(&index);
        let size = |size: i64| u64::try_from(size).unwrap_or(0);
        let locations = index.locations().iter().enumerate();
        let held = locations.map(|(number, location)| {
            let name = ir.value_name(location.value);
            let mem = MemType::get(&ir.ctx, ir.value_type(location.value));
            Held {
                name: name.map_or("", |name| ir.ctx.text(name)).to_owned(),
                ty: mem.map_or(String::new(), |mem| mem.text()),
                space: location.space,
                bytes: size(location.bytes),
                partitions: size(location.partitions),
                place: location
                    .place
                    .map(|(partition, byte)| (size(partition), size(byte))),
                span: live.of(number as u32).map(|span| (span.first, span.last)),
            }
        });
        let peaks = live.peaks(&index).into_iter().map(|peak| {
            let bytes = size(peak.bytes);
            (peak.space, Peak { bytes, at: peak.at })
        });
        Occupancy {
            held: held.collect(),
            peaks: peaks.collect(),
        }
    }

    /// The peak of one space.
    pub(crate) fn peak(&self, space: Space) -> Peak {
        let found = self.peaks.iter().find(|(known, _)| *known == space);
        found.map_or(Peak::default(), |&(_, peak)| peak)
    }
}
