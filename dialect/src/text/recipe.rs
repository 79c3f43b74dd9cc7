//! Recipes: what a statement's shape means, with holes for its names and numbers.
//!
//! A recipe is made once per shape, from pest's parse of the first statement that has it
//! (`compile`), and then filled from the holes of every statement of that shape (`build`). Spans
//! are those of the statement it was made from, relative to its start; so a statement that
//! fails to build is compiled anew before anything is reported about it.

use std::ops::Range;

use smallvec::SmallVec;

use super::build::{AccessMemo, DictMemo};
use crate::bir::attrs::{SemEvent, SemOp};
use crate::bir::num::DType;
use crate::bir::ops::OpCode;
use crate::bir::program::DepKind;
use crate::ir::{Attr, Dict, OpName, Str, Type};

/// Bytes of a statement, relative to its start.
pub(crate) type Span = Range<u32>;

/// An integer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IntSrc {
    Const(i64),
    Hole { hole: u32, negative: bool },
}

/// A number, as text.
#[derive(Clone, Debug)]
pub(crate) enum NumSrc {
    Const(Box<str>),
    Hole { hole: u32, negative: bool },
}

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NumStyle {
    /// `5`
    Int,
    /// `5.0`, `5e3`
    Float,
    /// `0x7F800000`
    Hex,
    /// `inf`, `nan`
    NonFinite,
}

/// A string: free text in a hole, or one the dialect knows.
#[derive(Clone, Debug)]
pub(crate) enum StrSrc {
    Const(Str),
    Hole(u32),
}

/// A name, with its `#n` where it is one of several results.
#[derive(Clone, Debug)]
pub(crate) struct NameSrc {
    pub(crate) hole: u32,
    pub(crate) part: Option<IntSrc>,
    pub(crate) span: Span,
}

/// What an index term multiplies.
#[derive(Clone, Debug)]
pub(crate) enum IndexSrc {
    /// A loop index by name.
    Name(NameSrc),
    /// `d0`: the n-th operand of role `indices`.
    Dim(u8),
}

/// A sum of constants and index terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct AffineRecipe {
    pub(crate) constants: SmallVec<[IntSrc; 2]>,
    /// Index, coefficient (1 where `None`), and whether the term is subtracted.
    pub(crate) terms: SmallVec<[(IndexSrc, Option<IntSrc>, bool); 1]>,
    pub(crate) span: Span,
}

/// One entry of a slice access.
#[derive(Clone, Debug)]
pub(crate) enum SliceRecipe {
    /// `a : b : step`
    Range(Option<AffineRecipe>, Option<AffineRecipe>, Option<IntSrc>),
    /// `a +: len : step`
    Length(AffineRecipe, IntSrc, Option<IntSrc>),
    /// `a`
    At(AffineRecipe),
}

/// End of a partition window.
#[derive(Clone, Debug)]
pub(crate) enum WindowEnd {
    /// `p a:end`
    End(IntSrc),
    /// `p a +: len`
    Length(IntSrc),
}

/// An access.
#[derive(Clone, Debug)]
pub(crate) enum AccessRecipe {
    Whole,
    Slices {
        recast: Option<DType>,
        slices: Vec<(SliceRecipe, Span)>,
    },
    Raw {
        recast: Option<DType>,
        window: Option<Box<(AffineRecipe, WindowEnd)>>,
        offset: Box<AffineRecipe>,
        pairs: Vec<(IntSrc, IntSrc)>,
    },
}

/// An operand that is a value.
#[derive(Clone, Debug)]
pub(crate) struct OperandRecipe {
    pub(crate) role: u8,
    /// Whether it may be defined further down (registers may, locations may not).
    pub(crate) may_be_later: bool,
    pub(crate) name: NameSrc,
    pub(crate) access: AccessRecipe,
    /// What the access depends on, where it can be remembered.
    pub(crate) memo: Option<AccessMemo>,
    /// Type the generic form states.
    pub(crate) ty: Option<Type>,
    pub(crate) span: Span,
}

/// What dtype a literal is stored in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LitType {
    Of(DType),
    /// That of the operand at this position of the recipe.
    OfOperand(u8),
    /// A 64-bit integer.
    I64,
    /// A builtin `f64`, outside the dialect's own attributes.
    F64,
}

/// An attribute value.
#[derive(Clone, Debug)]
pub(crate) enum AttrRecipe {
    Const(Attr),
    Int(IntSrc, Type),
    Number(NumSrc, NumStyle, LitType),
    Str(StrSrc),
    Symbol(u32),
    Array(Vec<AttrRecipe>),
    Dict(Vec<(Str, AttrRecipe)>),
    Sem(IntSrc, SemOp, IntSrc, SemEvent),
    PlaceBytes(IntSrc, IntSrc),
    PlaceBank(IntSrc, IntSrc),
    PlaceAddress(IntSrc),
    UnlessFirst(IndexSrc),
    /// Elements as text; type where stated.
    Dense(DenseRecipe, Option<Type>),
}

/// Elements of `dense<…>`.
#[derive(Clone, Debug)]
pub(crate) enum DenseRecipe {
    /// `"0x…"`
    Hex(StrSrc),
    /// Nested lists, flattened; the flag says that a single number stood alone (a splat).
    List(Vec<NumSrc>, bool),
}

/// A named attribute with the place it stands at.
#[derive(Clone, Debug)]
pub(crate) struct EntryRecipe {
    pub(crate) name: Str,
    pub(crate) value: AttrRecipe,
    pub(crate) span: Span,
}

/// One entry of `deps`.
#[derive(Clone, Debug)]
pub(crate) struct DepRecipe {
    pub(crate) kind: DepKind,
    pub(crate) set: bool,
    pub(crate) id: IntSrc,
}

/// A stated source location.
#[derive(Clone, Debug)]
pub(crate) enum LocRecipe {
    /// `loc("file":line:col)`
    Parts {
        file: StrSrc,
        line: IntSrc,
        col: IntSrc,
    },
    /// `src = "file:line:col"`
    Text(StrSrc, Span),
}

/// A result or a block argument.
#[derive(Clone, Debug)]
pub(crate) struct ResultRecipe {
    pub(crate) name: NameSrc,
    /// `%x:2`
    pub(crate) count: Option<IntSrc>,
}

/// What a statement opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opens {
    Nothing,
    /// A region of the custom form.
    Custom,
    /// The first region of a generic operation.
    Generic,
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct OpRecipe {
    pub(crate) name: OpName,
    pub(crate) code: Option<OpCode>,
    pub(crate) generic: bool,
    pub(crate) opens: Opens,
    pub(crate) results: SmallVec<[ResultRecipe; 1]>,
    /// Types the statement states; where it states none, a register of its operands' dtype.
    pub(crate) result_types: Option<SmallVec<[Type; 1]>>,
    pub(crate) operands: Vec<OperandRecipe>,
    /// Position in `operands` of those with role `indices` (generic form only).
    pub(crate) index_names: SmallVec<[NameSrc; 2]>,
    pub(crate) successors: SmallVec<[NameSrc; 2]>,
    pub(crate) entries: Vec<EntryRecipe>,
    /// The dictionary, where no entry has a hole.
    pub(crate) dict: Option<Dict>,
    /// What it depends on, where it can be remembered.
    pub(crate) dict_memo: Option<DictMemo>,
    /// `@name` of a module or function.
    pub(crate) symbol: Option<SymbolSrc>,
    /// Name of a loop's index.
    pub(crate) iv: Option<NameSrc>,
    pub(crate) id: Option<IntSrc>,
    pub(crate) deps: Option<Vec<DepRecipe>>,
    pub(crate) order: Option<Vec<AffineRecipe>>,
    pub(crate) loc: Option<LocRecipe>,
    /// Name hint given as an attribute (`sym_name`, `name`, `iv_name`).
    pub(crate) hint: Option<StrSrc>,
    /// Types of all operands as the generic form states them, loop indices included.
    pub(crate) stated_types: usize,
    /// Where the generic form states types of operands and of results.
    pub(crate) operand_types_span: Span,
    pub(crate) result_types_span: Span,
    /// Segment sizes, where the operation has regions.
    pub(crate) segments: Option<Vec<i64>>,
}

/// The name of a module or function.
#[derive(Clone, Debug)]
pub(crate) enum SymbolSrc {
    Name(u32),
    Text(Box<str>),
}

/// A block label.
#[derive(Clone, Debug)]
pub(crate) struct LabelRecipe {
    pub(crate) name: NameSrc,
    pub(crate) args: Vec<(NameSrc, Type)>,
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    Op(Box<OpRecipe>),
    /// What stands behind the last region of a generic operation.
    Tail(Box<OpRecipe>),
    Label(LabelRecipe),
    /// `module {` and its generic form: transparent.
    Wrapper {
        generic: bool,
    },
    /// A statement without effect, such as the end of a block.
    Nothing,
}
