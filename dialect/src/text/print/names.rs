//! Printed names: hints, made unique where they would clash.

use hashbrown::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::ir::{Block, Ir, Op, Region, Str, Value, Visit};

const EXTRA: u32 = 1 << 31;
const UNSET: u32 = u32::MAX;

/// The printed name of every value and block.
pub(super) struct Names {
    /// Per value: a string handle, or an entry of `extra`.
    values: Vec<u32>,
    extra: Vec<String>,
    /// Per block: number in its region, or `UNSET` where the label hint is used.
    blocks: Vec<u32>,
}

struct Scope {
    bound: Vec<bool>,
    bound_extra: HashSet<String>,
    next_suffix: HashMap<Str, u32>,
    undo: Vec<u32>,
    marks: Vec<(Op, usize)>,
    number: u32,
}

impl Names {
    pub(super) fn new(ir: &Ir) -> Names {
        let mut names = Names {
            values: vec![UNSET; ir.value_rows()],
            extra: Vec::new(),
            blocks: Vec::new(),
        };
        let mut scope = Scope {
            bound: vec![false; ir.ctx.str_count()],
            bound_extra: HashSet::new(),
            next_suffix: HashMap::new(),
            undo: Vec::new(),
            marks: Vec::new(),
            number: 0,
        };
        for visit in ir.walk() {
            match visit {
                Visit::Enter(op) => {
                    for value in ir.results(op) {
                        names.assign(ir, &mut scope, value);
                    }
                    let regions = ir.regions(op);
                    if !regions.is_empty() {
                        scope.marks.push((op, scope.undo.len()));
                        for &region in regions {
                            names.region(ir, &mut scope, region);
                        }
                    }
                }
                Visit::Leave(op) => {
                    if scope.marks.last().is_some_and(|&(marked, _)| marked == op)
                        && let Some((_, mark)) = scope.marks.pop()
                    {
                        while scope.undo.len() > mark {
                            let Some(name) = scope.undo.pop() else { break };
                            if name & EXTRA == 0 {
                                scope.bound[name as usize] = false;
                            } else {
                                let text = &names.extra[(name & !EXTRA) as usize];
                                scope.bound_extra.remove(text);
                            }
                        }
                    }
                    if ir.traits(op).isolated {
                        scope.number = 0;
                        scope.next_suffix.clear();
                    }
                }
            }
        }
        names
    }

    fn region(&mut self, ir: &Ir, scope: &mut Scope, region: Region) {
        let mut labels: HashSet<Str> = HashSet::new();
        for (number, block) in ir.blocks(region).enumerate() {
            for arg in ir.args(block) {
                self.assign(ir, scope, arg);
            }
            let hint = ir.label(block).filter(|&label| labels.insert(label));
            if hint.is_none() && number > 0 || hint.is_none() && ir.args(block).len() > 0 {
                if self.blocks.len() <= block.index() {
                    self.blocks.resize(block.index() + 1, UNSET);
                }
                self.blocks[block.index()] = number as u32;
            }
        }
    }

    fn assign(&mut self, ir: &Ir, scope: &mut Scope, value: Value) {
        let name = match ir.value_name(value) {
            Some(hint) if !scope.bound[hint.index()] && !self.taken(ir, scope, hint) => {
                scope.bound[hint.index()] = true;
                hint.index() as u32
            }
            Some(hint) => {
                let suffix = scope.next_suffix.entry(hint).or_insert(1);
                let base = ir.ctx.text(hint);
                let text = loop {
                    let text = format!("{base}_{suffix}");
                    *suffix += 1;
                    let known = ir
                        .ctx
                        .find_str(&text)
                        .is_some_and(|name| scope.bound[name.index()]);
                    if !known && !scope.bound_extra.contains(&text) {
                        break text;
                    }
                };
                self.push_extra(scope, text)
            }
            None => {
                let text = scope.number.to_string();
                scope.number += 1;
                self.push_extra(scope, text)
            }
        };
        scope.undo.push(name);
        self.values[value.index()] = name;
    }

    fn taken(&self, ir: &Ir, scope: &Scope, hint: Str) -> bool {
        !scope.bound_extra.is_empty() && scope.bound_extra.contains(ir.ctx.text(hint))
    }

    fn push_extra(&mut self, scope: &mut Scope, text: String) -> u32 {
        scope.bound_extra.insert(text.clone());
        self.extra.push(text);
        (self.extra.len() as u32 - 1) | EXTRA
    }

    /// A value's name, without `%`.
    pub(super) fn value<'a>(&'a self, ir: &'a Ir, value: Value) -> &'a str {
        let name = self.values.get(value.index()).copied().unwrap_or(UNSET);
        if name == UNSET {
            // A use of something detached; printed so that it can be seen.
            return "<<unknown>>";
        }
        if name & EXTRA != 0 {
            &self.extra[(name & !EXTRA) as usize]
        } else {
            ir.ctx.text(Str(name))
        }
    }

    /// A block's label, without `^`.
    pub(super) fn label(&self, ir: &Ir, block: Block, out: &mut String) {
        let number = self.blocks.get(block.index()).copied().unwrap_or(UNSET);
        match ir.label(block) {
            Some(label) if number == UNSET => out.push_str(ir.ctx.text(label)),
            _ => {
                let number = if number == UNSET { 0 } else { number };
                let _ = write!(out, "bb{number}");
            }
        }
    }
}
