//! Rules as the engine has them: checked, every name resolved.
//!
//! A [`Rule`] has one or more [`Form`]s: a `pattern` has one, a `rewrite` one for each way the
//! instruction set has to write its left side (immediate or tile, and, where the op commutes, either
//! order). A form is a list of instructions joined by memory: one is the *anchor*, found by its op;
//! [`Step`]s lead from it to the others through who wrote, and who reads, the bytes of an operand.

use bir_dialect::bir::num::{DType, parse};
use bir_dialect::bir::ops::{AttrDef, OpCode};
use bir_dialect::bir::space::DTypeSet;

use crate::constraints::{Constraint, Looks};
use crate::natives::Native;
use crate::text::ast::Span;

/// Number of a variable of a form.
pub type VarId = usize;

/// How far a result may be from the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    /// Units of the last place results may differ by; 0 is exact.
    pub ulp: u64,
    /// What a pipeline has to allow for the rule to fire at all.
    pub needs: Flags,
}

/// What a pipeline may allow, and a rule may need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// The sign of a zero does not matter.
    pub nsz: bool,
    /// No input and no result is NaN.
    pub nnan: bool,
    /// No input and no result is infinite.
    pub ninf: bool,
}

impl Flags {
    /// All of them.
    pub const ALL: Flags = Flags {
        nsz: true,
        nnan: true,
        ninf: true,
    };

    /// Their names, in order.
    pub const NAMES: [&'static str; 3] = ["nsz", "nnan", "ninf"];

    /// The flag of that name.
    pub fn get(&self, name: &str) -> Option<bool> {
        match name {
            "nsz" => Some(self.nsz),
            "nnan" => Some(self.nnan),
            "ninf" => Some(self.ninf),
            _ => None,
        }
    }

    /// Sets the flag of that name; whether there is one.
    pub fn set(&mut self, name: &str) -> bool {
        let flag = match name {
            "nsz" => &mut self.nsz,
            "nnan" => &mut self.nnan,
            "ninf" => &mut self.ninf,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// Whether all of `needs` are among these.
    pub fn allow(&self, needs: Flags) -> bool {
        (self.nsz || !needs.nsz) && (self.nnan || !needs.nnan) && (self.ninf || !needs.ninf)
    }

    /// These and those.
    pub fn or(self, other: Flags) -> Flags {
        Flags {
            nsz: self.nsz || other.nsz,
            nnan: self.nnan || other.nnan,
            ninf: self.ninf || other.ninf,
        }
    }
}

/// Which driver a set is written for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Driver {
    /// Each rule once, in program order, in the order they are written.
    SingleShot,
    /// To the fixpoint, best rule first.
    #[default]
    Greedy,
}

impl Driver {
    /// The driver of that name.
    pub fn from_name(name: &str) -> Option<Driver> {
        match name {
            "single_shot" => Some(Driver::SingleShot),
            "greedy" => Some(Driver::Greedy),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Driver::SingleShot => "single_shot",
            Driver::Greedy => "greedy",
        }
    }
}

/// An option of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetOption {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: bool,
    /// What it does.
    pub doc: String,
}

/// A checked set of rules.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub doc: String,
    /// The driver it is written for.
    pub driver: Driver,
    /// Its options.
    pub options: Vec<SetOption>,
    /// Its rules, those of imported sets first.
    pub rules: Vec<Rule>,
}

impl RuleSet {
    /// Whether each option is on by default, in order.
    pub fn defaults(&self) -> Vec<bool> {
        self.options.iter().map(|option| option.default).collect()
    }
}

/// A checked rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, unique in its set.
    pub name: String,
    /// The law in words, where given.
    pub law: Option<String>,
    /// Its documentation.
    pub doc: String,
    /// Its text, formatted.
    pub text: String,
    /// Where its name stands.
    pub span: Span,
    /// The file that stands in: a number of the library.
    pub file: usize,
    /// Better rules are tried first.
    pub benefit: u32,
    /// What it promises.
    pub contract: Contract,
    /// The option of the set that switches it.
    pub option: Option<usize>,
    /// The ways to match.
    pub forms: Vec<Form>,
}

/// What a variable is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VarKind {
    /// An operand: a location and an access, or a literal in a role that takes one.
    Tile,
    /// An attribute or a literal.
    Attr,
}

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Var {
    /// Without its sign.
    pub name: String,
    /// What it is.
    pub kind: VarKind,
    /// Where it is bound.
    pub span: Span,
}

/// One way to match a rule.
#[derive(Clone, Debug)]
pub struct Form {
    /// Its variables.
    pub vars: Vec<Var>,
    /// The instructions looked for, in program order.
    pub stmts: Vec<Stmt>,
    /// What must hold, in the order it is asked.
    pub conds: Vec<Cond>,
    /// What is made.
    pub actions: Vec<Action>,
    /// The instruction whose place the new ones take.
    pub at: usize,
    /// The instruction the search starts at.
    pub anchor: usize,
    /// How the others are found.
    pub plan: Vec<Step>,
}

/// An instruction looked for, or made.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Its op.
    pub code: OpCode,
    /// Whether it stays as it is.
    pub keep: bool,
    /// Whether further attributes and operands do not matter.
    pub open: bool,
    /// Its operands.
    pub operands: Vec<StmtOperand>,
    /// Its attributes.
    pub attrs: Vec<StmtAttr>,
    /// Where it stands.
    pub span: Span,
}

/// An operand of an instruction.
#[derive(Clone, Debug)]
pub struct StmtOperand {
    /// Its role, a number of the op table.
    pub role: usize,
    /// Whether it may be absent.
    pub optional: bool,
    /// What stands there.
    pub what: What,
    /// Where it stands.
    pub span: Span,
}

/// What stands in an operand.
#[derive(Clone, Debug)]
pub enum What {
    /// A tile; in a role that takes literals, either.
    Tile(VarId),
    /// A literal.
    Literal(VarId),
    /// This literal.
    Number(Literal),
    /// Anything.
    Any,
    /// A literal that is computed.
    Sum(Arith),
}

/// A number as a rule writes it: its bits depend on the dtype of where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Literal {
    /// As written.
    pub text: String,
    /// In each dtype that can say it.
    bits: Vec<(DType, u64)>,
}

impl Literal {
    /// Of a text.
    pub fn new(text: &str) -> Literal {
        let in_dtype = |&dtype: &DType| Some((dtype, parse(dtype, text).ok()?));
        Literal {
            text: text.to_owned(),
            bits: DType::ALL.iter().filter_map(in_dtype).collect(),
        }
    }

    /// Its bits in a dtype, if that can say it.
    pub fn bits(&self, dtype: DType) -> Option<u64> {
        let known = self.bits.iter().find(|one| one.0 == dtype);
        known.map(|one| one.1)
    }

    /// Its bits in every dtype that can say it.
    pub fn all_bits(&self) -> &[(DType, u64)] {
        &self.bits
    }
}

/// An attribute of an instruction.
#[derive(Clone, Debug)]
pub struct StmtAttr {
    /// What the op table says of it.
    pub def: &'static AttrDef,
    /// Its value.
    pub what: AttrWhat,
    /// Whether it may be absent.
    pub optional: bool,
    /// Where it stands.
    pub span: Span,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum AttrWhat {
    /// Any, with a name.
    Bind(VarId),
    /// One of these words.
    Words(Vec<String>),
    /// Set.
    Flag,
    /// Not set.
    Absent,
    /// An integer.
    Int(i64),
    /// A number in the attribute's dtype.
    Number(Literal),
    /// A list of integers.
    List(Vec<i64>),
    /// A text.
    Text(String),
    /// Computed.
    Sum(Arith),
}

/// Arithmetic over attributes, in f64.
#[derive(Clone, Debug)]
pub enum Arith {
    /// A variable.
    Var(VarId),
    /// A number.
    Number(f64),
    /// Two of them.
    Binary(Box<Arith>, char, Box<Arith>),
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Cond {
    /// All of these.
    All(Vec<Cond>),
    /// One of these.
    Any(Vec<Cond>),
    /// Not this.
    Not(Box<Cond>),
    /// A comparison of numbers.
    Compare(Arith, String, Arith),
    /// A flag the pipeline allows.
    Allowed(&'static str),
    /// The dtype of an operand.
    DType(VarId, DTypeSet, String),
    /// A registered constraint.
    Call(&'static Constraint, Vec<Arg>, String),
}

impl Cond {
    /// What a remark calls it.
    pub fn text(&self) -> String {
        match self {
            Cond::All(list) => join(list, " and "),
            Cond::Any(list) => join(list, " or "),
            Cond::Not(one) => format!("not {}", one.text()),
            Cond::Compare(_, op, _) => format!("comparison `{op}`"),
            Cond::Allowed(flag) => (*flag).to_owned(),
            Cond::DType(_, _, text) | Cond::Call(_, _, text) => text.clone(),
        }
    }
}

fn join(list: &[Cond], word: &str) -> String {
    let list: Vec<String> = list.iter().map(Cond::text).collect();
    list.join(word)
}

/// An argument of a constraint or a registered rewrite.
#[derive(Clone, Debug)]
pub enum Arg {
    /// An operand.
    Tile(VarId),
    /// An attribute.
    Attr(VarId),
    /// A number.
    Number(String),
    /// Words.
    Words(Vec<String>),
}

/// A step of a rewrite.
#[derive(Clone, Debug)]
pub enum Action {
    /// An instruction to make.
    Make(Stmt),
    /// A registered rewrite.
    Call(&'static Native, Vec<Arg>),
}

/// How an instruction is found from one that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Who wrote what a known instruction reads.
    Writer {
        /// The instruction to find.
        stmt: usize,
        /// Its operand.
        role: usize,
        /// The known one.
        from: usize,
        /// The operand it reads.
        by: usize,
    },
    /// Who else reads what a known instruction reads, with nobody writing in between.
    Sibling {
        /// The instruction to find.
        stmt: usize,
        /// Its operand.
        role: usize,
        /// The known one.
        from: usize,
        /// The operand it reads.
        by: usize,
    },
    /// Who reads what a known instruction wrote.
    Reader {
        /// The instruction to find.
        stmt: usize,
        /// Its operand.
        role: usize,
        /// The known one.
        from: usize,
        /// The operand it wrote.
        by: usize,
    },
}

impl Cond {
    /// Whether the answer follows from the instructions of the match alone.
    pub fn is_local(&self) -> bool {
        match self {
            Cond::All(list) | Cond::Any(list) => list.iter().all(Cond::is_local),
            Cond::Not(one) => one.is_local(),
            Cond::Compare(..) | Cond::Allowed(_) | Cond::DType(..) => true,
            Cond::Call(constraint, ..) => constraint.looks == Looks::Instruction,
        }
    }
}

impl Form {
    /// Whether what happens at an instruction follows from how it looks: it is about one instruction, whose
    /// place another one takes that the op table alone judges.
    pub fn is_local(&self) -> bool {
        let [stmt] = &self.stmts[..] else {
            return false;
        };
        let [Action::Make(made)] = &self.actions[..] else {
            return false;
        };
        !stmt.keep
            && self.plan.is_empty()
            && made.code.def().check.is_none()
            && self.conds.iter().all(Cond::is_local)
    }

    /// Where a variable stands in what is looked for: instruction and role.
    pub fn places(&self, var: VarId) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.stmts.iter().enumerate().flat_map(move |(at, stmt)| {
            let operands = stmt.operands.iter();
            operands
                .filter(move |one| matches!(one.what, What::Tile(id) if id == var))
                .map(move |one| (at, one.role))
        })
    }

    /// The instruction that writes a variable.
    pub fn writer(&self, var: VarId) -> Option<(usize, usize)> {
        self.places(var)
            .find(|&(stmt, role)| self.stmts[stmt].code.def().operands[role].writes())
    }
}
