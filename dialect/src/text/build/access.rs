//! Accesses: slices and raw patterns against the shape of their location.

use super::{Builder, Indices, Res, Terms};
use crate::bir::access::{Access, AccessError, Pair, Target, Window, view_dims};
use crate::bir::types::{MemType, type_text};
use crate::ir::{Annot, Type};
use crate::text::diag::{Diagnostic, counted};
use crate::text::recipe::{AccessRecipe, IntSrc, OperandRecipe, SliceRecipe, Span, WindowEnd};
use smallvec::SmallVec;

impl<'s> Builder<'_, 's> {
    pub(super) fn access(
        &mut self,
        recipe: &'s AccessRecipe,
        operand: &'s OperandRecipe,
        ty: Type,
        indices: &mut Indices,
    ) -> Res<Annot> {
        let src = self.src;
        let text = src.hole_text(operand.name.hole);
        let Some(mem) = MemType::get(&self.ir.ctx, ty) else {
            let found = type_text(&self.ir.ctx, ty);
            return src.fail(
                &operand.span,
                format!("`%{text}` is a {found}, only locations have accesses"),
            );
        };
        let recast = match recipe {
            AccessRecipe::Slices { recast, .. } | AccessRecipe::Raw { recast, .. } => *recast,
            AccessRecipe::Whole => None,
        };
        let dtype = recast.unwrap_or(mem.dtype);
        let Some(dims) = view_dims(&mem, dtype) else {
            return src.fail(
                &operand.span,
                format!(
                    "`%{text}` is a {}: its last dimension is no whole number of {dtype} elements",
                    mem.text()
                ),
            );
        };
        let windowed = mem.is_partitioned();
        let partitions = mem.partitions();
        let space = mem.space;
        let mut access = Access {
            dtype,
            recast: recast.is_some_and(|recast| recast != mem.dtype),
            window: None,
            offset: 0,
            pairs: SmallVec::new(),
            terms: SmallVec::new(),
        };
        match recipe {
            AccessRecipe::Whole => return Ok(Annot::UNIT),
            AccessRecipe::Slices { slices, .. } => {
                let view = View {
                    partitions: windowed.then_some(partitions),
                    dims: &dims,
                };
                self.slices(slices, operand, &view, &mut access, indices)?;
            }
            AccessRecipe::Raw {
                window,
                offset,
                pairs,
                ..
            } => {
                if windowed != window.is_some() {
                    let message = if windowed {
                        format!(
                            "`%{text}` is in {space}, its access needs a partition window `p start:end`"
                        )
                    } else {
                        format!("`%{text}` is in dram, which has no partition window")
                    };
                    return src.fail(&operand.span, message);
                }
                if let Some((start, end)) = window.as_deref() {
                    let (start, terms) = self.affine(start, indices)?;
                    let count = match end {
                        WindowEnd::Length(len) => src.int(*len),
                        WindowEnd::End(end) => src.int(*end).saturating_sub(start),
                    };
                    let Ok(count) = u64::try_from(count) else {
                        return src.fail(
                            &operand.span,
                            format!("partition window of `%{text}` ends before it starts"),
                        );
                    };
                    access.window = Some(Window { start, count });
                    for (index, coef) in terms {
                        access.add_term(Target::Partition, index, coef);
                    }
                }
                let (start, terms) = self.affine(offset, indices)?;
                access.offset = start;
                for (index, coef) in terms {
                    access.add_term(Target::Offset, index, coef);
                }
                for &(step, count) in pairs {
                    let count = src.int(count);
                    let Ok(count) = u64::try_from(count) else {
                        return src
                            .fail(&operand.span, format!("count {count} must not be negative"));
                    };
                    access.pairs.push(Pair {
                        step: src.int(step),
                        count,
                    });
                }
                if access.pairs.is_empty() {
                    access.pairs.push(Pair { step: 1, count: 1 });
                }
            }
        }
        if MemType::get(&self.ir.ctx, ty).is_some_and(|mem| access.is_whole(&mem)) {
            return Ok(Annot::UNIT);
        }
        access
            .intern_part(&mut self.ir.ctx)
            .or_else(|error: AccessError| {
                src.fail(&operand.span, format!("access of `%{text}`: {error}"))
            })
    }

    fn slices(
        &mut self,
        slices: &'s [(SliceRecipe, Span)],
        operand: &'s OperandRecipe,
        view: &View<'_>,
        access: &mut Access,
        indices: &mut Indices,
    ) -> Res<()> {
        let src = self.src;
        let rank = view.dims.len() + usize::from(view.partitions.is_some());
        let text = src.hole_text(operand.name.hole);
        if !slices.is_empty() && slices.len() != rank {
            let (dims, entries) = (counted(rank, "dimension"), slices.len());
            let entries = match entries {
                1 => "1 entry".to_owned(),
                _ => format!("{entries} entries"),
            };
            return src.fail(
                &operand.span,
                format!("`%{text}` has {dims}, its access has {entries}"),
            );
        }
        // Strides from the outermost dimension inwards: what is left of the product.
        let mut inner = view.dims.iter().fold(1i64, |product, &dim| {
            product.saturating_mul(dim.max(1) as i64)
        });
        for dim in 0..rank {
            let (slice, span) = match slices.get(dim) {
                Some((slice, span)) => (slice, span),
                None => (&FULL, &operand.span),
            };
            let on_partition = view.partitions.is_some() && dim == 0;
            let free = dim.saturating_sub(usize::from(view.partitions.is_some()));
            let size = match view.partitions {
                Some(partitions) if dim == 0 => partitions,
                _ => view.dims[free],
            };
            let slice = self.slice(slice, span, size, indices)?;
            let fixed = slice.terms.is_empty();
            let reach = (slice.count.max(1) - 1) as i128 * slice.step as i128;
            let last = slice.start as i128 + reach;
            if fixed && slice.count > 0 && (slice.start < 0 || last >= size as i128) {
                return Err(Some(Box::new(
                    Diagnostic::error(
                        src.span(span),
                        format!(
                            "slice covers {}..{} of `%{text}`, whose dimension {dim} has size {size}",
                            slice.start,
                            last + 1
                        ),
                    )
                    .label("outside"),
                )));
            }
            if on_partition {
                if slice.step != 1 && slice.count != 1 {
                    return src.fail(span, "partitions cannot be taken in steps, only in one run");
                }
                access.window = Some(Window {
                    start: slice.start,
                    count: slice.count,
                });
                for (index, coef) in slice.terms {
                    access.add_term(Target::Partition, index, coef);
                }
                continue;
            }
            inner /= size.max(1) as i64;
            let stride = inner;
            let scaled = |value: i64| value.checked_mul(stride);
            let (Some(step), Some(start)) = (scaled(slice.step), scaled(slice.start)) else {
                return src.fail(span, "offset does not fit 64 bits");
            };
            access.pairs.push(Pair {
                step,
                count: slice.count,
            });
            access.offset = access.offset.saturating_add(start);
            for (index, coef) in slice.terms {
                match scaled(coef) {
                    Some(coef) => access.add_term(Target::Offset, index, coef),
                    None => return src.fail(span, "offset does not fit 64 bits"),
                }
            }
        }
        if access.pairs.is_empty() {
            access.pairs.push(Pair { step: 1, count: 1 });
        }
        Ok(())
    }

    fn slice(
        &mut self,
        slice: &'s SliceRecipe,
        span: &Span,
        size: u64,
        indices: &mut Indices,
    ) -> Res<Slice> {
        let src = self.src;
        let step_of = |step: &Option<IntSrc>| -> Res<i64> {
            match step.map_or(1, |step| src.int(step)) {
                step if step >= 1 => Ok(step),
                step => Err(Some(Box::new(
                    Diagnostic::error(
                        src.span(span),
                        format!("a slice steps forward, found step {step}"),
                    )
                    .help("write reversed accesses in the raw form `[p 0:128, off 511, -1 x 512]`"),
                ))),
            }
        };
        let mut out = Slice {
            start: 0,
            count: size,
            step: 1,
            terms: SmallVec::new(),
        };
        match slice {
            SliceRecipe::At(at) => {
                (out.start, out.terms) = self.affine(at, indices)?;
                out.count = 1;
            }
            SliceRecipe::Length(start, len, step) => {
                (out.start, out.terms) = self.affine(start, indices)?;
                out.step = step_of(step)?;
                let len = src.int(*len);
                match u64::try_from(len) {
                    Ok(len) => out.count = len.div_ceil(out.step as u64),
                    Err(_) => {
                        return src.fail(span, format!("length {len} must not be negative"));
                    }
                }
            }
            SliceRecipe::Range(start, end, step) => {
                out.step = step_of(step)?;
                if let Some(start) = start {
                    (out.start, out.terms) = self.affine(start, indices)?;
                }
                let (end, end_terms) = match end {
                    Some(end) => self.affine(end, indices)?,
                    None => (i64::try_from(size).unwrap_or(i64::MAX), SmallVec::new()),
                };
                let mut sorted = (out.terms.clone(), end_terms);
                sorted.0.sort_unstable();
                sorted.1.sort_unstable();
                if sorted.0 != sorted.1 {
                    return Err(Some(Box::new(
                        Diagnostic::error(src.span(span), "the length of a slice must be constant")
                            .help("write `start +: length` where the start moves with a loop"),
                    )));
                }
                let length = end.saturating_sub(out.start);
                let Ok(length) = u64::try_from(length) else {
                    return src.fail(
                        span,
                        format!("slice ends at {end}, before its start {}", out.start),
                    );
                };
                out.count = length.div_ceil(out.step as u64);
            }
        }
        Ok(out)
    }
}

/// `:`
static FULL: SliceRecipe = SliceRecipe::Range(None, None, None);

/// The dimensions slices index.
struct View<'a> {
    /// Size of the partition dimension on chip.
    partitions: Option<u64>,
    dims: &'a [u64],
}

/// One slice, evaluated.
struct Slice {
    start: i64,
    count: u64,
    step: i64,
    terms: Terms,
}
