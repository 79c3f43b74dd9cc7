//! Clones, and the accesses moved to them.

use std::collections::HashSet;

use bir_dialect::ir::{Cursor, Ir, Op, Str, Value};

use super::splits::Split;

/// Names taken in a function; read when a clone's name is known to the file at all.
pub(super) struct Names {
    func: Op,
    taken: Option<HashSet<Str>>,
}

impl Names {
    pub(super) fn new(func: Op) -> Names {
        Names { func, taken: None }
    }

    fn is_free(&mut self, ir: &Ir, name: &str) -> bool {
        let Some(name) = ir.ctx.find_str(name) else {
            return true;
        };
        let func = self.func;
        let taken = self.taken.get_or_insert_with(|| {
            let results = ir.walk_op(func).flat_map(|op| ir.results(op));
            let blocks = ir
                .walk_op(func)
                .flat_map(|op| ir.regions(op).iter())
                .flat_map(|&region| ir.blocks(region));
            let args = blocks.flat_map(|block| ir.args(block));
            results
                .chain(args)
                .filter_map(|value| ir.value_name(value))
                .collect()
        });
        !taken.contains(&name)
    }

    fn take(&mut self, name: Str) {
        if let Some(taken) = &mut self.taken {
            taken.insert(name);
        }
    }
}

/// What a split is called where rewrites are counted.
pub(super) fn what(ir: &Ir, alloc: Op) -> String {
    let name = ir.result(alloc).and_then(|value| ir.value_name(value));
    format!("split of `%{}`", name.map_or("", |name| ir.ctx.text(name)))
}

/// Makes the clones of a location behind it, and moves the accesses; how many clones.
pub(super) fn rename(ir: &mut Ir, split: &Split, names: &mut Names) -> u64 {
    let base = ir
        .value_name(split.value)
        .map_or_else(String::new, |name| ir.ctx.text(name).to_owned());
    let mut behind = split.alloc;
    let mut serial = 0u32;
    let mut clones: Vec<Value> = Vec::with_capacity(split.clones as usize);
    for _ in 0..split.clones {
        let name = loop {
            let name = format!("{base}_SsaClone{serial}");
            serial += 1;
            if names.is_free(ir, &name) {
                break name;
            }
        };
        let clone = ir.clone_op(split.alloc, |value| value);
        ir.place(clone, Cursor::After(behind));
        behind = clone;
        let value = ir.made_result(clone);
        let name = ir.name_value(value, &name);
        names.take(name);
        clones.push(value);
    }
    for &(operand, clone) in &split.moved {
        ir.set_operand(operand, clones[clone as usize]);
    }
    clones.len() as u64
}
