//! Rewrites in Rust, by name: one table, sorted. They do what a list of instructions cannot say.

use bir_dialect::bir::program::target_of;
use bir_dialect::bir::space::Engine;
use bir_dialect::bir::view::OpView;
use bir_dialect::ir::Attr;

use crate::constraints::Param;
use crate::matcher::Found;
use crate::rewriter::Rewriter;
use crate::rule::{Arg, Form};

/// A registered rewrite.
pub struct Native {
    /// Its name.
    pub name: &'static str,
    /// What it is given.
    pub params: &'static [Param],
    /// What it does.
    pub doc: &'static str,
    /// Whether it writes the operand given first.
    pub writes: bool,
    /// Does it; false where it cannot, and then nothing has changed.
    pub(crate) apply: fn(&mut Rewriter<'_>, &Form, &Found, &[Arg]) -> bool,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them.
pub static NATIVES: &[Native] = &[Native {
    name: "set_engine",
    params: &[
        Param::Tile,
        Param::Word(&["pe", "act", "dve", "pool", "sp", "dma"]),
    ],
    doc: "lets another engine execute the kept instruction that has the operand; if it may; not in a function with waits or \
          signals, which count on the order of an engine",
    writes: false,
    apply: set_engine,
}];

/// The registered rewrite of a name.
pub fn find(name: &str) -> Option<&'static Native> {
    NATIVES.iter().find(|one| one.name == name)
}

fn set_engine(rewriter: &mut Rewriter<'_>, form: &Form, found: &Found, args: &[Arg]) -> bool {
    let (Some(Arg::Tile(var)), Some(Arg::Words(words))) = (args.first(), args.get(1)) else {
        return false;
    };
    let Some(op) = form
        .places(*var)
        .find(|&(stmt, _)| form.stmts[stmt].keep)
        .and_then(|(stmt, _)| found.ops[stmt])
    else {
        return false;
    };
    let Some(word) = words.first() else {
        return false;
    };
    let target = target_of(rewriter.ir, op);
    let engines = OpView::new(rewriter.ir, op)
        .def()
        .and_then(|def| def.engines);
    let may_run = Engine::from_name(word)
        .zip(engines)
        .is_some_and(|(engine, engines)| engines.on(target).has(engine));
    if !may_run {
        return false;
    }
    let attr: Attr = rewriter.ir.ctx.string(word);
    if rewriter.ir.attr(op, "engine") == Some(attr) || rewriter.has_semaphores() {
        return false;
    }
    rewriter.set_attr(op, "engine", Some(attr));
    true
}
