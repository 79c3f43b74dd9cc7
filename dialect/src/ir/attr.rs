//! Attributes and types: how they are encoded as words, and the views that decode them.

use smallvec::SmallVec;

use super::context::Context;
use super::entity::{Attr, Dict, Str, Type};

/// Signedness of a builtin integer type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sign {
    /// `i8`
    Signless,
    /// `si8`
    Signed,
    /// `ui8`
    Unsigned,
}

/// A type, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeView<'a> {
    /// `index`
    Index,
    /// `none`
    None,
    /// `i32`, `si32`, `ui32`
    Int {
        /// Bits.
        width: u32,
        /// Signedness.
        sign: Sign,
    },
    /// A builtin float type by name (`f32`, `bf16`).
    Float(Str),
    /// `tensor<2x4xelem>` of static shape.
    Tensor {
        /// Sizes.
        dims: &'a [u64],
        /// Element type.
        elem: Type,
    },
    /// `(a, b) -> (c)`, kept as text.
    Function(Str),
    /// A type of a registered dialect; the words mean what the dialect says.
    Dialect {
        /// The dialect's number of the kind.
        kind: u16,
        /// Payload.
        words: &'a [u64],
    },
    /// A type nobody registered, kept as its text including the leading `!`.
    Opaque(Str),
}

/// An attribute, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrView<'a> {
    /// Present, without a value.
    Unit,
    /// `true` or `false`
    Bool(bool),
    /// A 64-bit integer; unsigned 64-bit types store the same bits.
    Int {
        /// Value.
        value: i64,
        /// Its type, `i64` where none was written.
        ty: Type,
    },
    /// A number of a floating-point type, as the bits of that type.
    Float {
        /// Bits in the type's own format.
        bits: u64,
        /// Its type.
        ty: Type,
    },
    /// `"text"`
    Str(Str),
    /// `@name`
    Symbol(Str),
    /// `[a, b]`; each word is an attribute handle.
    Array(AttrList<'a>),
    /// `{a = 1}`
    Dict(Dict),
    /// A type.
    Type(Type),
    /// `dense<"0x…"> : tensor<…>`: raw little-endian elements.
    Dense {
        /// The tensor type.
        ty: Type,
        /// The bytes, as an interned string of hex digits.
        hex: Str,
    },
    /// An attribute of a registered dialect; the words mean what the dialect says.
    Dialect {
        /// The dialect's number of the kind.
        kind: u16,
        /// Payload.
        words: &'a [u64],
    },
    /// An attribute nobody registered, kept as its text (`#d.x<…>`, `array<i32: 1>`).
    Opaque(Str),
}

/// The elements of an array attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttrList<'a>(&'a [u64]);

impl<'a> AttrList<'a> {
    /// Elements in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Attr> + 'a {
        self.0.iter().map(|&word| Attr(word as u32))
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The element at `index`.
    pub fn get(self, index: usize) -> Option<Attr> {
        self.0.get(index).map(|&word| Attr(word as u32))
    }
}

// Word 0 of every encoding: tag in the low byte, a 16-bit detail above it, a handle in the high half.
const TAG_UNIT: u64 = 0;
const TAG_BOOL: u64 = 1;
const TAG_INT: u64 = 2;
const TAG_FLOAT: u64 = 3;
const TAG_STR: u64 = 4;
const TAG_SYMBOL: u64 = 5;
const TAG_ARRAY: u64 = 6;
const TAG_DICT: u64 = 7;
const TAG_TYPE: u64 = 8;
const TAG_DENSE: u64 = 9;
const TAG_DIALECT: u64 = 10;
const TAG_OPAQUE: u64 = 11;

const TY_INDEX: u64 = 0;
const TY_NONE: u64 = 1;
const TY_INT: u64 = 2;
const TY_FLOAT: u64 = 3;
const TY_TENSOR: u64 = 4;
const TY_FUNCTION: u64 = 5;
const TY_DIALECT: u64 = 6;
const TY_OPAQUE: u64 = 7;

fn head(tag: u64, detail: u16, handle: u32) -> u64 {
    tag | (u64::from(detail) << 8) | (u64::from(handle) << 32)
}

fn detail(word: u64) -> u16 {
    (word >> 8) as u16
}

fn handle(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Context {
    /// The attribute without a value.
    pub fn unit(&mut self) -> Attr {
        Attr(self.attrs.intern(&[TAG_UNIT]))
    }

    /// `true` or `false`.
    pub fn bool_attr(&mut self, value: bool) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_BOOL, u16::from(value), 0)]))
    }

    /// An integer of type `ty`.
    pub fn typed_int(&mut self, value: i64, ty: Type) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_INT, 0, ty.0), value as u64]))
    }

    /// An integer of type `i64`.
    pub fn int(&mut self, value: i64) -> Attr {
        let ty = self.int_type(64, Sign::Signless);
        self.typed_int(value, ty)
    }

    /// A float by its bits in the format of `ty`.
    pub fn float(&mut self, bits: u64, ty: Type) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_FLOAT, 0, ty.0), bits]))
    }

    /// A string.
    pub fn string(&mut self, text: &str) -> Attr {
        let text = self.str(text);
        self.string_of(text)
    }

    /// An already interned string as an attribute.
    pub fn string_of(&mut self, text: Str) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_STR, 0, text.0)]))
    }

    /// A symbol reference, without the `@`.
    pub fn symbol(&mut self, name: Str) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_SYMBOL, 0, name.0)]))
    }

    /// An array.
    pub fn array(&mut self, elements: &[Attr]) -> Attr {
        let mut words: SmallVec<[u64; 16]> = SmallVec::with_capacity(elements.len() + 1);
        words.push(TAG_ARRAY);
        words.extend(elements.iter().map(|attr| u64::from(attr.0)));
        Attr(self.attrs.intern(&words))
    }

    /// A nested dictionary.
    pub fn dict_attr(&mut self, dict: Dict) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_DICT, 0, dict.0)]))
    }

    /// A type as an attribute.
    pub fn type_attr(&mut self, ty: Type) -> Attr {
        Attr(self.attrs.intern(&[head(TAG_TYPE, 0, ty.0)]))
    }

    /// Dense elements: upper-case hex digits of the little-endian bytes.
    pub fn dense(&mut self, ty: Type, hex: Str) -> Attr {
        Attr(
            self.attrs
                .intern(&[head(TAG_DENSE, 0, ty.0), u64::from(hex.0)]),
        )
    }

    /// A dialect's own attribute.
    pub fn dialect_attr(&mut self, kind: u16, payload: &[u64]) -> Attr {
        let mut words: smallvec::SmallVec<[u64; 16]> = smallvec::SmallVec::new();
        words.push(head(TAG_DIALECT, kind, 0));
        words.extend_from_slice(payload);
        Attr(self.attrs.intern(&words))
    }

    /// An attribute kept as text.
    pub fn opaque_attr(&mut self, text: &str) -> Attr {
        let text = self.str(text);
        Attr(self.attrs.intern(&[head(TAG_OPAQUE, 0, text.0)]))
    }

    /// Decodes an attribute.
    pub fn attr(&self, attr: Attr) -> AttrView<'_> {
        let words = self.attrs.get(attr.0);
        let (word, rest) = match words.split_first() {
            Some((&word, rest)) => (word, rest),
            None => return AttrView::Unit,
        };
        let second = || rest.first().copied().unwrap_or(0);
        match word & 0xff {
            TAG_BOOL => AttrView::Bool(detail(word) != 0),
            TAG_INT => AttrView::Int {
                value: second() as i64,
                ty: Type(handle(word)),
            },
            TAG_FLOAT => AttrView::Float {
                bits: second(),
                ty: Type(handle(word)),
            },
            TAG_STR => AttrView::Str(Str(handle(word))),
            TAG_SYMBOL => AttrView::Symbol(Str(handle(word))),
            TAG_ARRAY => AttrView::Array(AttrList(rest)),
            TAG_DICT => AttrView::Dict(Dict(handle(word))),
            TAG_TYPE => AttrView::Type(Type(handle(word))),
            TAG_DENSE => AttrView::Dense {
                ty: Type(handle(word)),
                hex: Str(second() as u32),
            },
            TAG_DIALECT => AttrView::Dialect {
                kind: detail(word),
                words: rest,
            },
            TAG_OPAQUE => AttrView::Opaque(Str(handle(word))),
            _ => AttrView::Unit,
        }
    }

    /// The integer an attribute holds.
    pub fn attr_int(&self, attr: Attr) -> Option<i64> {
        match self.attr(attr) {
            AttrView::Int { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The string an attribute holds.
    pub fn attr_str(&self, attr: Attr) -> Option<&str> {
        match self.attr(attr) {
            AttrView::Str(text) => Some(self.text(text)),
            _ => None,
        }
    }

    /// `index`.
    pub fn index_type(&mut self) -> Type {
        Type(self.types.intern(&[TY_INDEX]))
    }

    /// `none`.
    pub fn none_type(&mut self) -> Type {
        Type(self.types.intern(&[TY_NONE]))
    }

    /// An integer type.
    pub fn int_type(&mut self, width: u32, sign: Sign) -> Type {
        Type(self.types.intern(&[head(TY_INT, sign as u16, width)]))
    }

    /// A builtin float type by name.
    pub fn float_type(&mut self, name: &str) -> Type {
        let name = self.str(name);
        Type(self.types.intern(&[head(TY_FLOAT, 0, name.0)]))
    }

    /// A tensor type of static shape.
    pub fn tensor_type(&mut self, dims: &[u64], elem: Type) -> Type {
        let mut words = Vec::with_capacity(dims.len() + 1);
        words.push(head(TY_TENSOR, 0, elem.0));
        words.extend_from_slice(dims);
        Type(self.types.intern(&words))
    }

    /// A function type, as text.
    pub fn function_type(&mut self, text: &str) -> Type {
        let text = self.str(text);
        Type(self.types.intern(&[head(TY_FUNCTION, 0, text.0)]))
    }

    /// A dialect's own type.
    pub fn dialect_type(&mut self, kind: u16, payload: &[u64]) -> Type {
        self.dialect_type_of(kind, payload.iter().copied())
    }

    /// As [`dialect_type`](Self::dialect_type), of words that stand nowhere together.
    #[inline]
    pub fn dialect_type_of(&mut self, kind: u16, payload: impl Iterator<Item = u64>) -> Type {
        let mut words: smallvec::SmallVec<[u64; 8]> = smallvec::SmallVec::new();
        words.push(head(TY_DIALECT, kind, 0));
        payload.for_each(|word| words.push(word));
        Type(self.types.intern(&words))
    }

    /// A type kept as text, with its `!`.
    pub fn opaque_type(&mut self, text: &str) -> Type {
        let text = self.str(text);
        Type(self.types.intern(&[head(TY_OPAQUE, 0, text.0)]))
    }

    /// Decodes a type.
    #[inline]
    pub fn ty(&self, ty: Type) -> TypeView<'_> {
        let words = self.types.get(ty.0);
        let (word, rest) = match words.split_first() {
            Some((&word, rest)) => (word, rest),
            None => return TypeView::None,
        };
        match word & 0xff {
            TY_INDEX => TypeView::Index,
            TY_INT => TypeView::Int {
                width: handle(word),
                sign: match detail(word) {
                    1 => Sign::Signed,
                    2 => Sign::Unsigned,
                    _ => Sign::Signless,
                },
            },
            TY_FLOAT => TypeView::Float(Str(handle(word))),
            TY_TENSOR => TypeView::Tensor {
                dims: rest,
                elem: Type(handle(word)),
            },
            TY_FUNCTION => TypeView::Function(Str(handle(word))),
            TY_DIALECT => TypeView::Dialect {
                kind: detail(word),
                words: rest,
            },
            TY_OPAQUE => TypeView::Opaque(Str(handle(word))),
            _ => TypeView::None,
        }
    }
}
