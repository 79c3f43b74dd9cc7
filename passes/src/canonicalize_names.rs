//! `canonicalize_names`: names that say nothing, the same for equal programs.

use std::collections::HashSet;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::types::{MemType, is_index};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Block, Ir, Op, Value};

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;

pass_options! {
    /// Gives locations, registers, loop indices and blocks names by their number in the function.
    ///
    /// Programs that differ in names only become equal: internal locations are `%sbuf0`,
    /// `%psum0`, `%dram0`; registers `%r0`; loop indices `%i0`; blocks `^bb1`. Names others may know
    /// stay: inputs, outputs, constants, shared and boundary locations, and what `must_alias` names.
    pub struct CanonicalizeNames {
        /// Rename internal locations too
        locations: bool = true,
    }
}

const RENAMED: Statistic = Statistic {
    name: "names-changed",
    doc: "values and blocks with another name than before",
};

/// New names, in the order they are given.
struct Names {
    values: Vec<(Value, String)>,
    blocks: Vec<(Block, Option<String>)>,
}

impl Pass for CanonicalizeNames {
    fn name(&self) -> &'static str {
        "canonicalize_names"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[RENAMED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let plans = cx.each(ir, on, |ir, func| self.names(ir, func));
        let mut changed = false;
        for (names, &func) in plans.into_iter().zip(on) {
            cx.matched((names.values.len() + names.blocks.len()) as u64);
            let what = || format!("names of {}", crate::pass::symbol_text(ir, func));
            if !cx.may_rewrite(&what) {
                break;
            }
            let mut renamed = 0;
            for (value, name) in names.values {
                let name = ir.ctx.str(&name);
                renamed += u64::from(ir.value_name(value) != Some(name));
                ir.set_value_name(value, Some(name));
            }
            for (block, label) in names.blocks {
                let label = label.map(|label| ir.ctx.str(&label));
                renamed += u64::from(ir.label(block) != label);
                ir.set_label(block, label);
            }
            cx.count(&RENAMED, renamed);
            changed |= renamed > 0;
        }
        Changed::from_bool(changed)
    }
}

impl CanonicalizeNames {
    fn names(&self, ir: &Ir, func: Op) -> Names {
        let mut names = Names {
            values: Vec::new(),
            blocks: Vec::new(),
        };
        let aliased = aliased(ir, func);
        let keeps = |op: Op, value: Value| {
            let name = ir.value_name(value).map(|name| ir.ctx.text(name));
            !self.locations
                || name.is_some_and(|name| aliased.contains(name))
                || is_known_outside(ir, op)
        };
        let mut taken: HashSet<&str> = HashSet::new();
        for op in ir.walk_op(func) {
            if OpCode::of(ir, op) == Some(OpCode::Alloc)
                && let Some(value) = ir.result(op)
                && keeps(op, value)
            {
                taken.extend(ir.value_name(value).map(|name| ir.ctx.text(name)));
            }
        }
        let mut next: [(&str, u32); 5] =
            [("dram", 0), ("sbuf", 0), ("psum", 0), ("r", 0), ("i", 0)];
        let mut name = |prefix: &str| {
            let counter = next.iter_mut().find(|(known, _)| *known == prefix);
            let Some((_, counter)) = counter else {
                return prefix.to_owned();
            };
            loop {
                let name = format!("{prefix}{counter}");
                *counter += 1;
                if !taken.contains(name.as_str()) {
                    return name;
                }
            }
        };
        for op in ir.walk_op(func) {
            for value in ir.results(op) {
                let mem = MemType::get(&ir.ctx, ir.value_type(value));
                match mem {
                    Some(_) if keeps(op, value) => {}
                    Some(mem) => names.values.push((value, name(mem.space.name()))),
                    None => names.values.push((value, name("r"))),
                }
            }
            for &region in ir.regions(op) {
                for (number, block) in ir.blocks(region).enumerate() {
                    for arg in ir.args(block) {
                        let prefix = if is_index(&ir.ctx, ir.value_type(arg)) {
                            "i"
                        } else {
                            "r"
                        };
                        names.values.push((arg, name(prefix)));
                    }
                    let label = (number > 0).then(|| format!("bb{number}"));
                    names.blocks.push((block, label));
                }
            }
        }
        names
    }
}

/// Names of locations that `must_alias` of others refers to.
fn aliased(ir: &Ir, func: Op) -> HashSet<&str> {
    ir.walk_op(func)
        .filter_map(|op| ir.attr(op, "must_alias"))
        .filter_map(|attr| match ir.ctx.attr(attr) {
            AttrView::Symbol(name) | AttrView::Str(name) => Some(ir.ctx.text(name)),
            _ => None,
        })
        .collect()
}

/// Whether the name of a location means something outside of its function.
fn is_known_outside(ir: &Ir, op: Op) -> bool {
    let view = OpView::new(ir, op);
    view.word("kind").is_some_and(|kind| kind != "internal")
        || view.word("space") == Some("shared")
        || view.flag("boundary")
        || ["remote_target", "written_by_core", "must_alias"]
            .iter()
            .any(|attr| ir.attr(op, attr).is_some())
}
