//! The generic form: valid MLIR, for `mlir-opt` and `xdsl-opt`.

use smallvec::SmallVec;

use super::{Printer, push_int};
use crate::bir::ops::OpCode;
use crate::bir::program::{COL_DEPS, COL_ID, COL_ORDER};
use crate::bir::types::MemType;
use crate::ir::{Attr, AttrView, Block, Op, Region, Value, Visit};

/// What prints an attribute of the generic form.
#[derive(Clone, Copy)]
enum Entry {
    Attr(Attr),
    /// The printed name of a value, which is unique where its hint need not be.
    Name(Value),
    Access,
    Segments,
    Id(u32),
    Deps,
    Order,
    Src,
}

impl Printer<'_> {
    pub(super) fn generic_visit(&mut self, visit: Visit) {
        match visit {
            Visit::Enter(op) => {
                self.generic_label_before(op);
                self.before(op);
                self.generic_enter(op);
            }
            Visit::Leave(op) => self.generic_leave(op),
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
        self.out.push('"');
        self.out.push_str(self.ir.name_text(op));
        self.out.push_str("\"(");
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
            self.between_blocks(op);
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
    fn between_blocks(&mut self, op: Op) {
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
        let func = OpCode::of(self.ir, parent) == Some(OpCode::Func);
        if OpCode::of(self.ir, parent).is_some()
            && self.ir.terminator(block).is_none()
            && (func || many)
        {
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

    fn generic_label_before(&mut self, op: Op) {
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
        if self.options.generic {
            self.between_blocks(op);
        }
    }

    /// Attributes and types.
    fn generic_end(&mut self, op: Op) {
        let ir = self.ir;
        let code = OpCode::of(ir, op);
        let mut entries: SmallVec<[(&str, Entry); 12]> = ir
            .ctx
            .dict_entries(ir.dict(op))
            .map(|(name, attr)| (ir.ctx.text(name), Entry::Attr(attr)))
            .collect();
        if let Some(code) = code {
            let def = code.def();
            let has_mem = ir
                .operands(op)
                .iter()
                .any(|operand| MemType::get(&ir.ctx, ir.value_type(operand.value)).is_some());
            if has_mem {
                entries.push(("access", Entry::Access));
            }
            let roles = ir.operands(op).iter().map(|operand| operand.role as usize);
            if !roles.eq(def.required_roles()) {
                entries.push(("operandSegmentSizes", Entry::Segments));
            }
            let named = match code {
                OpCode::Alloc => Some("sym_name"),
                OpCode::Module | OpCode::Func | OpCode::Loop => None,
                _ => Some("name"),
            };
            if let Some(key) = named
                && let Some(value) = ir.result(op)
                && ir.value_name(value).is_some()
            {
                entries.push((key, Entry::Name(value)));
            }
            if code == OpCode::Loop {
                let entry = ir.regions(op).first().and_then(|&r| ir.entry(r));
                let index = entry.and_then(|block| ir.args(block).next());
                if let Some(index) = index.filter(|&value| ir.value_name(value).is_some()) {
                    entries.push(("iv_name", Entry::Name(index)));
                }
            }
            if let Some(id) = ir.int_cell(COL_ID, op) {
                entries.push(("id", Entry::Id(id)));
            }
            if ir.words_cell(COL_DEPS, op).is_some() {
                entries.push(("deps", Entry::Deps));
            }
            if ir.words_cell(COL_ORDER, op).is_some() {
                entries.push(("order", Entry::Order));
            }
            if ir.loc(op).is_some() {
                entries.push(("src", Entry::Src));
            }
        }
        entries.sort_by_key(|&(name, _)| name);
        if !entries.is_empty() {
            self.out.push_str(" {");
            for (i, &(name, entry)) in entries.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                if let Some(name) = ir.ctx.find_str(name) {
                    self.key(name);
                } else {
                    self.out.push_str(name);
                }
                self.generic_entry(op, entry);
            }
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

    fn generic_entry(&mut self, op: Op, entry: Entry) {
        let ir = self.ir;
        match entry {
            Entry::Attr(attr) => {
                if ir.ctx.attr(attr) == AttrView::Unit {
                    return;
                }
                self.out.push_str(" = ");
                // Attributes of a mixed file print generically inside a generic operation.
                let custom = !std::mem::replace(&mut self.options.generic, true);
                self.attr(attr, None, &[]);
                self.options.generic = !custom;
            }
            Entry::Name(value) => {
                let name = self.names.value(ir, value).to_owned();
                self.out.push_str(" = ");
                self.quoted(&name);
            }
            Entry::Access => {
                self.out.push_str(" = [");
                let mut first = true;
                for operand in ir.operands(op) {
                    let Some(mem) = MemType::get(&ir.ctx, ir.value_type(operand.value)) else {
                        continue;
                    };
                    if !std::mem::take(&mut first) {
                        self.out.push_str(", ");
                    }
                    self.generic_access(&mem, operand.annot);
                }
                self.out.push(']');
            }
            Entry::Segments => {
                self.out.push_str(" = array<i32: ");
                let roles = OpCode::of(ir, op).map_or(0, |code| code.def().indices_role());
                for role in 0..=roles {
                    if role > 0 {
                        self.out.push_str(", ");
                    }
                    let size = ir
                        .operands(op)
                        .iter()
                        .filter(|operand| operand.role as usize == role)
                        .count();
                    push_int(&mut self.out, size as i64);
                }
                self.out.push('>');
            }
            Entry::Id(id) => {
                self.out.push_str(" = ");
                push_int(&mut self.out, i64::from(id));
                self.out.push_str(" : i64");
            }
            Entry::Deps => {
                self.out.push_str(" = #bir.deps<");
                self.deps(ir.words_cell(COL_DEPS, op).unwrap_or(&[]));
                self.out.push('>');
            }
            Entry::Order => {
                self.out.push_str(" = #bir.order<");
                self.order(ir.words_cell(COL_ORDER, op).unwrap_or(&[]), None);
                self.out.push('>');
            }
            Entry::Src => {
                if let Some(loc) = ir.loc(op) {
                    let loc = ir.ctx.source_loc(loc);
                    let text = format!("{}:{}:{}", ir.ctx.text(loc.file), loc.line, loc.col);
                    self.out.push_str(" = ");
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
