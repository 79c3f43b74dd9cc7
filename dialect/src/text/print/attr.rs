//! Attributes and types as text.

use std::fmt::Write as _;

use super::{Printer, push_int};
use crate::bir::attrs::{Accumulate, Placement, Sem, SemEvent, literal_dtype, number_bits};
use crate::bir::num::{self, DType};
use crate::bir::ops::{AttrType, OpCode};
use crate::bir::types::{MemType, reg_dtype};
use crate::ir::{Attr, AttrView, Sign, Str, Type, TypeView, Value};

/// Whether a key can stand without quotes.
fn is_ident(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
}

impl Printer<'_> {
    pub(super) fn key(&mut self, name: Str) {
        let text = self.ir.ctx.text(name);
        if is_ident(text) {
            self.out.push_str(text);
        } else {
            self.quoted(text);
        }
    }

    pub(super) fn quoted(&mut self, text: &str) {
        self.out.push('"');
        let special = |c: u8| matches!(c, b'"' | b'\\' | 0..=31 | 127);
        if !text.bytes().any(special) {
            self.out.push_str(text);
            self.out.push('"');
            return;
        }
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\0A"),
                '\t' => self.out.push_str("\\09"),
                c if (c as u32) < 32 || c as u32 == 127 => {
                    let _ = write!(self.out, "\\{:02X}", c as u32);
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    /// A number as a literal operand: no type.
    pub(super) fn literal(&mut self, attr: Attr) {
        match number_bits(&self.ir.ctx, attr) {
            Some((dtype, bits)) => num::print(dtype, bits, &mut self.out),
            None => self.attr(attr, None, &[]),
        }
    }

    /// ` = value` of an attribute in custom form; nothing for units.
    pub(super) fn entry(&mut self, code: Option<OpCode>, name: Str, attr: Attr, indices: &[Value]) {
        self.key(name);
        if self.ir.ctx.attr(attr) == AttrView::Unit {
            return;
        }
        self.out.push_str(" = ");
        let text = self.ir.ctx.text(name);
        let ty = code.and_then(|code| {
            let def = code.def();
            def.attr(text)
                .or_else(|| {
                    crate::bir::ops::COMMON_ATTRS
                        .iter()
                        .find(|attr| attr.name == text)
                })
                .map(|attr| attr.ty)
        });
        // Modules keep the quotes readers know from the generic form.
        let ty = ty.filter(|_| code != Some(OpCode::Module));
        self.attr(attr, ty, indices);
    }

    /// A value in custom form, or in generic form if the printer prints that.
    pub(super) fn attr(&mut self, attr: Attr, ty: Option<AttrType>, indices: &[Value]) {
        let ctx = &self.ir.ctx;
        let generic = self.options.generic;
        match ctx.attr(attr) {
            AttrView::Unit => self.out.push_str("unit"),
            AttrView::Bool(value) => self.out.push_str(if value { "true" } else { "false" }),
            AttrView::Int { value, ty } => self.int(value, ty),
            AttrView::Float { bits, ty: float } => {
                let stated = matches!(ty, Some(AttrType::Number(dtype))
                    if literal_dtype(ctx, float) == Some(dtype));
                self.float(bits, float, stated && !generic);
            }
            AttrView::Str(text) => {
                let text = ctx.text(text);
                match ty {
                    Some(AttrType::Enum(words)) if !generic && words.words.contains(&text) => {
                        self.out.push_str(text);
                    }
                    Some(AttrType::Data) if !generic => {
                        self.out.push_str("file(");
                        self.quoted(text);
                        self.out.push(')');
                    }
                    _ => self.quoted(text),
                }
            }
            AttrView::Symbol(name) => {
                self.out.push('@');
                self.symbol_text(name);
            }
            AttrView::Array(list) => {
                self.out.push('[');
                for (i, element) in list.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.attr(element, None, indices);
                }
                self.out.push(']');
            }
            AttrView::Dict(dict) => {
                self.out.push('{');
                let mut entries: Vec<(Str, Attr)> = ctx.dict_entries(dict).collect();
                entries.sort_by_key(|&(name, _)| ctx.text(name));
                for (i, (name, value)) in entries.into_iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.key(name);
                    if self.ir.ctx.attr(value) != AttrView::Unit {
                        self.out.push_str(" = ");
                        self.attr(value, None, indices);
                    }
                }
                self.out.push('}');
            }
            AttrView::Type(ty) => self.ty(ty),
            AttrView::Dense { ty: tensor, hex } => {
                let stated = matches!(ty, Some(AttrType::Data)) && !generic;
                self.dense(tensor, hex, stated);
            }
            AttrView::Opaque(text) => self.out.push_str(ctx.text(text)),
            AttrView::Dialect { .. } => self.dialect_attr(attr, indices),
        }
    }

    fn dialect_attr(&mut self, attr: Attr, indices: &[Value]) {
        let ctx = &self.ir.ctx;
        let generic = self.options.generic;
        if let Some(sem) = Sem::get(ctx, attr) {
            let event = match sem.event {
                SemEvent::Default => "",
                SemEvent::Complete => "complete",
                SemEvent::Read => "read",
            };
            if generic {
                let _ = write!(
                    self.out,
                    "#bir.sem<{} {} {}",
                    sem.id,
                    sem.op.word(),
                    sem.value
                );
                if !event.is_empty() {
                    let _ = write!(self.out, " {event}");
                }
                self.out.push('>');
            } else {
                let _ = write!(self.out, "{} {} {}", sem.id, sem.op.sign(), sem.value);
                if !event.is_empty() {
                    let _ = write!(self.out, " @{event}");
                }
            }
        } else if let Some(placement) = Placement::get(ctx, attr) {
            // The short form is that of an `alloc`.
            self.placement(placement, true);
        } else if let Some(Accumulate::UnlessFirst(index)) = Accumulate::get(ctx, Some(attr)) {
            if generic {
                let _ = write!(self.out, "#bir.unless_first<d{index}>");
            } else {
                self.out.push_str("unless_first(%");
                let name = match indices.get(index as usize) {
                    Some(&value) => self.names.value(self.ir, value),
                    None => "<<unknown>>",
                };
                self.out.push_str(name);
                self.out.push(')');
            }
        }
    }

    /// `[64, 0x1200]`, `[0, bank 3]`, `0x4000`, or the same in `#bir.at<…>`.
    pub(super) fn placement(&mut self, placement: Placement, generic: bool) {
        if generic {
            self.out.push_str("#bir.at<");
        }
        let brackets = !generic && !matches!(placement, Placement::Address(_));
        if brackets {
            self.out.push('[');
        }
        match placement {
            Placement::Bytes { partition, byte } => {
                let _ = write!(self.out, "{partition}, ");
                self.address(byte);
            }
            Placement::Bank { partition, bank } => {
                let _ = write!(self.out, "{partition}, bank {bank}");
            }
            Placement::Address(address) => self.address(address),
        }
        if brackets {
            self.out.push(']');
        }
        if generic {
            self.out.push('>');
        }
    }

    fn address(&mut self, address: u64) {
        let _ = if address < 10 {
            write!(self.out, "{address}")
        } else {
            write!(self.out, "0x{address:x}")
        };
    }

    fn int(&mut self, value: i64, ty: Type) {
        let ctx = &self.ir.ctx;
        match ctx.ty(ty) {
            TypeView::Int {
                width: 64,
                sign: Sign::Signless,
            } => {
                push_int(&mut self.out, value);
                if self.options.generic {
                    self.out.push_str(" : i64");
                }
                return;
            }
            TypeView::Int {
                sign: Sign::Unsigned,
                ..
            } => {
                let _ = write!(self.out, "{}", value as u64);
            }
            _ => push_int(&mut self.out, value),
        }
        self.out.push_str(" : ");
        self.ty(ty);
    }

    fn float(&mut self, bits: u64, ty: Type, untyped: bool) {
        let ctx = &self.ir.ctx;
        let Some(dtype) = literal_dtype(ctx, ty) else {
            // Only f64 is left; it is no dtype of the hardware.
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = format!("{value:?}");
                match text.split_once('e') {
                    Some((digits, exponent)) if !digits.contains('.') => {
                        let _ = write!(self.out, "{digits}.0e{exponent}");
                    }
                    _ => self.out.push_str(&text),
                }
                if self.options.generic {
                    self.out.push_str(" : f64");
                }
            } else {
                let _ = write!(self.out, "0x{bits:016X} : f64");
            }
            return;
        };
        let width = dtype.size_bytes() as usize * 2;
        if !self.options.generic {
            num::print(dtype, bits, &mut self.out);
            if !untyped {
                self.out.push_str(" : ");
                self.out.push_str(dtype.name());
            }
            return;
        }
        // Other tools know these formats and keep every finite number of them.
        let known = matches!(dtype, DType::F32 | DType::Bf16 | DType::F16);
        let finite = num::to_f64(dtype, bits).is_some_and(f64::is_finite);
        if known && finite {
            num::print(dtype, bits, &mut self.out);
            self.out.push_str(" : ");
            self.out.push_str(dtype.name());
        } else {
            let _ = write!(self.out, "#bir.bits<{dtype} 0x{bits:0width$X}>");
        }
    }

    /// `stated`: the location says what type the elements have.
    fn dense(&mut self, ty: Type, hex: Str, stated: bool) {
        let hex = self.ir.ctx.text(hex);
        let elide = self
            .options
            .elide_larger
            .is_some_and(|limit| hex.len() / 2 > limit);
        if elide {
            self.out.push_str("dense_resource<__elided__>");
        } else {
            self.out.push_str("dense<\"0x");
            self.out.push_str(hex);
            self.out.push_str("\">");
        }
        if !stated {
            self.out.push_str(" : ");
            self.ty(ty);
        }
    }

    /// A type in the generic form.
    pub(super) fn ty(&mut self, ty: Type) {
        let key = ty.index() as u64;
        if let Some(text) = self.types.get(key) {
            self.out.push_str(text);
            return;
        }
        let start = self.out.len();
        self.new_ty(ty);
        self.types.keep(key, &self.out[start..]);
    }

    fn new_ty(&mut self, ty: Type) {
        let ctx = &self.ir.ctx;
        if let Some(mem) = MemType::get(ctx, ty) {
            self.out.push_str("!bir.mem<");
            self.out.push_str(mem.space.name());
            self.out.push_str(", ");
            for &dim in mem.dims {
                push_int(&mut self.out, dim as i64);
                self.out.push('x');
            }
            self.out.push_str(mem.dtype.name());
            self.out.push('>');
            return;
        }
        if let Some(dtype) = reg_dtype(ctx, ty) {
            self.out.push_str("!bir.reg<");
            self.out.push_str(dtype.name());
            self.out.push('>');
            return;
        }
        match ctx.ty(ty) {
            TypeView::Index => self.out.push_str("index"),
            TypeView::None | TypeView::Dialect { .. } => self.out.push_str("none"),
            TypeView::Int { width, sign } => {
                self.out.push_str(match sign {
                    Sign::Signless => "i",
                    Sign::Signed => "si",
                    Sign::Unsigned => "ui",
                });
                push_int(&mut self.out, i64::from(width));
            }
            TypeView::Float(name) => self.out.push_str(match ctx.text(name) {
                "f8e5m2" => "f8E5M2",
                "f8e4m3" => "f8E4M3",
                "f8e4m3fn" => "f8E4M3FN",
                other => other,
            }),
            TypeView::Tensor { dims, elem } => {
                self.out.push_str("tensor<");
                for &dim in dims {
                    push_int(&mut self.out, dim as i64);
                    self.out.push('x');
                }
                self.ty(elem);
                self.out.push('>');
            }
            TypeView::Function(text) | TypeView::Opaque(text) => {
                self.out.push_str(ctx.text(text));
            }
        }
    }
}
