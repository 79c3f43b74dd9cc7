//! The custom form.

use smallvec::SmallVec;

use super::{Printer, push_int};
use crate::bir::access::Access;
use crate::bir::attrs::{Placement, number_bits};
use crate::bir::num::DType;
use crate::bir::ops::{AttrType, COMMON_ATTRS, ImmType, Kind, OpCode, OpDef, Syntax, is_bitvec};
use crate::bir::program::{COL_DEPS, COL_ID, COL_ORDER, Dep, names, op_names, order_terms};
use crate::bir::types::MemType;
use crate::bir::view::{OpView, RoleView};
use crate::ir::{Attr, AttrView, Block, Ir, Op, Str, Value, Visit};

/// The dictionary of an operation while it is printed: what has been said outside it is not
/// printed in it.
struct Entries {
    list: SmallVec<[(Str, Attr); 8]>,
    /// Bit n: entry n has been said. Dictionaries of more entries never have words that late.
    said: u64,
}

impl Entries {
    fn get(&self, name: Str) -> Option<(usize, Attr)> {
        let at = self.list.iter().position(|&(entry, _)| entry == name)?;
        Some((at, self.list[at].1))
    }

    fn say(&mut self, at: usize) {
        self.said |= 1u64.checked_shl(at as u32).unwrap_or(0);
    }

    fn say_name(&mut self, name: Str) {
        if let Some((at, _)) = self.get(name) {
            self.say(at);
        }
    }

    fn is_said(&self, at: usize) -> bool {
        at < 64 && self.said >> at & 1 != 0
    }
}

impl Printer<'_> {
    pub(super) fn custom_visit(&mut self, visit: Visit) {
        match visit {
            Visit::Enter(op) => {
                if self.ir.prev(op).is_none() && self.in_generic_region(op) {
                    self.generic_label_before(op);
                } else {
                    self.label_before(op);
                }
                self.before(op);
                match self.custom_code(op) {
                    Some(code) => self.custom_op(op, code),
                    None => self.generic_enter(op),
                }
                if self.ir.regions(op).is_empty() {
                    self.behind(op);
                }
            }
            Visit::Leave(op) => {
                if self.custom_code(op).is_some() {
                    self.empty_blocks_behind(op);
                    self.end_of_regions(op);
                    self.depth -= 1;
                    self.indent();
                    self.out.push('}');
                    self.end_closing(op);
                } else {
                    self.generic_leave(op);
                }
                self.behind(op);
            }
        }
    }

    /// The op of an operation the custom form can say.
    fn custom_code(&self, op: Op) -> Option<OpCode> {
        OpCode::of(self.ir, op).filter(|&code| !self.needs_generic(op, code))
    }

    /// Whether the operation stands in a region of the generic form.
    fn in_generic_region(&self, op: Op) -> bool {
        self.ir
            .parent(op)
            .is_some_and(|parent| self.custom_code(parent).is_none())
    }

    fn behind(&mut self, op: Op) {
        if self.ir.next(op).is_none() && self.in_generic_region(op) {
            self.between_blocks(op);
        }
    }

    /// Whether only the generic form can say an operation of ours (wrong ones, mostly).
    fn needs_generic(&self, op: Op, code: OpCode) -> bool {
        let def = code.def();
        let regions = self.ir.regions(op).len();
        match def.syntax {
            Syntax::Instruction => {
                regions != 0
                    || !self.ir.successors(op).is_empty()
                    || self.ir.results(op).len() > usize::from(def.result)
            }
            Syntax::Alloc => self.ir.results(op).len() != 1 || regions != 0,
            Syntax::Module | Syntax::Func => {
                regions != 1
                    || !matches!(
                        self.ir
                            .ctx
                            .dict_get(self.ir.dict(op), names::SYM_NAME)
                            .map(|attr| self.ir.ctx.attr(attr)),
                        Some(AttrView::Str(_))
                    )
            }
            Syntax::Loop => {
                let view = OpView::new(self.ir, op);
                let entry = self.ir.regions(op).first().and_then(|&r| self.ir.entry(r));
                regions != 1
                    || entry.is_none_or(|block| self.ir.args(block).len() != 1)
                    || !view.role("lower").is_present()
                    || !view.role("upper").is_present()
            }
            Syntax::While => regions != 1 || self.ir.operands(op).len() != 1,
            Syntax::Br => self.ir.successors(op).len() != 1 || !self.ir.operands(op).is_empty(),
            Syntax::CondBr => self.ir.successors(op).len() != 2 || self.ir.operands(op).len() != 1,
            Syntax::Implicit => true,
            Syntax::Depset => self.ir.int_cell(COL_ID, op).is_none(),
        }
    }

    fn custom_op(&mut self, op: Op, code: OpCode) {
        self.indent();
        let def = code.def();
        let mut indices: SmallVec<[Value; 4]> = SmallVec::new();
        for operand in self.ir.operands(op) {
            if operand.role as usize == def.indices_role() {
                indices.push(operand.value);
            }
        }
        let mut said = Entries {
            list: SmallVec::new(),
            said: 0,
        };
        for entry in self.ir.ctx.dict_entries(self.ir.dict(op)) {
            said.list.push(entry);
        }
        match def.syntax {
            Syntax::Alloc => self.alloc(op, &mut said),
            Syntax::Module | Syntax::Func => {
                self.out.push_str("bir.");
                self.out.push_str(def.name);
                self.out.push_str(" @");
                said.say_name(names::SYM_NAME);
                if let Some(name) = crate::bir::program::symbol_name(self.ir, op) {
                    self.symbol_text(name);
                }
            }
            Syntax::Loop => self.loop_header(op, &mut said),
            Syntax::While => {
                self.out.push_str("while ");
                self.operand_names(op);
            }
            Syntax::Br => {
                self.out.push_str("br ");
                self.successor(op, 0);
            }
            Syntax::CondBr => {
                self.out.push_str("cond_br ");
                self.operand_names(op);
                self.out.push_str(", ");
                self.successor(op, 0);
                self.out.push_str(", ");
                self.successor(op, 1);
            }
            Syntax::Depset => self.depset(op),
            Syntax::Instruction | Syntax::Implicit => {
                self.instruction(op, code, &indices, &mut said);
            }
        }
        self.custom_dict(op, code, &indices, &said);
        self.custom_loc(op);
        if !self.ir.regions(op).is_empty() {
            self.out.push_str(" {");
            self.depth += 1;
        }
        self.end_line(op);
        if let Some(&region) = self.ir.regions(op).first()
            && let Some(entry) = self.ir.entry(region)
            && self.ir.first_op(entry).is_none()
        {
            // An entry block without operations has no statement to print its label before.
            self.entry_label(entry);
        }
    }

    /// A symbol behind its `@`, quoted where it must be.
    pub(super) fn symbol_text(&mut self, name: Str) {
        let text = self.ir.ctx.text(name);
        let plain = !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'));
        if plain {
            self.out.push_str(text);
        } else {
            self.quoted(text);
        }
    }

    // ---- labels ----

    /// Labels the block that starts with `op`, and empty blocks before it.
    fn label_before(&mut self, op: Op) {
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
        let mut first = block;
        while let Some(prev) = self.ir.prev_block(first) {
            if self.ir.first_op(prev).is_some() || self.ir.entry(region) == Some(prev) {
                break;
            }
            first = prev;
        }
        let mut at = Some(first);
        while let Some(here) = at {
            if self.ir.entry(region) == Some(here) {
                self.entry_label(here);
            } else {
                self.label_line(here);
            }
            if here == block {
                break;
            }
            at = self.ir.next_block(here);
        }
    }

    /// A line in front of an entry block is worth the user's own label, or telling the block from the one
    /// behind it where it is empty.
    fn entry_label(&mut self, block: Block) {
        let is_bare = self.ir.first_op(block).is_none() && self.ir.next_block(block).is_some();
        if is_bare || self.ir.label(block).is_some() {
            self.label_line(block);
        }
    }

    fn label_line(&mut self, block: Block) {
        self.depth -= 1;
        self.comments_above(block);
        self.indent();
        self.depth += 1;
        self.out.push('^');
        self.names.label(self.ir, block, &mut self.out);
        self.out.push_str(":\n");
    }

    /// Labels empty blocks at the end of the regions of `op`.
    fn empty_blocks_behind(&mut self, op: Op) {
        for &region in self.ir.regions(op) {
            let mut first = None;
            let mut at = self.ir.last_block(region);
            while let Some(block) = at {
                if self.ir.first_op(block).is_some() || self.ir.entry(region) == Some(block) {
                    break;
                }
                first = Some(block);
                at = self.ir.prev_block(block);
            }
            while let Some(block) = first {
                self.label_line(block);
                first = self.ir.next_block(block);
            }
        }
    }

    fn end_of_regions(&mut self, op: Op) {
        for &region in self.ir.regions(op) {
            if let Some(block) = self.ir.last_block(region) {
                self.end_comments_of(block);
            }
        }
    }

    fn successor(&mut self, op: Op, index: usize) {
        self.out.push('^');
        if let Some(&block) = self.ir.successors(op).get(index) {
            self.names.label(self.ir, block, &mut self.out);
        }
    }

    fn operand_names(&mut self, op: Op) {
        for (i, operand) in self.ir.operands(op).iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.out.push('%');
            self.out.push_str(self.names.value(self.ir, operand.value));
        }
    }

    // ---- headers ----

    fn alloc(&mut self, op: Op, said: &mut Entries) {
        if let Some(value) = self.ir.result(op) {
            self.out.push('%');
            self.out.push_str(self.names.value(self.ir, value));
            self.out.push_str(" = alloc ");
            if let Some(mem) = MemType::get(&self.ir.ctx, self.ir.value_type(value)) {
                self.out.push_str(mem.space.name());
                self.out.push('<');
                for &dim in mem.dims {
                    push_int(&mut self.out, dim as i64);
                    self.out.push('x');
                }
                self.out.push_str(mem.dtype.name());
                self.out.push('>');
            }
        }
        let at = self.ir.ctx.dict_get(self.ir.dict(op), names::AT);
        if let Some(placement) = at.and_then(|attr| Placement::get(&self.ir.ctx, attr)) {
            said.say_name(names::AT);
            self.out.push_str(" at ");
            self.placement(placement, false);
        }
    }

    fn loop_header(&mut self, op: Op, said: &mut Entries) {
        self.out.push_str("loop ");
        let entry = self.ir.regions(op).first().and_then(|&r| self.ir.entry(r));
        if let Some(index) = entry.and_then(|block| self.ir.args(block).next()) {
            self.out.push('%');
            self.out.push_str(self.names.value(self.ir, index));
        }
        let view = OpView::new(self.ir, op);
        for (role, word) in [("lower", " = "), ("upper", " to ")] {
            self.out.push_str(word);
            match view.role(role) {
                RoleView::Operand(operand) => {
                    self.out.push('%');
                    let value = self.ir.operand(operand).value;
                    self.out.push_str(self.names.value(self.ir, value));
                }
                RoleView::Literal(attr) => {
                    push_int(&mut self.out, self.ir.ctx.attr_int(attr).unwrap_or(0));
                }
                RoleView::Absent => {}
            }
        }
        said.say_name(names::LOWER);
        said.say_name(names::UPPER);
        if let Some(step) = view.int("step") {
            said.say_name(names::STEP);
            self.out.push_str(" step ");
            push_int(&mut self.out, step);
        }
    }

    // ---- instructions ----

    fn instruction(&mut self, op: Op, code: OpCode, indices: &[Value], said: &mut Entries) {
        let (def, names) = (code.def(), op_names(code));
        if let Some(result) = self.ir.result(op) {
            self.out.push('%');
            self.out.push_str(self.names.value(self.ir, result));
            self.out.push_str(" = ");
        }
        self.out.push_str(def.name);
        for (attr, &name) in def.words.iter().zip(&names.words) {
            self.word(def, attr, name, said);
        }
        let mut separator = " ";
        for left in [true, false] {
            if !left {
                // The arrow stands only where something follows it.
                let follows =
                    def.operands.iter().enumerate().any(|(i, role)| {
                        !role.is_left() && self.stands(op, code, i, said).is_some()
                    });
                if !follows {
                    break;
                }
                self.out.push_str(" <-");
                separator = " ";
            }
            let mut skipped = false;
            for (i, role) in def.operands.iter().enumerate() {
                if role.is_left() != left {
                    continue;
                }
                let Some(first) = self.stands(op, code, i, said) else {
                    skipped |= role.keyword.is_none();
                    continue;
                };
                let mut at = Some(first);
                while let Some(what) = at {
                    self.out.push_str(separator);
                    separator = ", ";
                    if let Some(keyword) = role.keyword {
                        self.out.push_str(keyword);
                        for (attr, &name) in role.words.iter().zip(&names.key_words[i]) {
                            self.word(def, attr, name, said);
                        }
                        self.out.push(' ');
                    } else if skipped {
                        // An absent role before it: only the name tells which this is.
                        self.out.push_str(role.name);
                        self.out.push(' ');
                    }
                    at = match what {
                        Stands::Operand(number) => {
                            self.operand(op, number, indices);
                            role.variadic
                                .then(|| self.next_of_role(op, number, i))
                                .flatten()
                        }
                        Stands::Literal(attr) => {
                            said.say_name(names.operands[i]);
                            self.literal(attr);
                            None
                        }
                    };
                }
            }
        }
    }

    /// What stands in a role, if the text can say it as an operand.
    fn stands(&self, op: Op, code: OpCode, role: usize, entries: &Entries) -> Option<Stands> {
        let def = code.def();
        let found = self
            .ir
            .operands(op)
            .iter()
            .position(|operand| operand.role as usize == role);
        if let Some(number) = found {
            return Some(Stands::Operand(number));
        }
        let entry = &def.operands[role];
        if !entry.takes_literal() {
            return None;
        }
        let (_, attr) = entries.get(op_names(code).operands[role])?;
        let (dtype, _) = number_bits(&self.ir.ctx, attr)?;
        let wanted = match entry.kind {
            Kind::Imm(ImmType::F32) => DType::F32,
            Kind::Imm(ImmType::Dst) => {
                self.first_dtype(op, def, |kind| matches!(kind, Kind::Out | Kind::InOut))
            }
            Kind::Imm(ImmType::Alu) => {
                let bits = self
                    .ir
                    .ctx
                    .dict_entries(self.ir.dict(op))
                    .any(|(_, attr)| self.ir.ctx.attr_str(attr).is_some_and(is_bitvec));
                if bits {
                    self.first_dtype(op, def, |kind| kind == Kind::In)
                } else {
                    DType::F32
                }
            }
            _ => DType::I64,
        };
        (wanted == dtype).then_some(Stands::Literal(attr))
    }

    fn first_dtype(&self, op: Op, def: &'static OpDef, kind: impl Fn(Kind) -> bool) -> DType {
        self.ir
            .operands(op)
            .iter()
            .find(|operand| {
                def.operands
                    .get(operand.role as usize)
                    .is_some_and(|role| kind(role.kind))
            })
            .and_then(|operand| {
                let mem = MemType::get(&self.ir.ctx, self.ir.value_type(operand.value))?;
                Some(Access::resolve(&self.ir.ctx, &mem, operand.annot).dtype)
            })
            .unwrap_or(DType::F32)
    }

    fn next_of_role(&self, op: Op, number: usize, role: usize) -> Option<Stands> {
        let next = self.ir.operands(op).get(number + 1)?;
        (next.role as usize == role).then_some(Stands::Operand(number + 1))
    }

    fn operand(&mut self, op: Op, number: usize, indices: &[Value]) {
        let ir = self.ir;
        let Some(operand) = ir.operands(op).get(number) else {
            return;
        };
        self.out.push('%');
        self.out.push_str(self.names.value(ir, operand.value));
        self.custom_access(ir.value_type(operand.value), operand.annot, indices);
    }

    /// An enum attribute as a word, if the text can say it so.
    fn word(&mut self, def: &'static OpDef, attr: &str, name: Str, said: &mut Entries) {
        let Some((at, value)) = said.get(name) else {
            return;
        };
        let Some(text) = self.ir.ctx.attr_str(value) else {
            return;
        };
        let known = match def.attr(attr).map(|attr| attr.ty) {
            Some(AttrType::Enum(words)) => words.words.contains(&text),
            _ => false,
        };
        if known {
            self.out.push(' ');
            self.out.push_str(text);
            said.say(at);
        }
    }

    // ---- what follows ----

    fn custom_dict(&mut self, op: Op, code: OpCode, indices: &[Value], said: &Entries) {
        let ir = self.ir;
        let mut entries: SmallVec<[(usize, Str, Attr); 8]> = SmallVec::new();
        for (at, &(name, attr)) in said.list.iter().enumerate() {
            if !said.is_said(at) {
                entries.push((rank(code, name, ir), name, attr));
            }
        }
        if entries.len() > 1 {
            entries.sort_by_key(|&(rank, name, _)| (rank, ir.ctx.text(name)));
        }
        // A set says its number and members itself.
        let is_set = code == OpCode::Depset;
        let id = ir.int_cell(COL_ID, op).filter(|_| !is_set);
        let order = ir.words_cell(COL_ORDER, op);
        let deps = ir.words_cell(COL_DEPS, op).filter(|_| !is_set);
        if entries.is_empty() && id.is_none() && order.is_none() && deps.is_none() {
            return;
        }
        self.out.push_str(" {");
        let mut first = true;
        let mut comma = |out: &mut String| {
            if !std::mem::take(&mut first) {
                out.push_str(", ");
            }
        };
        for (_, name, attr) in entries {
            comma(&mut self.out);
            self.entry(Some(code), name, attr, indices);
        }
        if let Some(id) = id {
            comma(&mut self.out);
            self.out.push_str("id = ");
            push_int(&mut self.out, i64::from(id));
        }
        if let Some(words) = order {
            comma(&mut self.out);
            self.out.push_str("order = ");
            self.order(words, Some(indices));
        }
        if let Some(words) = deps {
            comma(&mut self.out);
            self.out.push_str("deps = [");
            self.deps(words);
            self.out.push(']');
        }
        self.out.push('}');
    }

    /// `[3, 4*%i]`
    pub(super) fn order(&mut self, words: &[u64], indices: Option<&[Value]>) {
        self.out.push('[');
        for (i, term) in order_terms(words).iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.affine(term.constant, &term.terms, indices);
        }
        self.out.push(']');
    }

    /// `depset #12 = [7, #4]`
    fn depset(&mut self, op: Op) {
        self.out.push_str("depset #");
        push_int(
            &mut self.out,
            i64::from(self.ir.int_cell(COL_ID, op).unwrap_or(0)),
        );
        self.out.push_str(" = [");
        let members = self.ir.words_cell(COL_DEPS, op).unwrap_or_default();
        for (i, &word) in members.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            let dep = Dep::from_word(word);
            if dep.set {
                self.out.push('#');
            }
            push_int(&mut self.out, i64::from(dep.id));
        }
        self.out.push(']');
    }

    /// `flow 3, anti #12`
    pub(super) fn deps(&mut self, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            let dep = Dep::from_word(word);
            self.out.push_str(dep.kind.name());
            self.out.push(' ');
            if dep.set {
                self.out.push('#');
            }
            push_int(&mut self.out, i64::from(dep.id));
        }
    }

    fn custom_loc(&mut self, op: Op) {
        if let Some(loc) = self.ir.loc(op) {
            let loc = self.ir.ctx.source_loc(loc);
            self.out.push_str(" loc(");
            self.quoted(self.ir.ctx.text(loc.file));
            self.out.push(':');
            push_int(&mut self.out, i64::from(loc.line));
            self.out.push(':');
            push_int(&mut self.out, i64::from(loc.col));
            self.out.push(')');
        }
    }
}

/// What is printed for a role.
#[derive(Clone, Copy)]
enum Stands {
    Operand(usize),
    Literal(Attr),
}

/// Where an attribute stands among the others: in table order, then by name.
fn rank(code: OpCode, name: Str, ir: &Ir) -> usize {
    let own = &op_names(code).attrs;
    if let Some(at) = own.iter().position(|&attr| attr == name) {
        return at;
    }
    let text = ir.ctx.text(name);
    COMMON_ATTRS
        .iter()
        .position(|attr| attr.name == text)
        .map_or(usize::MAX, |at| at + own.len())
}
