//! What one entry of the op table says.
//!
//! Everything else about an instruction – its parser, printer, structural verifier, accessors,
//! `--show-dialect` page, pattern types and random generation – is derived from its [`OpDef`].

use super::super::num::DType;
use super::super::space::{DTypeSet, Engine, EngineSet, Space, SpaceSet, Target};
use super::super::verify::OpCheck;

/// How an operand takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory written.
    Out,
    /// Memory read and written.
    InOut,
    /// Memory read.
    In,
    /// A tile or a literal; a literal is kept as the attribute of the operand's name.
    Imm(ImmType),
    /// A register read.
    RegIn,
    /// A register written.
    RegOut,
    /// A register read or an integer literal.
    RegImm,
}

/// What a literal in an [`Kind::Imm`] operand is a number of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImmType {
    /// `f32`, always.
    F32,
    /// The dtype of the first out-operand.
    Dst,
    /// The dtype of the first in-operand if the op words are bit operations, else `f32`.
    Alu,
}

/// One operand role.
#[derive(Clone, Copy, Debug)]
pub struct OperandDef {
    /// Role name; also the attribute that holds a literal.
    pub name: &'static str,
    /// How it takes part.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether any number of operands may have the role.
    pub variadic: bool,
    /// Word that introduces the operand in text; required where there is one.
    pub keyword: Option<&'static str>,
    /// Enum attributes whose words follow the keyword.
    pub words: &'static [&'static str],
    /// Legal memory spaces.
    pub spaces: SpaceSet,
    /// Legal element types.
    pub dtypes: DTypeSet,
    /// Whether it may start at any partition although an engine executes the op.
    pub any_partitions: bool,
    /// One sentence for the manual.
    pub doc: &'static str,
}

/// An enumeration used by attributes.
#[derive(Debug)]
pub struct EnumDef {
    /// Name in the manual.
    pub name: &'static str,
    /// Legal words.
    pub words: &'static [&'static str],
}

/// What an attribute may be.
#[derive(Clone, Copy, Debug)]
pub enum AttrType {
    /// Present or absent.
    Flag,
    /// An integer in a range.
    Int {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number stored in this dtype.
    Number(DType),
    /// A word of an enumeration.
    Enum(&'static EnumDef),
    /// A list of integers in a range.
    IntList {
        /// Smallest element.
        min: i64,
        /// Largest element.
        max: i64,
    },
    /// A list of `[step, count]`, outermost first.
    Pattern,
    /// Free text.
    Str,
    /// A symbol, `@name`.
    Symbol,
    /// A dtype name.
    DType,
    /// A flag, or `unless_first(%k)`.
    Accumulate,
    /// A list of waits, `[4 >= 36]`.
    Waits,
    /// A list of signals, `[6 += 1 @complete]`.
    Signals,
    /// `[partition, byte]`, `[partition, bank n]` or an address: where an `alloc` is placed.
    Placement,
    /// The elements of a constant.
    Data,
    /// Lists of ranks, `[[0, 1], [2, 3]]`.
    RankGroups,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttrDef {
    /// Name.
    pub name: &'static str,
    /// What it may be.
    pub ty: AttrType,
    /// Whether it must be present.
    pub required: bool,
    /// What its absence means, for the manual.
    pub default: Option<&'static str>,
    /// One sentence for the manual.
    pub doc: &'static str,
}

/// What an instruction is, beyond its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Trait {
    /// Has effects besides its operands that somebody outside sees.
    Observable,
    /// Waits or signals.
    Sync,
    /// Steers control flow.
    Control,
    /// Is kept whatever its results are used for.
    MustKeep,
    /// Reads or writes state that is no operand (accumulators, random state, …).
    HiddenState,
    /// Its two value operands may be swapped where its op word commutes.
    Commutative,
    /// Writes each element from the elements of the same position.
    Elementwise,
    /// Executed by DMA queues: any partitions, casts by way of f32.
    Dma,
    /// Where it reads or writes is decided by data: anywhere in the access where an index operand
    /// is given, anywhere in the location where an offset operand is.
    Dynamic,
    /// Exchanges data with other cores or devices.
    Collective,
    /// Ends a block.
    Terminator,
    /// A source may be the very access that is written, as it may for [`Trait::Elementwise`].
    InPlace,
}

impl Trait {
    /// All traits, in order.
    pub const ALL: &'static [Trait] = &[
        Trait::Observable,
        Trait::Sync,
        Trait::Control,
        Trait::MustKeep,
        Trait::HiddenState,
        Trait::Commutative,
        Trait::Elementwise,
        Trait::Dma,
        Trait::Dynamic,
        Trait::Collective,
        Trait::Terminator,
        Trait::InPlace,
    ];

    /// Name in the manual.
    pub const fn name(self) -> &'static str {
        match self {
            Trait::Observable => "observable",
            Trait::Sync => "sync",
            Trait::Control => "control",
            Trait::MustKeep => "must-keep",
            Trait::HiddenState => "hidden-state",
            Trait::Commutative => "commutative",
            Trait::Elementwise => "elementwise",
            Trait::Dma => "dma",
            Trait::Dynamic => "dynamic",
            Trait::Collective => "collective",
            Trait::Terminator => "terminator",
            Trait::InPlace => "in-place",
        }
    }
}

/// How a statement of the op is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// `outs <- ins {attrs}`
    Instruction,
    /// `%x = alloc space<…> at … {attrs}`
    Alloc,
    /// `bir.module @name {attrs} { … }`
    Module,
    /// `bir.func @name {attrs} { … }`
    Func,
    /// `loop %i = a to b step c {attrs} { … }`
    Loop,
    /// `while %r {attrs} { … }`
    While,
    /// `br ^bb`
    Br,
    /// `cond_br %r, ^a, ^b`
    CondBr,
    /// `depset #n = [id, #set]`
    Depset,
    /// Not written in the custom form: the end of a block says it.
    Implicit,
}

/// Who may execute an op.
#[derive(Clone, Copy, Debug)]
pub struct Engines {
    /// The engine where the text names none.
    pub default: Engine,
    /// Legal engines per generation; empty: the generation lacks the op.
    pub legal: [EngineSet; 3],
}

impl Engines {
    /// Legal engines on a target.
    pub fn on(&self, target: Target) -> EngineSet {
        self.legal[target as usize]
    }

    /// The engine on a target where the text names none.
    pub fn default_on(&self, target: Target) -> Engine {
        let legal = self.on(target);
        if legal.has(self.default) {
            return self.default;
        }
        legal.iter().next().unwrap_or(self.default)
    }
}

/// One op.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// Mnemonic, without the dialect.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paragraphs and an example.
    pub doc: &'static str,
    /// How it is written.
    pub syntax: Syntax,
    /// Enum attributes written as words before the first operand.
    pub words: &'static [&'static str],
    /// Operand roles in the order of the generic form's segments.
    pub operands: &'static [OperandDef],
    /// Attributes besides those every instruction may carry.
    pub attrs: &'static [AttrDef],
    /// Whether it may define a register as its result, instead of a register out-operand.
    pub result: bool,
    /// Who executes it; `None` for structure (allocations, loops, branches).
    pub engines: Option<Engines>,
    /// What it is.
    pub traits: u16,
    /// Roles that must have equal partitions and equal elements per partition.
    pub same_shape: &'static [&'static str],
    /// Roles that must have one dtype.
    pub same_dtype: &'static [&'static str],
    /// Roles that are one element per partition, on as many partitions as the first out-operand.
    pub per_partition: &'static [&'static str],
    /// Constraints of its own.
    pub check: Option<OpCheck>,
}

impl OpDef {
    /// Whether it has a trait.
    #[inline]
    pub const fn has(&self, what: Trait) -> bool {
        self.traits & (1 << what as u8) != 0
    }

    /// What is wrong where an operand too many stands left or right of `<-`.
    pub fn one_too_many(&self, left: bool) -> String {
        let roles = self.operands.iter().filter(|role| role.is_left() == left);
        let side = if left { "before" } else { "behind" };
        format!(
            "`{}` takes {} operands {side} `<-`, found one more",
            self.name,
            roles.count()
        )
    }

    /// Its traits in order.
    pub fn traits(&self) -> impl Iterator<Item = Trait> + '_ {
        Trait::ALL.iter().copied().filter(|&t| self.has(t))
    }

    /// As [`role`](Self::role), faster at run time.
    #[inline]
    pub fn find_role(&self, name: &str) -> Option<usize> {
        // Byte by byte: names are short, and most differ in the first.
        let is = |known: &str| known.len() == name.len() && known.bytes().eq(name.bytes());
        self.operands.iter().position(|operand| is(operand.name))
    }

    /// The number of the role in the generic form's segments.
    pub const fn role(&self, name: &str) -> Option<usize> {
        let mut i = 0;
        while i < self.operands.len() {
            if str_eq(self.operands[i].name, name) {
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// The number of the role `indices`: behind all others.
    pub const fn indices_role(&self) -> usize {
        self.operands.len()
    }

    /// The attribute entry of that name.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Roles every instance fills with exactly one value: what operands mean in the generic form
    /// where segment sizes are not given.
    pub fn required_roles(&self) -> impl Iterator<Item = usize> + '_ {
        self.operands
            .iter()
            .enumerate()
            .filter(|(_, role)| !role.optional && !role.variadic && !role.takes_literal())
            .map(|(number, _)| number)
    }

    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        doc: &'static str,
        operands: &'static [OperandDef],
        attrs: &'static [AttrDef],
    ) -> OpDef {
        OpDef {
            name,
            summary,
            doc,
            syntax: Syntax::Instruction,
            words: &[],
            operands,
            attrs,
            result: false,
            engines: None,
            traits: 0,
            same_shape: &[],
            same_dtype: &[],
            per_partition: &[],
            check: None,
        }
    }

    pub(super) const fn syntax(mut self, syntax: Syntax) -> OpDef {
        self.syntax = syntax;
        self
    }

    pub(super) const fn words(mut self, words: &'static [&'static str]) -> OpDef {
        self.words = words;
        self
    }

    /// The same engines on every generation, the first being the default.
    pub(super) const fn engines(self, engines: &'static [Engine]) -> OpDef {
        self.engines_by_target(engines, engines, engines)
    }

    /// Engines on trn1, trn2 and trn3; the first of the newest is the default.
    pub(super) const fn engines_by_target(
        mut self,
        trn1: &'static [Engine],
        trn2: &'static [Engine],
        trn3: &'static [Engine],
    ) -> OpDef {
        self.engines = Some(Engines {
            default: trn3[0],
            legal: [
                EngineSet::of(trn1),
                EngineSet::of(trn2),
                EngineSet::of(trn3),
            ],
        });
        self
    }

    pub(super) const fn traits_of(mut self, traits: &'static [Trait]) -> OpDef {
        let mut i = 0;
        while i < traits.len() {
            self.traits |= 1 << traits[i] as u8;
            i += 1;
        }
        self
    }

    pub(super) const fn with_result(mut self) -> OpDef {
        self.result = true;
        self
    }

    pub(super) const fn same_shape(mut self, roles: &'static [&'static str]) -> OpDef {
        self.same_shape = roles;
        self
    }

    pub(super) const fn same_dtype(mut self, roles: &'static [&'static str]) -> OpDef {
        self.same_dtype = roles;
        self
    }

    pub(super) const fn per_partition(mut self, roles: &'static [&'static str]) -> OpDef {
        self.per_partition = roles;
        self
    }

    pub(super) const fn check(mut self, check: OpCheck) -> OpDef {
        self.check = Some(check);
        self
    }
}

const fn str_eq(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn operand(kind: Kind, spaces: SpaceSet, dtypes: DTypeSet) -> OperandDef {
    OperandDef {
        name: "",
        kind,
        optional: false,
        variadic: false,
        keyword: None,
        words: &[],
        spaces,
        dtypes,
        any_partitions: false,
        doc: "",
    }
}

/// Memory written.
pub(super) const fn out(spaces: SpaceSet, dtypes: DTypeSet) -> OperandDef {
    operand(Kind::Out, spaces, dtypes)
}

/// Memory read and written.
pub(super) const fn inout(spaces: SpaceSet, dtypes: DTypeSet) -> OperandDef {
    operand(Kind::InOut, spaces, dtypes)
}

/// Memory read.
pub(super) const fn input(spaces: SpaceSet, dtypes: DTypeSet) -> OperandDef {
    operand(Kind::In, spaces, dtypes)
}

/// A tile or a literal.
pub(super) const fn imm(ty: ImmType, spaces: SpaceSet, dtypes: DTypeSet) -> OperandDef {
    operand(Kind::Imm(ty), spaces, dtypes)
}

/// A literal only.
pub(super) const fn literal(ty: ImmType) -> OperandDef {
    operand(Kind::Imm(ty), SpaceSet::EMPTY, DTypeSet::EMPTY)
}

/// A register read.
pub(super) const fn reg() -> OperandDef {
    operand(Kind::RegIn, SpaceSet::EMPTY, DTypeSet::ANY)
}

/// A register read or an integer literal.
pub(super) const fn reg_imm() -> OperandDef {
    operand(Kind::RegImm, SpaceSet::EMPTY, DTypeSet::ANY)
}

/// A register written.
pub(super) const fn reg_out() -> OperandDef {
    operand(Kind::RegOut, SpaceSet::EMPTY, DTypeSet::ANY)
}

impl OperandDef {
    /// Whether it names memory that is written.
    pub const fn writes(&self) -> bool {
        matches!(self.kind, Kind::Out | Kind::InOut)
    }

    /// Whether it names memory that is read.
    pub const fn reads(&self) -> bool {
        matches!(self.kind, Kind::In | Kind::InOut | Kind::Imm(_))
    }

    /// Whether it is a register, not memory.
    pub const fn is_register(&self) -> bool {
        matches!(self.kind, Kind::RegIn | Kind::RegOut | Kind::RegImm)
    }

    /// Whether it stands left of the arrow.
    pub const fn is_left(&self) -> bool {
        matches!(self.kind, Kind::Out | Kind::InOut | Kind::RegOut)
    }

    /// Whether it may be a literal.
    pub const fn takes_literal(&self) -> bool {
        matches!(self.kind, Kind::Imm(_) | Kind::RegImm)
    }

    pub(super) const fn named(mut self, name: &'static str) -> OperandDef {
        self.name = name;
        self
    }

    pub(super) const fn opt(mut self) -> OperandDef {
        self.optional = true;
        self
    }

    pub(super) const fn variadic(mut self) -> OperandDef {
        self.variadic = true;
        self
    }

    pub(super) const fn any_partitions(mut self) -> OperandDef {
        self.any_partitions = true;
        self
    }

    pub(super) const fn key(mut self, keyword: &'static str) -> OperandDef {
        self.keyword = Some(keyword);
        self
    }

    pub(super) const fn key_words(mut self, words: &'static [&'static str]) -> OperandDef {
        self.words = words;
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> OperandDef {
        self.doc = doc;
        self
    }
}

const fn attr(ty: AttrType, required: bool) -> AttrDef {
    AttrDef {
        name: "",
        ty,
        required,
        default: None,
        doc: "",
    }
}

/// An attribute that may be absent.
pub(super) const fn optional(ty: AttrType) -> AttrDef {
    attr(ty, false)
}

/// An attribute that must be present.
pub(super) const fn required(ty: AttrType) -> AttrDef {
    attr(ty, true)
}

impl AttrDef {
    pub(super) const fn named(mut self, name: &'static str) -> AttrDef {
        self.name = name;
        self
    }

    pub(super) const fn default(mut self, default: &'static str) -> AttrDef {
        self.default = Some(default);
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> AttrDef {
        self.doc = doc;
        self
    }
}

/// DRAM alone.
pub(super) const DRAM: SpaceSet = SpaceSet::of(&[Space::Dram]);
/// SBUF alone.
pub(super) const SBUF: SpaceSet = SpaceSet::of(&[Space::Sbuf]);
/// PSUM alone.
pub(super) const PSUM: SpaceSet = SpaceSet::of(&[Space::Psum]);
/// Both scratchpads.
pub(super) const CHIP: SpaceSet = SBUF.or(PSUM);
/// What DMA reaches.
pub(super) const DMA_SPACES: SpaceSet = DRAM.or(SBUF);

/// Any dtype.
pub(super) const ANY: DTypeSet = DTypeSet::ANY;
/// f32 alone.
pub(super) const F32: DTypeSet = DTypeSet::of(&[DType::F32]);
/// The floating-point formats engines compute with.
pub const FLOATS: DTypeSet = DTypeSet::of(&[
    DType::F32,
    DType::Tf32,
    DType::Bf16,
    DType::F16,
    DType::F8E5M2,
    DType::F8E4M3,
    DType::F8E4M3FN,
]);
/// Whole numbers an engine handles.
pub const INTS: DTypeSet = DTypeSet::of(&[
    DType::I8,
    DType::I16,
    DType::I32,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::Bool,
]);
/// What compute engines convert freely between.
pub const NUMERIC: DTypeSet = FLOATS.or(INTS);
