//! Whether a form matches at an instruction, and if not, why.
//!
//! Order of questions: the anchor's op, attributes and operands; the instructions found through
//! memory, each the same way; the conditions, in the order they are written; then what every rewrite
//! asks – that operands still hold, where the new instructions stand, what they held where they
//! were read, and that nobody looks at results too early.

use bir_dialect::bir::access::Access;
use bir_dialect::bir::attrs::{number, number_bits};
use bir_dialect::bir::num::{DType, convert, parse, same_value, to_f64};
use bir_dialect::bir::ops::{ImmType, Kind, OpCode, is_bitvec};
use bir_dialect::bir::program::names;
use bir_dialect::bir::view::{OpView, RoleView};
use bir_dialect::ir::{Attr, AttrView, Context, Ir, Op, Operand};
use smallvec::SmallVec;

use crate::flow::Flow;
use crate::rule::{
    Action, Arith, AttrWhat, Cond, Flags, Form, Literal, Step, Stmt, StmtAttr, StmtOperand, VarId,
    What,
};

/// Readers of the same bytes that are looked at, nearest first: of thousands who read one constant each
/// would look at all others.
const MOST_SIBLINGS: usize = 32;

/// What a variable stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bound {
    /// Nothing yet.
    #[default]
    Unbound,
    /// An optional operand or attribute that is absent.
    Absent,
    /// A tile: an operand of this instruction.
    Tile(Op, Operand),
    /// An attribute or literal.
    Attr(Attr),
}

/// The instructions of a match, and what the variables stand for.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Per instruction of the form.
    pub ops: SmallVec<[Option<Op>; 4]>,
    /// Per variable.
    pub vars: SmallVec<[Bound; 8]>,
}

/// Why a form does not match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// An instruction is another op.
    Op(usize),
    /// An attribute of an instruction differs: which, by name.
    Attr(usize, &'static str),
    /// It has an attribute or operand the pattern does not mention.
    Extra(usize),
    /// An operand differs: its role.
    Operand(usize, usize),
    /// No single instruction wrote all of what an operand reads.
    NoWriter(usize),
    /// Nobody, or too many, read what was written.
    NoReader(usize),
    /// Nobody near reads the same.
    NoSibling(usize),
    /// A condition does not hold: its number.
    Cond(usize),
    /// The pipeline does not allow what the rule needs.
    Flags,
    /// The option of the rule is off.
    Option,
    /// Between where it was read and where the new instructions stand, an operand is overwritten.
    Clobbered(VarId),
    /// Between where it was written and where it would be written, somebody accesses a result.
    Early(VarId),
    /// The new instruction may not have this operand: number of the action, role.
    Illegal(usize, usize),
    /// No engine that may run the new instruction.
    Engine(usize),
    /// The op forbids the new instruction for reasons of its own: number of the action.
    Own(usize),
    /// The program orders an instruction that would go by what the new ones cannot take over.
    Ordered,
    /// A computed number does not fit.
    Number,
    /// A registered rewrite declined.
    Declined,
    /// It would be what is there already.
    Unchanged,
}

impl Miss {
    /// The reason in words: what a remark says.
    pub fn text(self, form: &Form) -> String {
        let op = |stmt: usize| form.stmts[stmt].code.def().name;
        let var = |var: VarId| &form.vars[var].name;
        let made = |action: usize| match &form.actions[action] {
            Action::Make(stmt) => stmt.code.def(),
            Action::Call(..) => form.stmts[form.at].code.def(),
        };
        match self {
            Miss::Op(stmt) => format!("expected `{}`", op(stmt)),
            Miss::Attr(stmt, name) => format!("attribute `{name}` of `{}` differs", op(stmt)),
            Miss::Extra(stmt) => format!(
                "`{}` has an attribute or operand the pattern does not mention",
                op(stmt)
            ),
            Miss::Operand(stmt, role) => {
                let role = form.stmts[stmt].code.def().operands[role].name;
                format!("operand `{role}` of `{}` differs", op(stmt))
            }
            Miss::NoWriter(stmt) => format!(
                "no `{}` of this block wrote all of what is read, last",
                op(stmt)
            ),
            Miss::NoReader(stmt) => {
                format!("no `{}` of this block reads what is written", op(stmt))
            }
            Miss::NoSibling(stmt) => {
                format!("no `{}` near in this block reads the same", op(stmt))
            }
            Miss::Cond(at) => form.conds.get(at).map_or(String::new(), |cond| {
                format!("`{}` does not hold", cond.text())
            }),
            Miss::Flags => "the pipeline does not allow what the rule needs".to_owned(),
            Miss::Option => "the rule's option is off".to_owned(),
            Miss::Clobbered(at) => format!("`%{}` is overwritten in between", var(at)),
            Miss::Early(at) => format!("`%{}` is accessed in between", var(at)),
            Miss::Illegal(action, role) => {
                let def = made(action);
                let role = def.operands[role].name;
                format!("`{}` cannot have such an operand `{role}`", def.name)
            }
            Miss::Engine(action) => format!("no engine here runs `{}`", made(action).name),
            Miss::Own(action) => format!(
                "`{}` cannot be made of these operands and attributes",
                made(action).name
            ),
            Miss::Ordered => {
                "semaphores, an order or a schedule keep what would go in its place".to_owned()
            }
            Miss::Number => "a computed number does not fit".to_owned(),
            Miss::Declined => "the registered rewrite declined".to_owned(),
            Miss::Unchanged => "nothing would change".to_owned(),
        }
    }

    /// The constraint that vetoed, for counters; `None` where the shape of the code differs.
    pub fn veto(self, form: &Form) -> Option<String> {
        match self {
            Miss::Cond(at) => form.conds.get(at).map(Cond::text),
            Miss::Clobbered(_) => Some("clobbered".to_owned()),
            Miss::Early(_) => Some("accessed in between".to_owned()),
            Miss::Flags => Some("not allowed".to_owned()),
            Miss::Illegal(..) | Miss::Engine(_) | Miss::Own(_) => Some("not legal".to_owned()),
            Miss::Ordered => Some("ordered".to_owned()),
            Miss::Number => Some("number does not fit".to_owned()),
            Miss::Declined => Some("declined".to_owned()),
            _ => None,
        }
    }
}

/// What a constraint may look at.
pub struct Site<'a> {
    /// The file.
    pub ir: &'a Ir,
    /// Memory.
    pub flow: &'a mut Flow,
    /// The form.
    pub form: &'a Form,
    /// What it found.
    pub found: &'a Found,
    /// What the pipeline allows.
    pub allowed: Flags,
}

impl Site<'_> {
    /// Where a variable was bound, if it is a tile.
    pub fn operand(&self, var: VarId) -> Option<(Op, Operand)> {
        match self.found.vars[var] {
            Bound::Tile(op, operand) => Some((op, operand)),
            _ => None,
        }
    }

    /// The attribute or literal a variable stands for.
    pub fn literal(&self, var: VarId) -> Option<Attr> {
        match self.found.vars[var] {
            Bound::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// The operand in a role of an instruction of the match.
    pub fn operand_at(&self, stmt: usize, role: usize) -> Option<(Op, Operand)> {
        let op = self.found.ops[stmt]?;
        let operand = OpView::new(self.ir, op).role_at(role).operand()?;
        Some((op, operand))
    }

    /// Everywhere a variable stands.
    pub fn operands(&self, var: VarId) -> Vec<(Op, Operand)> {
        let places = self.form.places(var);
        places
            .filter_map(|(stmt, role)| self.operand_at(stmt, role))
            .collect()
    }

    /// Whether two operands access the same elements in the same order.
    pub fn same_elements(&self, a: (Op, Operand), b: (Op, Operand)) -> bool {
        same_elements(self.ir, a, b)
    }

    /// The number an expression gives.
    pub fn number(&self, sum: &Arith) -> Option<f64> {
        value(&self.ir.ctx, self.found, sum)
    }

    pub(crate) fn holds(&mut self, cond: &Cond) -> bool {
        match cond {
            Cond::All(list) => list.iter().all(|one| self.holds(one)),
            Cond::Any(list) => list.iter().any(|one| self.holds(one)),
            Cond::Not(one) => !self.holds(one),
            Cond::Compare(a, op, b) => {
                let (Some(a), Some(b)) = (self.number(a), self.number(b)) else {
                    return false;
                };
                match op.as_str() {
                    "==" => a == b,
                    "!=" => a != b,
                    "<" => a < b,
                    "<=" => a <= b,
                    ">" => a > b,
                    _ => a >= b,
                }
            }
            Cond::Allowed(flag) => self.allowed.get(flag) == Some(true),
            Cond::DType(var, set, _) => {
                // What one instruction wrote as one dtype another may read as a second.
                let all = self.operands(*var);
                !all.is_empty()
                    && all.iter().all(|&(op, at)| {
                        let access = OpView::new(self.ir, op).access(at);
                        access.is_some_and(|(_, access)| set.has(access.dtype))
                    })
            }
            Cond::Call(constraint, args, _) => (constraint.holds)(self, args).unwrap_or(false),
        }
    }
}

/// Whether two operands access the same elements in the same order.
pub(crate) fn same_elements(ir: &Ir, a: (Op, Operand), b: (Op, Operand)) -> bool {
    let (x, y) = (ir.operand(a.1), ir.operand(b.1));
    if x.value != y.value {
        return false;
    }
    if !Access::has_terms(&ir.ctx, x.annot) {
        return x.annot == y.annot;
    }
    // Terms name loop indices by their position in each instruction.
    let one = OpView::new(ir, a.0);
    let other = OpView::new(ir, b.0);
    let (Some((_, p)), Some((_, q))) = (one.access(a.1), other.access(b.1)) else {
        return false;
    };
    let (mut p, mut q) = (p, q);
    let index = |op: OpView<'_>, at: u8| op.indices().nth(usize::from(at));
    let equal = p.terms.len() == q.terms.len()
        && p.terms.iter().all(|term| {
            q.terms.iter().any(|other_term| {
                term.target == other_term.target
                    && term.coef == other_term.coef
                    && index(one, term.index) == index(other, other_term.index)
            })
        });
    p.terms.clear();
    q.terms.clear();
    equal && p == q
}

/// The number an expression gives.
pub(crate) fn value(ctx: &Context, found: &Found, sum: &Arith) -> Option<f64> {
    match sum {
        Arith::Number(number) => Some(*number),
        Arith::Var(var) => match found.vars[*var] {
            Bound::Attr(attr) => match number_bits(ctx, attr) {
                Some((dtype, bits)) => to_f64(dtype, bits),
                None => ctx.attr_int(attr).map(|int| int as f64),
            },
            _ => None,
        },
        Arith::Binary(a, op, b) => {
            let (a, b) = (value(ctx, found, a)?, value(ctx, found, b)?);
            Some(match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ => a / b,
            })
        }
    }
}

/// Tries a form at an instruction.
pub(crate) fn find(
    ir: &Ir,
    flow: &mut Flow,
    form: &Form,
    anchor: Op,
    allowed: Flags,
) -> Result<Found, Miss> {
    let mut found = Found {
        ops: SmallVec::from_elem(None, form.stmts.len()),
        vars: SmallVec::from_elem(Bound::Unbound, form.vars.len()),
    };
    statement(ir, form, form.anchor, anchor, &mut found)?;
    for step in &form.plan {
        follow(ir, flow, form, *step, &mut found)?;
    }
    let mut site = Site {
        ir,
        flow,
        form,
        found: &found,
        allowed,
    };
    for (number, cond) in form.conds.iter().enumerate() {
        if !site.holds(cond) {
            return Err(Miss::Cond(number));
        }
    }
    placement(&mut site)?;
    Ok(found)
}

/// Matches one instruction and binds its variables.
fn statement(ir: &Ir, form: &Form, number: usize, op: Op, found: &mut Found) -> Result<(), Miss> {
    let stmt = &form.stmts[number];
    if OpCode::of(ir, op) != Some(stmt.code) {
        return Err(Miss::Op(number));
    }
    let repeated = found.ops.contains(&Some(op));
    if repeated {
        return Err(Miss::Op(number));
    }
    found.ops[number] = Some(op);
    for attr in &stmt.attrs {
        attribute(ir, number, op, attr, found)?;
    }
    for operand in &stmt.operands {
        role(ir, number, op, stmt, operand, found)?;
    }
    if stmt.open {
        return Ok(());
    }
    let def = stmt.code.def();
    for (name, attr) in ir.ctx.dict_entries(ir.dict(op)) {
        let text = ir.ctx.text(name);
        let mentioned = stmt.attrs.iter().any(|one| one.def.name == text)
            || stmt
                .operands
                .iter()
                .any(|one| def.operands[one.role].name == text);
        let known = def.attr(text).is_some() || def.find_role(text).is_some();
        if known && !mentioned && ir.ctx.attr(attr) != AttrView::Bool(false) {
            return Err(Miss::Extra(number));
        }
    }
    let indices = def.indices_role();
    let extra = ir.operands(op).iter().any(|operand| {
        let role = usize::from(operand.role);
        role != indices && !stmt.operands.iter().any(|one| one.role == role)
    });
    match extra {
        true => Err(Miss::Extra(number)),
        false => Ok(()),
    }
}

fn attribute(
    ir: &Ir,
    number: usize,
    op: Op,
    attr: &StmtAttr,
    found: &mut Found,
) -> Result<(), Miss> {
    let miss = Miss::Attr(number, attr.def.name);
    let here = ir
        .attr(op, attr.def.name)
        .filter(|&here| ir.ctx.attr(here) != AttrView::Bool(false));
    let Some(here) = here else {
        if let AttrWhat::Bind(var) = attr.what {
            if !attr.optional {
                return Err(miss);
            }
            return bind(&mut found.vars[var], Bound::Absent)
                .then_some(())
                .ok_or(miss);
        }
        let fine = attr.optional || matches!(attr.what, AttrWhat::Absent);
        return fine.then_some(()).ok_or(miss);
    };
    let ctx = &ir.ctx;
    let same = match &attr.what {
        AttrWhat::Bind(var) => bind(&mut found.vars[*var], Bound::Attr(here)),
        AttrWhat::Words(words) => ctx
            .attr_str(here)
            .is_some_and(|word| words.iter().any(|one| one == word)),
        AttrWhat::Flag => true,
        AttrWhat::Absent => false,
        AttrWhat::Int(int) => ctx.attr_int(here) == Some(*int),
        AttrWhat::Number(wanted) => is_literal(ctx, here, wanted),
        AttrWhat::List(list) => match ctx.attr(here) {
            AttrView::Array(elements) => elements
                .iter()
                .map(|one| ctx.attr_int(one))
                .eq(list.iter().map(|&one| Some(one))),
            _ => false,
        },
        AttrWhat::Text(text) => ctx.attr_str(here) == Some(text),
        AttrWhat::Sum(_) => false,
    };
    same.then_some(()).ok_or(miss)
}

/// Whether a literal is the number a rule says, rounded to the literal's own dtype.
fn is_literal(ctx: &Context, attr: Attr, wanted: &Literal) -> bool {
    number_bits(ctx, attr).is_some_and(|(dtype, bits)| wanted.bits(dtype) == Some(bits))
}

fn bind(slot: &mut Bound, to: Bound) -> bool {
    match *slot {
        Bound::Unbound => {
            *slot = to;
            true
        }
        bound => bound == to,
    }
}

fn role(
    ir: &Ir,
    number: usize,
    op: Op,
    stmt: &Stmt,
    operand: &StmtOperand,
    found: &mut Found,
) -> Result<(), Miss> {
    let miss = Miss::Operand(number, operand.role);
    let here = OpView::new(ir, op).role_at(operand.role);
    let role = &stmt.code.def().operands[operand.role];
    let good = match (&operand.what, here) {
        (_, RoleView::Absent) if operand.optional => match operand.what {
            What::Tile(var) | What::Literal(var) => bind(&mut found.vars[var], Bound::Absent),
            _ => true,
        },
        (_, RoleView::Absent) => false,
        (What::Any, _) => true,
        (What::Tile(var), RoleView::Operand(at)) => {
            let slot = &mut found.vars[*var];
            match *slot {
                Bound::Unbound => {
                    *slot = Bound::Tile(op, at);
                    true
                }
                // What an instruction wrote and another reads need not be the same elements.
                Bound::Tile(other, _) if other != op => true,
                Bound::Tile(other, first) => same_elements(ir, (other, first), (op, at)),
                _ => false,
            }
        }
        (What::Tile(var), RoleView::Literal(attr)) if role.takes_literal() => {
            bind(&mut found.vars[*var], Bound::Attr(attr))
        }
        (What::Literal(var), RoleView::Literal(attr)) => {
            bind(&mut found.vars[*var], Bound::Attr(attr))
        }
        (What::Number(wanted), RoleView::Literal(attr)) => is_literal(&ir.ctx, attr, wanted),
        _ => false,
    };
    good.then_some(()).ok_or(miss)
}

/// Finds one more instruction through memory.
fn follow(
    ir: &Ir,
    flow: &mut Flow,
    form: &Form,
    step: Step,
    found: &mut Found,
) -> Result<(), Miss> {
    let operand = |found: &Found, stmt: usize, role: usize| {
        let op = found.ops[stmt]?;
        Some((op, OpView::new(ir, op).role_at(role).operand()?))
    };
    match step {
        Step::Writer {
            stmt,
            role,
            from,
            by,
        } => {
            let miss = Miss::NoWriter(stmt);
            let (op, read) = operand(found, from, by).ok_or(miss)?;
            let last = flow.memory(ir).last_writer(ir, op, read).ok_or(miss)?;
            let wrote = usize::from(ir.operand(last.operand).role);
            if !last.covers || wrote != role {
                return Err(miss);
            }
            if ir.operand(last.operand).value != ir.operand(read).value {
                return Err(miss);
            }
            match statement(ir, form, stmt, last.op, found) {
                Err(Miss::Op(_)) => Err(miss),
                other => other,
            }
        }
        Step::Sibling {
            stmt,
            role,
            from,
            by,
        } => {
            let miss = Miss::NoSibling(stmt);
            let (op, read) = operand(found, from, by).ok_or(miss)?;
            let is_earlier = stmt < from;
            let memory = flow.memory(ir);
            let near = memory.readers_beside(ir, op, read, is_earlier, MOST_SIBLINGS);
            first_of(
                ir,
                form,
                (stmt, role),
                near,
                miss,
                found,
                &mut |other, at| same_elements(ir, (op, read), (other, at)),
            )
        }
        Step::Reader {
            stmt,
            role,
            from,
            by,
        } => {
            let miss = Miss::NoReader(stmt);
            let (op, wrote) = operand(found, from, by).ok_or(miss)?;
            let value = ir.operand(wrote).value;
            let memory = flow.memory(ir);
            let (readers, _) = memory.readers_of(ir, op, wrote);
            first_of(
                ir,
                form,
                (stmt, role),
                readers,
                miss,
                found,
                &mut |reader, read| {
                    let last = memory.last_writer(ir, reader, read);
                    ir.operand(read).value == value
                        && last.is_some_and(|last| last.op == op && last.covers)
                },
            )
        }
    }
}

/// Takes the first of some instructions that is the one a form has there; else says why the first that came
/// near is not, or `miss`.
fn first_of(
    ir: &Ir,
    form: &Form,
    (stmt, role): (usize, usize),
    ops: Vec<Op>,
    miss: Miss,
    found: &mut Found,
    fits: &mut dyn FnMut(Op, Operand) -> bool,
) -> Result<(), Miss> {
    let mut first = miss;
    for op in ops {
        let operand = OpView::new(ir, op).role_at(role).operand();
        let is_op = OpCode::of(ir, op) == Some(form.stmts[stmt].code);
        if !operand.is_some_and(|operand| is_op && fits(op, operand)) {
            continue;
        }
        let mut attempt = found.clone();
        match statement(ir, form, stmt, op, &mut attempt) {
            Ok(()) => {
                *found = attempt;
                return Ok(());
            }
            Err(why) if first == miss => first = why,
            Err(_) => {}
        }
    }
    Err(first)
}

/// Whether operands and results may stand where the new instructions will.
fn placement(site: &mut Site<'_>) -> Result<(), Miss> {
    let form = site.form;
    // A variable two instructions read is one value only if nobody writes it in between.
    for var in 0..form.vars.len() {
        let reads: Vec<(Op, Operand)> = form
            .places(var)
            .filter(|&(stmt, role)| !form.stmts[stmt].code.def().operands[role].writes())
            .filter_map(|(stmt, role)| site.operand_at(stmt, role))
            .collect();
        let Some((&first, rest)) = reads.split_first() else {
            continue;
        };
        for &other in rest.iter().filter(|other| other.0 != first.0) {
            if form.writer(var).is_some() {
                // Both read what one instruction wrote: `follow` has seen to it.
                continue;
            }
            if !site.same_elements(first, other) || written_between(site, first, other.0) {
                return Err(Miss::Clobbered(var));
            }
        }
    }
    if form.stmts.len() == 1 {
        return Ok(());
    }
    let Some(place) = site.found.ops[form.at] else {
        return Err(Miss::Op(form.at));
    };
    let mut written: Vec<VarId> = Vec::new();
    for action in &form.actions {
        let Action::Make(stmt) = action else {
            continue;
        };
        let def = stmt.code.def();
        for operand in &stmt.operands {
            let What::Tile(var) = operand.what else {
                continue;
            };
            let Some(bound) = site.operand(var) else {
                continue;
            };
            let role = &def.operands[operand.role];
            if role.reads() && !written.contains(&var) {
                let by_kept = form
                    .places(var)
                    .filter_map(|(stmt, role)| site.operand_at(stmt, role))
                    .last();
                let from = by_kept.unwrap_or(bound);
                if from.0 != place && written_between(site, from, place) {
                    return Err(Miss::Clobbered(var));
                }
            }
            if role.writes() {
                written.push(var);
                let Some((stmt, role)) = form.writer(var) else {
                    continue;
                };
                if let Some(at) = site.operand_at(stmt, role)
                    && at.0 != place
                {
                    let memory = site.flow.memory(site.ir);
                    // Those that stay look at it like anybody else.
                    let stmts = form.stmts.iter().zip(&site.found.ops);
                    let except: Vec<Op> = stmts
                        .filter(|(stmt, _)| !stmt.keep)
                        .filter_map(|(_, op)| *op)
                        .collect();
                    let location = site.ir.operand(at.1).value;
                    if memory.touched_between(site.ir, at.0, place, at, &except)
                        || (site.flow).others_between(site.ir, location, at.0, place)
                    {
                        return Err(Miss::Early(var));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether bytes an operand reads may be written between its instruction and another, the earlier
/// one's own results included.
fn written_between(site: &mut Site<'_>, read: (Op, Operand), to: Op) -> bool {
    let ir = site.ir;
    if ir.block(read.0) != ir.block(to) {
        return true;
    }
    let memory = site.flow.memory(ir);
    let (from, until) = match memory.comes_before(read.0, to) {
        true => (read.0, to),
        false => (to, read.0),
    };
    let location = ir.operand(read.1).value;
    // What an instruction wrote is what is read of it.
    let is_own = OpView::new(ir, read.0).def().is_some_and(|def| {
        let role = def.operands.get(usize::from(ir.operand(read.1).role));
        role.is_some_and(|role| role.writes())
    });
    memory.clobbered_between(ir, from, until, read.0, read.1)
        || !is_own && memory.writes(from, read.0, read.1)
        || site.flow.others_between(ir, location, from, until)
}

/// The literal of a role, as an attribute: `None` where the number does not fit.
pub(crate) fn literal(
    ctx: &mut Context,
    code: OpCode,
    role: usize,
    text: &str,
    dtypes: &LiteralTypes,
) -> Option<Attr> {
    let dtype = match code.def().operands[role].kind {
        Kind::Imm(ImmType::F32) => DType::F32,
        Kind::Imm(ImmType::Dst) => dtypes.dst?,
        Kind::Imm(ImmType::Alu) if dtypes.bits => dtypes.src?,
        Kind::Imm(ImmType::Alu) => DType::F32,
        _ => {
            let int = text.parse().ok()?;
            return Some(ctx.int(int));
        }
    };
    let bits = match parse(dtype, text) {
        Ok(bits) => bits,
        // `0.0` is a fine 0 for an integer; nothing is rounded.
        Err(_) => {
            let float = parse(DType::F32, text).ok()?;
            let bits = convert(DType::F32, dtype, float)?;
            let back = convert(dtype, DType::F32, bits)?;
            same_value(DType::F32, back, float).then_some(bits)?
        }
    };
    Some(number(ctx, dtype, bits))
}

/// What decides the dtype of a literal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LiteralTypes {
    /// Of the first operand written.
    pub dst: Option<DType>,
    /// Of the first operand read.
    pub src: Option<DType>,
    /// Whether the op words are bit operations.
    pub bits: bool,
}

impl LiteralTypes {
    /// Whether a word makes literals integers.
    pub(crate) fn word(&mut self, word: &str) {
        self.bits |= is_bitvec(word);
    }
}

/// The engine the text names.
pub(crate) fn engine_attr(ir: &Ir, op: Op) -> Option<Attr> {
    ir.ctx.dict_get(ir.dict(op), names::ENGINE)
}
