//! The generic form: valid MLIR, for `mlir-opt` and `xdsl-opt`.

use smallvec::SmallVec;

use super::recent::DictText;
use super::{Printer, push_int};
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, COL_ORDER};
use crate::bir::types::MemType;
use crate::ir::{Attr, AttrView, Block, Dict, Op, Region, Str, Value, Visit};

/// Entries of the generic form's dictionaries that are no attributes in the IR, as they are
/// sorted among those that are.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Special {
    Access,
    Deps,
    Id,
    /// The printed name of a value, which is unique where its hint need not be.
    IvName,
    Name,
    Segments,
    Order,
    Src,
    SymName,
}

/// Their keys.
const SPECIALS: [&str; 9] = [
    "access",
    "deps",
    "id",
    "iv_name",
    "name",
    "operandSegmentSizes",
    "order",
    "src",
    "sym_name",
];

impl Printer<'_> {
    pub(super) fn generic_visit(&mut self, visit: Visit) {
        match visit {
            Visit::Enter(op) => {
                self.generic_label_before(op);
                self.before(op);
                self.generic_enter(op);
                if self.ir.regions(op).is_empty() {
                    self.between_blocks(op);
                }
            }
            Visit::Leave(op) => {
                self.generic_leave(op);
                self.between_blocks(op);
            }
        }
    }

    pub(super) fn generic_enter(&mut self, op: Op) {
        self.indent();
        let results = self.ir.results(op).len();
        if results > 0 {
            for (i, value) in self.ir.results(op).enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.out.push('%');
                self.out.push_str(self.names.value(self.ir, value));
            }
            self.out.push_str(" = ");
        }
        let name = self.ir.name_text(op);
        if self.ir.code(op).is_some() {
            self.out.push('"');
            self.out.push_str(name);
            self.out.push('"');
        } else {
            self.quoted(name);
        }
        self.out.push('(');
        for (i, operand) in self.ir.operands(op).iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.out.push('%');
            self.out.push_str(self.names.value(self.ir, operand.value));
        }
        self.out.push(')');
        let successors = self.ir.successors(op);
        if !successors.is_empty() {
            self.out.push('[');
            for (i, &block) in successors.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.out.push('^');
                self.names.label(self.ir, block, &mut self.out);
            }
            self.out.push(']');
        }
        let regions = self.ir.regions(op);
        if regions.is_empty() {
            self.generic_end(op);
            self.end_line(op);
            return;
        }
        self.out.push_str(" ({");
        self.depth += 1;
        self.end_line(op);
        // A region without operations is never entered by the walk, so all that stand before the
        // first one with operations are printed here; the others by `next_region`.
        let first_full = regions
            .iter()
            .position(|&region| !self.is_empty(region))
            .unwrap_or(regions.len() - 1);
        for &region in regions.iter().take(first_full) {
            self.empty_region(op, region);
            self.next_region();
        }
        if regions
            .get(first_full)
            .is_some_and(|&region| self.is_empty(region))
        {
            self.empty_region(op, regions[first_full]);
        }
    }

    fn is_empty(&self, region: Region) -> bool {
        self.ir
            .blocks(region)
            .all(|block| self.ir.first_op(block).is_none())
    }

    fn empty_region(&mut self, op: Op, region: Region) {
        for block in self.ir.blocks(region) {
            let entry = self.ir.entry(region) == Some(block);
            if !entry || self.ir.args(block).len() > 0 {
                self.generic_label(block);
                self.implicit_end(op);
            } else if OpCode::of(self.ir, op) == Some(OpCode::Func) {
                self.implicit_end(op);
            }
        }
    }

    fn next_region(&mut self) {
        self.depth -= 1;
        self.indent();
        self.depth += 1;
        self.out.push_str("}, {\n");
    }

    /// Behind the last operation of a block: its implicit end, and what leads to the next one.
    pub(super) fn between_blocks(&mut self, op: Op) {
        if self.ir.next(op).is_some() {
            return;
        }
        let Some(block) = self.ir.block(op) else {
            return;
        };
        let region = self.ir.block_region(block);
        let Some(parent) = self.ir.region_parent(region) else {
            return;
        };
        let many = self.ir.next_block(block).is_some() || self.ir.prev_block(block).is_some();
        let code = OpCode::of(self.ir, parent);
        // What names successors ends its block; of another foreign operation in a foreign region
        // nobody here knows.
        let needs_end = self.ir.terminator(block).is_none()
            && self.ir.successors(op).is_empty()
            && (code.is_some() || OpCode::of(self.ir, op).is_some());
        if needs_end && (code == Some(OpCode::Func) || many) {
            self.implicit_end(parent);
        }
        // Empty blocks behind it have no operation to print their labels before.
        let mut at = self.ir.next_block(block);
        while let Some(next) = at {
            if self.ir.first_op(next).is_some() {
                return;
            }
            self.generic_label(next);
            self.implicit_end(parent);
            at = self.ir.next_block(next);
        }
        let regions = self.ir.regions(parent);
        let here = regions.iter().position(|&r| r == region).unwrap_or(0);
        for &next in &regions[here + 1..] {
            self.next_region();
            if !self.is_empty(next) {
                return;
            }
            self.empty_region(parent, next);
        }
    }

    fn implicit_end(&mut self, parent: Op) {
        self.indent();
        self.out.push_str(match OpCode::of(self.ir, parent) {
            Some(OpCode::Func) => "\"bir.return\"() : () -> ()\n",
            _ => "\"bir.yield\"() : () -> ()\n",
        });
    }

    pub(super) fn generic_label_before(&mut self, op: Op) {
        if self.ir.prev(op).is_some() {
            return;
        }
        let Some(block) = self.ir.block(op) else {
            return;
        };
        let region = self.ir.block_region(block);
        if region == self.ir.root() {
            return;
        }
        // Empty blocks in front of the first operation of a region.
        if self.ir.entry(region) != Some(block) {
            let mut first = block;
            while let Some(prev) = self.ir.prev_block(first) {
                if self.ir.first_op(prev).is_some() {
                    first = block;
                    break;
                }
                first = prev;
            }
            let mut at = (first != block).then_some(first);
            while let Some(here) = at {
                if here == block {
                    break;
                }
                if self.ir.entry(region) != Some(here) || self.ir.args(here).len() > 0 {
                    self.generic_label(here);
                }
                if let Some(parent) = self.ir.region_parent(region) {
                    self.implicit_end(parent);
                }
                at = self.ir.next_block(here);
            }
        }
        let entry = self.ir.entry(region) == Some(block);
        if !entry || self.ir.args(block).len() > 0 || self.ir.label(block).is_some() {
            self.generic_label(block);
        }
    }

    fn generic_label(&mut self, block: Block) {
        self.depth = self.depth.saturating_sub(1);
        self.comments_above(block);
        self.indent();
        self.depth += 1;
        self.out.push('^');
        self.names.label(self.ir, block, &mut self.out);
        let args = self.ir.args(block);
        if args.len() > 0 {
            self.out.push('(');
            for (i, value) in args.enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                self.out.push('%');
                self.out.push_str(self.names.value(self.ir, value));
                self.out.push_str(": ");
                self.ty(self.ir.value_type(value));
            }
            self.out.push(')');
        }
        self.out.push_str(":\n");
    }

    pub(super) fn generic_leave(&mut self, op: Op) {
        for &region in self.ir.regions(op) {
            if let Some(block) = self.ir.last_block(region) {
                self.end_comments_of(block);
            }
        }
        self.depth -= 1;
        self.indent();
        self.out.push_str("})");
        self.generic_end(op);
        self.end_closing(op);
    }

    /// Attributes and types.
    fn generic_end(&mut self, op: Op) {
        let ir = self.ir;
        let code = OpCode::of(ir, op);
        let dict = ir.dict(op);
        let specials = match code {
            Some(code) => self.specials(op, code),
            None => SmallVec::new(),
        };
        if dict != Dict::EMPTY || !specials.is_empty() {
            self.out.push_str(" {");
            let kept = match self.dicts.find(dict) {
                Some(kept) => kept,
                None => self.dict_text(dict),
            };
            let mut at = 0;
            for &special in &specials {
                let entries = self.dicts.at(kept);
                let cut = entries.cuts[special as usize];
                self.out.push_str(&entries.text[at..cut]);
                at = cut;
                self.out.push_str(SPECIALS[special as usize]);
                self.out.push_str(" = ");
                self.special(op, special);
                self.out.push_str(", ");
            }
            self.out.push_str(&self.dicts.at(kept).text[at..]);
            self.dicts.trim(kept);
            // The last entry has a comma too many.
            self.out.truncate(self.out.len() - 2);
            self.out.push('}');
        }
        self.generic_types(op);
        if code.is_none()
            && let Some(loc) = ir.loc(op)
        {
            let loc = ir.ctx.source_loc(loc);
            self.out.push_str(" loc(");
            self.quoted(ir.ctx.text(loc.file));
            self.out.push(':');
            push_int(&mut self.out, i64::from(loc.line));
            self.out.push(':');
            push_int(&mut self.out, i64::from(loc.col));
            self.out.push(')');
        }
    }

    /// Makes the text of a dictionary: it depends on nothing else.
    fn dict_text(&mut self, dict: Dict) -> usize {
        let ir = self.ir;
        let mut entries: SmallVec<[(&str, Str, Attr); 8]> = ir
            .ctx
            .dict_entries(dict)
            .map(|(name, attr)| (ir.ctx.text(name), name, attr))
            .collect();
        entries.sort_by_key(|&(text, ..)| text);
        // Attributes of a mixed file print generically inside a generic operation.
        let custom = !std::mem::replace(&mut self.options.generic, true);
        let outer = std::mem::take(&mut self.out);
        let mut cuts = [0; SPECIALS.len()];
        for (text, name, attr) in entries {
            self.key(name);
            if ir.ctx.attr(attr) != AttrView::Unit {
                self.out.push_str(" = ");
                self.attr(attr, None, &[]);
            }
            self.out.push_str(", ");
            for (cut, special) in cuts.iter_mut().zip(SPECIALS) {
                if text <= special {
                    *cut = self.out.len();
                }
            }
        }
        self.options.generic = !custom;
        let text = std::mem::replace(&mut self.out, outer);
        self.dicts.keep(dict, DictText { text, cuts })
    }

    /// What the dictionary of one of our operations says beside its attributes, in order.
    fn specials(&self, op: Op, code: OpCode) -> SmallVec<[Special; 9]> {
        let ir = self.ir;
        let mut out = SmallVec::new();
        let operands = ir.operands(op);
        let is_mem = |value| MemType::get(&ir.ctx, ir.value_type(value)).is_some();
        if operands.iter().any(|operand| is_mem(operand.value)) {
            out.push(Special::Access);
        }
        if ir.words_cell(COL_DEPS, op).is_some() {
            out.push(Special::Deps);
        }
        if ir.int_cell(COL_ID, op).is_some() {
            out.push(Special::Id);
        }
        if code == OpCode::Loop
            && let Some(index) = self.loop_index(op)
            && ir.value_name(index).is_some()
        {
            out.push(Special::IvName);
        }
        let result = ir.result(op);
        let named = result.is_some_and(|value| ir.value_name(value).is_some());
        let has_name = named
            && !matches!(
                code,
                OpCode::Alloc | OpCode::Module | OpCode::Func | OpCode::Loop
            );
        if has_name {
            out.push(Special::Name);
        }
        let roles = operands.iter().map(|operand| operand.role as usize);
        if !roles.eq(code.def().required_roles()) {
            out.push(Special::Segments);
        }
        if ir.words_cell(COL_ORDER, op).is_some() {
            out.push(Special::Order);
        }
        if ir.loc(op).is_some() {
            out.push(Special::Src);
        }
        if named && code == OpCode::Alloc {
            out.push(Special::SymName);
        }
        out
    }

    fn loop_index(&self, op: Op) -> Option<Value> {
        let entry = self.ir.entry(*self.ir.regions(op).first()?)?;
        self.ir.args(entry).next()
    }

    fn special(&mut self, op: Op, special: Special) {
        let ir = self.ir;
        match special {
            Special::IvName | Special::Name | Special::SymName => {
                let value = match special {
                    Special::IvName => self.loop_index(op),
                    _ => ir.result(op),
                };
                if let Some(value) = value {
                    let name = self.names.value(ir, value).to_owned();
                    self.quoted(&name);
                }
            }
            Special::Access => {
                self.out.push('[');
                let mut first = true;
                for operand in ir.operands(op) {
                    let ty = ir.value_type(operand.value);
                    if MemType::get(&ir.ctx, ty).is_none() {
                        continue;
                    }
                    if !std::mem::take(&mut first) {
                        self.out.push_str(", ");
                    }
                    self.generic_access(ty, operand.annot);
                }
                self.out.push(']');
            }
            Special::Segments => {
                self.out.push_str("array<i32: ");
                let roles = OpCode::of(ir, op).map_or(0, |code| code.def().indices_role());
                let mut sizes: SmallVec<[i64; 16]> = SmallVec::from_elem(0, roles + 1);
                for operand in ir.operands(op) {
                    if let Some(size) = sizes.get_mut(usize::from(operand.role)) {
                        *size += 1;
                    }
                }
                for (role, size) in sizes.into_iter().enumerate() {
                    if role > 0 {
                        self.out.push_str(", ");
                    }
                    push_int(&mut self.out, size);
                }
                self.out.push('>');
            }
            Special::Id => {
                let id = ir.int_cell(COL_ID, op).unwrap_or(0);
                push_int(&mut self.out, i64::from(id));
                self.out.push_str(" : i64");
            }
            Special::Deps => {
                self.out.push_str("#bir.deps<");
                self.deps(ir.words_cell(COL_DEPS, op).unwrap_or(&[]));
                self.out.push('>');
            }
            Special::Order => {
                self.out.push_str("#bir.order<");
                self.order(ir.words_cell(COL_ORDER, op).unwrap_or(&[]), None);
                self.out.push('>');
            }
            Special::Src => {
                if let Some(loc) = ir.loc(op) {
                    let loc = ir.ctx.source_loc(loc);
                    let text = format!("{}:{}:{}", ir.ctx.text(loc.file), loc.line, loc.col);
                    self.quoted(&text);
                }
            }
        }
    }

    fn generic_types(&mut self, op: Op) {
        self.out.push_str(" : (");
        for (i, operand) in self.ir.operands(op).iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.ty(self.ir.value_type(operand.value));
        }
        self.out.push_str(") -> ");
        let mut results = self.ir.results(op);
        match (results.len(), results.next()) {
            (1, Some(value)) => self.ty(self.ir.value_type(value)),
            _ => {
                self.out.push('(');
                for (i, value) in self.ir.results(op).enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.ty(self.ir.value_type(value));
                }
                self.out.push(')');
            }
        }
    }
}
