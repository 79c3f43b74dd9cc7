//! What is observable: of instructions, and of locations.

use std::collections::{HashMap, HashSet};

use bir_dialect::bir::attrs::Accumulate;
use bir_dialect::bir::ops::{Kind, OpCode, OpDef, Trait, writes_hidden_state};
use bir_dialect::bir::program::names;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{AttrView, Dict, Ir, Op, OperandData, Str, Value};

use bir_dialect::analysis::outside::{function_allocs, is_open, referred, remote_pairs};

/// What keeps an instruction whatever is read of it.
const KEEP: &[Trait] = &[
    Trait::Observable,
    Trait::Sync,
    Trait::MustKeep,
    Trait::Control,
    Trait::Collective,
    Trait::Terminator,
];

/// Whether an instruction stays for its own sake: it has effects somebody sees, synchronises,
/// steers, writes hidden state, or is an indirect DMA. Of ops that are not in the table nothing is
/// known, so they stay.
pub(super) fn keeps(ir: &Ir, op: Op) -> bool {
    let Some(code) = OpCode::of(ir, op) else {
        return true;
    };
    let def = code.def();
    KEEP.iter().any(|&keep| def.has(keep))
        || !ir.regions(op).is_empty()
        || def.has(Trait::HiddenState) && writes_hidden_state(ir, op)
        || is_indirect_dma(ir, op, def)
}

/// Whether data decides where a DMA reads or writes.
pub(super) fn is_indirect_dma(ir: &Ir, op: Op, def: &OpDef) -> bool {
    if !def.has(Trait::Dma) || !def.has(Trait::Dynamic) {
        return false;
    }
    ir.operands(op).iter().any(|operand| {
        let role = def.operands.get(usize::from(operand.role));
        role.is_some_and(|role| role.name.ends_with("index") || role.name.ends_with("offset"))
    })
}

/// What an operand does with the location or register it names.
#[derive(Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// What an operand of an instruction does.
pub(super) fn uses(ir: &Ir, op: Op, code: Option<OpCode>, operand: &OperandData) -> Uses {
    let role = code.and_then(|code| code.def().operands.get(usize::from(operand.role)));
    let (Some(code), Some(role)) = (code, role) else {
        let is_index = code.is_some();
        return Uses {
            reads: true,
            writes: !is_index,
        };
    };
    match role.kind {
        Kind::Out => Uses {
            reads: accumulates(ir, op, code.def()),
            writes: true,
        },
        Kind::InOut => Uses {
            reads: true,
            writes: true,
        },
        Kind::RegOut => Uses {
            reads: false,
            writes: true,
        },
        Kind::In | Kind::Imm(_) | Kind::RegIn | Kind::RegImm => Uses {
            reads: true,
            writes: false,
        },
    }
}

/// Whether what a destination holds goes into what is written there.
fn accumulates(ir: &Ir, op: Op, def: &OpDef) -> bool {
    let dict = ir.dict(op);
    if dict == Dict::EMPTY || !def.has(Trait::HiddenState) && def.attr("accumulate").is_none() {
        return false;
    }
    let attr = ir.ctx.dict_get(dict, names::ACCUMULATE);
    attr.is_some() && Accumulate::get(&ir.ctx, attr) != Some(Accumulate::No)
}

/// Who else sees what a location holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Escape {
    No,
    /// Somebody outside, when the function has ended.
    AtEnd,
    /// Others, at any time.
    Always,
    /// Others, who may write it, too.
    Open,
}

/// The locations of a function that others see, and its instructions.
pub(super) struct Roots {
    /// Per value.
    escapes: Vec<Escape>,
    /// Locations that share their bytes with others, sorted: the value, and the first of its group.
    partners: Vec<(Value, Value)>,
    /// The other way round: groups and their members, sorted.
    groups: Vec<(Value, Value)>,
    /// The instructions when it looked, in text order.
    pub(super) instructions: Vec<(Op, Option<OpCode>)>,
}

impl Roots {
    /// Looks at a function.
    pub(super) fn new(ir: &Ir, func: Op, remote: &Remote) -> Roots {
        let partners = partners(ir, func);
        let mut groups: Vec<(Value, Value)> = partners
            .iter()
            .map(|&(value, group)| (group, value))
            .collect();
        groups.sort_unstable();
        let mut roots = Roots {
            escapes: vec![Escape::No; ir.value_rows()],
            partners,
            groups,
            instructions: Vec::new(),
        };
        let own = ir.parent(func);
        let mut last = None;
        for op in ir.walk_op(func).skip(1) {
            let code = OpCode::of(ir, op);
            if code != Some(OpCode::Alloc) {
                if code != Some(OpCode::Depset) {
                    roots.instructions.push((op, code));
                }
                if let Some(code) = code
                    && code.def().has(Trait::Dynamic)
                    && is_indirect_dma(ir, op, code.def())
                {
                    for operand in ir.operands(op) {
                        roots.escapes[operand.value.index()] = Escape::Always;
                    }
                }
                continue;
            }
            let Some(value) = ir.result(op) else { continue };
            // Neighbours mostly are alike.
            let dict = ir.dict(op);
            let (_, escapes) = *last
                .take_if(|(known, _)| *known == dict)
                .get_or_insert_with(|| (dict, escape(ir, op)));
            last = Some((dict, escapes));
            let named = ir
                .value_name(value)
                .is_some_and(|name| remote.is_named(name, own));
            let found = if named { Escape::Open } else { escapes };
            let known = &mut roots.escapes[value.index()];
            *known = found.max(*known);
        }
        for of_one in roots.groups.chunk_by(|a, b| a.0 == b.0) {
            let all = of_one
                .iter()
                .map(|&(_, value)| roots.escapes[value.index()]);
            let escape = all.max().unwrap_or(Escape::Always).max(Escape::Always);
            for &(_, value) in of_one {
                roots.escapes[value.index()] = escape;
            }
        }
        roots
    }

    /// Instructions of one kind that are still there, in text order.
    pub(super) fn of<'a>(&'a self, ir: &'a Ir, code: OpCode) -> impl Iterator<Item = Op> + 'a {
        let all = self.instructions.iter();
        all.filter(move |&&(op, known)| known == Some(code) && !ir.is_erased(op))
            .map(|&(op, _)| op)
    }

    /// Whether a location is seen by others than the instructions that name it.
    pub(super) fn escapes(&self, value: Value) -> bool {
        self.escapes[value.index()] > Escape::No
    }

    /// Whether others may look at a location at any time.
    pub(super) fn always_escapes(&self, value: Value) -> bool {
        self.escapes[value.index()] >= Escape::Always
    }

    /// Whether others than the instructions that name it may write a location, or what is the same
    /// bytes.
    pub(super) fn is_written_by_others(&self, value: Value) -> bool {
        self.escapes[value.index()] == Escape::Open
    }

    /// Whether a location nobody touches may go: nobody outside knows it, and all who share its
    /// bytes can go with it.
    pub(super) fn may_go(&self, ir: &Ir, value: Value, unused: &dyn Fn(Value) -> bool) -> bool {
        let unknown = |value: Value| {
            let alloc = ir.def_op(value);
            alloc.is_some_and(|alloc| escape(ir, alloc) == Escape::No)
        };
        match self.group(value) {
            None => !self.escapes(value),
            Some(group) => {
                let from = self.groups.partition_point(|pair| pair.0 < group);
                self.groups[from..]
                    .iter()
                    .take_while(|pair| pair.0 == group)
                    .all(|pair| unused(pair.1) && unknown(pair.1))
            }
        }
    }

    /// Whether two locations are the same bytes.
    pub(super) fn same_bytes(&self, a: Value, b: Value) -> bool {
        a == b
            || self
                .group(a)
                .is_some_and(|group| self.group(b) == Some(group))
    }

    /// The first of the locations that are the same bytes; `None` where there is no other.
    pub(super) fn group(&self, value: Value) -> Option<Value> {
        let at = self.partners.binary_search_by_key(&value, |pair| pair.0);
        at.ok().map(|at| self.partners[at].1)
    }
}

/// Who sees a location besides the instructions that name it.
fn escape(ir: &Ir, alloc: Op) -> Escape {
    if ir.dict(alloc) == Dict::EMPTY {
        return Escape::No;
    }
    let view = OpView::new(ir, alloc);
    if is_open(ir, alloc) {
        return Escape::Open;
    }
    match view.word("kind") {
        Some("output" | "inout" | "input") => Escape::AtEnd,
        _ => Escape::No,
    }
}

/// Names of locations that cores write by `remote_target`, and whose modules say so.
#[derive(Default)]
pub(super) struct Remote {
    /// Per name the module, `None` where there are several.
    named_by: HashMap<Str, Option<Op>>,
}

impl Remote {
    pub(super) fn new(ir: &Ir) -> Remote {
        let mut remote = Remote::default();
        let modules = ir.block_ops(ir.root_block());
        for module in modules {
            let funcs = super::functions(ir, module).into_iter();
            for op in funcs.flat_map(|func| function_allocs(ir, func)) {
                let target = ir.attr(op, "remote_target");
                let Some(name) = target.and_then(|attr| referred(ir, ir.ctx.attr(attr))) else {
                    continue;
                };
                let by = remote.named_by.entry(name).or_insert(Some(module));
                if *by != Some(module) {
                    *by = None;
                }
            }
        }
        remote
    }

    /// Whether another module than `own` names a location.
    fn is_named(&self, name: Str, own: Option<Op>) -> bool {
        let by = self.named_by.get(&name);
        by.is_some_and(|by| by.is_none() || *by != own)
    }
}

/// Locations that share their bytes by `must_alias` or `remote_target`, with the first of each group.
fn partners(ir: &Ir, func: Op) -> Vec<(Value, Value)> {
    let allocs = || function_allocs(ir, func).filter_map(|op| Some((op, ir.result(op)?)));
    let aliased = |op: Op| match ir.attr(op, "must_alias").map(|attr| ir.ctx.attr(attr)) {
        Some(AttrView::Symbol(name)) => Some(name),
        _ => None,
    };
    let links: Vec<(Value, Str)> = allocs()
        .filter(|&(op, _)| ir.dict(op) != Dict::EMPTY)
        .filter_map(|(op, value)| Some((value, aliased(op)?)))
        .collect();
    let remote: Vec<(Op, Value)> = allocs()
        .filter(|&(op, _)| ir.dict(op) != Dict::EMPTY && ir.attr(op, "remote_target").is_some())
        .collect();
    if links.is_empty() && remote.len() < 2 {
        return Vec::new();
    }
    let named: HashSet<Str> = links.iter().map(|link| link.1).collect();
    let mut of_name: Vec<(Str, Value)> = allocs()
        .filter_map(|(_, value)| Some((ir.value_name(value)?, value)))
        .filter(|(name, _)| named.contains(name))
        .collect();
    of_name.sort_unstable();
    let mut first: Vec<(Value, Value)> = Vec::new();
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for (value, name) in links {
        let at = of_name.partition_point(|pair| pair.0 < name);
        if let Some(&(_, partner)) = of_name.get(at).filter(|pair| pair.0 == name) {
            pairs.push((value, partner));
            first.extend([(value, value), (partner, partner)]);
        }
    }
    let ops: Vec<Op> = remote.iter().map(|&(op, _)| op).collect();
    for (a, b) in remote_pairs(ir, &ops) {
        let (a, b) = (remote[a].1, remote[b].1);
        pairs.push((a, b));
        first.extend([(a, a), (b, b)]);
    }
    first.sort_unstable();
    first.dedup();
    fn find(first: &mut [(Value, Value)], of: Value) -> usize {
        let place = |first: &[(Value, Value)], value| {
            first
                .binary_search_by_key(&value, |pair| pair.0)
                .unwrap_or(0)
        };
        let mut at = place(first, of);
        while first[at].1 != first[at].0 {
            let up = place(first, first[at].1);
            first[at].1 = first[up].1;
            at = up;
        }
        at
    }
    for (a, b) in pairs {
        let (a, b) = (find(&mut first, a), find(&mut first, b));
        let (low, high) = (a.min(b), a.max(b));
        first[high].1 = first[low].0;
    }
    for at in 0..first.len() {
        let value = first[at].0;
        let head = find(&mut first, value);
        first[at].1 = first[head].0;
    }
    first
}
