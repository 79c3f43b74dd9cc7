//! What a generated program contains, counted.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::OpCode;

macro_rules! features {
    ($($variant:ident = $name:literal: $doc:literal;)*) => {
        /// A shape of program text that passes must handle, besides the ops and dtypes themselves.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Feature { $(#[doc = $doc] $variant),* }

        impl Feature {
            /// All of them, in order.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),*];

            /// The name in options and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name),* }
            }

            /// One line for the manual.
            pub const fn summary(self) -> &'static str {
                match self { $(Feature::$variant => $doc),* }
            }

            /// The feature of that name.
            pub fn from_name(name: &str) -> Option<Feature> {
                Feature::ALL.iter().copied().find(|feature| feature.name() == name)
            }
        }
    };
}

features! {
    PartialWindow = "partial-window": "accesses of some partitions of a location";
    Offset = "offset": "accesses that begin inside a partition";
    Strided = "strided": "accesses with gaps";
    Reversed = "reversed": "accesses with negative steps";
    Broadcast = "broadcast": "reads with step 0";
    TwoLevel = "two-level": "accesses of several pairs";
    Permuted = "permuted": "accesses whose outer step is the smaller one";
    Reinterpret = "reinterpret": "accesses as another dtype";
    IndexOffset = "index-offset": "offsets that follow a loop index";
    IndexPartition = "index-partition": "partition windows that follow a loop index";
    Loop = "loop": "loops of constant bounds";
    NestedLoop = "nested-loop": "loops in loops";
    RegisterLoop = "register-loop": "loops whose bound is a register";
    While = "while": "loops on a register";
    Branch = "branch": "conditional branches";
    InPlace = "in-place": "a destination that is also a source, by one access";
    MustAlias = "must-alias": "locations that share their bytes";
    Placed = "placed": "locations at addresses";
    SlotReuse = "slot-reuse": "an address used by one location after another";
    PiecewiseDefinition = "piecewise-definition": "locations first written in several pieces";
    LoopDefinition = "loop-definition": "locations first written slice by slice in a loop";
    AccumulationGroup = "accumulation-group": "a matmult that overwrites and others that add";
    Accumulator = "accumulator": "instructions that go on with an engine's accumulator";
    UnlessFirst = "unless-first": "accumulation decided by a loop index";
    DeadStore = "dead-store": "writes nobody reads";
    ClobberedWrite = "clobbered-write": "writes overwritten before they are read";
    RedundantCopy = "redundant-copy": "copies of copies";
    RedundantLoad = "redundant-load": "loads of what is there already";
    RedundantMemset = "redundant-memset": "fills of what is filled already";
    NoOpCopy = "no-op-copy": "`dma_copy` onto its source, back to it, or between internal tensors";
    SpillPair = "spill-pair": "a value saved and reloaded that nobody else touches";
    EmptyLoop = "empty-loop": "loops that hold nothing";
    CoveredByPieces = "covered-by-pieces": "writes that two later ones cover together";
    IdentityOp = "identity-op": "arithmetic that changes nothing";
    ConstantOperand = "constant-operand": "arithmetic on filled tiles";
    ConstLocation = "const-location": "constant locations";
    InOutLocation = "inout-location": "locations that come in and go out";
    WrittenInput = "written-input": "inputs that are written";
    DramTemporary = "dram-temporary": "internal locations in DRAM";
    Engine = "engine": "another engine than the default";
    Ids = "ids": "numbered instructions";
    Deps = "deps": "stated dependences";
    Order = "order": "schedule coordinates";
    Semaphores = "semaphores": "signals and waits";
    Cores = "cores": "programs of several cores";
    SharedLocation = "shared-location": "buffers one core writes and all read";
    Loc = "loc": "source locations";
    Comment = "comment": "comments";
}

const FEATURES: usize = Feature::ALL.len();

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// Adds one.
    pub fn insert(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u8;
    }

    /// Whether it is in.
    pub fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u8 & 1 != 0
    }
}

const _: () = assert!(FEATURES <= 64, "a `FeatureSet` is one word");

/// How often each op, dtype and feature occurs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    ops: [u64; OpCode::ALL.len()],
    dtypes: [u64; DType::ALL.len()],
    features: [u64; FEATURES],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            ops: [0; OpCode::ALL.len()],
            dtypes: [0; DType::ALL.len()],
            features: [0; FEATURES],
        }
    }
}

impl Counts {
    pub(super) fn op(&mut self, code: OpCode) {
        self.ops[code as usize] += 1;
    }

    pub(super) fn dtype(&mut self, dtype: DType) {
        self.dtypes[dtype as usize] += 1;
    }

    pub(super) fn feature(&mut self, feature: Feature) {
        self.features[feature as usize] += 1;
    }

    /// Instructions made.
    pub fn instructions(&self) -> u64 {
        self.by_op()
            .filter(|(code, _)| code.def().engines.is_some())
            .map(|(_, count)| count)
            .sum()
    }

    /// Per op, in the order of the table.
    pub fn by_op(&self) -> impl Iterator<Item = (OpCode, u64)> + '_ {
        OpCode::ALL.iter().copied().zip(self.ops.iter().copied())
    }

    /// Per dtype of an operand's elements, in the order of the table.
    pub fn by_dtype(&self) -> impl Iterator<Item = (DType, u64)> + '_ {
        DType::ALL.iter().copied().zip(self.dtypes.iter().copied())
    }

    /// Per feature.
    pub fn by_feature(&self) -> impl Iterator<Item = (Feature, u64)> + '_ {
        Feature::ALL
            .iter()
            .copied()
            .zip(self.features.iter().copied())
    }

    /// Adds those of another program.
    pub fn add(&mut self, other: &Counts) {
        let sum = |ours: &mut [u64], theirs: &[u64]| {
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                *ours += theirs;
            }
        };
        sum(&mut self.ops, &other.ops);
        sum(&mut self.dtypes, &other.dtypes);
        sum(&mut self.features, &other.features);
    }
}
