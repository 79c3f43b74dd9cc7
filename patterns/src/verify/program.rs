//! Programs with the left side of a rule in them.

use std::fmt::Write as _;
use std::ops::Range;

use bir_dialect::bir::num::{DType, convert, parse as parse_number};
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::space::{Space as Memory, Target};
use bir_dialect::bir::verify::{Level, VerifyOptions, verify};
use bir_dialect::ir::Ir;
use bir_dialect::text::diag::{Diagnostics, Severity};
use bir_dialect::text::{ParseOptions, parse};
use bir_sim::Tensor;

use super::layout::{Layout, dropped, is_identity, lanes, name, needs, uniform};
use super::space::{Assignment, Choice};
use super::statement::literal;
use super::twist::{Spread, Twist, is_square};
use crate::rule::{Form, VarId};

/// Partitions of a tile.
pub(super) const PARTITIONS: usize = 128;
/// Partitions and elements of one that is square.
const SQUARE: usize = 32;

/// Sizes of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub partitions: usize,
    pub columns: usize,
    pub target: Target,
}

impl Shape {
    /// One of so many columns; what is square has a size of its own.
    pub(super) fn of(form: &Form, columns: usize) -> Shape {
        let (partitions, columns) = match is_square(form) {
            true => (SQUARE, SQUARE),
            false => (PARTITIONS, columns),
        };
        Shape {
            partitions,
            columns,
            target: Target::Trn2,
        }
    }

    /// This one on each generation, the best known first.
    pub(super) fn on_targets(self) -> impl Iterator<Item = Shape> {
        let targets = [Target::Trn2, Target::Trn3, Target::Trn1].into_iter();
        targets.map(move |target| Shape { target, ..self })
    }
}

/// An input of an instance.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Its location.
    pub port: String,
    /// Its elements.
    pub dtype: DType,
    /// How many there are, partitions first.
    pub dims: Vec<usize>,
}

/// What is written besides what the rule says.
pub(super) struct Extras<'a> {
    /// The elements of an input that is to be a constant, by its name.
    pub constant: &'a dyn Fn(&Input) -> Option<Vec<u64>>,
    /// Whether what nobody would see is written out too.
    pub watched: bool,
}

/// A program, and what it reads.
pub(super) struct Instance {
    pub ir: Ir,
    pub text: String,
    pub inputs: Vec<Input>,
    pub partitions: usize,
    pub spread: Spread,
}

impl Instance {
    /// Builds one of a shape, on the first generation that has it; `None` where it does not verify.
    pub(super) fn build(
        form: &Form,
        assignment: &Assignment,
        shape: Shape,
        extras: &Extras<'_>,
    ) -> Option<Instance> {
        shape.on_targets().find_map(|shape| {
            let layout = Layout {
                form,
                assignment,
                shape: &shape,
            };
            let (text, inputs) = program(&layout, extras)?;
            let ir = read(&text)?;
            Some(Instance {
                ir,
                text,
                inputs,
                partitions: shape.partitions,
                spread: layout.spread(),
            })
        })
    }

    /// One that reads what it is given.
    pub(super) fn plain(form: &Form, assignment: &Assignment, shape: Shape) -> Option<Instance> {
        let extras = Extras {
            constant: &|_| None,
            watched: false,
        };
        Instance::build(form, assignment, shape, &extras)
    }

    /// The elements of a tensor that belong to an element of a result.
    pub(super) fn lanes(&self, at: usize, of: &Tensor, given: &Tensor) -> Range<usize> {
        lanes(self.spread, self.partitions, at, of.len(), given.len())
    }
}

/// The inputs of an instance.
pub(super) fn inputs(layout: &Layout<'_>) -> Vec<Input> {
    let form = layout.form;
    (0..form.vars.len())
        .filter_map(|var| {
            let Choice::Tile(dtype, _) = layout.assignment.vars[var] else {
                return None;
            };
            let known = uniform(form, var).is_some() || is_identity(form, var);
            (needs(form, var) && !known).then(|| Input {
                port: match layout.memory(var) {
                    Memory::Dram => layout.location(var),
                    _ => format!("{}_in", name(form, var)),
                },
                dtype,
                dims: layout.dims(var),
            })
        })
        .collect()
}

/// The parts of a program.
#[derive(Default)]
pub(super) struct Text {
    pub allocs: String,
    pub before: String,
    pub body: String,
    pub behind: String,
}

impl Text {
    /// A location in DRAM.
    fn dram(&mut self, name: &str, dims: &[usize], dtype: DType, kind: &str) {
        let shape = shape(dims, dtype);
        let _ = writeln!(
            self.allocs,
            "    %{name} = alloc dram<{shape}> {{kind = {kind}}}"
        );
    }
}

fn shape(dims: &[usize], dtype: DType) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("{}x{dtype}", dims.join("x"))
}

/// A constant of those elements; one stands for all.
fn constant(dtype: DType, elements: &[u64]) -> String {
    let size = dtype.size_bytes() as usize;
    let mut hex = String::with_capacity(2 * size * elements.len());
    for bits in elements {
        for byte in &bits.to_le_bytes()[..size] {
            let _ = write!(hex, "{byte:02X}");
        }
    }
    format!("const, value = dense<\"0x{hex}\">")
}

fn identity(dtype: DType, size: usize) -> Option<Vec<u64>> {
    let one = convert(DType::F32, dtype, u64::from(1f32.to_bits()))?;
    let places = (0..size * size).map(|at| if at / size == at % size { one } else { 0 });
    Some(places.collect())
}

/// The text of a program, and its inputs.
fn program(layout: &Layout<'_>, extras: &Extras<'_>) -> Option<(String, Vec<Input>)> {
    let form = layout.form;
    let inputs = inputs(layout);
    let mut text = Text::default();
    for var in 0..form.vars.len() {
        variable(&mut text, layout, extras, &inputs, var)?;
    }
    let is_loop = layout.assignment.twist == Twist::Loop;
    let indent = if is_loop { "      " } else { "    " };
    for number in 0..form.stmts.len() {
        text.body.push_str(indent);
        layout.statement(&mut text.body, number)?;
        text.body.push('\n');
        if extras.watched {
            watch(&mut text, layout, number)?;
        }
    }
    if is_loop {
        text.body = format!("    loop %i = 0 to 2 step 1 {{\n{}    }}\n", text.body);
    }
    if let Twist::Around(state) = layout.assignment.twist {
        state.surround(&mut text, layout.shape);
    }
    let Text {
        allocs,
        before,
        body,
        behind,
    } = text;
    let target = layout.shape.target;
    let text = format!(
        "bir.module @rule {{target = \"{target}\"}} {{\n  bir.func @main {{\n{allocs}{before}{body}{behind}  }}\n}}\n"
    );
    Some((text, inputs))
}

/// The location of a variable, what it holds before, and who sees it behind.
fn variable(
    text: &mut Text,
    layout: &Layout<'_>,
    extras: &Extras<'_>,
    inputs: &[Input],
    var: VarId,
) -> Option<()> {
    let form = layout.form;
    let Some((dtype, _)) = layout.tile(var) else {
        return Some(());
    };
    let declared = layout.declared(var)?;
    let dims = layout.dims(var);
    let location = layout.location(var);
    let own = layout.home(var) == var;
    let memory = layout.memory(var);
    let needs_value = needs(form, var);
    let seen = form.writer(var).is_some() && !dropped(form, var);
    // What it holds is a constant: known, or to be shown.
    let known = match uniform(form, var) {
        Some(number) if needs_value => {
            Some(vec![parse_number(dtype, &literal(dtype, number)?).ok()?])
        }
        _ if needs_value && is_identity(form, var) => Some(identity(dtype, layout.shape.columns)?),
        _ => None,
    };
    let port = match memory {
        Memory::Dram => location.clone(),
        _ => format!("{}_in", name(form, var)),
    };
    let shown = || {
        let input = inputs.iter().find(|input| input.port == port)?;
        (extras.constant)(input)
    };
    let value = known.clone().or_else(shown);
    if memory == Memory::Dram {
        if !own {
            return Some(());
        }
        let shared = (0..form.vars.len()).filter(|&other| layout.home(other) == var);
        let reads = shared.clone().any(|other| needs(form, other));
        let kind = match value {
            Some(elements) => constant(declared, &elements),
            None => match (reads, seen) {
                (true, true) => "inout",
                (true, false) => "input",
                (false, true) => "output",
                (false, false) => "internal",
            }
            .to_owned(),
        };
        text.dram(&location, &dims, declared, &kind);
        return Some(());
    }
    if own {
        let shape = shape(&dims, declared);
        let _ = writeln!(text.allocs, "    %{location} = alloc {memory}<{shape}>");
    }
    let whole = match declared == dtype {
        true => format!("%{location}"),
        false => format!("%{location} as {dtype}"),
    };
    let is_psum = memory == Memory::Psum;
    let stage = format!("{}_stage", name(form, var));
    if is_psum && (needs_value || seen) {
        // No DMA reaches it.
        let shape = self::shape(&dims, dtype);
        let _ = writeln!(text.allocs, "    %{stage} = alloc sbuf<{shape}>");
    }
    match (uniform(form, var), needs_value) {
        (Some(number), true) => {
            let number = literal(dtype, number)?;
            let _ = writeln!(text.before, "    memset {whole} <- {number}");
        }
        (_, true) => {
            let kind = match &value {
                Some(elements) => constant(dtype, elements),
                None => "input".to_owned(),
            };
            text.dram(&port, &dims, dtype, &kind);
            let to = if is_psum {
                format!("%{stage}")
            } else {
                whole.clone()
            };
            let _ = writeln!(text.before, "    load {to} <- %{port}");
            if is_psum {
                let _ = writeln!(text.before, "    tensor_copy {whole} <- %{stage}");
            }
        }
        (_, false) if layout.leaves_some(var) => {
            let zero = literal(dtype, "0.0")?;
            let _ = writeln!(text.before, "    memset {whole} <- {zero}");
        }
        _ => {}
    }
    if seen {
        let port = format!("{}_out", name(form, var));
        text.dram(&port, &dims, dtype, "output");
        let from = if is_psum {
            format!("%{stage}")
        } else {
            whole.clone()
        };
        if is_psum {
            let _ = writeln!(text.behind, "    tensor_copy %{stage} <- {whole}");
        }
        let _ = writeln!(text.behind, "    save %{port} <- {from}");
    }
    Some(())
}

/// Writes out what an instruction wrote that nobody would see.
fn watch(text: &mut Text, layout: &Layout<'_>, number: usize) -> Option<()> {
    let form = layout.form;
    for var in 0..form.vars.len() {
        let wrote = form.writer(var).is_some_and(|(stmt, _)| stmt == number);
        let Some((dtype, _)) = layout.tile(var).filter(|_| wrote && dropped(form, var)) else {
            continue;
        };
        if layout.assignment.twist == Twist::Loop || layout.memory(var) == Memory::Dram {
            return None;
        }
        let dims = layout.dims(var);
        let port = format!("{}_seen", name(form, var));
        let location = layout.location(var);
        text.dram(&port, &dims, dtype, "output");
        let mut from = match layout.declared(var)? == dtype {
            true => format!("%{location}"),
            false => format!("%{location} as {dtype}"),
        };
        if layout.memory(var) == Memory::Psum {
            let shape = shape(&dims, dtype);
            let _ = writeln!(text.allocs, "    %{port}_stage = alloc sbuf<{shape}>");
            let _ = writeln!(text.body, "    tensor_copy %{port}_stage <- {from}");
            from = format!("%{port}_stage");
        }
        let _ = writeln!(text.body, "    save %{port} <- {from}");
    }
    Some(())
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
fn read(text: &str) -> Option<Ir> {
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
