//! Programs with the left side of a rule in them.

use std::fmt::Write as _;
use std::ops::Range;

use bir_dialect::bir::num::{DType, convert, parse as parse_number, print, same_value};
use bir_dialect::bir::ops::{AttrType, NUMERIC, OpCode};
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::space::{Engine, Target};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostics, Severity};
use bir_dialect::text::{ParseOptions, parse};
use bir_sim::Tensor;

use crate::check::domain;
use crate::rule::{Action, Arg, AttrWhat, Cond, Form, Stmt, VarId, VarKind, What};

/// Partitions of every tile.
pub(super) const PARTITIONS: usize = 128;

/// What a variable is in an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// A tile of that dtype, of all columns or of one.
    Tile(DType, bool),
    /// A literal or a word.
    Text(String),
    /// A flag that is set.
    Set,
    /// Nothing.
    Absent,
}

/// What is out of the ordinary in an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Twist {
    /// Nothing: every variable is a tile of its own, accessed whole.
    None,
    /// What the first variable is written to is where the second is read from.
    InPlace(VarId, VarId),
    /// An instruction accesses the first half of its tiles.
    Half(usize),
    /// Somebody around goes on with the accumulator of the activation engine.
    Accumulator,
}

/// One way to build an instance: per variable, and per instruction its engine.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub vars: Vec<Choice>,
    pub twist: Twist,
    engines: Vec<Option<Engine>>,
    /// Per choice of words in the form, in order, which is taken.
    words: Vec<usize>,
}

/// All ways to build an instance, or a fixed share of them.
pub(super) struct Space<'a> {
    form: &'a Form,
    vars: Vec<Vec<Choice>>,
    engines: Vec<Vec<Option<Engine>>>,
    /// Per choice of words in the form, in order, how many there are.
    words: Vec<usize>,
    limit: usize,
}

/// Dtypes in the order they are tried: the best known first.
const ORDER: &[DType] = &[
    DType::F32,
    DType::Bf16,
    DType::F16,
    DType::F8E4M3,
    DType::F8E5M2,
    DType::F8E4M3FN,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::Tf32,
    DType::Bool,
];

/// Literals that tell rules apart.
const LITERALS: &[&str] = &[
    "2.0", "0.0", "-0.0", "1.0", "-1.0", "0.5", "3.0", "inf", "nan", "1.0e30", "1.0e-40", "255",
];

impl Assignment {
    /// Columns of the smallest tiles that show what is out of the ordinary.
    pub(super) fn least_columns(&self) -> usize {
        match self.twist {
            Twist::Half(_) => 2,
            _ => 1,
        }
    }
}

impl<'a> Space<'a> {
    pub(super) fn new(form: &'a Form, limit: usize) -> Space<'a> {
        let vars = (0..form.vars.len()).map(|var| choices(form, var)).collect();
        let engines = form
            .stmts
            .iter()
            .map(|stmt| {
                let named = stmt.attrs.iter().any(|attr| attr.def.name == "engine");
                let legal = stmt
                    .code
                    .def()
                    .engines
                    .map(|engines| engines.on(Target::Trn2));
                match legal {
                    Some(legal) if !named && stmt.code.def().words.len() < 3 => {
                        let others = legal.iter().map(Some);
                        [None].into_iter().chain(others).collect()
                    }
                    _ => vec![None],
                }
            })
            .collect();
        let words = choices_of_words(form)
            .map(|(_, words)| words.len())
            .collect();
        Space {
            form,
            vars,
            engines,
            words,
            limit,
        }
    }

    /// The ways, the ordinary ones first, and of these those of all first choices.
    pub(super) fn assignments(&self) -> impl Iterator<Item = Assignment> + '_ {
        let twisted = self
            .twists()
            .into_iter()
            .flat_map(|twist| self.ways(self.limit.div_ceil(4), twist));
        self.ways(self.limit, Twist::None).chain(twisted)
    }

    /// What may be out of the ordinary.
    fn twists(&self) -> Vec<Twist> {
        let form = self.form;
        let mut twists = Vec::new();
        let tiles = |var: &VarId| form.vars[*var].kind == VarKind::Tile;
        let (written, read): (Vec<VarId>, Vec<VarId>) = (0..form.vars.len())
            .filter(tiles)
            .partition(|&var| form.writer(var).is_some());
        for &one in written.iter().filter(|&&var| !needs(form, var)) {
            twists.extend(read.iter().map(|&other| Twist::InPlace(one, other)));
        }
        if form.stmts.len() > 1 {
            twists.extend((0..form.stmts.len()).map(Twist::Half));
        }
        let accumulates = |action: &Action| match action {
            Action::Make(stmt) => matches!(
                stmt.code,
                OpCode::Activation | OpCode::ActivationReduce | OpCode::ReadActivationAccumulator
            ),
            Action::Call(..) => false,
        };
        if form.actions.iter().any(accumulates) {
            twists.push(Twist::Accumulator);
        }
        twists
    }

    /// Variables whose tiles have the dtype of others: pairs of the other, and the one.
    fn ties(&self, twist: Twist) -> Vec<(VarId, VarId)> {
        let mut ties: Vec<(VarId, VarId)> = Vec::new();
        if let Twist::InPlace(written, read) = twist {
            ties.push((written, read));
        }
        for cond in &self.form.conds {
            if let Cond::Call(constraint, args, _) = cond
                && constraint.name == "same_dtype"
                && let [Arg::Tile(a), Arg::Tile(b)] = args[..]
            {
                let is_tied = |var| ties.iter().any(|tie| tie.1 == var);
                match (is_tied(a), is_tied(b)) {
                    (_, false) if a != b => ties.push((a, b)),
                    (false, true) if a != b => ties.push((b, a)),
                    _ => {}
                }
            }
        }
        ties
    }

    fn ways(&self, limit: usize, twist: Twist) -> impl Iterator<Item = Assignment> + '_ {
        let ties = self.ties(twist);
        let tied = |var: usize| ties.iter().any(|tie| tie.1 == var);
        let counts: Vec<usize> = (0..self.vars.len())
            .map(|var| if tied(var) { 1 } else { self.vars[var].len() })
            .collect();
        let radices: Vec<usize> = self
            .words
            .iter()
            .copied()
            .chain(self.engines.iter().map(Vec::len))
            .chain(counts)
            .collect();
        let total = radices
            .iter()
            .fold(1u64, |total, &radix| total.saturating_mul(radix as u64));
        let count = total.min(limit as u64);
        // An odd stride far from the radices visits every choice of every variable.
        let stride = match total > count {
            true => (total / count.max(1)) | 1,
            false => 1,
        };
        (0..count).map(move |number| {
            let mut rest = number.wrapping_mul(stride) % total.max(1);
            let mut digits = radices.iter().map(|&radix| {
                let digit = (rest % radix as u64) as usize;
                rest /= radix as u64;
                digit
            });
            let words = self
                .words
                .iter()
                .map(|_| digits.next().unwrap_or(0))
                .collect();
            let engines = self
                .engines
                .iter()
                .map(|list| list[digits.next().unwrap_or(0)])
                .collect();
            let mut vars: Vec<Choice> = self
                .vars
                .iter()
                .map(|list| list[digits.next().unwrap_or(0)].clone())
                .collect();
            // A chain of ties is as long as there are ties.
            for &(of, var) in ties.iter().flat_map(|_| &ties) {
                let column = self.vars[var].iter().find_map(|choice| match choice {
                    Choice::Tile(_, column) => Some(*column),
                    _ => None,
                });
                if let (Choice::Tile(dtype, _), Some(column)) = (&vars[of], column) {
                    vars[var] = Choice::Tile(*dtype, column);
                }
            }
            debug_assert_eq!(self.form.vars.len(), self.vars.len());
            Assignment {
                vars,
                twist,
                engines,
                words,
            }
        })
    }
}

/// The places where a form has several words: instruction and attribute, and the words.
fn choices_of_words(form: &Form) -> impl Iterator<Item = ((usize, &'static str), &[String])> {
    form.stmts.iter().enumerate().flat_map(|(number, stmt)| {
        stmt.attrs.iter().filter_map(move |attr| match &attr.what {
            AttrWhat::Words(words) if words.len() > 1 => {
                Some(((number, attr.def.name), &words[..]))
            }
            _ => None,
        })
    })
}

fn choices(form: &Form, var: VarId) -> Vec<Choice> {
    let mut list = Vec::new();
    match form.vars[var].kind {
        VarKind::Tile => {
            let places: Vec<(usize, usize)> = form.places(var).collect();
            let role = |&(stmt, role): &(usize, usize)| {
                let def = form.stmts[stmt].code.def();
                (def, &def.operands[role])
            };
            let is_scalar = places.iter().all(|place| role(place).1.takes_literal());
            let column = places.iter().any(|place| {
                let (def, role) = role(place);
                let rows = matches!(
                    form.stmts[place.0].code,
                    OpCode::TensorReduce | OpCode::ReadActivationAccumulator
                );
                def.per_partition.contains(&role.name) || rows && role.name == "dst"
            });
            if is_scalar {
                list.extend(LITERALS.iter().map(|text| Choice::Text((*text).to_owned())));
            }
            let legal = domain(form, var).0;
            for &dtype in ORDER
                .iter()
                .filter(|&&dtype| legal.has(dtype) && NUMERIC.has(dtype))
            {
                list.push(Choice::Tile(dtype, column));
                // Where a number may stand may also be one for every partition.
                if is_scalar && !column {
                    list.push(Choice::Tile(dtype, true));
                }
            }
            let optional = form.stmts.iter().flat_map(|stmt| &stmt.operands);
            if optional
                .filter(|one| matches!(one.what, What::Tile(id) if id == var))
                .all(|one| one.optional)
            {
                list.push(Choice::Absent);
            }
        }
        VarKind::Attr => {
            let attrs = form.stmts.iter().flat_map(|stmt| &stmt.attrs);
            let bound = attrs
                .clone()
                .find(|attr| matches!(attr.what, AttrWhat::Bind(id) if id == var));
            match bound.map(|attr| attr.def.ty) {
                Some(AttrType::Enum(words)) => {
                    let words = words.words.iter();
                    list.extend(words.map(|word| Choice::Text((*word).to_owned())));
                }
                Some(AttrType::Flag | AttrType::Accumulate) => list.push(Choice::Set),
                Some(AttrType::IntList { .. }) => list.push(Choice::Text("[1]".to_owned())),
                Some(AttrType::Int { min, max }) => {
                    for int in [0, 1, 2, 7]
                        .into_iter()
                        .filter(|int| (min..=max).contains(int))
                    {
                        list.push(Choice::Text(int.to_string()));
                    }
                }
                _ => list.extend(LITERALS.iter().map(|text| Choice::Text((*text).to_owned()))),
            }
            let optional = bound.is_some_and(|attr| attr.optional)
                || form
                    .stmts
                    .iter()
                    .flat_map(|stmt| &stmt.operands)
                    .any(|one| one.optional && matches!(one.what, What::Literal(id) if id == var));
            if optional {
                list.push(Choice::Absent);
            }
        }
    }
    if list.is_empty() {
        list.push(Choice::Absent);
    }
    list
}

/// An input of an instance.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Its location.
    pub port: String,
    /// Its elements.
    pub dtype: DType,
    /// Whether it has one column.
    pub column: bool,
}

impl Input {
    /// The elements that belong to an element of a result: one, or the row it was made of.
    pub(super) fn lanes(&self, at: usize, of: &Tensor, given: &Tensor) -> Range<usize> {
        let (own, other) = (given.len() / PARTITIONS, of.len() / PARTITIONS);
        if self.column {
            let row = at / other.max(1);
            return row..row + 1;
        }
        match own > other {
            true => own * at..own * (at + 1),
            false => at..at + 1,
        }
    }
}

/// A program, and what it reads.
pub(super) struct Instance {
    pub ir: Ir,
    pub text: String,
    pub inputs: Vec<Input>,
}

impl Instance {
    /// Builds one of so many columns; `None` where it does not verify.
    pub(super) fn build(form: &Form, assignment: &Assignment, columns: usize) -> Option<Instance> {
        [Target::Trn2, Target::Trn3, Target::Trn1]
            .into_iter()
            .find_map(|target| {
                let shape = Shape {
                    partitions: PARTITIONS,
                    columns,
                    target,
                };
                let (text, inputs) = program(form, assignment, &shape, &|_| None)?;
                let ir = read(&text)?;
                Some(Instance { ir, text, inputs })
            })
    }
}

/// Sizes of a program.
pub(super) struct Shape {
    pub partitions: usize,
    pub columns: usize,
    pub target: Target,
}

/// The text of a program; `constant` gives the bits of an input that is to be a constant of one
/// element.
pub(super) fn program(
    form: &Form,
    assignment: &Assignment,
    shape: &Shape,
    constant: &dyn Fn(&str) -> Option<u64>,
) -> Option<(String, Vec<Input>)> {
    let (mut allocs, mut before, mut body, mut behind) =
        (String::new(), String::new(), String::new(), String::new());
    let mut inputs = Vec::new();
    for var in 0..form.vars.len() {
        let Choice::Tile(dtype, column) = assignment.vars[var] else {
            continue;
        };
        let name = place(form, assignment, var);
        let columns = if column { 1 } else { shape.columns };
        let dims = format!("{}x{columns}x{dtype}", shape.partitions);
        let in_place = matches!(assignment.twist, Twist::InPlace(_, read) if read == var);
        if !in_place {
            let _ = writeln!(allocs, "    %{name} = alloc sbuf<{dims}>");
        }
        let written = form.writer(var);
        let needs = needs(form, var);
        if !needs && matches!(assignment.twist, Twist::Half(_)) {
            // The other half is seen too.
            let _ = writeln!(before, "    memset %{name} <- {}", literal(dtype, "0.0")?);
        }
        match uniform(form, var) {
            Some(number) if needs => {
                let _ = writeln!(before, "    memset %{name} <- {}", literal(dtype, number)?);
            }
            _ if needs => {
                let port = format!("{}_in", self::name(form, var));
                let kind = match constant(&port) {
                    Some(bits) => {
                        let bytes = &bits.to_le_bytes()[..dtype.size_bytes() as usize];
                        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                        format!("const, value = dense<\"0x{hex}\">")
                    }
                    None => "input".to_owned(),
                };
                let _ = writeln!(allocs, "    %{port} = alloc dram<{dims}> {{kind = {kind}}}");
                let _ = writeln!(before, "    load %{name} <- %{port}");
                inputs.push(Input {
                    port,
                    dtype,
                    column,
                });
            }
            _ => {}
        }
        if written.is_some() && !dropped(form, var) {
            let _ = writeln!(
                allocs,
                "    %{name}_out = alloc dram<{dims}> {{kind = output}}"
            );
            let _ = writeln!(behind, "    save %{name}_out <- %{name}");
        }
    }
    for number in 0..form.stmts.len() {
        body.push_str("    ");
        statement(&mut body, form, number, assignment, shape)?;
        body.push('\n');
    }
    if assignment.twist == Twist::Accumulator {
        let rows = shape.partitions;
        for name in ["around_a", "around_b", "around_c"] {
            let _ = writeln!(allocs, "    %{name} = alloc sbuf<{rows}x1xf32>");
        }
        let _ = writeln!(
            allocs,
            "    %around_out = alloc dram<{rows}x1xf32> {{kind = output}}"
        );
        before.push_str(
            "    memset %around_a <- 3.0\n    activation copy %around_b, reduce add reset %around_c <- %around_a\n",
        );
        behind.push_str(
            "    read_activation_accumulator %around_c\n    save %around_out <- %around_c\n",
        );
    }
    let text = format!(
        "bir.module @rule {{target = \"{}\"}} {{\n  bir.func @main {{\n{allocs}{before}{body}{behind}  }}\n}}\n",
        shape.target
    );
    Some((text, inputs))
}

/// Whether a variable holds something before: the first instruction that has it reads it.
fn needs(form: &Form, var: VarId) -> bool {
    let reads = |(stmt, role): (usize, usize)| form.stmts[stmt].code.def().operands[role].reads();
    form.places(var).next().is_some_and(reads)
        || form.writer(var).is_some_and(|(stmt, _)| {
            form.places(var)
                .any(|place| place.0 == stmt && reads(place))
        })
}

/// The location of a variable.
fn place(form: &Form, assignment: &Assignment, var: VarId) -> String {
    match assignment.twist {
        Twist::InPlace(written, read) if read == var => name(form, written),
        _ => name(form, var),
    }
}

/// The first error of a program, at the level that looks at everything.
pub(super) fn broken(ir: &Ir) -> Option<String> {
    let mut diags = Diagnostics::new();
    let options = VerifyOptions {
        level: Level::Full,
        ..VerifyOptions::default()
    };
    verify(ir, options, &mut diags);
    let mut errors = diags.iter().filter(|one| one.severity == Severity::Error);
    errors.next().map(|one| one.message.clone())
}

/// Reads a program that verifies.
pub(super) fn read(text: &str) -> Option<Ir> {
    let mut ir = new_ir();
    let mut diags = Diagnostics::new();
    parse(
        text,
        0..text.len(),
        &mut ir,
        ParseOptions::default(),
        &mut diags,
    );
    (!diags.has_errors() && broken(&ir).is_none()).then_some(ir)
}

/// A name that text allows.
fn name(form: &Form, var: VarId) -> String {
    match form.vars[var].name.strip_suffix('\'') {
        Some(made) => format!("{made}_"),
        None => form.vars[var].name.clone(),
    }
}

fn uniform(form: &Form, var: VarId) -> Option<&str> {
    form.conds.iter().find_map(|cond| match cond {
        Cond::Call(constraint, args, _) => match (constraint.name, &args[..]) {
            ("uniform", [Arg::Tile(of), Arg::Number(text)]) if *of == var => Some(text.as_str()),
            ("zero", [Arg::Tile(of)]) if *of == var => Some("0.0"),
            _ => None,
        },
        _ => None,
    })
}

/// Whether nobody will see what is written there.
fn dropped(form: &Form, var: VarId) -> bool {
    form.conds.iter().any(|cond| match cond {
        Cond::Call(constraint, args, _) => {
            constraint.name == "sole_reader"
                && matches!(args.first(), Some(Arg::Tile(of)) if *of == var)
        }
        _ => false,
    })
}

/// A number as a literal of a dtype, if it is one exactly.
fn literal(dtype: DType, text: &str) -> Option<String> {
    let bits = match parse_number(dtype, text) {
        Ok(bits) => bits,
        Err(_) => {
            let float = parse_number(DType::F32, text).ok()?;
            let bits = convert(DType::F32, dtype, float)?;
            let back = convert(dtype, DType::F32, bits)?;
            same_value(DType::F32, back, float).then_some(bits)?
        }
    };
    let mut out = String::new();
    print(dtype, bits, &mut out);
    Some(out)
}

/// An instruction in custom form.
fn statement(
    out: &mut String,
    form: &Form,
    number: usize,
    assignment: &Assignment,
    shape: &Shape,
) -> Option<()> {
    let half = (assignment.twist == Twist::Half(number)).then_some(shape.columns / 2);
    let stmt: &Stmt = &form.stmts[number];
    let engine = assignment.engines[number];
    let def = stmt.code.def();
    out.push_str(def.name);
    let value = |name: &str| -> Option<String> {
        let attr = stmt.attrs.iter().find(|attr| attr.def.name == name)?;
        Some(match &attr.what {
            AttrWhat::Bind(var) => match &assignment.vars[*var] {
                Choice::Text(text) => text.clone(),
                Choice::Set => String::new(),
                _ => return None,
            },
            AttrWhat::Words(words) => {
                let at = choices_of_words(form).position(|(at, _)| at == (number, attr.def.name));
                let taken = at.map_or(0, |at| assignment.words[at]);
                words.get(taken)?.clone()
            }
            AttrWhat::Flag => String::new(),
            AttrWhat::Absent | AttrWhat::Sum(_) => return None,
            AttrWhat::Int(int) => int.to_string(),
            AttrWhat::Number(literal) => literal.text.clone(),
            AttrWhat::List(list) => format!("{list:?}"),
            AttrWhat::Text(text) => format!("\"{text}\""),
        })
    };
    let mut told: Vec<&str> = Vec::new();
    for word in def.words {
        if let Some(word_text) = value(word) {
            let _ = write!(out, " {word_text}");
        }
        told.push(word);
    }
    for left in [true, false] {
        let mut first = true;
        for (number, role) in def.operands.iter().enumerate() {
            let Some(operand) = stmt.operands.iter().find(|one| one.role == number) else {
                continue;
            };
            if role.is_left() != left {
                continue;
            }
            let text = match &operand.what {
                What::Tile(var) | What::Literal(var) => match &assignment.vars[*var] {
                    Choice::Tile(_, column) => {
                        let name = place(form, assignment, *var);
                        match half.filter(|_| !column) {
                            Some(half) => format!("%{name}[:, 0:{half}]"),
                            None => format!("%{name}"),
                        }
                    }
                    Choice::Text(text) => {
                        // Bit operations and exact arithmetic have integer literals.
                        let integer = matches!(stmt.code, OpCode::TensorScalarAddr)
                            || def.words.iter().any(|word| {
                                value(word)
                                    .is_some_and(|word| bir_dialect::bir::ops::is_bitvec(&word))
                            });
                        match integer {
                            true => literal(DType::I32, text)?,
                            false => text.clone(),
                        }
                    }
                    _ => continue,
                },
                What::Number(literal) => literal.text.clone(),
                What::Any | What::Sum(_) => return None,
            };
            out.push_str(match (left, first) {
                (_, false) => ", ",
                (true, true) => " ",
                (false, true) => " <- ",
            });
            first = false;
            if let Some(keyword) = role.keyword {
                let _ = write!(out, "{keyword} ");
                for word in role.words {
                    if let Some(text) = value(word) {
                        let _ = write!(out, "{text} ");
                    }
                    told.push(word);
                }
            }
            out.push_str(&text);
        }
    }
    let mut entries: Vec<String> = Vec::new();
    for attr in &stmt.attrs {
        if told.contains(&attr.def.name) {
            continue;
        }
        match value(attr.def.name) {
            Some(text) if text.is_empty() => entries.push(attr.def.name.to_owned()),
            Some(text) => entries.push(format!("{} = {text}", attr.def.name)),
            None => {}
        }
    }
    if let Some(engine) = engine {
        entries.push(format!("engine = {engine}"));
    }
    if !entries.is_empty() {
        let _ = write!(out, " {{{}}}", entries.join(", "));
    }
    Some(())
}
