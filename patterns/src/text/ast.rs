//! What a `.pat` file says, as written.

use std::ops::Range;

/// Bytes of the file.
pub type Span = Range<usize>;

/// A name and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Without `%`, `$` or `?`.
    pub text: String,
    /// Sign included.
    pub span: Span,
}

/// A file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Items in order.
    pub items: Vec<Item>,
    /// Comments that are no documentation, in order: where they stand, and their text with `//`.
    pub comments: Vec<(Span, String)>,
}

/// An item with its documentation.
#[derive(Clone, Debug)]
pub struct Item {
    /// Lines of `///`, without it.
    pub docs: Vec<String>,
    /// All of it.
    pub span: Span,
    /// What it is.
    pub kind: ItemKind,
}

/// What stands at the top of a file.
#[derive(Clone, Debug)]
pub enum ItemKind {
    /// `set name single_shot;`
    Set {
        /// Its name.
        name: Name,
        /// The driver it is written for.
        driver: Option<Name>,
    },
    /// `import name;`
    Import(Name),
    /// `option name = true;`
    Option {
        /// Its name.
        name: Name,
        /// Its default.
        default: bool,
    },
    /// `pattern name { match … where … rewrite … }`
    Pattern(Pattern),
    /// `rewrite name : term => term where …;`
    Rule(TermRule),
}

/// `benefit 2`, `option move_copy`, `ulp 1`, `nsz`
#[derive(Clone, Debug)]
pub struct Setting {
    /// Which.
    pub name: Name,
    /// Its number or name.
    pub value: Option<Name>,
}

/// A pattern of instructions.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Its name.
    pub name: Name,
    /// Benefit, contract, option.
    pub settings: Vec<Setting>,
    /// What is looked for, in program order.
    pub statements: Vec<Statement>,
    /// What must hold.
    pub conditions: Vec<Condition>,
    /// Where the new instructions stand.
    pub at: Option<Name>,
    /// What stands there instead.
    pub actions: Vec<Action>,
    /// The word `rewrite`.
    pub rewrite_span: Span,
}

/// A step of a rewrite.
#[derive(Clone, Debug)]
pub enum Action {
    /// An instruction to make.
    Make(Statement),
    /// A registered rewrite.
    Call {
        /// Its name.
        name: Name,
        /// What it is given.
        arguments: Vec<Argument>,
        /// All of it.
        span: Span,
    },
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Whether it stays as it is.
    pub keep: bool,
    /// Mnemonic.
    pub op: Name,
    /// Before the arrow.
    pub left: Vec<Operand>,
    /// Behind it.
    pub right: Vec<Operand>,
    /// Attributes.
    pub entries: Vec<Entry>,
    /// Whether further attributes and operands do not matter.
    pub open: bool,
    /// All of it.
    pub span: Span,
}

/// Words and what follows them.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Words before it.
    pub words: Vec<Word>,
    /// What stands there.
    pub place: Place,
    /// All of it.
    pub span: Span,
}

/// A word, `add`, `add|max`, `bias?` or `$f`.
#[derive(Clone, Debug)]
pub enum Word {
    /// One of these.
    Choice {
        /// The words.
        names: Vec<Name>,
        /// Whether a question mark follows.
        maybe: bool,
    },
    /// Any, and its name from here on.
    Var(Name),
}

/// What stands in an operand.
#[derive(Clone, Debug)]
pub enum Place {
    /// `%x`, `%x?`
    Tile(Name, bool),
    /// `$c`, `$c?`
    Attr(Name, bool),
    /// A literal.
    Number(Name),
    /// `_`
    Any(Span),
    /// `($a * $b)`
    Sum(Arith),
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// Whether it may be absent.
    pub maybe: bool,
    /// Its value; a flag that must be set where there is none.
    pub value: Option<Value>,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Value {
    /// `$a`
    Var(Name),
    /// `_`
    Any(Span),
    /// `[1, 2]`
    List(Vec<i64>, Span),
    /// A number.
    Number(Name),
    /// Words, `add|max`; `absent`, `true` and `false` too.
    Choice(Vec<Name>),
    /// `"text"`
    Text(Name),
    /// Arithmetic.
    Sum(Arith),
}

/// Arithmetic over attributes.
#[derive(Clone, Debug)]
pub enum Arith {
    /// `$a`
    Var(Name),
    /// A number.
    Number(Name),
    /// Two of them.
    Binary(Box<Arith>, char, Box<Arith>),
}

impl Arith {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Arith::Var(name) | Arith::Number(name) => name.span.clone(),
            Arith::Binary(a, _, b) => a.span().start..b.span().end,
        }
    }
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Condition {
    /// All of these.
    And(Vec<Condition>),
    /// One of these.
    Or(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>, Span),
    /// A comparison.
    Compare(Arith, String, Arith),
    /// A registered constraint.
    Named {
        /// Its name.
        name: Name,
        /// What it is asked of.
        arguments: Vec<Argument>,
        /// All of it.
        span: Span,
    },
}

/// What a constraint or a registered rewrite is given.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `%x`
    Tile(Name),
    /// `?x`
    Term(Name),
    /// `$c`
    Attr(Name),
    /// A number.
    Number(Name),
    /// Words.
    Choice(Vec<Name>),
}

/// `rewrite name "law" : left => right where …;`
#[derive(Clone, Debug)]
pub struct TermRule {
    /// Its name.
    pub name: Name,
    /// The law in words.
    pub law: Option<String>,
    /// Benefit, contract, option.
    pub settings: Vec<Setting>,
    /// What is looked for.
    pub left: Term,
    /// What it equals.
    pub right: Term,
    /// What must hold.
    pub conditions: Vec<Condition>,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Term {
    /// `?x`
    Var(Name),
    /// `?t:(add ?x ?y)`
    Named(Name, Box<Term>),
    /// `(splat 1.0)`
    Splat(Name, Span),
    /// `(splat $c)`
    SplatVar(Name, Span),
    /// `(add ?x ?y)`
    Apply(Name, Vec<Term>, Span),
}

impl Term {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Term::Var(name) => name.span.clone(),
            Term::Named(name, inner) => name.span.start..inner.span().end,
            Term::Splat(_, span) | Term::SplatVar(_, span) | Term::Apply(_, _, span) => {
                span.clone()
            }
        }
    }
}
