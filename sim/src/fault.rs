//! What can go wrong in a run, as values.

use std::fmt;

use bir_dialect::ir::Op;
use bir_dialect::text::diag::{Diagnostic, Part, Place};

/// What went wrong. Where an instruction is to blame, the text continues its name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An op without semantics.
    #[error("cannot be simulated: {why}")]
    Unsupported {
        /// Reason.
        why: &'static str,
    },
    /// An instruction the verifier would refuse.
    #[error("cannot be simulated: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
    },
    /// Bytes read that nothing wrote.
    #[error("reads {location}, which nothing has written")]
    Undefined {
        /// Location and sub-range.
        location: String,
    },
    /// Bytes read that nothing wrote, on which an output depends.
    #[error(
        "reads {location}, which nothing has written, and output `%{output}` depends on it: {index} is {poisoned}, or {plain} with zeros there"
    )]
    Poison {
        /// Location and sub-range read.
        location: String,
        /// Name of the output.
        output: String,
        /// Coordinates of its first element that depends on them.
        index: String,
        /// The element with poison there.
        poisoned: String,
        /// The element with zeros there.
        plain: String,
    },
    /// An access that leaves its location at run time.
    #[error("leaves `%{name}`: {what}")]
    OutOfBounds {
        /// Name of the location.
        name: String,
        /// Where the access went, and what there is.
        what: String,
    },
    /// An index read at run time that names no row or element.
    #[error("finds index {index} for {reader}, but `%{name}` has {rows} rows")]
    Index {
        /// The index.
        index: i64,
        /// Who read it.
        reader: String,
        /// Rows there are.
        rows: u64,
        /// Name of the location.
        name: String,
    },
    /// A position read at run time that names no element.
    #[error("finds position {index} for {reader}, but `%{name}` has {count} there")]
    Position {
        /// The position.
        index: i64,
        /// Who read it.
        reader: String,
        /// Elements there are to choose from.
        count: u64,
        /// Name of the location.
        name: String,
    },
    /// A row or column written twice by one instruction.
    #[error("names {what} {index} of `%{name}` twice")]
    Twice {
        /// Row or column.
        what: &'static str,
        /// Which.
        index: i64,
        /// Name of the location.
        name: String,
    },
    /// A cached scalar used that nothing put there.
    #[error(
        "takes scalar {slot} of partition {partition} from the cache, which holds nothing there"
    )]
    Cache {
        /// First or second step.
        slot: usize,
        /// Partition.
        partition: usize,
    },
    /// Random numbers from a range that holds none.
    #[error("draws from the empty range {low} to {high} in partition {partition}")]
    EmptyRange {
        /// Partition.
        partition: usize,
        /// Start of the range.
        low: String,
        /// End of it.
        high: String,
    },
    /// PSUM accumulation on words the tensor engine did not write last.
    #[error("accumulates into {location}, which no `matmult` wrote last")]
    Accumulate {
        /// Location and sub-range.
        location: String,
    },
    /// An accumulator used while it holds nothing.
    #[error(
        "uses the accumulator of the {engine} engine for partition {partition}, which holds nothing defined"
    )]
    Accumulator {
        /// Which engine's.
        engine: &'static str,
        /// For which partition.
        partition: usize,
    },
    /// An operand that does not hold what a hint promises.
    #[error(
        "is promised zeros and ones by `{hint}`, but element {element} of partition {partition} is {value}"
    )]
    Promise {
        /// The attribute.
        hint: &'static str,
        /// What it found.
        value: String,
        /// Where.
        partition: usize,
        /// Where.
        element: usize,
    },
    /// Cores that wait for each other, or for one that has ended.
    #[error("is never passed: {waits}")]
    Deadlock {
        /// Who waits where, and for whom.
        waits: String,
    },
    /// More memory than allowed.
    #[error(
        "`%{name}` needs {bytes} bytes, which makes {total} in all, more than the limit of {limit}"
    )]
    Memory {
        /// The location at which the limit was passed.
        name: String,
        /// Its bytes.
        bytes: u128,
        /// Bytes of all up to it.
        total: u128,
        /// The limit.
        limit: u64,
    },
    /// More instructions than allowed.
    #[error("is not reached within the limit of {limit} steps")]
    Steps {
        /// The limit.
        limit: u64,
    },
    /// A constant whose elements are in a file that does not hold them.
    #[error("the value of constant `%{name}` cannot be read: {what}")]
    Constant {
        /// Name of the location.
        name: String,
        /// Why, with the file's name.
        what: String,
    },
    /// A value given for an input that does not fit.
    #[error("{0}")]
    Input(String),
    /// A program this simulator does not run.
    #[error("{0}")]
    Program(String),
    /// An output that was not written in full.
    #[error("nothing has written {location}, which is an output")]
    Output {
        /// Location and sub-range.
        location: String,
    },
}

/// A failure of a run, and the instruction it belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The instruction, if one is to blame, and its mnemonic.
    pub op: Option<(Op, &'static str)>,
    /// Position of the operand, if one is to blame.
    pub operand: Option<usize>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some((_, name))
                if !matches!(
                    self.kind,
                    FaultKind::Memory { .. }
                        | FaultKind::Output { .. }
                        | FaultKind::Constant { .. }
                        | FaultKind::Program(_)
                ) =>
            {
                write!(f, "`{name}` {}", self.kind)
            }
            _ => self.kind.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

/// Faults are rare and large; the hot path returns a pointer.
pub type Run<T> = Result<T, Box<Fault>>;

impl Fault {
    /// A fault; the run adds the instruction.
    pub fn new(kind: FaultKind) -> Box<Fault> {
        Box::new(Fault {
            kind,
            op: None,
            operand: None,
        })
    }

    /// A fault of an operand; the run adds the instruction.
    pub(crate) fn of_operand(kind: FaultKind, operand: usize) -> Box<Fault> {
        Box::new(Fault {
            kind,
            op: None,
            operand: Some(operand),
        })
    }

    /// Names the instruction, unless one is named already.
    pub(crate) fn at(mut self: Box<Fault>, op: Op, name: &'static str) -> Box<Fault> {
        self.op.get_or_insert((op, name));
        self
    }

    /// The report.
    pub fn diagnostic(&self) -> Diagnostic {
        let place = match (self.op, self.operand) {
            (Some((op, _)), Some(operand)) => Place::Op(op, Part::Operand(operand)),
            (Some((op, _)), None) => Place::Op(op, Part::Whole),
            _ => Place::None,
        };
        let diagnostic = Diagnostic::error(place, self.to_string());
        match &self.kind {
            FaultKind::Undefined { .. } => {
                diagnostic.help("`--uninit=poison` or `--uninit=zero` lets the run go on")
            }
            FaultKind::Poison { .. } => {
                diagnostic.help("`--uninit=error` stops at the first read of such bytes")
            }
            FaultKind::Accumulate { .. } => diagnostic
                .help("the first `matmult` of a group overwrites: leave `accumulate` out there"),
            FaultKind::Deadlock { .. } => {
                diagnostic.help("all cores of a group have to come to the same exchange")
            }
            FaultKind::Promise { hint, .. } => diagnostic.help(format!("leave `{hint}` out")),
            FaultKind::Constant { .. } => diagnostic.help(
                "`value` names an .npy file, from the folder of the .bir on, of the dtype and shape of \
                 the location",
            ),
            FaultKind::Index { .. } | FaultKind::Position { .. } => {
                diagnostic.help("indices count from 0 and are less than what they choose from")
            }
            FaultKind::OutOfBounds { .. } => diagnostic
                .help("offsets and loop indices have to keep an access within its location"),
            FaultKind::Twice { .. } => {
                diagnostic.help("give each row or column once: nothing says which write would win")
            }
            FaultKind::Cache { .. } => {
                diagnostic.help("`tensor_scalar_cache` with operands fills the cache")
            }
            FaultKind::EmptyRange { .. } => {
                diagnostic.help("the start of a range is less than its end")
            }
            FaultKind::Accumulator { .. } => diagnostic
                .help("a `reduce_cmd` of `reset` or `load` gives the accumulator a value"),
            FaultKind::Output { .. } => {
                diagnostic.help("write all of it, or `--uninit=zero` has zeros there")
            }
            FaultKind::Unsupported { .. } => {
                diagnostic.help("leave it out, or simulate the rest in a function of its own")
            }
            FaultKind::Memory { .. } => diagnostic.help("`--max-bytes N` raises the limit"),
            FaultKind::Steps { .. } => diagnostic.help("`--max-steps N` raises the limit"),
            _ => diagnostic,
        }
    }
}

/// A fault of an instruction the verifier would have refused.
pub(crate) fn malformed(what: impl Into<String>) -> Box<Fault> {
    Fault::new(FaultKind::Malformed { what: what.into() })
}
