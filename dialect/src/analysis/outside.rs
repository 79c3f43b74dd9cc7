//! Locations somebody outside of a function knows or writes.

use std::collections::{HashMap, HashSet};

use crate::bir::ops::OpCode;
use crate::bir::program::names;
use crate::bir::view::OpView;
use crate::ir::{AttrView, Dict, Ir, Op, Str, Value};

/// Attributes that say that the bytes of a location are somebody else's business too.
const TIES: &[&str] = &[
    "must_alias",
    "remote_target",
    "written_by_core",
    "const_sub_tensor",
    "boundary",
];

/// Tells the locations nobody but the instructions of their function can see.
#[derive(Clone, Debug)]
pub struct Outside {
    /// Names the `remote_target` of another core or a `must_alias` refers to.
    named: HashSet<Str>,
    /// The attribute list seen last, and what it says.
    last: Option<(Dict, bool)>,
}

impl Outside {
    /// Reads what locations of the whole file refer to one another by name.
    pub fn new(ir: &Ir) -> Outside {
        let mut named = HashSet::new();
        let mut ties: [Option<Str>; 2] = [None; 2];
        for (slot, name) in ties.iter_mut().zip(["must_alias", "remote_target"]) {
            *slot = ir.ctx.find_str(name);
        }
        let mut last = Dict::EMPTY;
        for alloc in allocs(ir) {
            let dict = ir.dict(alloc);
            if dict == last {
                continue;
            }
            last = dict;
            for name in ties.into_iter().flatten() {
                if let Some(attr) = ir.ctx.dict_get(dict, name) {
                    named.extend(referred(ir, ir.ctx.attr(attr)));
                }
            }
        }
        Outside { named, last: None }
    }

    /// Whether a location is internal and local, and no other location, core or module shares its
    /// bytes.
    pub fn is_private(&mut self, ir: &Ir, alloc: Op, value: Value) -> bool {
        let dict = ir.dict(alloc);
        let is_private = match self.last {
            Some((known, answer)) if known == dict => answer,
            _ => has_private_attrs(ir, dict),
        };
        self.last = Some((dict, is_private));
        is_private && !self.is_named(ir, value)
    }

    /// Whether another core may write a location unseen by its function.
    pub fn is_foreign(&self, ir: &Ir, alloc: Op, value: Value) -> bool {
        is_open(ir, alloc) || self.is_named(ir, value)
    }

    /// Whether another location refers to this one by its name.
    pub fn is_named(&self, ir: &Ir, value: Value) -> bool {
        !self.named.is_empty()
            && ir
                .value_name(value)
                .is_some_and(|name| self.named.contains(&name))
    }
}

/// Whether a location says that other cores or modules write or read it.
pub fn is_open(ir: &Ir, alloc: Op) -> bool {
    let has = |name| ir.attr(alloc, name).is_some();
    let view = OpView::new(ir, alloc);
    view.word("space") == Some("shared")
        || view.flag("boundary")
        || has("written_by_core")
        || has("remote_target")
}

/// Locations that are the same bytes of another core, by `remote_target`: pairs to be united, as
/// numbers in the list given.
pub fn remote_pairs(ir: &Ir, allocs: &[Op]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    // Per name the cores it was seen with, and who was first. One without is that of any other core.
    let mut known: HashMap<Str, Vec<(Option<&str>, usize)>> = HashMap::new();
    for (at, &alloc) in allocs.iter().enumerate() {
        let Some(attr) = ir.attr(alloc, "remote_target") else {
            continue;
        };
        let (Some(name), Some(text)) = (referred(ir, ir.ctx.attr(attr)), ir.ctx.attr_str(attr))
        else {
            continue;
        };
        let core = remote_core(text);
        let known = known.entry(name).or_default();
        let is_same = |other: Option<&str>| other.is_none() || core.is_none() || other == core;
        pairs.extend(
            known
                .iter()
                .filter(|(other, _)| is_same(*other))
                .map(|&(_, first)| (first, at)),
        );
        if !known.iter().any(|(other, _)| *other == core) {
            known.push((core, at));
        }
    }
    pairs
}

/// The core a `remote_target` says, where it says one.
pub fn remote_core(target: &str) -> Option<&str> {
    let target = target.trim_start_matches(['@', '%']);
    target.split_once('@').map(|(_, core)| core)
}

/// Whether a location is internal and local by its attributes, and none of them ties it to others.
fn has_private_attrs(ir: &Ir, dict: Dict) -> bool {
    let word = |name: Str| ir.ctx.attr_str(ir.ctx.dict_get(dict, name)?);
    let is = |name: &str, wanted: &str| {
        ir.ctx
            .dict_find(dict, name)
            .and_then(|attr| ir.ctx.attr_str(attr))
            .is_none_or(|word| word == wanted)
    };
    word(names::KIND).is_none_or(|kind| kind == "internal")
        && is("space", "local")
        && TIES.iter().all(|tie| ir.ctx.dict_find(dict, tie).is_none())
}

/// The locations of all modules, functions one after the other.
pub fn allocs(ir: &Ir) -> impl Iterator<Item = Op> + '_ {
    let inner = move |op: Op| {
        let regions = ir.regions(op).iter();
        let blocks = regions.flat_map(move |&region| ir.blocks(region));
        blocks.flat_map(move |block| ir.block_ops(block))
    };
    ir.block_ops(ir.root_block())
        .flat_map(inner)
        .filter(move |&op| OpCode::of(ir, op) == Some(OpCode::Func))
        .flat_map(move |func| function_allocs(ir, func))
}

/// The locations of a function: they stand first.
pub fn function_allocs(ir: &Ir, func: Op) -> impl Iterator<Item = Op> + '_ {
    ir.regions(func)
        .first()
        .and_then(|&region| ir.entry(region))
        .into_iter()
        .flat_map(|block| ir.block_ops(block))
        .take_while(move |&op| OpCode::of(ir, op) == Some(OpCode::Alloc))
}

/// The name a `must_alias` or a `remote_target` (`name`, `name@core`) is about.
pub fn referred(ir: &Ir, attr: AttrView<'_>) -> Option<Str> {
    match attr {
        AttrView::Symbol(name) => Some(name),
        AttrView::Str(text) => {
            let text = ir.ctx.text(text).trim_start_matches(['@', '%']);
            ir.ctx.find_str(text.split('@').next().unwrap_or(text))
        }
        _ => None,
    }
}
