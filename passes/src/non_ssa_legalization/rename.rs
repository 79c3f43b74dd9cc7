//! Clones, and the accesses moved to them.

use std::collections::HashSet;

use bir_dialect::ir::{Ir, Op, Operand, Str, Value};

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

    /// The name, where it is free.
    fn take(&mut self, ir: &mut Ir, name: &str) -> Option<Str> {
        let known = ir.ctx.str_count();
        let name = ir.ctx.str(name);
        if ir.ctx.str_count() > known {
            // The whole file did not know it.
            if let Some(taken) = &mut self.taken {
                taken.insert(name);
            }
            return Some(name);
        }
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
        taken.insert(name).then_some(name)
    }
}

/// What a split is called where rewrites are counted.
pub(super) fn what(ir: &Ir, alloc: Op) -> String {
    let name = ir.result(alloc).and_then(|value| ir.value_name(value));
    format!("split of `%{}`", name.map_or("", |name| ir.ctx.text(name)))
}

/// Makes the clones of locations, behind each its own, and moves to them the accesses that have one: the
/// clones, and how many accesses.
pub(super) fn rename(
    ir: &mut Ir,
    splits: &[Split],
    moves: &[(Operand, u32)],
    names: &mut Names,
) -> (Vec<Value>, u64) {
    let count = splits.iter().map(|split| split.clones as usize).sum();
    ir.ctx.reserve_strings(count);
    let mut allocs: Vec<Op> = Vec::with_capacity(count);
    let mut clones: Vec<Value> = Vec::with_capacity(count);
    let mut text = String::new();
    for split in splits {
        text.clear();
        text.push_str(
            ir.value_name(split.value)
                .map_or("", |name| ir.ctx.text(name)),
        );
        text.push_str("_SsaClone");
        let mut serials = 0u32..;
        let stem = text.len();
        for _ in 0..split.clones {
            let clone = ir.clone_op(split.alloc, |value| value);
            let value = ir.made_result(clone);
            let name = serials.find_map(|serial| {
                text.truncate(stem);
                push_decimal(&mut text, serial);
                names.take(ir, &text)
            });
            ir.set_value_name(value, name);
            allocs.push(clone);
            clones.push(value);
        }
    }
    let behind = splits
        .iter()
        .map(|split| (split.alloc, split.clones as usize));
    ir.place_runs(&allocs, behind);
    let mut moved = 0;
    for &(operand, clone) in moves {
        if let Some(&clone) = clones.get(clone as usize) {
            ir.set_operand(operand, clone);
            moved += 1;
        }
    }
    (clones, moved)
}

/// Appends a number; clones are many, and `write!` costs ten times as much.
fn push_decimal(text: &mut String, number: u32) {
    let first = text.len();
    let mut scale = 1;
    while number / scale >= 10 {
        scale *= 10;
    }
    while scale > 0 {
        text.push(char::from(b'0' + (number / scale % 10) as u8));
        scale /= 10;
    }
    debug_assert_eq!(text[first..].parse(), Ok(number));
}
