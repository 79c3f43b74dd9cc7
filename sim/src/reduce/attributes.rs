//! Fewer attributes, plainer numbers.

use bir_dialect::bir::attrs::{number, number_bits};
use bir_dialect::bir::num::from_f32;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, COL_ORDER};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Attr, Ir, Op, Str};

use super::Reducer;

/// One kind of annotation, taken off every instruction.
const ANNOTATIONS: &[fn(&mut Ir, Op)] = &[
    |ir, op| {
        *ir.trivia_mut(op) = bir_dialect::ir::Trivia::default();
    },
    |ir, op| ir.set_loc(op, None),
    |ir, op| ir.set_words_cell(COL_DEPS, op, None),
    |ir, op| ir.set_words_cell(COL_ORDER, op, None),
    |ir, op| {
        ir.set_words_cell(COL_DEPS, op, None);
        ir.set_int_cell(COL_ID, op, None);
    },
    |ir, op| {
        ir.set_attr(op, "wait", None);
        ir.set_attr(op, "signal", None);
    },
];

/// Takes comments, locations, numbers, dependences and semaphores off all instructions at once.
pub(super) fn drop_annotations(reducer: &mut Reducer<'_>) -> bool {
    let ops = reducer.ops();
    ANNOTATIONS.iter().fold(false, |any, clear| {
        reducer.attempt(|ir| {
            ops.iter().for_each(|&op| clear(ir, op));
            true
        }) | any
    })
}

/// Drops attributes an instruction can do without.
pub(super) fn drop_attributes(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        let entries: Vec<(Str, Attr)> = {
            let ir = &reducer.best;
            ir.ctx.dict_entries(ir.dict(op)).collect()
        };
        for (name, _) in entries {
            let ir = &reducer.best;
            let required = OpView::new(ir, op)
                .def()
                .and_then(|def| def.attr(ir.ctx.text(name)))
                .is_some_and(|attr| attr.required);
            if !required {
                progress |= reducer.attempt(|ir| {
                    let dict = ir.ctx.dict_with(ir.dict(op), name, None);
                    ir.set_dict(op, dict);
                    true
                });
            }
        }
    }
    progress
}

/// Puts 1 or 0 for other numbers.
pub(super) fn simplify_numbers(reducer: &mut Reducer<'_>) -> bool {
    let mut progress = false;
    for op in reducer.ops() {
        let entries: Vec<(Str, Attr)> = {
            let ir = &reducer.best;
            ir.ctx.dict_entries(ir.dict(op)).collect()
        };
        for (name, attr) in entries {
            let Some((dtype, bits)) = number_bits(&reducer.best.ctx, attr) else {
                continue;
            };
            let one = if dtype.is_integer() {
                1
            } else {
                from_f32(dtype, 1.0).unwrap_or(0)
            };
            for plain in [one, 0] {
                if bits == plain {
                    break;
                }
                progress |= reducer.attempt(|ir| {
                    let attr = number(&mut ir.ctx, dtype, plain);
                    let dict = ir.ctx.dict_with(ir.dict(op), name, Some(attr));
                    ir.set_dict(op, dict);
                    true
                });
            }
        }
    }
    progress
}
