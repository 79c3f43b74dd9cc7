//! Attributes and literals.

use super::{Builder, Indices, Memos, Res};
use crate::bir::access::Access;
use crate::bir::attrs::{Accumulate, Placement, Sem, number};
use crate::bir::num::{self, DType};
use crate::bir::ops::OpCode;
use crate::bir::program::names;
use crate::bir::types::MemType;
use crate::ir::{Attr, Dict, NewOperand, Str};
use crate::text::diag::Diagnostic;
use crate::text::recipe::{AttrRecipe, LitType, NumSrc, NumStyle, OpRecipe, Span, SymbolSrc};
use smallvec::SmallVec;

impl<'s> Builder<'_, 's> {
    pub(super) fn dict(
        &mut self,
        recipe: &'s OpRecipe,
        operands: &[NewOperand],
        indices: &mut Indices,
    ) -> Res<Dict> {
        let key = recipe.dict_memo.as_ref().and_then(|memo| {
            let operand = |at: u8| {
                let operand = operands.get(usize::from(at))?;
                Some((self.ir.value_type(operand.value), operand.annot))
            };
            Memos::dict_key(memo, operand, &self.src)
        });
        if let Some(dict) = key.as_ref().and_then(|key| self.memos.dict(key)) {
            return Ok(dict);
        }
        let dict = self.new_dict(recipe, operands, indices)?;
        if let Some(key) = key {
            self.memos.keep_dict(key, dict);
        }
        Ok(dict)
    }

    fn new_dict(
        &mut self,
        recipe: &'s OpRecipe,
        operands: &[NewOperand],
        indices: &mut Indices,
    ) -> Res<Dict> {
        let mut entries: SmallVec<[(Str, Attr); 8]> = SmallVec::new();
        for entry in &recipe.entries {
            if recipe.code == Some(OpCode::Loop)
                && entry.name == names::STEP
                && matches!(entry.value, AttrRecipe::Int(step, _) if self.src.int(step) == 1)
            {
                continue; // the default
            }
            let attr = self.attr(&entry.value, &entry.span, recipe, operands, indices)?;
            entries.push((entry.name, attr));
        }
        match &recipe.symbol {
            Some(SymbolSrc::Name(hole)) => {
                let name = self.ir.ctx.str(self.src.hole_text(*hole));
                entries.push((names::SYM_NAME, self.ir.ctx.string_of(name)));
            }
            Some(SymbolSrc::Text(text)) => {
                entries.push((names::SYM_NAME, self.ir.ctx.string(text)));
            }
            None => {}
        }
        Ok(self.ir.ctx.dict(&entries))
    }

    pub(super) fn attr(
        &mut self,
        value: &'s AttrRecipe,
        span: &Span,
        recipe: &'s OpRecipe,
        operands: &[NewOperand],
        indices: &mut Indices,
    ) -> Res<Attr> {
        let src = self.src;
        Ok(match value {
            AttrRecipe::Const(attr) => *attr,
            AttrRecipe::Int(int, ty) => self.ir.ctx.typed_int(src.int(*int), *ty),
            AttrRecipe::Number(number, style, ty) => {
                self.number(number, *style, *ty, span, operands)?
            }
            AttrRecipe::Str(text) => {
                let text = src.str(self.ir, text);
                self.ir.ctx.string_of(text)
            }
            AttrRecipe::Symbol(hole) => {
                let text = src.hole_text(*hole);
                let name = match text.starts_with('"') {
                    true => self.ir.ctx.str(&crate::text::compile::unescape(text)),
                    false => self.ir.ctx.str(text),
                };
                self.ir.ctx.symbol(name)
            }
            AttrRecipe::Array(elements) => {
                let mut attrs: SmallVec<[Attr; 8]> = SmallVec::new();
                for element in elements {
                    attrs.push(self.attr(element, span, recipe, operands, indices)?);
                }
                self.ir.ctx.array(&attrs)
            }
            AttrRecipe::Dict(entries) => {
                let mut built: SmallVec<[(Str, Attr); 8]> = SmallVec::new();
                for (name, value) in entries {
                    built.push((*name, self.attr(value, span, recipe, operands, indices)?));
                }
                let dict = self.ir.ctx.dict(&built);
                self.ir.ctx.dict_attr(dict)
            }
            AttrRecipe::Sem(id, op, value, event) => {
                let id = src.int(*id);
                let Ok(id) = u32::try_from(id) else {
                    return src.fail(span, format!("semaphore number {id} is out of range"));
                };
                let sem = Sem {
                    id,
                    op: *op,
                    value: src.int(*value),
                    event: *event,
                };
                sem.intern(&mut self.ir.ctx)
            }
            AttrRecipe::PlaceBytes(partition, byte) => {
                let (partition, byte) = (src.int(*partition), src.int(*byte));
                match (u32::try_from(partition), u64::try_from(byte)) {
                    (Ok(partition), Ok(byte)) => {
                        Placement::Bytes { partition, byte }.intern(&mut self.ir.ctx)
                    }
                    _ => {
                        return src.fail(
                            span,
                            format!("placement [{partition}, {byte}] is negative or too large"),
                        );
                    }
                }
            }
            AttrRecipe::PlaceBank(partition, bank) => {
                let (partition, bank) = (src.int(*partition), src.int(*bank));
                match (u32::try_from(partition), u32::try_from(bank)) {
                    (Ok(partition), Ok(bank)) => {
                        Placement::Bank { partition, bank }.intern(&mut self.ir.ctx)
                    }
                    _ => {
                        return src.fail(
                            span,
                            format!(
                                "placement [{partition}, bank {bank}] is negative or too large"
                            ),
                        );
                    }
                }
            }
            AttrRecipe::PlaceAddress(address) => match u64::try_from(src.int(*address)) {
                Ok(address) => Placement::Address(address).intern(&mut self.ir.ctx),
                Err(_) => return src.fail(span, "a placement must not be negative"),
            },
            AttrRecipe::UnlessFirst(index) => {
                let index = self.index(index, indices, span)?;
                match Accumulate::UnlessFirst(index).intern(&mut self.ir.ctx) {
                    Some(attr) => attr,
                    None => self.ir.ctx.unit(),
                }
            }
            AttrRecipe::Dense(elements, ty) => {
                let stated = *ty;
                crate::text::dense::build(self.ir, src, elements, stated, recipe)
                    .or_else(|message: String| src.fail(span, message))?
            }
        })
    }

    pub(super) fn number(
        &mut self,
        text: &'s NumSrc,
        style: NumStyle,
        ty: LitType,
        span: &Span,
        operands: &[NewOperand],
    ) -> Res<Attr> {
        let src = self.src;
        let text = src.number_text(text);
        let dtype = match ty {
            LitType::Of(dtype) => dtype,
            LitType::OfOperand(at) => {
                let Some(operand) = operands.get(at as usize) else {
                    return src.fail(span, "a number needs a tile to take its dtype from");
                };
                let ty = self.ir.value_type(operand.value);
                match MemType::get(&self.ir.ctx, ty) {
                    Some(mem) => Access::resolve(&self.ir.ctx, &mem, operand.annot).dtype,
                    None => DType::F32,
                }
            }
            LitType::I64 => {
                return match num::parse(DType::I64, text) {
                    Ok(bits) => Ok(self.ir.ctx.int(bits as i64)),
                    Err(error) => src.fail(span, error.to_string()),
                };
            }
            LitType::F64 => {
                let ty = self.ir.ctx.float_type("f64");
                let value = match style {
                    NumStyle::Hex => text
                        .strip_prefix("0x")
                        .and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                    _ => text.parse::<f64>().ok().map(f64::to_bits),
                };
                return match value {
                    Some(bits) => Ok(self.ir.ctx.float(bits, ty)),
                    None => src.fail(span, format!("`{text}` is no number")),
                };
            }
        };
        let whole = dtype.is_integer();
        // Integers of a float type would read back as floats of another spelling; the other way
        // round the number itself says what is wrong.
        if style == NumStyle::Int && dtype.is_float() {
            return Err(Some(Box::new(
                Diagnostic::error(
                    src.span(span),
                    format!(
                        "a literal of {dtype} must be a number with a decimal point, found `{text}`"
                    ),
                )
                .help(format!("write `{text}.0`")),
            )));
        }
        match num::parse(dtype, text) {
            Ok(bits) => Ok(number(&mut self.ir.ctx, dtype, bits)),
            // The generic form wraps: `200 : i8` is the bits of -56.
            Err(error) => match (whole, text.parse::<i128>()) {
                (true, Ok(value))
                    if value >= 0
                        && value < 1i128 << (8 * dtype.size_bytes())
                        && matches!(ty, LitType::Of(_)) =>
                {
                    Ok(number(&mut self.ir.ctx, dtype, value as u64))
                }
                _ => src.fail(span, error.to_string()),
            },
        }
    }
}
