//! How findings name things.

use super::super::attrs::{Accumulate, Placement, Sem, number_bits};
use super::super::num;
use crate::ir::{Attr, AttrView, Context, Ir, Op, Value};

/// `` `%name` `` of a value, or "an unnamed value".
pub fn value_text(ir: &Ir, value: Value) -> String {
    match ir.value_name(value) {
        Some(name) => format!("`%{}`", ir.ctx.text(name)),
        None => "an unnamed value".to_owned(),
    }
}

/// `` `@name` `` of a module or function, or "an unnamed function".
pub(super) fn symbol_text(ir: &Ir, op: Op) -> String {
    match super::super::program::symbol_name(ir, op) {
        Some(name) => format!("`@{}`", ir.ctx.text(name)),
        None => "without a name".to_owned(),
    }
}

/// An attribute as a message shows it, short.
pub(super) fn attr_text(ctx: &Context, attr: Attr) -> String {
    match ctx.attr(attr) {
        AttrView::Unit => "a flag".to_owned(),
        AttrView::Bool(value) => format!("`{value}`"),
        AttrView::Int { value, .. } => format!("`{value}`"),
        AttrView::Float { .. } => match number_bits(ctx, attr) {
            Some((dtype, bits)) => format!("`{}` of {dtype}", num::Number { dtype, bits }),
            None => "a number".to_owned(),
        },
        AttrView::Str(text) => format!("`{}`", shortened(ctx.text(text))),
        AttrView::Symbol(text) => format!("`@{}`", shortened(ctx.text(text))),
        AttrView::Array(list) => match list.len() {
            0 => "an empty list".to_owned(),
            1 => "a list of 1 element".to_owned(),
            n => format!("a list of {n} elements"),
        },
        AttrView::Dict(_) => "a dictionary".to_owned(),
        AttrView::Type(_) => "a type".to_owned(),
        AttrView::Dense { .. } => "dense elements".to_owned(),
        AttrView::Opaque(text) => format!("`{}`", shortened(ctx.text(text))),
        AttrView::Dialect { .. } => {
            if Placement::get(ctx, attr).is_some() {
                "a placement".to_owned()
            } else if Sem::get(ctx, attr).is_some() {
                "a semaphore operation".to_owned()
            } else if Accumulate::get(ctx, Some(attr)).is_some() {
                "`unless_first(…)`".to_owned()
            } else {
                "an attribute of another kind".to_owned()
            }
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `1 partition`, `2 partitions`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// "`a`, `b` or `c`"
pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
