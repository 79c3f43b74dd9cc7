//! All forms of a set as one matching automaton.
//!
//! An instruction is told apart by its op, then by its attributes, one at a time in a fixed order, then
//! by what only [`matcher`](crate::matcher) sees. A level has one branch for each value a form asks
//! for and one for forms that do not care, so forms whose attributes or literals differ from the
//! instruction's cost nothing however many there are.

use std::ops::Range;

use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{AttrType, ImmType, Kind, OPS, OpCode, is_bitvec};
use bir_dialect::ir::{Attr, AttrView, Context, Ir, Op, Str};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::rule::{AttrWhat, RuleSet, Stmt, What};

type Fixed = foldhash::fast::FixedState;

/// A form: number of the rule, and of the form in it.
pub(crate) type FormId = (u32, u32);

/// A form, and the instruction the search for it starts at.
type Anchored<'a> = (FormId, &'a Stmt);

/// What a form asks of one attribute of its anchor.
enum Asked {
    /// One of these; `None` is its absence.
    Of(SmallVec<[Option<Attr>; 4]>),
    /// Anything.
    Any,
}

#[derive(Default)]
struct Node {
    branches: HashMap<Option<Attr>, u32, Fixed>,
    any: Option<u32>,
    /// Of the deepest level.
    forms: Vec<FormId>,
}

/// The automaton of one op.
#[derive(Default)]
struct Tree {
    /// Names of the attributes asked for, one per level.
    levels: Vec<Str>,
    nodes: Vec<Node>,
    /// Candidates by dictionary, which decides them: number of the list plus one, 0 where nobody asked.
    known: Vec<u32>,
}

/// The automaton, for the interned values of one file.
pub(crate) struct Automaton {
    trees: Vec<Option<Tree>>,
    /// Per rule: its benefit, best first.
    rank: Vec<u32>,
    /// Where each list of candidates stands in `forms`; the first is empty.
    lists: Vec<Range<usize>>,
    forms: Vec<FormId>,
}

/// Number of a list of candidates: instructions of equal lists may match the same forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(u32);

impl Class {
    /// Of instructions nothing may match at.
    pub(crate) const NONE: Class = Class(0);

    /// As a row of a table.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Automaton {
    /// Of those rules of a set that `on` lets through.
    pub(crate) fn new(ctx: &mut Context, set: &RuleSet, on: &dyn Fn(usize) -> bool) -> Automaton {
        Automaton::of_trees(set, on, &mut |code, forms| Tree::new(ctx, code, forms))
    }

    /// One that tells apart by the op alone.
    pub(crate) fn of_ops(set: &RuleSet) -> Automaton {
        Automaton::of_trees(set, &|_| true, &mut |_, forms| Tree {
            nodes: vec![Node {
                forms: forms.iter().map(|(id, _)| *id).collect(),
                ..Node::default()
            }],
            ..Tree::default()
        })
    }

    fn of_trees(
        set: &RuleSet,
        on: &dyn Fn(usize) -> bool,
        tree: &mut dyn FnMut(OpCode, &[Anchored<'_>]) -> Tree,
    ) -> Automaton {
        let mut trees: Vec<Option<Tree>> = OPS.iter().map(|_| None).collect();
        let mut order: Vec<usize> = (0..set.rules.len()).collect();
        order.sort_by_key(|&rule| (std::cmp::Reverse(set.rules[rule].benefit), rule));
        let mut rank = vec![0; set.rules.len()];
        for (position, &rule) in order.iter().enumerate() {
            rank[rule] = position as u32;
        }
        let mut anchors: Vec<Vec<Anchored<'_>>> = OPS.iter().map(|_| Vec::new()).collect();
        for (number, rule) in set.rules.iter().enumerate().filter(|(rule, _)| on(*rule)) {
            for (at, form) in rule.forms.iter().enumerate() {
                let anchor = &form.stmts[form.anchor];
                anchors[anchor.code as usize].push(((number as u32, at as u32), anchor));
            }
        }
        for code in OpCode::ALL {
            let forms = &anchors[*code as usize];
            if !forms.is_empty() {
                trees[*code as usize] = Some(tree(*code, forms));
            }
        }
        Automaton {
            trees,
            rank,
            lists: vec![Range::default()],
            forms: Vec::new(),
        }
    }

    /// Whether any form starts at such an instruction.
    pub(crate) fn knows(&self, code: OpCode) -> bool {
        self.trees[code as usize].is_some()
    }

    /// Which forms may match at an instruction, as far as op, attributes and literals say.
    pub(crate) fn class(&mut self, ir: &Ir, op: Op) -> Class {
        let Some(code) = OpCode::of(ir, op) else {
            return Class::NONE;
        };
        let Some(tree) = self.trees[code as usize].as_mut() else {
            return Class::NONE;
        };
        let dict = ir.dict(op).index();
        match tree.known.get(dict) {
            Some(&known) if known > 0 => Class(known - 1),
            _ => {
                let start = self.forms.len();
                tree.walk(ir, op, &mut self.forms);
                let rank = &self.rank;
                self.forms[start..]
                    .sort_unstable_by_key(|&(rule, form)| (rank[rule as usize], form));
                let class = match self.forms.len() {
                    end if end == start => Class::NONE,
                    end => {
                        self.lists.push(start..end);
                        Class(self.lists.len() as u32 - 1)
                    }
                };
                if tree.known.len() <= dict {
                    tree.known.resize(ir.ctx.dict_count().max(dict + 1), 0);
                }
                tree.known[dict] = class.0 + 1;
                class
            }
        }
    }

    /// The forms of a class, best first.
    pub(crate) fn forms(&self, class: Class) -> &[FormId] {
        &self.forms[self.lists[class.index()].clone()]
    }

    /// The forms that may match at an instruction, best first.
    pub(crate) fn candidates(&mut self, ir: &Ir, op: Op) -> &[FormId] {
        let class = self.class(ir, op);
        self.forms(class)
    }
}

impl Tree {
    fn new(ctx: &mut Context, code: OpCode, forms: &[Anchored<'_>]) -> Tree {
        let def = code.def();
        let literals = def.operands.iter().filter(|role| role.takes_literal());
        let names = def.attrs.iter().map(|attr| attr.name);
        let all: Vec<&str> = def
            .words
            .iter()
            .copied()
            .chain(names.filter(|name| !def.words.contains(name)))
            .chain(literals.map(|role| role.name))
            .collect();
        let mut tree = Tree {
            nodes: vec![Node::default()],
            ..Tree::default()
        };
        // Per form, the nodes it is at.
        let mut ends: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::from_slice(&[0]); forms.len()];
        let mut levels: Vec<(&str, Vec<Asked>)> = Vec::new();
        for name in all {
            let of_form = |(_, stmt): &Anchored<'_>| asked(ctx, stmt, name);
            levels.push((name, forms.iter().map(of_form).collect()));
        }
        // A level nobody cares about would only be walked through.
        levels.retain(|(_, asked)| asked.iter().any(|one| matches!(one, Asked::Of(_))));
        // What tells most apart comes last, so that forms share the way there.
        levels.sort_by_cached_key(|(_, asked)| {
            let mut values: Vec<Option<Attr>> = Vec::new();
            for one in asked {
                if let Asked::Of(of) = one {
                    values.extend_from_slice(of);
                }
            }
            values.sort_unstable();
            values.dedup();
            values.len()
        });
        for (name, asked) in &levels {
            tree.levels.push(ctx.str(name));
            for (at, asked) in ends.iter_mut().zip(asked) {
                let mut next: SmallVec<[u32; 4]> = SmallVec::new();
                for &node in at.iter() {
                    match asked {
                        Asked::Any => next.push(tree.branch(node, None)),
                        Asked::Of(values) => {
                            for &value in values {
                                next.push(tree.branch(node, Some(value)));
                            }
                        }
                    }
                }
                *at = next;
            }
        }
        for (&(id, _), at) in forms.iter().zip(ends) {
            for node in at {
                tree.nodes[node as usize].forms.push(id);
            }
        }
        tree
    }

    /// The node behind a branch; `None` is the branch of forms that do not care.
    fn branch(&mut self, node: u32, value: Option<Option<Attr>>) -> u32 {
        let new = self.nodes.len() as u32;
        let data = &mut self.nodes[node as usize];
        let next = match value {
            None => *data.any.get_or_insert(new),
            Some(value) => *data.branches.entry(value).or_insert(new),
        };
        if next == new {
            self.nodes.push(Node::default());
        }
        next
    }

    fn walk(&self, ir: &Ir, op: Op, out: &mut Vec<FormId>) {
        let dict = ir.dict(op);
        let mut at: SmallVec<[u32; 8]> = SmallVec::from_slice(&[0]);
        for &name in &self.levels {
            let value = ir
                .ctx
                .dict_get(dict, name)
                .filter(|&attr| ir.ctx.attr(attr) != AttrView::Bool(false));
            let mut next: SmallVec<[u32; 8]> = SmallVec::new();
            for node in at {
                let node = &self.nodes[node as usize];
                next.extend(node.branches.get(&value).copied());
                next.extend(node.any);
            }
            at = next;
            if at.is_empty() {
                return;
            }
        }
        for node in at {
            out.extend_from_slice(&self.nodes[node as usize].forms);
        }
    }
}

/// What an instruction of a form asks of an attribute, or of a literal, of that name.
fn asked(ctx: &mut Context, stmt: &Stmt, name: &str) -> Asked {
    let def = stmt.code.def();
    if let Some(attr) = stmt.attrs.iter().find(|attr| attr.def.name == name) {
        let mut values: SmallVec<[Option<Attr>; 4]> = match &attr.what {
            AttrWhat::Words(words) => words.iter().map(|word| Some(ctx.string(word))).collect(),
            AttrWhat::Absent => SmallVec::from_slice(&[None]),
            AttrWhat::Int(int) => SmallVec::from_slice(&[Some(ctx.int(*int))]),
            AttrWhat::Number(literal) => {
                let AttrType::Number(dtype) = attr.def.ty else {
                    return Asked::Any;
                };
                let Some(bits) = literal.bits(dtype) else {
                    return Asked::Any;
                };
                SmallVec::from_slice(&[Some(number(ctx, dtype, bits))])
            }
            _ => return Asked::Any,
        };
        if attr.optional {
            values.push(None);
        }
        return Asked::Of(values);
    }
    if let Some(role) = def.find_role(name) {
        let Some(operand) = stmt.operands.iter().find(|one| one.role == role) else {
            return match stmt.open {
                true => Asked::Any,
                false => Asked::Of(SmallVec::from_slice(&[None])),
            };
        };
        let What::Number(literal) = &operand.what else {
            return Asked::Any;
        };
        let mut values: SmallVec<[Option<Attr>; 4]> = SmallVec::new();
        let Kind::Imm(ty) = def.operands[role].kind else {
            return Asked::Any;
        };
        let is_f32 = match ty {
            ImmType::F32 => true,
            ImmType::Alu => !may_be_bits(stmt),
            ImmType::Dst => false,
        };
        let possible = literal.all_bits().iter();
        for &(dtype, bits) in possible.filter(|one| !is_f32 || one.0 == DType::F32) {
            let attr = number(ctx, dtype, bits);
            if !values.contains(&Some(attr)) {
                values.push(Some(attr));
            }
        }
        if operand.optional {
            values.push(None);
        }
        return Asked::Of(values);
    }
    match stmt.open {
        true => Asked::Any,
        false => Asked::Of(SmallVec::from_slice(&[None])),
    }
}

/// Whether an instruction of a form may be an operation on bits, whose literals are of the dtype of what it
/// reads.
fn may_be_bits(stmt: &Stmt) -> bool {
    let words = stmt.code.def().words.iter();
    words.copied().any(|word| {
        let attr = stmt.attrs.iter().find(|attr| attr.def.name == word);
        match attr.map(|attr| &attr.what) {
            Some(AttrWhat::Words(words)) => words.iter().any(|word| is_bitvec(word)),
            Some(AttrWhat::Absent) => false,
            Some(_) => true,
            None => stmt.open,
        }
    })
}
