//! Memory spaces, engines, generations: small closed sets and what the hardware says of them.

use std::fmt;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in text.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// Where a memory location lives.
    Space {
        /// Device memory: flat, row-major, no partitions.
        Dram = "dram",
        /// The scratchpad every engine reads and writes; dimension 0 is the partition.
        Sbuf = "sbuf",
        /// The matrix engine's accumulator memory, in banks; dimension 0 is the partition.
        Psum = "psum",
    }
}

names! {
    /// Who executes an instruction.
    Engine {
        /// Tensor engine (matrix multiply).
        Pe = "pe",
        /// Scalar engine (activation functions).
        Act = "act",
        /// Vector engine.
        Dve = "dve",
        /// GpSimd engine.
        Pool = "pool",
        /// Sync engine: a sequencer without a data path.
        Sp = "sp",
        /// A DMA queue.
        Dma = "dma",
    }
}

names! {
    /// Hardware generation, by the chip that carries it.
    Target {
        /// NeuronCore v2.
        Trn1 = "trn1",
        /// NeuronCore v3.
        Trn2 = "trn2",
        /// NeuronCore v4.
        Trn3 = "trn3",
    }
}

/// Partitions of SBUF and PSUM.
pub const PARTITIONS: u32 = 128;
/// Bytes of one PSUM bank in one partition.
pub const PSUM_BANK_BYTES: u64 = 2048;
/// PSUM banks of one partition.
pub const PSUM_BANKS: u64 = 8;

impl Target {
    /// Bytes of SBUF in one partition.
    pub const fn sbuf_bytes(self) -> u64 {
        match self {
            Target::Trn1 => 192 * 1024,
            Target::Trn2 => 224 * 1024,
            Target::Trn3 => 256 * 1024,
        }
    }

    /// Bytes of PSUM in one partition.
    pub const fn psum_bytes(self) -> u64 {
        PSUM_BANKS * PSUM_BANK_BYTES
    }

    /// Bytes of device memory behind one core's address space.
    pub const fn dram_bytes(self) -> u64 {
        match self {
            Target::Trn1 => 32 << 30,
            Target::Trn2 => 96 << 30,
            Target::Trn3 => 144 << 30,
        }
    }
}

/// A set of values of a small enum.
macro_rules! bitset {
    ($(#[$doc:meta])* $set:ident of $item:ident : $repr:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $set($repr);

        impl $set {
            /// None.
            pub const EMPTY: $set = $set(0);

            /// The set of these.
            pub const fn of(items: &[$item]) -> $set {
                let mut bits = 0;
                let mut i = 0;
                while i < items.len() {
                    bits |= 1 << items[i] as u8;
                    i += 1;
                }
                $set(bits)
            }

            /// These and those.
            pub const fn or(self, other: $set) -> $set {
                $set(self.0 | other.0)
            }

            /// Whether `item` is in it.
            #[inline]
            pub const fn has(self, item: $item) -> bool {
                self.0 & (1 << item as u8) != 0
            }

            /// Whether nothing is in it.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Those in both.
            pub const fn and(self, other: $set) -> $set {
                $set(self.0 & other.0)
            }

            /// These but not those.
            pub const fn without(self, other: $set) -> $set {
                $set(self.0 & !other.0)
            }

            /// How many are in it.
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }

            /// Members in order.
            pub fn iter(self) -> impl Iterator<Item = $item> {
                // `ALL` is in the order of the discriminants, which are the bits.
                let mut bits = self.0;
                std::iter::from_fn(move || {
                    let lowest = bits.trailing_zeros() as usize;
                    bits &= bits.wrapping_sub(1);
                    $item::ALL.get(lowest).copied()
                })
            }

            /// The member so many members follow from the start.
            pub fn nth(self, n: usize) -> Option<$item> {
                let mut bits = self.0;
                for _ in 0..n {
                    bits &= bits.wrapping_sub(1);
                }
                $item::ALL.get(bits.trailing_zeros() as usize).copied()
            }

            /// Members as a list for messages: "`a`, `b` or `c`".
            pub fn list(self) -> String {
                let names: Vec<String> = self.iter().map(|item| format!("`{}`", item.name())).collect();
                match names.split_last() {
                    None => "nothing".to_owned(),
                    Some((last, [])) => last.clone(),
                    Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                }
            }
        }
    };
}

use super::num::{DType, DTypeClass};

bitset!(
    /// A set of memory spaces.
    SpaceSet of Space: u8
);
bitset!(
    /// A set of engines.
    EngineSet of Engine: u8
);
bitset!(
    /// A set of dtypes.
    DTypeSet of DType: u32
);

impl SpaceSet {
    /// Every space.
    pub const ALL: SpaceSet = SpaceSet::of(Space::ALL);
}

impl DTypeSet {
    /// Every dtype.
    pub const ANY: DTypeSet = DTypeSet::of(DType::ALL);

    /// The dtypes of which an element holds several.
    pub const PACKED: DTypeSet = {
        let (mut packed, mut i) = (DTypeSet::EMPTY, 0);
        while i < DType::ALL.len() {
            if matches!(DType::ALL[i].class(), DTypeClass::Packed) {
                packed = packed.or(DTypeSet::of(&[DType::ALL[i]]));
            }
            i += 1;
        }
        packed
    };
}
