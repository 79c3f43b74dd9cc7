//! `localize_shared_memory`: what only one core touches is that core's own.
//!
//! Formally, of a program of several cores, all shared internal locations of one name are one buffer.
//! A core touches it if one of its instructions names it. The buffer is left alone if somewhere it is
//! placed, `remote_target` of or for another, written by another core (`written_by_core`), an operand
//! of a collective or a `core_barrier`, tied to others by `must_alias`, or `boundary`. Otherwise a core that does not
//! touch it drops it; and where one core alone does, it becomes local there, unless that core reads
//! bytes it may not have written.

use std::collections::HashMap;

use bir_dialect::analysis::index::{Frames, Touches};
use bir_dialect::bir::ops::{OpCode, Trait};
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::{Dict, Ir, Op, Str, Value};

use crate::pass::{Anchor, Changed, Pass, PassContext, Statistic};
use crate::pass_options;
use bir_dialect::analysis::outside::{Outside, function_allocs};

pass_options! {
    /// Makes shared buffers local where one core of several touches them.
    ///
    /// Buffers are counted by name: how many cores of the program read or write each one. A core that
    /// does not touch a shared internal buffer drops it. Buffers that are placed, remote, written by
    /// another core or named by a collective or a `core_barrier` stay as they are; so does a program of one core.
    pub struct LocalizeSharedMemory {}
}

const LOCALIZED: Statistic = Statistic {
    name: "locations-localized",
    doc: "shared locations that became local",
};
const DROPPED: Statistic = Statistic {
    name: "locations-dropped",
    doc: "shared locations of cores that do not touch them",
};
const VETOED: Statistic = Statistic {
    name: "locations-vetoed",
    doc: "shared locations of one core that had to stay shared",
};

impl Pass for LocalizeSharedMemory {
    fn name(&self) -> &'static str {
        "localize_shared_memory"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Program
    }

    fn statistics(&self) -> &'static [Statistic] {
        &[LOCALIZED, DROPPED, VETOED]
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        let cores = on.len();
        let found = shared(ir, on);
        cx.matched(found.len() as u64);
        if cores < 2 {
            return Changed::No;
        }
        let counts = count(&found);
        let mut changed = false;
        let mut to_localize: Vec<&Shared> = Vec::new();
        for one in &found {
            let Some(&Count { touching, kept }) = counts.get(&one.name) else {
                continue;
            };
            if kept {
                cx.count(
                    &VETOED,
                    u64::from(one.is_internal && one.is_touched && touching == 1),
                );
            } else if !one.is_touched {
                let what = || format!("removal of {}", name_text(ir, one));
                if !cx.may_rewrite(&what) {
                    return Changed::from_bool(changed);
                }
                cx.count(&DROPPED, 1);
                changed |= ir.erase(one.alloc);
            } else if touching == 1 {
                to_localize.push(one);
            }
        }
        for of_one in to_localize.chunk_by(|a, b| a.func == b.func) {
            changed |= localize(ir, of_one, cx);
        }
        Changed::from_bool(changed)
    }
}

/// A shared location of a core.
struct Shared {
    core: usize,
    func: Op,
    alloc: Op,
    value: Value,
    name: Str,
    is_touched: bool,
    is_tied: bool,
    is_internal: bool,
}

fn name_text(ir: &Ir, one: &Shared) -> String {
    format!("`%{}`", ir.ctx.text(one.name))
}

/// The shared locations of all cores, in text order.
fn shared(ir: &Ir, modules: &[Op]) -> Vec<Shared> {
    let shared_word = ir.ctx.find_str("shared");
    let mut found = Vec::new();
    // A file that does not say the word has none.
    if shared_word.is_none() {
        return found;
    }
    let outside = Outside::new(ir);
    let mut known = HashMap::new();
    for (core, &module) in modules.iter().enumerate() {
        let inside = ir.regions(module).iter();
        let ops = inside
            .flat_map(|&region| ir.blocks(region))
            .flat_map(|block| ir.block_ops(block));
        for func in ops.filter(|&op| OpCode::of(ir, op) == Some(OpCode::Func)) {
            for alloc in function_allocs(ir, func) {
                let kind = *known.entry(ir.dict(alloc)).or_insert_with(|| {
                    let view = OpView::new(ir, alloc);
                    let is_internal = view.word("kind").is_none_or(|kind| kind == "internal");
                    (view.word("space") == Some("shared")).then_some(is_internal)
                });
                let Some(is_internal) = kind else {
                    continue;
                };
                let Some(value) = ir.result(alloc) else {
                    continue;
                };
                let Some(name) = ir.value_name(value) else {
                    continue;
                };
                found.push(Shared {
                    core,
                    func,
                    alloc,
                    value,
                    name,
                    is_touched: ir.first_use(value).is_some(),
                    is_tied: !is_internal || is_tied(ir, alloc, value, &outside),
                    is_internal,
                });
            }
        }
    }
    found
}

/// Attributes that keep a location shared.
const TIES: &[&str] = &[
    "at",
    "remote_target",
    "written_by_core",
    "must_alias",
    "boundary",
];

fn is_tied(ir: &Ir, alloc: Op, value: Value, outside: &Outside) -> bool {
    // What cores meet at with a buffer is about the buffer.
    let is_collective = |op: Op| {
        OpCode::of(ir, op)
            .is_none_or(|code| code.def().has(Trait::Collective) || code == OpCode::CoreBarrier)
    };
    TIES.iter().any(|tie| ir.attr(alloc, tie).is_some())
        || outside.is_named(ir, value)
        || ir
            .uses(value)
            .any(|operand| is_collective(ir.operand(operand).owner))
}

/// What all cores together do with a buffer.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Cores that touch it.
    touching: usize,
    /// Whether it stays as it is.
    kept: bool,
}

fn count(found: &[Shared]) -> HashMap<Str, Count> {
    let mut counts: HashMap<Str, Count> = HashMap::new();
    let mut last: HashMap<Str, usize> = HashMap::new();
    for one in found {
        let count = counts.entry(one.name).or_default();
        count.kept |= one.is_tied;
        // Functions of one core are one core.
        if one.is_touched && last.insert(one.name, one.core) != Some(one.core) {
            count.touching += 1;
        }
    }
    counts
}

/// Makes locations of one function local; those it reads before it writes them stay shared.
fn localize(ir: &mut Ir, wanted: &[&Shared], cx: &mut PassContext<'_>) -> bool {
    let mut old: HashMap<Value, (Op, Dict)> = HashMap::new();
    for one in wanted {
        let what = || format!("localization of {}", name_text(ir, one));
        if !cx.may_rewrite(&what) {
            break;
        }
        old.insert(one.value, (one.alloc, ir.dict(one.alloc)));
        ir.set_attr(one.alloc, "space", None);
    }
    let Some(func) = wanted.first().map(|one| one.func) else {
        return false;
    };
    let touches = Touches::new(ir, func);
    let keep: Vec<bool> = touches
        .locations()
        .iter()
        .map(|(_, value)| old.contains_key(value))
        .collect();
    let (index, _) = touches.index(ir, Frames::Locations, |at| keep[at as usize]);
    for undefined in index.undefined_reads() {
        if let Some((alloc, dict)) = old.remove(&undefined.value) {
            cx.count(&VETOED, 1);
            ir.set_dict(alloc, dict);
        }
    }
    cx.count(&LOCALIZED, old.len() as u64);
    !old.is_empty()
}
