//! Attributes: known names, required ones present, each of its type.

use super::super::attrs::{Accumulate, Placement, Sem, SemOp, number_bits};
use super::super::num::DType;
use super::super::ops::{AttrDef, AttrType, COMMON_ATTRS, OpCode, OpDef};
use super::super::program::names;
use super::driver::Verifier;
use super::words::{attr_text, one_of};
use crate::ir::{Attr, AttrView, Context, Op, Str};
use crate::text::diag::{Part, did_you_mean, nearest};

impl Verifier<'_> {
    pub(super) fn check_dict(&mut self, op: Op, code: OpCode, def: &'static OpDef) {
        let ir = self.ir;
        let dict = ir.dict(op);
        if self.good_dicts.contains(code, dict) {
            return;
        }
        let before = self.diags.errors();
        for (name, attr) in ir.ctx.dict_entries(dict) {
            self.check_attr(op, code, def, name, attr);
        }
        for entry in def.attrs.iter().filter(|entry| entry.required) {
            if ir.ctx.dict_find(dict, entry.name).is_none() {
                let help =
                    (!entry.doc.is_empty()).then(|| format!("`{}`: {}", entry.name, entry.doc));
                let message = format!("`{}` needs attribute `{}`", def.name, entry.name);
                self.error(op, Part::Whole, message, help);
            }
        }
        if self.diags.errors() == before {
            self.good_dicts.insert(code, dict);
        }
    }

    fn check_attr(&mut self, op: Op, code: OpCode, def: &'static OpDef, name: Str, attr: Attr) {
        let ir = self.ir;
        let text = ir.ctx.text(name);
        if text.contains('.') {
            return;
        }
        let is_instruction = def.engines.is_some();
        let entry = def.attr(text).or_else(|| {
            COMMON_ATTRS
                .iter()
                .find(|entry| is_instruction && entry.name == text)
        });
        if let Some(entry) = entry {
            if let Err((expected, help)) = conforms(&ir.ctx, attr, entry) {
                let message = format!(
                    "attribute `{text}` of `{}` must be {expected}, found {}",
                    def.name,
                    attr_text(&ir.ctx, attr)
                );
                self.error(op, Part::Attr(name), message, help);
            }
            return;
        }
        let is_literal = def
            .operands
            .iter()
            .any(|operand| operand.takes_literal() && operand.name == text);
        let is_name = name == names::SYM_NAME && matches!(code, OpCode::Module | OpCode::Func);
        if is_literal || is_name {
            return;
        }
        let known = def
            .attrs
            .iter()
            .chain(COMMON_ATTRS.iter().filter(|_| is_instruction))
            .map(|entry| entry.name)
            .chain(
                def.operands
                    .iter()
                    .filter(|o| o.takes_literal())
                    .map(|o| o.name),
            );
        let is_tile = def.operands.iter().any(|o| o.name == text);
        let help = if is_tile {
            Some(format!("`{text}` is an operand"))
        } else {
            did_you_mean(text, known).or_else(|| {
                Some(format!(
                    "an attribute of your own needs a prefix, as in `x.{text}`"
                ))
            })
        };
        self.error(
            op,
            Part::Attr(name),
            format!("`{}` has no attribute `{text}`", def.name),
            help,
        );
    }
}

/// Semaphores of a core.
const SEMAPHORES: u32 = 256;

/// Whether a semaphore exists and its counter holds the number.
fn is_counted(sem: &Sem) -> bool {
    sem.id < SEMAPHORES && i32::try_from(sem.value).is_ok()
}

type Mismatch = (String, Option<String>);

/// Whether an attribute is what its entry says; else what was expected, and a help line.
fn conforms(ctx: &Context, attr: Attr, entry: &AttrDef) -> Result<(), Mismatch> {
    let view = ctx.attr(attr);
    let fail = |expected: String| Err((expected, None));
    match entry.ty {
        AttrType::Flag => match view {
            AttrView::Unit | AttrView::Bool(_) => Ok(()),
            _ => fail("a flag, without a value".to_owned()),
        },
        AttrType::Int { min, max } => match view {
            AttrView::Int { value, .. } if (min..=max).contains(&value) => Ok(()),
            _ => fail(format!("a whole number{}", range_text(min, max))),
        },
        AttrType::Number(dtype) => match number_bits(ctx, attr) {
            Some((found, _)) if found == dtype => Ok(()),
            _ => fail(format!("a number of {dtype}")),
        },
        AttrType::Enum(def) => {
            let word = match view {
                AttrView::Str(text) => Some(ctx.text(text)),
                _ => None,
            };
            if word.is_some_and(|word| def.words.contains(&word)) {
                return Ok(());
            }
            let expected = if def.words.len() <= 8 {
                one_of(def.words.iter().copied())
            } else {
                format!("a word of `{}`", def.name)
            };
            let near = word.and_then(|word| nearest(word, def.words.iter().copied()));
            Err((expected, near.map(|near| format!("did you mean `{near}`?"))))
        }
        AttrType::IntList { min, max } => match view {
            AttrView::Array(list)
                if list.iter().all(|attr| {
                    matches!(ctx.attr(attr), AttrView::Int { value, .. } if (min..=max).contains(&value))
                }) =>
            {
                Ok(())
            }
            _ => fail(format!("a list of whole numbers{}", range_text(min, max))),
        },
        AttrType::Pattern => match pattern(ctx, attr) {
            Some(pairs) if !pairs.is_empty() && pairs.iter().all(|pair| pair.1 >= 1) => Ok(()),
            Some(_) => fail("a list of `[step, count]` with counts of at least 1".to_owned()),
            None => fail("a list of `[step, count]`".to_owned()),
        },
        AttrType::Str => match view {
            AttrView::Str(_) => Ok(()),
            _ => fail("a string".to_owned()),
        },
        AttrType::Symbol => match view {
            AttrView::Symbol(_) => Ok(()),
            _ => fail("a symbol, `@name`".to_owned()),
        },
        AttrType::DType => match view {
            AttrView::Str(text) if DType::from_name(ctx.text(text)).is_some() => Ok(()),
            _ => fail("a dtype".to_owned()),
        },
        AttrType::Accumulate => match Accumulate::get(ctx, Some(attr)) {
            Some(_) => Ok(()),
            None => fail("a flag or `unless_first(%loop_index)`".to_owned()),
        },
        AttrType::Waits => match Sem::list(ctx, attr) {
            Some(list)
                if !list.is_empty()
                    && list.iter().all(|sem| sem.op == SemOp::Ge && is_counted(sem)) =>
            {
                Ok(())
            }
            _ => fail("a list of waits on semaphores 0 to 255 for numbers of 32 bits, as in `[4 >= 36]`".to_owned()),
        },
        AttrType::Signals => match Sem::list(ctx, attr) {
            Some(list)
                if !list.is_empty()
                    && list.iter().all(|sem| !sem.op.is_wait() && is_counted(sem)) =>
            {
                Ok(())
            }
            _ => fail(
                "a list of signals of semaphores 0 to 255 by numbers of 32 bits, as in `[6 += 1 @complete]`".to_owned(),
            ),
        },
        AttrType::Placement => match Placement::get(ctx, attr) {
            Some(_) => Ok(()),
            None => fail("a placement".to_owned()),
        },
        AttrType::Data => match view {
            AttrView::Dense { .. } | AttrView::Str(_) => Ok(()),
            _ => fail("dense elements or the name of an `.npy` file".to_owned()),
        },
        AttrType::RankGroups => match rank_groups(ctx, attr) {
            Some(()) => Ok(()),
            None => fail("lists of ranks, as in `[[0, 1], [2, 3]]`".to_owned()),
        },
    }
}

fn range_text(min: i64, max: i64) -> String {
    match (min, max) {
        (i64::MIN, i64::MAX) => String::new(),
        (min, i64::MAX) => format!(" of at least {min}"),
        (min, max) => format!(" from {min} to {max}"),
    }
}

/// `[step, count]` pairs of an attribute.
pub(super) fn pattern(ctx: &Context, attr: Attr) -> Option<smallvec::SmallVec<[(i64, i64); 5]>> {
    let AttrView::Array(list) = ctx.attr(attr) else {
        return None;
    };
    list.iter()
        .map(|pair| match ctx.attr(pair) {
            AttrView::Array(pair) if pair.len() == 2 => {
                Some((ctx.attr_int(pair.get(0)?)?, ctx.attr_int(pair.get(1)?)?))
            }
            _ => None,
        })
        .collect()
}

fn rank_groups(ctx: &Context, attr: Attr) -> Option<()> {
    let AttrView::Array(groups) = ctx.attr(attr) else {
        return None;
    };
    groups.iter().try_for_each(|group| match ctx.attr(group) {
        AttrView::Array(ranks) if !ranks.is_empty() => ranks
            .iter()
            .try_for_each(|rank| ctx.attr_int(rank).filter(|&rank| rank >= 0).map(|_| ())),
        _ => None,
    })
}
