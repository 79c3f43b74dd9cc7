//! The handles: `u32` newtypes into the tables of an [`Ir`](super::Ir) or a [`Context`](super::Context).

use std::fmt;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        #[allow(dead_code)] // not every handle needs all of them
        impl $name {
            /// "No handle", as stored; the public interface says `Option` instead.
            #[allow(dead_code)] // not every kind of handle is ever absent
            pub(crate) const NONE: $name = $name(u32::MAX);

            /// The handle of the table row `index`.
            #[allow(dead_code)] // not every kind of handle is made from a row
            pub(crate) fn new(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }

            /// Row in its table: dense and stable, good for side tables.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The stored form back as an `Option`.
            #[inline]
            pub(crate) fn some(self) -> Option<$name> {
                if self.0 == u32::MAX { None } else { Some(self) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.0 == u32::MAX {
                    write!(f, "{}-", $prefix)
                } else {
                    write!(f, "{}{}", $prefix, self.0)
                }
            }
        }
    )*};
}

entities! {
    /// An operation.
    Op "op";
    /// A list of operations with an optional label and arguments.
    Block "block";
    /// A list of blocks owned by an operation.
    Region "region";
    /// An operation's result or a block's argument.
    Value "value";
    /// One operand slot: a use of a value.
    Operand "operand";
    /// An interned string.
    Str "str";
    /// An interned type.
    Type "type";
    /// An interned attribute.
    Attr "attr";
    /// An interned attribute dictionary.
    Dict "dict";
    /// An interned operand annotation; what it means is the dialect's.
    Annot "annot";
    /// An interned source location (file, line, column).
    Loc "loc";
    /// An operation name known to the context, registered or not.
    OpName "name";
    /// A dense side table over operations, declared by a dialect.
    Column "column";
}

impl Annot {
    /// The annotation of an operand that has none.
    pub const UNIT: Annot = Annot(0);
}

impl Dict {
    /// The dictionary without entries.
    pub const EMPTY: Dict = Dict(0);
}
