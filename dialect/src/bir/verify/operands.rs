//! Operands by role: how many, of which kind, in which space, of which dtype, of equal shape.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::attrs::number_bits;
use super::super::num::DType;
use super::super::ops::{
    ALU_OPS, AttrType, ImmType, Kind, OpCode, OpDef, OperandDef, Syntax, is_bitvec,
};
use super::super::program::names;
use super::super::space::{Engine, Space, Target};
use super::super::types::{MemType, is_index, reg_dtype, type_text};
use super::driver::Verifier;
use super::facts::{Facts, Shape};
use super::words::{attr_text, counted, value_text};
use crate::ir::{Attr, AttrView, Context, Dict, Ir, Op, OperandData, Str};
use crate::text::diag::{Diagnostic, Part, Place};

impl Verifier<'_> {
    /// Results, regions and successors.
    pub(super) fn check_statement(&mut self, op: Op, code: OpCode, def: &'static OpDef) {
        let ir = self.ir;
        let name = def.name;
        let regions = usize::from(matches!(
            def.syntax,
            Syntax::Module | Syntax::Func | Syntax::Loop | Syntax::While
        ));
        let successors = match code {
            OpCode::Br => 1,
            OpCode::CondBr => 2,
            _ => 0,
        };
        for (what, expected, found) in [
            ("region", regions, ir.regions(op).len()),
            ("target block", successors, ir.successors(op).len()),
        ] {
            if expected != found {
                let expected = counted(expected as u64, what);
                self.error(
                    op,
                    Part::Whole,
                    format!("`{name}` has {expected}, found {found}"),
                    None,
                );
            }
        }
        let results = ir.results(op).len();
        let is_good = match code {
            OpCode::Alloc => {
                results == 1
                    && ir
                        .result(op)
                        .is_some_and(|value| MemType::get(&ir.ctx, ir.value_type(value)).is_some())
            }
            _ => results == 0 || (def.result && results == 1),
        };
        if !is_good {
            let expected = match (code, def.result) {
                (OpCode::Alloc, _) => "one result, a memory location",
                (_, true) => "at most one result, a register",
                (_, false) => "no result",
            };
            self.error(
                op,
                Part::Whole,
                format!("`{name}` has {expected}, found {results}"),
                None,
            );
        } else if def.result
            && let Some(value) = ir.result(op)
        {
            let ty = ir.value_type(value);
            if reg_dtype(&ir.ctx, ty).is_none() {
                let found = type_text(&ir.ctx, ty);
                let message = format!("the result of `{name}` must be a register, found `{found}`");
                self.error(op, Part::Whole, message, None);
            }
        }
    }

    /// Engine and operands, each by itself; whether the operands are good.
    pub(super) fn check_operands(
        &mut self,
        op: Op,
        code: OpCode,
        engine: Option<Engine>,
        facts: &[Option<Facts>],
    ) -> bool {
        let ir = self.ir;
        let def = code.def();
        let indices = def.indices_role();
        let mut counts: SmallVec<[u32; 16]> = SmallVec::from_elem(0, indices + 1);
        self.check_engine(op, def, engine);
        let before = self.diags.errors();
        for (position, operand) in ir.operands(op).iter().enumerate() {
            let role = usize::from(operand.role);
            match counts.get_mut(role) {
                Some(count) => *count += 1,
                None => {
                    let message = format!("`{}` has no operand role number {role}", def.name);
                    self.error(op, Part::Operand(position), message, None);
                    continue;
                }
            }
            match def.operands.get(role) {
                Some(entry) => {
                    let fact = facts.get(position).copied().flatten();
                    self.check_operand(op, def, entry, position, operand, fact, engine);
                }
                None if !is_index(&ir.ctx, ir.value_type(operand.value)) => {
                    self.wrong_kind(op, def, "indices", position, operand, "a loop index");
                }
                None => {}
            }
        }
        let resolved = self.resolved.of(&ir.ctx, code);
        for (role, entry) in def.operands.iter().enumerate() {
            let literal = resolved.literal(ir, op, role);
            self.check_presence(op, def, entry, counts[role], literal);
            if let Some(literal) = literal {
                self.check_literal(op, def, entry, literal, facts);
            }
        }
        self.check_register_result(op, def, &counts);
        self.diags.errors() == before
    }

    fn check_engine(&mut self, op: Op, def: &'static OpDef, engine: Option<Engine>) {
        let Some(engines) = def.engines else { return };
        let legal = engines.on(self.target);
        let (name, target) = (def.name, self.target);
        if legal.is_empty() {
            let first = Target::ALL
                .iter()
                .find(|&&target| !engines.on(target).is_empty());
            let help = first.map(|first| match first > &target {
                true => format!("it exists from `{first}` on"),
                false => format!("it exists on `{first}`"),
            });
            self.error(
                op,
                Part::Whole,
                format!("`{name}` does not exist on `{target}`"),
                help,
            );
        } else if let Some(engine) = engine
            && !legal.has(engine)
        {
            let message = format!(
                "`{name}` runs on {} on `{target}`, found `{engine}`",
                legal.list()
            );
            let part = ir_attr_part(self.ir, op, "engine");
            self.error(op, part, message, None);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn check_operand(
        &mut self,
        op: Op,
        def: &'static OpDef,
        entry: &'static OperandDef,
        position: usize,
        operand: &OperandData,
        fact: Option<Facts>,
        engine: Option<Engine>,
    ) {
        let ir = self.ir;
        let (role, name) = (entry.name, def.name);
        if entry.is_register() {
            let ty = ir.value_type(operand.value);
            match reg_dtype(&ir.ctx, ty) {
                None => self.wrong_kind(op, def, role, position, operand, "a register"),
                Some(dtype) if !entry.dtypes.has(dtype) => {
                    let message = format!(
                        "operand `{role}` of `{name}` must be a register of {}, found `{dtype}`",
                        entry.dtypes.list()
                    );
                    self.error(op, Part::Operand(position), message, None);
                }
                Some(_) => {}
            }
            return;
        }
        let Some(fact) = fact else {
            let expected = match (entry.spaces.is_empty(), entry.takes_literal()) {
                (true, _) => "a number",
                (false, true) => "a memory location or a number",
                (false, false) => "a memory location",
            };
            self.wrong_kind(op, def, role, position, operand, expected);
            return;
        };
        if entry.spaces.is_empty() {
            self.wrong_kind(op, def, role, position, operand, "a number");
            return;
        }
        if !entry.spaces.has(fact.space) {
            let message = format!(
                "operand `{role}` of `{name}` must be in {}, found {} in `{}`",
                entry.spaces.list(),
                value_text(ir, operand.value),
                fact.space
            );
            let help = (fact.space == Space::Psum && engine == Some(Engine::Dma))
                .then(|| "copy it to `sbuf` with `tensor_copy` first".to_owned());
            self.error(op, Part::Operand(position), message, help);
        } else if fact.space == Space::Psum && engine == Some(Engine::Pool) {
            let message = format!(
                "operand `{role}` of `{name}` must be in `sbuf` on engine `pool`, found {} in `psum`",
                value_text(ir, operand.value)
            );
            self.error(op, Part::Operand(position), message, None);
        }
        if entry.writes()
            && let Some(kind) = self.location_attr(operand.value, names::KIND)
            && ir.ctx.attr_str(kind) == Some("const")
        {
            let message = format!(
                "operand `{role}` of `{name}` writes constant {}",
                value_text(ir, operand.value)
            );
            self.error(op, Part::Operand(position), message, None);
        }
        if !entry.dtypes.has(fact.dtype) {
            let message = format!(
                "operand `{role}` of `{name}` must be of {}, found `{}`",
                dtypes_text(entry),
                fact.dtype
            );
            self.error(op, Part::Operand(position), message, None);
        }
    }

    fn wrong_kind(
        &mut self,
        op: Op,
        def: &OpDef,
        role: &str,
        position: usize,
        operand: &OperandData,
        expected: &str,
    ) {
        let ir = self.ir;
        let message = format!(
            "operand `{role}` of `{}` must be {expected}, found {} of type `{}`",
            def.name,
            value_text(ir, operand.value),
            type_text(&ir.ctx, ir.value_type(operand.value))
        );
        self.error(op, Part::Operand(position), message, None);
    }

    fn check_presence(
        &mut self,
        op: Op,
        def: &OpDef,
        entry: &'static OperandDef,
        count: u32,
        literal: Option<Attr>,
    ) {
        let (role, name) = (entry.name, def.name);
        if count == 0 && literal.is_none() && !entry.optional {
            let help = (!entry.doc.is_empty()).then(|| format!("`{role}`: {}", entry.doc));
            self.error(
                op,
                Part::Whole,
                format!("`{name}` needs operand `{role}`"),
                help,
            );
        } else if count > 1 && !entry.variadic {
            let message = format!("operand `{role}` of `{name}` is given {count} times");
            let last = self.ir.operands(op).iter().rposition(|operand| {
                def.operands
                    .get(usize::from(operand.role))
                    .is_some_and(|found| found.name == role)
            });
            self.error(op, last.map_or(Part::Whole, Part::Operand), message, None);
        } else if count > 0 && literal.is_some() {
            let message = format!("operand `{role}` of `{name}` is both a value and a number");
            let part = ir_attr_part(self.ir, op, role);
            self.error(op, part, message, None);
        }
    }

    /// A register is written once: the result, or the operand in the role of a written register.
    fn check_register_result(&mut self, op: Op, def: &OpDef, counts: &[u32]) {
        if !def.result {
            return;
        }
        let Some(role) = def
            .operands
            .iter()
            .position(|entry| entry.kind == Kind::RegOut)
        else {
            return;
        };
        let (results, outs) = (self.ir.results(op).len(), counts[role]);
        let (name, role) = (def.name, def.operands[role].name);
        match (results, outs) {
            (0, 0) => {
                let help =
                    format!("`%r = {name} …` defines one, `{name} %r …` writes one that exists");
                self.error(
                    op,
                    Part::Whole,
                    format!("`{name}` writes no register"),
                    Some(help),
                );
            }
            (1.., 1..) => {
                let message = format!(
                    "`{name}` has both a result and operand `{role}`, where one register is written"
                );
                self.error(op, Part::Whole, message, None);
            }
            _ => {}
        }
    }

    fn check_literal(
        &mut self,
        op: Op,
        def: &'static OpDef,
        entry: &'static OperandDef,
        literal: Attr,
        facts: &[Option<Facts>],
    ) {
        let ir = self.ir;
        let expected = match entry.kind {
            Kind::RegImm => {
                if !matches!(ir.ctx.attr(literal), AttrView::Int { .. }) {
                    let found = attr_text(&ir.ctx, literal);
                    self.wrong_literal(op, def, entry, &format!("a whole number, found {found}"));
                }
                return;
            }
            Kind::Imm(ImmType::F32) => Some(DType::F32),
            Kind::Imm(ImmType::Dst) => self.first_dtype(op, def, facts, OperandDef::writes),
            Kind::Imm(ImmType::Alu) if uses_bits(ir, op, def) => {
                self.first_dtype(op, def, facts, |entry| entry.kind == Kind::In)
            }
            Kind::Imm(ImmType::Alu) => Some(DType::F32),
            _ => None,
        };
        let Some(expected) = expected else { return };
        let found = match number_bits(&ir.ctx, literal) {
            Some((found, _)) if found == expected => return,
            Some((found, _)) => format!("one of {found}"),
            None => attr_text(&ir.ctx, literal),
        };
        self.wrong_literal(
            op,
            def,
            entry,
            &format!("a number of {expected}, found {found}"),
        );
    }

    fn wrong_literal(&mut self, op: Op, def: &OpDef, entry: &OperandDef, what: &str) {
        let message = format!("operand `{}` of `{}` must be {what}", entry.name, def.name);
        let part = ir_attr_part(self.ir, op, entry.name);
        self.error(op, part, message, None);
    }

    fn first_dtype(
        &self,
        op: Op,
        def: &OpDef,
        facts: &[Option<Facts>],
        which: fn(&OperandDef) -> bool,
    ) -> Option<DType> {
        self.ir
            .operands(op)
            .iter()
            .zip(facts)
            .find(|(operand, fact)| {
                fact.is_some()
                    && def
                        .operands
                        .get(usize::from(operand.role))
                        .is_some_and(which)
            })
            .and_then(|(_, fact)| fact.map(|fact| fact.dtype))
    }

    /// Roles that must be of equal shape or dtype, where each operand by itself is good.
    pub(super) fn check_shapes(&mut self, op: Op, code: OpCode, facts: &[Option<Facts>]) {
        let ir = self.ir;
        let def = code.def();
        let resolved = self.resolved.of(&ir.ctx, code);
        let operands = ir.operands(op);
        let find = |role: u8| -> Option<(usize, Facts)> {
            let position = operands.iter().position(|operand| operand.role == role)?;
            Some((position, facts.get(position).copied().flatten()?))
        };
        if let [first, rest @ ..] = &resolved.same_shape[..]
            && let Some((at, expected)) = find(*first)
        {
            for (i, &role) in rest.iter().enumerate() {
                let Some((position, found)) = find(role) else {
                    continue;
                };
                if !found.same_shape(&expected) {
                    let (role, first) = (def.same_shape[i + 1], def.same_shape[0]);
                    let message = format!(
                        "operand `{role}` of `{}` must have {}, as `{first}`, found {}",
                        def.name,
                        shape_text(&expected),
                        shape_text(&found)
                    );
                    let diagnostic =
                        Diagnostic::error(Place::Op(op, Part::Operand(position)), message).related(
                            Place::Op(op, Part::Operand(at)),
                            format!("`{first}`: {}", shape_text(&expected)),
                        );
                    self.diags.push(diagnostic);
                }
            }
        }
        if let [first, rest @ ..] = &resolved.same_dtype[..]
            && let Some((_, expected)) = find(*first)
        {
            for (i, &role) in rest.iter().enumerate() {
                if let Some((position, found)) = find(role)
                    && found.dtype != expected.dtype
                {
                    let message = format!(
                        "operand `{}` of `{}` must be of `{}`, as `{}`, found `{}`",
                        def.same_dtype[i + 1],
                        def.name,
                        expected.dtype,
                        def.same_dtype[0],
                        found.dtype
                    );
                    self.error(op, Part::Operand(position), message, None);
                }
            }
        }
        let Some(written) = resolved.lanes_of else {
            return;
        };
        let Some((_, expected)) = find(written) else {
            return;
        };
        for (i, &role) in resolved.per_partition.iter().enumerate() {
            if let Some((position, found)) = find(role)
                && (found.partitions != expected.partitions || found.elements != 1)
            {
                let like = match def.operands.get(usize::from(written)) {
                    Some(entry) if role != written => format!(", as many as `{}`", entry.name),
                    _ => String::new(),
                };
                let message = format!(
                    "operand `{}` of `{}` must have {} of 1 element{like}, found {}",
                    def.per_partition[i],
                    def.name,
                    counted(expected.partitions, "partition"),
                    shape_text(&found)
                );
                self.error(op, Part::Operand(position), message, None);
            }
        }
    }
}

/// Names of a table entry, looked up once per run.
pub(super) struct Resolved {
    /// Roles that may be literals, with the attribute's name.
    literals: SmallVec<[(u8, Str); 4]>,
    same_shape: SmallVec<[u8; 4]>,
    same_dtype: SmallVec<[u8; 4]>,
    per_partition: SmallVec<[u8; 4]>,
    /// The first role written, where `per_partition` has any.
    lanes_of: Option<u8>,
}

/// What is resolved so far: a file uses few of the ops.
pub(super) struct ResolvedOps {
    by_code: Vec<Option<Rc<Resolved>>>,
}

impl ResolvedOps {
    pub(super) fn new() -> ResolvedOps {
        ResolvedOps {
            by_code: vec![None; OpCode::ALL.len()],
        }
    }

    fn of(&mut self, ctx: &Context, code: OpCode) -> Rc<Resolved> {
        match self.by_code.get_mut(code as usize) {
            Some(Some(known)) => Rc::clone(known),
            Some(empty) => Rc::clone(empty.insert(Rc::new(Resolved::of(ctx, code.def())))),
            None => Rc::new(Resolved::of(ctx, code.def())),
        }
    }
}

impl Resolved {
    fn of(ctx: &Context, def: &'static OpDef) -> Resolved {
        let roles = |names: &[&str]| -> SmallVec<[u8; 4]> {
            names
                .iter()
                .map(|name| def.find_role(name).map_or(u8::MAX, |role| role as u8))
                .collect()
        };
        let literals = def
            .operands
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.takes_literal())
            .filter_map(|(role, entry)| Some((role as u8, ctx.find_str(entry.name)?)))
            .collect();
        Resolved {
            literals,
            same_shape: roles(def.same_shape),
            same_dtype: roles(def.same_dtype),
            per_partition: roles(def.per_partition),
            lanes_of: def
                .operands
                .iter()
                .position(OperandDef::writes)
                .filter(|_| !def.per_partition.is_empty())
                .map(|role| role as u8),
        }
    }

    /// The literal in a role.
    fn literal(&self, ir: &Ir, op: Op, role: usize) -> Option<Attr> {
        let dict = ir.dict(op);
        if dict == Dict::EMPTY {
            return None;
        }
        let (_, name) = self
            .literals
            .iter()
            .find(|entry| usize::from(entry.0) == role)?;
        ir.ctx.dict_get(dict, *name)
    }
}

/// "128 partitions of 512 elements"
pub(super) fn shape_text(shape: &Shape) -> String {
    let elements = counted(shape.elements, "element");
    match shape.space {
        Space::Dram => elements,
        _ => format!("{} of {elements}", counted(shape.partitions, "partition")),
    }
}

fn dtypes_text(entry: &OperandDef) -> String {
    use super::super::ops::{FLOATS, INTS, NUMERIC};
    if entry.dtypes == NUMERIC {
        "a numeric dtype".to_owned()
    } else if entry.dtypes == INTS {
        "an integer dtype".to_owned()
    } else if entry.dtypes == FLOATS {
        "a float dtype".to_owned()
    } else {
        entry.dtypes.list()
    }
}

/// Whether an op word of the instruction works on raw bits.
pub(super) fn uses_bits(ir: &Ir, op: Op, def: &OpDef) -> bool {
    def.attrs
        .iter()
        .filter(|attr| matches!(attr.ty, AttrType::Enum(def) if std::ptr::eq(def, &ALU_OPS)))
        .any(|attr| {
            ir.attr(op, attr.name)
                .and_then(|attr| ir.ctx.attr_str(attr))
                .is_some_and(is_bitvec)
        })
}

pub(super) fn ir_attr_part(ir: &Ir, op: Op, name: &str) -> Part {
    ir.ctx
        .find_str(name)
        .filter(|&name| ir.ctx.dict_get(ir.dict(op), name).is_some())
        .map_or(Part::Whole, Part::Attr)
}
