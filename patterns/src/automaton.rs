//! All forms of a set as one matching automaton.
//!
//! An instruction is told apart by its op, then by its attributes, one at a time in a fixed order, then
//! by what only [`matcher`](crate::matcher) sees. A level has one branch for each value a form asks
//! for and one for forms that do not care, so forms whose attributes or literals differ from the
//! instruction's cost nothing however many there are.

use bir_dialect::bir::attrs::number;
use bir_dialect::bir::num::{DType, parse};
use bir_dialect::bir::ops::{AttrType, Kind, OPS, OpCode};
use bir_dialect::ir::{Attr, AttrView, Context, Dict, Ir, Op, Str};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::rule::{AttrWhat, RuleSet, Stmt, What};

type Fixed = foldhash::fast::FixedState;

/// A form: number of the rule, and of the form in it.
pub(crate) type FormId = (u32, u32);

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
}

/// The automaton, for the interned values of one file.
pub(crate) struct Automaton {
    trees: Vec<Option<Tree>>,
    /// Per rule: its benefit, best first.
    rank: Vec<u32>,
    /// Candidates by op and dictionary, which decide them.
    known: HashMap<(OpCode, Dict), std::ops::Range<usize>, Fixed>,
    /// The lists of `known`.
    lists: Vec<FormId>,
}

impl Automaton {
    /// Of those rules of a set that `on` lets through.
    pub(crate) fn new(ctx: &mut Context, set: &RuleSet, on: &dyn Fn(usize) -> bool) -> Automaton {
        let mut trees: Vec<Option<Tree>> = OPS.iter().map(|_| None).collect();
        let mut order: Vec<usize> = (0..set.rules.len()).collect();
        order.sort_by_key(|&rule| (std::cmp::Reverse(set.rules[rule].benefit), rule));
        let mut rank = vec![0; set.rules.len()];
        for (position, &rule) in order.iter().enumerate() {
            rank[rule] = position as u32;
        }
        for code in OpCode::ALL {
            let mut forms: Vec<(FormId, &Stmt)> = Vec::new();
            for (number, rule) in set.rules.iter().enumerate().filter(|(rule, _)| on(*rule)) {
                for (at, form) in rule.forms.iter().enumerate() {
                    let anchor = &form.stmts[form.anchor];
                    if anchor.code == *code {
                        forms.push(((number as u32, at as u32), anchor));
                    }
                }
            }
            if !forms.is_empty() {
                trees[*code as usize] = Some(Tree::new(ctx, *code, &forms));
            }
        }
        Automaton {
            trees,
            rank,
            known: HashMap::default(),
            lists: Vec::new(),
        }
    }

    /// Whether any form starts at such an instruction.
    pub(crate) fn knows(&self, code: OpCode) -> bool {
        self.trees[code as usize].is_some()
    }

    /// The forms that may match at an instruction, best first.
    pub(crate) fn candidates(&mut self, ir: &Ir, op: Op) -> &[FormId] {
        let Some(code) = OpCode::of(ir, op) else {
            return &[];
        };
        let Some(tree) = self.trees[code as usize].as_ref() else {
            return &[];
        };
        let (lists, rank) = (&mut self.lists, &self.rank);
        let range = self.known.entry((code, ir.dict(op))).or_insert_with(|| {
            let start = lists.len();
            tree.walk(ir, op, lists);
            lists[start..].sort_unstable_by_key(|&(rule, form)| (rank[rule as usize], form));
            start..lists.len()
        });
        &self.lists[range.clone()]
    }
}

impl Tree {
    fn new(ctx: &mut Context, code: OpCode, forms: &[(FormId, &Stmt)]) -> Tree {
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
        // A level nobody cares about would only be walked through.
        let levels: Vec<&str> = all
            .into_iter()
            .filter(|name| {
                forms
                    .iter()
                    .any(|(_, stmt)| matches!(asked(ctx, stmt, name), Asked::Of(_)))
            })
            .collect();
        let mut tree = Tree {
            levels: levels.iter().map(|name| ctx.str(name)).collect(),
            nodes: vec![Node::default()],
        };
        for &(id, stmt) in forms {
            let mut at: SmallVec<[u32; 4]> = SmallVec::from_slice(&[0]);
            for name in &levels {
                let asked = asked(ctx, stmt, name);
                let mut next: SmallVec<[u32; 4]> = SmallVec::new();
                for node in at {
                    match &asked {
                        Asked::Any => next.push(tree.branch(node, None)),
                        Asked::Of(values) => {
                            for &value in values {
                                next.push(tree.branch(node, Some(value)));
                            }
                        }
                    }
                }
                at = next;
            }
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
            AttrWhat::Number(text) => match attr.def.ty {
                AttrType::Number(dtype) => match parse(dtype, text) {
                    Ok(bits) => SmallVec::from_slice(&[Some(number(ctx, dtype, bits))]),
                    Err(_) => return Asked::Any,
                },
                _ => return Asked::Any,
            },
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
        let What::Number(text) = &operand.what else {
            return Asked::Any;
        };
        let mut values: SmallVec<[Option<Attr>; 4]> = SmallVec::new();
        if !matches!(def.operands[role].kind, Kind::Imm(_)) {
            return Asked::Any;
        }
        for &dtype in DType::ALL {
            if let Ok(bits) = parse(dtype, text) {
                let attr = number(ctx, dtype, bits);
                if !values.contains(&Some(attr)) {
                    values.push(Some(attr));
                }
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
