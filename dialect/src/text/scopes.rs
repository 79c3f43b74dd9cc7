//! What names and labels stand for while a file is read.

use super::build::Failure;
use super::diag::{Diagnostic, Part, Place, nearest};
use crate::bir::types::is_index;
use crate::ir::{Block, Def, Ir, NewOp, Region, Str, Type, Value};
use hashbrown::HashMap;

/// Stands for what a wrong statement would have defined: its uses are not reported too.
pub(super) const POISON: Value = Value(u32::MAX - 1);

/// Defines the value a name stands for until its definition is read.
const STAND_IN: &str = "builtin.unresolved";

fn is_stand_in(ir: &Ir, value: Value) -> bool {
    ir.def_op(value)
        .is_some_and(|op| ir.name_text(op) == STAND_IN)
}

/// What names stand for.
#[derive(Default)]
pub(crate) struct Scopes {
    /// By interned name.
    values: Vec<Value>,
    undo: Vec<(Str, Value)>,
    marks: Vec<usize>,
    /// Names used before their definition, with the stand-in values.
    pending: HashMap<Value, Pending>,
    pub(super) blocks: HashMap<(Region, Str), usize>,
    pub(super) labels: Vec<Label>,
    pub(super) region: Option<Region>,
}

pub(super) struct Pending {
    value: Value,
    pub(super) place: Place,
    pub(super) name: Str,
}

pub(super) struct Label {
    pub(super) region: Region,
    pub(super) block: Block,
    pub(super) name: Str,
    pub(super) defined: bool,
    pub(super) place: Place,
}

impl Scopes {
    pub(super) fn get(&self, name: Str) -> Value {
        self.values
            .get(name.index())
            .copied()
            .unwrap_or(Value::NONE)
    }

    pub(super) fn set(&mut self, name: Str, value: Value) {
        if self.values.len() <= name.index() {
            self.values.resize(name.index() + 1, Value::NONE);
        }
        self.undo.push((name, self.values[name.index()]));
        self.values[name.index()] = value;
    }

    /// The value a name stands for.
    pub(crate) fn lookup(
        &mut self,
        ir: &mut Ir,
        name: Str,
        ty: Option<Type>,
        may_be_later: bool,
        place: impl FnOnce() -> Place,
    ) -> Result<Value, Failure> {
        let value = self.get(name);
        if value == POISON {
            return Err(None);
        }
        if value != Value::NONE {
            return Ok(value);
        }
        let place = place();
        if !may_be_later {
            return Err(Some(Box::new(self.unknown(ir, name, place))));
        }
        let ty = match ty {
            Some(ty) => ty,
            None => crate::bir::types::reg_type(&mut ir.ctx, crate::bir::num::DType::I32),
        };
        let stand_in = ir.ctx.op_name(STAND_IN);
        let op = ir.create(NewOp {
            results: &[ty],
            ..NewOp::new(stand_in)
        });
        let Some(value) = ir.result(op) else {
            return Err(None);
        };
        self.set(name, value);
        self.pending.insert(value, Pending { value, place, name });
        Ok(value)
    }

    pub(super) fn unknown(&self, ir: &Ir, name: Str, place: Place) -> Diagnostic {
        let text = ir.ctx.text(name);
        let known = self
            .undo
            .iter()
            .map(|&(name, _)| name)
            .filter(|&name| {
                let value = self.get(name);
                !matches!(value, Value::NONE | POISON) && !is_stand_in(ir, value)
            })
            .map(|name| ir.ctx.text(name));
        if let Some(finding) = self.ended_loop(ir, text, &place) {
            return finding;
        }
        let help = nearest(text, known).map(|near| format!("did you mean `%{near}`?"));
        Diagnostic::error(place, format!("unknown value `%{text}`")).maybe_help(help)
    }

    /// The finding for a name that was the index of a loop that does not enclose the use.
    pub(super) fn ended_loop(&self, ir: &Ir, text: &str, place: &Place) -> Option<Diagnostic> {
        let name = ir.ctx.find_str(text)?;
        let is_loop_index = |value: Value| {
            matches!(ir.def(value), Def::Arg { .. }) && is_index(&ir.ctx, ir.value_type(value))
        };
        (0..ir.value_rows())
            .map(Value::new)
            .find(|&value| ir.value_name(value) == Some(name) && is_loop_index(value))?;
        let around: Vec<String> = self
            .undo
            .iter()
            .map(|&(name, _)| (name, self.get(name)))
            .filter(|&(_, value)| !matches!(value, Value::NONE | POISON) && is_loop_index(value))
            .map(|(name, _)| format!("`%{}`", ir.ctx.text(name)))
            .collect();
        let note = match around.len() {
            0 => "no loop encloses the use".to_owned(),
            1 => format!("the loop that encloses the use is that of {}", around[0]),
            _ => format!(
                "the loops that enclose the use are those of {}",
                around.join(", ")
            ),
        };
        let message = format!("loop index `%{text}` is used outside its loop");
        Some(Diagnostic::error(place.clone(), message).note(note))
    }

    /// Lets a name stand for a value.
    pub(crate) fn bind(
        &mut self,
        ir: &mut Ir,
        name: Str,
        value: Value,
        place: impl FnOnce() -> Place,
    ) -> Result<(), Failure> {
        let old = self.get(name);
        if old != Value::NONE
            && let Some(pending) = self.pending.remove(&old)
        {
            if ir.value_type(pending.value) != ir.value_type(value) {
                // Uses before the definition assumed a type; the verifier judges the real one.
                let ty = ir.value_type(value);
                ir.set_value_type(pending.value, ty);
            }
            ir.replace_uses(pending.value, value);
            self.set(name, value);
            return Ok(());
        }
        if old == POISON {
            return Ok(());
        }
        if old != Value::NONE {
            let text = ir.ctx.text(name);
            let first = match ir.def(old) {
                Def::Result { op, .. } => Place::Op(op, Part::Whole),
                Def::Arg { block, .. } => match ir.block_parent(block) {
                    Some(op) => Place::Op(op, Part::Whole),
                    None => Place::None,
                },
            };
            return Err(Some(Box::new(
                Diagnostic::error(place(), format!("`%{text}` is already defined"))
                    .related(first, "first definition"),
            )));
        }
        self.set(name, value);
        Ok(())
    }

    /// The block a label of the current region stands for.
    pub(crate) fn block(
        &mut self,
        ir: &mut Ir,
        label: &str,
        place: impl FnOnce() -> Place,
    ) -> Block {
        let name = ir.ctx.str(label);
        let region = self.region.unwrap_or_else(|| ir.root());
        if let Some(&at) = self.blocks.get(&(region, name)) {
            return self.labels[at].block;
        }
        let block = ir.append_block(region);
        ir.set_label(block, label_hint(label, name));
        self.blocks.insert((region, name), self.labels.len());
        self.labels.push(Label {
            region,
            block,
            name,
            defined: false,
            place: place(),
        });
        block
    }

    pub(super) fn open(&mut self) {
        self.marks.push(self.undo.len());
    }

    pub(super) fn close(&mut self) {
        let mark = self.marks.pop().unwrap_or(0);
        while self.undo.len() > mark {
            if let Some((name, value)) = self.undo.pop() {
                self.values[name.index()] = value;
            }
        }
    }

    /// What was used but never defined in the scope about to close.
    pub(super) fn unresolved(&mut self) -> Vec<Pending> {
        let mark = self.marks.last().copied().unwrap_or(0);
        let inside = self.undo.get(mark..).unwrap_or(&[]);
        let mut found: Vec<Pending> = inside
            .iter()
            .filter_map(|&(name, _)| self.pending.remove(self.values.get(name.index())?))
            .collect();
        found.sort_by_key(|pending| pending.value);
        found
    }

    /// Labels of the region about to close, in order of their first mention.
    pub(super) fn take_labels(&mut self, region: Region) -> Vec<Label> {
        // Labels of inner regions are behind those of outer ones, and already gone.
        let start = self
            .labels
            .iter()
            .rposition(|label| label.region != region)
            .map_or(0, |at| at + 1);
        let labels: Vec<Label> = self.labels.drain(start..).collect();
        for label in &labels {
            self.blocks.remove(&(region, label.name));
        }
        labels
    }
}

/// The finding for a label that no block has.
pub(super) fn unknown_block(ir: &Ir, label: &Label, labels: &[Label]) -> Diagnostic {
    let text = ir.ctx.text(label.name);
    let known = labels
        .iter()
        .filter(|other| other.defined)
        .map(|other| ir.ctx.text(other.name));
    let help = nearest(text, known).map(|near| format!("did you mean `^{near}`?"));
    Diagnostic::error(label.place.clone(), format!("unknown block `^{text}`")).maybe_help(help)
}

/// A label as a hint; `bb3` is what the printer makes up itself and means nothing.
pub(super) fn label_hint(text: &str, name: Str) -> Option<Str> {
    let made_up = text
        .strip_prefix("bb")
        .is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()));
    (!made_up).then_some(name)
}
