//! Loop indices: their numbers in an operation, and sums of them.

use super::{Builder, Indices, Res, Terms};
use crate::bir::access::Access;
use crate::bir::attrs::Accumulate;
use crate::bir::indices::Numbering;
use crate::bir::program::{OrderTerm, names};
use crate::bir::types::{MemType, is_index, type_text};
use crate::ir::{Annot, Dict, NewOperand, Value};
use crate::text::diag::Diagnostic;
use crate::text::recipe::{AffineRecipe, IndexSrc, OpRecipe, Span};
use smallvec::SmallVec;

impl<'s> Builder<'_, 's> {
    /// The number an index has among the operation's, added if new.
    pub(super) fn index(
        &mut self,
        index: &'s IndexSrc,
        indices: &mut Indices,
        span: &Span,
    ) -> Res<u8> {
        match index {
            IndexSrc::Dim(dim) => {
                if (*dim as usize) < indices.values.len() {
                    Ok(*dim)
                } else {
                    self.src.fail(
                        span,
                        format!(
                            "`d{dim}` has no operand: the operation uses {} loop indices",
                            indices.values.len()
                        ),
                    )
                }
            }
            IndexSrc::Name(name) => {
                let value = self.value(name, false, None)?;
                if let Some(at) = indices.values.iter().position(|&known| known == value) {
                    return Ok(at as u8);
                }
                if indices.values.len() == 127 {
                    return self
                        .src
                        .fail(span, "an operation uses at most 127 loop indices");
                }
                if !is_index(&self.ir.ctx, self.ir.value_type(value)) {
                    let found = type_text(&self.ir.ctx, self.ir.value_type(value));
                    let text = self.src.hole_text(name.hole);
                    return Err(Some(Box::new(Diagnostic::error(
                        self.src.span(&name.span),
                        format!("`%{text}` is a {found}, an index expression takes loop indices"),
                    ))));
                }
                indices.values.push(value);
                Ok(indices.values.len() as u8 - 1)
            }
        }
    }

    /// Appends the index operands in their canonical order and renumbers what names them.
    ///
    /// Canonical: by first operand that uses the index; inside one access, window before offset
    /// and large coefficients before small ones, which is how slices print.
    pub(super) fn place_indices(
        &mut self,
        recipe: &OpRecipe,
        operands: &mut SmallVec<[NewOperand; 8]>,
        indices: Indices,
        dict: Dict,
        order: Option<Vec<OrderTerm>>,
    ) -> (Dict, Option<Vec<OrderTerm>>) {
        if indices.values.is_empty() {
            return (dict, order);
        }
        let role = recipe.code.map_or(0, |code| code.def().indices_role()) as u8;
        let mut dict = dict;
        let mut order = order;
        let mut values = indices.values;
        // One index that moves an access is in its place already; `0*%k` leaves no trace of its.
        let moves = operands
            .iter()
            .any(|operand| Access::has_terms(&self.ir.ctx, operand.annot));
        if values.len() > 1 || !recipe.index_names.is_empty() || !moves {
            let numbers = self.canonical_numbers(&values, operands, dict, order.as_deref());
            let identity = numbers.iter().enumerate().all(|(i, &n)| n == Some(i as u8));
            if !identity {
                self.renumber(operands, &numbers);
                dict = self.renumber_accumulate(dict, &numbers);
                for term in order.iter_mut().flatten() {
                    for (index, _) in &mut term.terms {
                        *index = numbers[*index as usize].unwrap_or(*index);
                    }
                    term.terms.sort_unstable();
                }
                let mut sorted: SmallVec<[Value; 4]> = SmallVec::new();
                let used = numbers.iter().flatten().count();
                sorted.resize(used, values[0]);
                for (old, &new) in numbers.iter().enumerate() {
                    if let Some(new) = new {
                        sorted[new as usize] = values[old];
                    }
                }
                values = sorted;
            }
        }
        operands.extend(values.iter().map(|&value| NewOperand {
            value,
            role,
            annot: Annot::UNIT,
        }));
        (dict, order)
    }

    pub(super) fn canonical_numbers(
        &self,
        values: &[Value],
        operands: &[NewOperand],
        dict: Dict,
        order: Option<&[OrderTerm]>,
    ) -> SmallVec<[Option<u8>; 4]> {
        let mut numbering = Numbering::new(values);
        for operand in operands {
            if operand.annot == Annot::UNIT {
                continue;
            }
            let Some(mem) = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value)) else {
                continue;
            };
            numbering.meet_terms(&Access::resolve(&self.ir.ctx, &mem, operand.annot).terms);
        }
        if let Some(Accumulate::UnlessFirst(index)) = self.accumulate(dict) {
            numbering.meet(index);
        }
        numbering.meet_order(order.unwrap_or_default());
        numbering.finish()
    }

    pub(super) fn accumulate(&self, dict: Dict) -> Option<Accumulate> {
        let attr = self.ir.ctx.dict_get(dict, names::ACCUMULATE)?;
        Accumulate::get(&self.ir.ctx, Some(attr))
    }

    pub(super) fn renumber(&mut self, operands: &mut [NewOperand], numbers: &[Option<u8>]) {
        for operand in operands {
            if operand.annot == Annot::UNIT {
                continue;
            }
            let Some(mem) = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value)) else {
                continue;
            };
            let whole = Access::whole(&mem);
            let mut access = Access::resolve(&self.ir.ctx, &mem, operand.annot);
            let terms = std::mem::take(&mut access.terms);
            for term in terms {
                let index = numbers
                    .get(term.index as usize)
                    .copied()
                    .flatten()
                    .unwrap_or(term.index);
                access.add_term(term.target, index, term.coef);
            }
            if let Ok(annot) = access.intern(&mut self.ir.ctx, &whole) {
                operand.annot = annot;
            }
        }
    }

    pub(super) fn renumber_accumulate(&mut self, dict: Dict, numbers: &[Option<u8>]) -> Dict {
        match self.accumulate(dict) {
            Some(Accumulate::UnlessFirst(index)) => {
                let index = numbers
                    .get(index as usize)
                    .copied()
                    .flatten()
                    .unwrap_or(index);
                let attr = Accumulate::UnlessFirst(index).intern(&mut self.ir.ctx);
                self.ir.ctx.dict_with(dict, names::ACCUMULATE, attr)
            }
            _ => dict,
        }
    }

    pub(super) fn order(
        &mut self,
        order: &'s [AffineRecipe],
        indices: &mut Indices,
    ) -> Res<Vec<OrderTerm>> {
        let mut out = Vec::with_capacity(order.len());
        for affine in order {
            let (constant, terms) = self.affine(affine, indices)?;
            let mut term = OrderTerm {
                constant,
                terms: terms.into_iter().filter(|&(_, coef)| coef != 0).collect(),
            };
            term.terms.sort_unstable();
            out.push(term);
        }
        Ok(out)
    }

    /// Constant and terms of a sum; equal indices are joined.
    pub(super) fn affine(
        &mut self,
        affine: &'s AffineRecipe,
        indices: &mut Indices,
    ) -> Res<(i64, Terms)> {
        let src = self.src;
        let overflow = || src.fail(&affine.span, "index expression does not fit 64 bits");
        let mut constant = 0i64;
        for &part in &affine.constants {
            match constant.checked_add(src.int(part)) {
                Some(sum) => constant = sum,
                None => return overflow(),
            }
        }
        let mut terms: SmallVec<[(u8, i64); 2]> = SmallVec::new();
        for (index, factor, negative) in &affine.terms {
            let coef = factor.map_or(1, |factor| src.int(factor));
            let coef = if *negative {
                coef.checked_neg()
            } else {
                Some(coef)
            };
            let index = self.index(index, indices, &affine.span)?;
            let Some(coef) = coef else { return overflow() };
            match terms.iter_mut().find(|(known, _)| *known == index) {
                Some((_, sum)) => match sum.checked_add(coef) {
                    Some(added) => *sum = added,
                    None => return overflow(),
                },
                None => terms.push((index, coef)),
            }
        }
        Ok((constant, terms))
    }
}
