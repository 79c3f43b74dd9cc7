//! Makes one copy of an instruction: its operands, attributes, access functions and columns with the indices known there folded in.

use bir_dialect::bir::access::{Access, Target};
use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::indices::Numbering;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, COL_ORDER, Dep, OrderTerm, names, order_words};
use bir_dialect::ir::{Annot, Block, Cursor, Dict, Ir, NewOp, NewOperand, Op, Value};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use super::super::plan::{Shape, Source, Template, TemplateDep};
use super::{Bound, Emitter, Res, entry_args};

/// What `unless_first` becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accumulates {
    AsBefore,
    No,
    Yes,
    UnlessFirst,
}

/// How an instruction looks for one choice of known indices.
pub(super) struct Variant {
    known: u128,
    accumulates: Accumulates,
    /// New number of each index, unused where it is known.
    numbers: Vec<u8>,
    /// Old numbers in new order.
    used: Vec<usize>,
    dict: Dict,
}
impl Emitter<'_> {
    fn bound(&self, source: Source) -> Bound {
        match source {
            Source::Outer(value) => Bound::Index {
                value,
                add: 0,
                first: true,
            },
            Source::Local(slot) => self.slots[slot],
        }
    }

    fn value(&self, at: usize, source: Source) -> Res<Value> {
        match self.bound(source) {
            Bound::Value(value) | Bound::Index { value, add: 0, .. } => Ok(value),
            _ => Err(self.fault(at, "uses a loop index as a value")),
        }
    }

    fn fault(&self, at: usize, what: &str) -> Box<Diagnostic> {
        let op = self.template(at).op;
        Box::new(
            Diagnostic::error(
                Place::Op(op, Part::Whole),
                format!("cannot unroll: this {what}"),
            )
            .help("leave its loop out by naming the others in `loops`"),
        )
    }

    /// Makes one copy of an instruction, or of the head of an operation that stays.
    pub(super) fn copy(
        &mut self,
        ir: &mut Ir,
        at: usize,
        cursor: Cursor,
        blocks: &[(Block, Block)],
    ) -> Res<Op> {
        let root = self.root;
        let template = &root.templates[at];
        let variant = self.variant(ir, at)?;
        let mut operands: smallvec::SmallVec<[NewOperand; 8]> = smallvec::SmallVec::new();
        for operand in &template.operands {
            let annot = match &operand.access {
                None => operand.annot,
                Some(access) => self.access(ir, at, variant, &access.0, &access.1)?,
            };
            operands.push(NewOperand {
                value: self.value(at, operand.source)?,
                role: operand.role,
                annot,
            });
        }
        let used = &self.variants[at][variant].used;
        for &index in used {
            if let Bound::Index { value, .. } = self.bound(template.indices[index]) {
                operands.push(NewOperand {
                    value,
                    role: template.index_role,
                    annot: Annot::UNIT,
                });
            }
        }
        let results: smallvec::SmallVec<[_; 2]> = ir
            .results(template.op)
            .map(|value| ir.value_type(value))
            .collect();
        let successors: smallvec::SmallVec<[Block; 2]> = ir
            .successors(template.op)
            .iter()
            .map(|&to| {
                blocks
                    .iter()
                    .find(|&&(old, _)| old == to)
                    .map_or(to, |&(_, new)| new)
            })
            .collect();
        let op = ir.insert(
            cursor,
            NewOp {
                name: ir.name(template.op),
                operands: &operands,
                results: &results,
                dict: self.variants[at][variant].dict,
                successors: &successors,
                regions: ir.regions(template.op).len(),
                loc: ir.loc(template.op),
            },
        );
        let span = ir.span(template.op);
        ir.set_span(op, span);
        for (number, (old, new)) in ir.results(template.op).zip(ir.results(op)).enumerate() {
            self.name_result(ir, old, new);
            self.slots[template.slot + number] = Bound::Value(new);
        }
        self.columns(ir, at, variant, op);
        if !self.pending.is_empty() || self.fresh[at] {
            self.take_comments(ir, template.op, op);
        }
        if matches!(template.shape, Shape::Plain) {
            self.fresh[at] = false;
        }
        Ok(op)
    }

    /// Later copies of a register are `<name>_u<N>`, N from 1.
    fn name_result(&self, ir: &mut Ir, old: Value, new: Value) {
        let Some(name) = ir.value_name(old) else {
            return;
        };
        match self.copy_number(self.path.len()) {
            0 => ir.set_value_name(new, Some(name)),
            number => {
                let name = format!("{}_u{number}", ir.ctx.text(name));
                ir.name_value(new, &name);
            }
        }
    }

    fn columns(&self, ir: &mut Ir, at: usize, variant: usize, op: Op) {
        let template = self.template(at);
        if let Some(ids) = template.id {
            ir.set_int_cell(COL_ID, op, Some(ids.of(self.copy_number(self.path.len()))));
        }
        if !template.deps.is_empty() {
            let mut words = Vec::with_capacity(template.deps.len());
            for dep in &template.deps {
                match *dep {
                    TemplateDep::Fixed(word) => words.push(word),
                    TemplateDep::Copies {
                        dep,
                        ids,
                        shared,
                        each,
                    } => {
                        let from = self.copy_number(shared) * each;
                        words.extend((from..from + each).map(|copy| {
                            let id = ids.of(copy);
                            Dep { id, ..dep }.word()
                        }));
                    }
                }
            }
            ir.set_words_cell(COL_DEPS, op, Some(&words));
        }
        if !template.order.is_empty() {
            let numbers = &self.variants[at][variant].numbers;
            let order: Vec<OrderTerm> = template
                .order
                .iter()
                .map(|term| self.order_term(template, numbers, term))
                .collect();
            ir.set_words_cell(COL_ORDER, op, Some(&order_words(&order)));
        }
    }

    fn order_term(&self, template: &Template, numbers: &[u8], old: &OrderTerm) -> OrderTerm {
        let mut new = OrderTerm {
            constant: old.constant,
            ..OrderTerm::default()
        };
        for &(index, coef) in &old.terms {
            let Some(&source) = template.indices.get(usize::from(index)) else {
                continue;
            };
            match self.bound(source) {
                Bound::Const { value, .. } => {
                    new.constant = new.constant.wrapping_add(coef.wrapping_mul(value));
                }
                Bound::Index { add, .. } => {
                    new.constant = new.constant.wrapping_add(coef.wrapping_mul(add));
                    new.terms.push((numbers[usize::from(index)], coef));
                }
                _ => {}
            }
        }
        new.terms.sort_unstable();
        new
    }

    /// Which copy this is, counting only the first `depth` unrolled loops.
    fn copy_number(&self, depth: usize) -> u64 {
        self.path[..depth]
            .iter()
            .fold(0, |number, &(copy, copies)| number * copies + copy)
    }

    /// An access with the known indices folded in.
    fn access(
        &self,
        ir: &mut Ir,
        at: usize,
        variant: usize,
        old: &Access,
        whole: &Access,
    ) -> Res<Annot> {
        let template = self.template(at);
        let numbers = &self.variants[at][variant].numbers;
        let mut access = old.clone();
        access.terms.clear();
        for term in &old.terms {
            let index = usize::from(term.index);
            let Some(&source) = template.indices.get(index) else {
                return Err(self.fault(at, "uses an index it has no operand for"));
            };
            let shift = match self.bound(source) {
                Bound::Const { value, .. } => value,
                Bound::Index { add, .. } => {
                    access.add_term(term.target, numbers[index], term.coef);
                    add
                }
                _ => return Err(self.fault(at, "uses an index outside its loop")),
            };
            let shift = term.coef.checked_mul(shift);
            let at_place = match (term.target, &mut access.window) {
                (Target::Partition, Some(window)) => &mut window.start,
                _ => &mut access.offset,
            };
            match shift.and_then(|shift| at_place.checked_add(shift)) {
                Some(sum) => *at_place = sum,
                None => {
                    return Err(self.fault(at, "has an access whose offset does not fit 64 bits"));
                }
            }
        }
        access.intern(&mut ir.ctx, whole).map_err(|error| {
            self.fault(at, &format!("has an access that cannot be stored: {error}"))
        })
    }

    /// How the instruction looks with the indices known here.
    fn variant(&mut self, ir: &mut Ir, at: usize) -> Res<usize> {
        let template = &self.root.templates[at];
        let mut known = 0u128;
        for (number, &source) in template.indices.iter().enumerate() {
            match self.bound(source) {
                Bound::Const { .. } => known |= 1 << (number & 127),
                Bound::Index { .. } => {}
                _ => return Err(self.fault(at, "uses an index outside its loop")),
            }
        }
        let accumulates = match template.accumulate {
            None => Accumulates::AsBefore,
            Some(index) => {
                let source = template.indices.get(usize::from(index)).copied();
                match source.map(|source| self.bound(source)) {
                    Some(Bound::Const { first: true, .. }) => Accumulates::No,
                    Some(Bound::Index { first: true, .. }) => Accumulates::UnlessFirst,
                    Some(_) => Accumulates::Yes,
                    None => return Err(self.fault(at, "uses an index it has no operand for")),
                }
            }
        };
        let same = |variant: &Variant| variant.known == known && variant.accumulates == accumulates;
        if let Some(found) = self.variants[at].iter().position(same) {
            return Ok(found);
        }
        let made = self.make_variant(ir, at, known, accumulates);
        self.variants[at].push(made);
        Ok(self.variants[at].len() - 1)
    }

    fn make_variant(
        &self,
        ir: &mut Ir,
        at: usize,
        known: u128,
        accumulates: Accumulates,
    ) -> Variant {
        let template = self.template(at);
        let is_known = |index: u8| known >> (index & 127) & 1 != 0;
        // A known index is never met, so what stands for it does not matter.
        let stand_in = entry_args(ir, self.root.op()).first().copied();
        let values: Vec<Value> = template
            .indices
            .iter()
            .filter_map(|&source| match self.bound(source) {
                Bound::Index { value, .. } => Some(value),
                _ => stand_in,
            })
            .collect();
        let mut numbering = Numbering::new(&values);
        for operand in &template.operands {
            if let Some(access) = &operand.access {
                let mut terms = access.0.terms.clone();
                terms.retain(|term| !is_known(term.index));
                numbering.meet_terms(&terms);
            }
        }
        if let (Accumulates::UnlessFirst, Some(index)) = (accumulates, template.accumulate) {
            numbering.meet(index);
        }
        for term in &template.order {
            for &(index, _) in term.terms.iter().filter(|term| !is_known(term.0)) {
                numbering.meet(index);
            }
        }
        let found = numbering.finish();
        let numbers: Vec<u8> = found.iter().map(|number| number.unwrap_or(0)).collect();
        let mut used: Vec<(u8, usize)> = found
            .iter()
            .enumerate()
            .filter_map(|(old, &new)| Some((new?, old)))
            .collect();
        used.sort_unstable();
        used.dedup_by_key(|pair| pair.0);
        let mut dict = ir.dict(template.op);
        let accumulate = match accumulates {
            Accumulates::AsBefore => None,
            Accumulates::No => Some(Accumulate::No),
            Accumulates::Yes => Some(Accumulate::Yes),
            Accumulates::UnlessFirst => {
                let index = template.accumulate.map_or(0, usize::from);
                Some(Accumulate::UnlessFirst(
                    numbers.get(index).copied().unwrap_or(0),
                ))
            }
        };
        if let Some(accumulate) = accumulate {
            let attr = accumulate.intern(&mut ir.ctx);
            dict = ir.ctx.dict_with(dict, names::ACCUMULATE, attr);
        }
        Variant {
            known,
            accumulates,
            numbers,
            used: used.into_iter().map(|(_, old)| old).collect(),
            dict,
        }
    }
}
