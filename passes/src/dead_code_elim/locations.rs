//! Locations nobody touches.

use std::collections::HashMap;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Def, Ir, Op, Str};

use super::LOCATIONS;
use super::roots::Roots;
use crate::pass::{PassContext, symbol_text};

/// Names of locations that are gone, by the module they were in.
#[derive(Default)]
pub(super) struct Locations {
    names: HashMap<Op, Vec<Str>>,
}

impl Locations {
    /// Names gone from a module.
    pub(super) fn of(&self, module: Op) -> &[Str] {
        self.names.get(&module).map_or(&[], Vec::as_slice)
    }
}

/// The locations of instructions that went, where somebody wants to know.
pub(super) struct Touched {
    seen: Option<Vec<bool>>,
    list: Vec<Op>,
}

impl Touched {
    /// Takes notes, by the rows of a file.
    pub(super) fn noted(ir: &Ir) -> Touched {
        Touched {
            seen: Some(vec![false; ir.op_rows()]),
            list: Vec::new(),
        }
    }

    /// Takes none.
    pub(super) fn ignored() -> Touched {
        Touched {
            seen: None,
            list: Vec::new(),
        }
    }

    /// Takes note of the locations instructions touch, before they go.
    pub(super) fn note(&mut self, ir: &Ir, dead: &[Op]) {
        let Some(seen) = &mut self.seen else { return };
        for operand in dead.iter().flat_map(|&op| ir.operands(op)) {
            if let Def::Result { op: def, .. } = ir.def(operand.value)
                && OpCode::of(ir, def) == Some(OpCode::Alloc)
                && !std::mem::replace(&mut seen[def.index()], true)
            {
                self.list.push(def);
            }
        }
    }

    pub(super) fn list(self) -> Vec<Op> {
        self.list
    }
}

/// Removes those of the candidates that nobody touches and nobody outside knows; whether there
/// were any. Partners in `must_alias` go together or not at all.
pub(super) fn remove(
    ir: &mut Ir,
    func: Op,
    roots: &Roots,
    candidates: &[Op],
    cx: &mut PassContext<'_>,
    gone: &mut Locations,
) -> bool {
    let is_unused = |ir: &Ir, op: Op| ir.results(op).all(|value| ir.first_use(value).is_none());
    let mut dead: Vec<Op> = candidates
        .iter()
        .copied()
        .filter(|&op| is_unused(ir, op))
        .collect();
    if dead.is_empty() {
        return false;
    }
    dead.sort_unstable();
    dead.retain(|&op| {
        ir.result(op)
            .is_some_and(|value| roots.may_go(ir, value, &|other| ir.first_use(other).is_none()))
    });
    // Partners count as one, so that no number of rewrites leaves one that names another.
    let group = |ir: &Ir, op: Op| {
        let value = ir.result(op);
        value.map(|value| roots.group(value).unwrap_or(value))
    };
    dead.sort_by_key(|&op| group(ir, op));
    let module = ir.parent(func);
    let mut changed = false;
    let mut last = None;
    for op in dead {
        let own = group(ir, op);
        let name = ir.result(op).and_then(|value| ir.value_name(value));
        let what = || {
            let name = name.map_or("", |name| ir.ctx.text(name));
            format!("remove `%{name}` from {}", symbol_text(ir, func))
        };
        if last != Some(own) && !cx.may_rewrite(&what) {
            break;
        }
        last = Some(own);
        if ir.erase(op) {
            changed = true;
            cx.count(&LOCATIONS, 1);
            if let (Some(module), Some(name)) = (module, name) {
                gone.names.entry(module).or_default().push(name);
            }
        }
    }
    changed
}
