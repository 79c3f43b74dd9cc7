//! Accesses as text: slices where they say it, the raw form elsewhere.

use smallvec::SmallVec;

use super::{Printer, push_int, push_magnitude};
use crate::bir::access::{Access, Pair, Target, view_dims};
use crate::bir::types::MemType;
use crate::ir::{Annot, Type, Value};

/// `coefficient · index` of one slice.
type Terms = SmallVec<[(u8, i64); 2]>;

struct Slice {
    start: i64,
    count: u64,
    step: i64,
    size: u64,
    terms: Terms,
}

impl Printer<'_> {
    /// What stands behind the location's name in custom form.
    pub(super) fn custom_access(&mut self, ty: Type, annot: Annot, indices: &[Value]) {
        if annot == Annot::UNIT {
            return;
        }
        let key = text_key(ty, annot);
        if let Some(text) = self.custom_accesses.get(key) {
            self.out.push_str(text);
            return;
        }
        let Some(mem) = MemType::get(&self.ir.ctx, ty) else {
            return;
        };
        let access = Access::resolve(&self.ir.ctx, &mem, annot);
        let start = self.out.len();
        self.new_custom_access(&mem, &access, indices);
        // Indices have other names in other loops.
        if access.terms.is_empty() {
            self.custom_accesses.keep(key, &self.out[start..]);
        }
    }

    fn new_custom_access(&mut self, mem: &MemType<'_>, access: &Access, indices: &[Value]) {
        if access.recast {
            self.out.push_str(" as ");
            self.out.push_str(access.dtype.name());
        }
        match slices(mem, access) {
            Some(slices) => {
                let whole = slices.iter().all(|slice| {
                    slice.terms.is_empty()
                        && slice.start == 0
                        && slice.step == 1
                        && slice.count == slice.size
                });
                if whole && access.recast {
                    return;
                }
                self.out.push('[');
                for (i, slice) in slices.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.slice(slice, indices);
                }
                self.out.push(']');
            }
            None => {
                self.out.push('[');
                self.raw(access, Some(indices));
                for pair in &access.pairs {
                    self.out.push_str(", ");
                    self.pair(*pair);
                }
                self.out.push(']');
            }
        }
    }

    /// `unit` or `#bir.ap<…>`
    pub(super) fn generic_access(&mut self, ty: Type, annot: Annot) {
        if annot == Annot::UNIT {
            self.out.push_str("unit");
            return;
        }
        let key = text_key(ty, annot);
        if let Some(text) = self.generic_accesses.get(key) {
            self.out.push_str(text);
            return;
        }
        let Some(mem) = MemType::get(&self.ir.ctx, ty) else {
            return;
        };
        let access = Access::resolve(&self.ir.ctx, &mem, annot);
        let start = self.out.len();
        self.new_generic_access(&access);
        self.generic_accesses.keep(key, &self.out[start..]);
    }

    fn new_generic_access(&mut self, access: &Access) {
        self.out.push_str("#bir.ap<");
        if access.recast {
            self.out.push_str("as ");
            self.out.push_str(access.dtype.name());
            self.out.push_str(", ");
        }
        self.raw(access, None);
        self.out.push_str(", [");
        for (i, pair) in access.pairs.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.pair(*pair);
        }
        self.out.push_str("]>");
    }

    fn pair(&mut self, pair: Pair) {
        push_int(&mut self.out, pair.step);
        self.out.push_str(" x ");
        push_int(&mut self.out, pair.count as i64);
    }

    /// Window and offset; indices by name, or as `d0` where no names are given.
    fn raw(&mut self, access: &Access, indices: Option<&[Value]>) {
        let terms_of = |target: Target| -> Terms {
            access
                .terms
                .iter()
                .filter(|term| term.target == target)
                .map(|term| (term.index, term.coef))
                .collect()
        };
        if let Some(window) = access.window {
            self.out.push_str("p ");
            let terms = terms_of(Target::Partition);
            self.affine(window.start, &terms, indices);
            if terms.is_empty() {
                self.out.push(':');
                push_int(&mut self.out, window.start + window.count as i64);
            } else {
                self.out.push_str(" +: ");
                push_int(&mut self.out, window.count as i64);
            }
            self.out.push_str(", ");
        }
        self.out.push_str("off ");
        self.affine(access.offset, &terms_of(Target::Offset), indices);
    }

    fn slice(&mut self, slice: &Slice, indices: &[Value]) {
        if slice.count == 1 && slice.step == 1 && (slice.size != 1 || !slice.terms.is_empty()) {
            self.affine(slice.start, &slice.terms, Some(indices));
            return;
        }
        let reach = (slice.count.max(1) - 1) as i64 * slice.step + 1;
        let reach = if slice.count == 0 { 0 } else { reach };
        if slice.terms.is_empty() {
            let full = slice.start == 0 && slice.count == slice.size.div_ceil(slice.step as u64);
            if full {
                self.out.push(':');
            } else {
                push_int(&mut self.out, slice.start);
                self.out.push(':');
                push_int(&mut self.out, slice.start + reach);
            }
        } else {
            self.affine(slice.start, &slice.terms, Some(indices));
            self.out.push_str(" +: ");
            push_int(&mut self.out, reach);
        }
        if slice.step != 1 {
            self.out.push(':');
            push_int(&mut self.out, slice.step);
        }
    }

    /// A sum of terms and a constant; indices by name, or as `d0` where no names are given.
    pub(super) fn affine(&mut self, constant: i64, terms: &[(u8, i64)], indices: Option<&[Value]>) {
        let mut first = true;
        for &(index, coef) in terms {
            if first {
                if coef == -1 {
                    self.out.push('-');
                }
            } else {
                self.out.push_str(if coef < 0 { " - " } else { " + " });
            }
            if coef.unsigned_abs() != 1 {
                match first {
                    true => push_int(&mut self.out, coef),
                    false => push_magnitude(&mut self.out, coef.unsigned_abs()),
                }
                self.out.push('*');
            }
            match indices {
                Some(indices) => {
                    self.out.push('%');
                    let name = match indices.get(index as usize) {
                        Some(&value) => self.names.value(self.ir, value),
                        None => "<<unknown>>",
                    };
                    self.out.push_str(name);
                }
                None => {
                    self.out.push('d');
                    push_int(&mut self.out, i64::from(index));
                }
            }
            first = false;
        }
        if first {
            push_int(&mut self.out, constant);
        } else if constant != 0 {
            self.out.push_str(if constant < 0 { " - " } else { " + " });
            push_magnitude(&mut self.out, constant.unsigned_abs());
        }
    }
}

fn text_key(ty: Type, annot: Annot) -> u64 {
    (ty.index() as u64) << 32 | annot.index() as u64
}

/// The access as one slice per dimension, if slices read back to it exactly.
fn slices(mem: &MemType<'_>, access: &Access) -> Option<SmallVec<[Slice; 5]>> {
    let recast_dims;
    let dims = if access.recast {
        recast_dims = view_dims(mem, access.dtype)?;
        &recast_dims[..]
    } else {
        mem.free_dims()
    };
    if access.pairs.len() != dims.len() {
        return None;
    }
    let mut out: SmallVec<[Slice; 5]> = SmallVec::new();
    let mut coefs: Terms = SmallVec::new();
    let mut window_terms: Terms = SmallVec::new();
    for term in &access.terms {
        match term.target {
            Target::Partition => window_terms.push((term.index, term.coef)),
            Target::Offset => coefs.push((term.index, term.coef)),
        }
    }
    if let Some(window) = access.window {
        out.push(Slice {
            start: window.start,
            count: window.count,
            step: 1,
            size: mem.partitions(),
            terms: window_terms,
        });
    }
    let mut rest = access.offset;
    // Strides from the outermost dimension inwards: what is left of the product.
    let mut stride = dims.iter().fold(1i64, |product, &dim| {
        product.saturating_mul(dim.max(1) as i64)
    });
    for (pair, &dim) in access.pairs.iter().zip(dims) {
        stride = (stride / dim.max(1) as i64).max(1);
        let mut terms: Terms = SmallVec::new();
        // An index goes to the outermost dimension its coefficient reaches; the rest of it, to
        // the next: digits, which add up to the same whatever the coefficient is.
        for (index, coef) in &mut coefs {
            let digit = *coef / stride;
            if digit != 0 {
                terms.push((*index, digit));
                *coef -= digit * stride;
            }
        }
        let start = rest / stride;
        rest -= start * stride;
        let step = pair.step / stride;
        if step < 1 || step * stride != pair.step {
            return None;
        }
        // The reader refuses constant slices that leave their dimension.
        let reach = (pair.count.max(1) - 1) as i128 * i128::from(step);
        let fits = pair.count > 0 && start >= 0 && i128::from(start) + reach < i128::from(dim);
        if terms.is_empty() && !fits {
            return None;
        }
        out.push(Slice {
            start,
            count: pair.count,
            step,
            size: dim,
            terms,
        });
    }
    let window_fits = out.first().is_none_or(|slice| {
        access.window.is_none()
            || !slice.terms.is_empty()
            || slice.count > 0
                && slice.start >= 0
                && i128::from(slice.start) + i128::from(slice.count) <= i128::from(slice.size)
    });
    (rest == 0 && window_fits && coefs.iter().all(|&(_, coef)| coef == 0)).then_some(out)
}
