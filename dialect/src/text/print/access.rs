//! Accesses as text: slices where they say it, the raw form elsewhere.

use smallvec::SmallVec;

use super::{Printer, push_int};
use crate::bir::access::{Access, Pair, Target, strides, view_dims};
use crate::bir::types::MemType;
use crate::ir::{Annot, Value};

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
    pub(super) fn custom_access(&mut self, mem: &MemType<'_>, annot: Annot, indices: &[Value]) {
        if annot == Annot::UNIT {
            return;
        }
        let access = Access::resolve(&self.ir.ctx, mem, annot);
        if access.recast {
            self.out.push_str(" as ");
            self.out.push_str(access.dtype.name());
        }
        match slices(mem, &access) {
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
                self.raw(&access, Some(indices));
                for pair in &access.pairs {
                    self.out.push_str(", ");
                    self.pair(*pair);
                }
                self.out.push(']');
            }
        }
    }

    /// `unit` or `#bir.ap<…>`
    pub(super) fn generic_access(&mut self, mem: &MemType<'_>, annot: Annot) {
        if annot == Annot::UNIT {
            self.out.push_str("unit");
            return;
        }
        let access = Access::resolve(&self.ir.ctx, mem, annot);
        self.out.push_str("#bir.ap<");
        if access.recast {
            self.out.push_str("as ");
            self.out.push_str(access.dtype.name());
            self.out.push_str(", ");
        }
        self.raw(&access, None);
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
            let magnitude = if first { coef } else { coef.wrapping_abs() };
            if magnitude != 1 && magnitude != -1 {
                push_int(&mut self.out, magnitude);
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
            push_int(&mut self.out, constant.wrapping_abs());
        }
    }
}

/// The access as one slice per dimension, if slices read back to it exactly.
fn slices(mem: &MemType<'_>, access: &Access) -> Option<SmallVec<[Slice; 5]>> {
    let dims = view_dims(mem, access.dtype)?;
    if access.pairs.len() != dims.len() {
        return None;
    }
    let strides = strides(&dims);
    let mut out: SmallVec<[Slice; 5]> = SmallVec::new();
    if let Some(window) = access.window {
        out.push(Slice {
            start: window.start,
            count: window.count,
            step: 1,
            size: mem.partitions(),
            terms: access
                .terms
                .iter()
                .filter(|term| term.target == Target::Partition)
                .map(|term| (term.index, term.coef))
                .collect(),
        });
    }
    let mut rest = access.offset;
    let mut coefs: Terms = access
        .terms
        .iter()
        .filter(|term| term.target == Target::Offset)
        .map(|term| (term.index, term.coef))
        .collect();
    for (i, pair) in access.pairs.iter().enumerate() {
        let stride = strides[i].max(1);
        let mut terms: Terms = SmallVec::new();
        // An index belongs to the outermost dimension whose stride divides its coefficient; what
        // no stride divides is split into digits, which adds up to the same.
        for (index, coef) in &mut coefs {
            let last = i + 1 == access.pairs.len();
            let digit = *coef / stride;
            if *coef != 0 && (*coef % stride == 0 || last || digit != 0) {
                if digit != 0 {
                    terms.push((*index, digit));
                }
                *coef -= digit * stride;
            }
        }
        let start = rest / stride;
        rest -= start * stride;
        if pair.step % stride != 0 || pair.step < stride {
            return None;
        }
        out.push(Slice {
            start,
            count: pair.count,
            step: pair.step / stride,
            size: dims[i],
            terms,
        });
    }
    if rest != 0 || coefs.iter().any(|&(_, coef)| coef != 0) {
        return None;
    }
    // The reader refuses constant slices that leave their dimension.
    let fits = out.iter().all(|slice| {
        let reach = (slice.count.max(1) - 1) as i128 * i128::from(slice.step);
        let last = i128::from(slice.start) + reach;
        !slice.terms.is_empty()
            || slice.count > 0 && slice.start >= 0 && last < i128::from(slice.size)
    });
    fits.then_some(out)
}
