//! Passes that misbehave on purpose, for tests of the manager. Only `--enable-test-passes` shows
//! them to pipelines.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{names, op_name};
use bir_dialect::ir::{Cursor, Ir, NewOp, Op};
use bir_dialect::text::diag::{Diagnostic, Part, Place};

use crate::pass::{Anchor, Changed, Pass, PassContext, symbol_text};
use crate::pass_options;

pass_options! {
    /// Panics in a function.
    pub(crate) struct TestPanic {
        /// Panic while functions are looked at in parallel
        parallel: bool = false,
        /// What to say
        message: String = "on purpose".to_owned(),
    }
}

#[allow(clippy::panic)] // what it is for
fn panic_with(message: &str) -> ! {
    panic!("{message}")
}

impl Pass for TestPanic {
    fn name(&self) -> &'static str {
        "test_panic"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        if self.parallel {
            cx.each(ir, on, |ir, func| -> () {
                panic_with(&format!("{} in {}", self.message, symbol_text(ir, func)))
            });
            Changed::No
        } else if on.is_empty() {
            Changed::No
        } else {
            panic_with(&self.message)
        }
    }
}

pass_options! {
    /// Reports an error about every function.
    pub(crate) struct TestError {}
}

impl Pass for TestError {
    fn name(&self) -> &'static str {
        "test_error"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        for &func in on {
            let message = format!("function {} is wrong on purpose", symbol_text(ir, func));
            cx.report(Diagnostic::error(Place::Op(func, Part::Whole), message));
        }
        Changed::No
    }
}

pass_options! {
    /// Breaks every function so that the verifier must notice.
    pub(crate) struct TestBreak {}
}

fn insert(ir: &mut Ir, func: Op, code: OpCode) {
    let entry = ir
        .regions(func)
        .first()
        .and_then(|&region| ir.entry(region));
    if let Some(block) = entry {
        ir.insert(Cursor::Start(block), NewOp::new(op_name(code)));
    }
}

impl Pass for TestBreak {
    fn name(&self) -> &'static str {
        "test_break"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        for &func in on {
            // A yield belongs into loops.
            insert(ir, func, OpCode::Yield);
        }
        Changed::from_bool(!on.is_empty())
    }
}

pass_options! {
    /// Changes every function and says it did not.
    pub(crate) struct TestLie {}
}

impl Pass for TestLie {
    fn name(&self) -> &'static str {
        "test_lie"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Func
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        for &func in on {
            let name = ir.ctx.string("lied");
            let dict = ir.ctx.dict_with(ir.dict(func), names::SYM_NAME, Some(name));
            ir.set_dict(func, dict);
        }
        Changed::No
    }
}

pass_options! {
    /// Renames every module, to have a module pass between function passes.
    pub(crate) struct TestRename {
        /// The new name
        to: String = "renamed".to_owned(),
    }
}

impl Pass for TestRename {
    fn name(&self) -> &'static str {
        "test_rename"
    }

    fn anchor(&self) -> Anchor {
        Anchor::Module
    }

    fn run(&self, ir: &mut Ir, on: &[Op], cx: &mut PassContext<'_>) -> Changed {
        cx.matched(on.len() as u64);
        let mut changed = false;
        for &module in on {
            if !cx.may_rewrite(&|| "a module's name".to_owned()) {
                break;
            }
            let name = ir.ctx.string(&self.to);
            let dict = ir
                .ctx
                .dict_with(ir.dict(module), names::SYM_NAME, Some(name));
            changed |= dict != ir.dict(module);
            ir.set_dict(module, dict);
        }
        Changed::from_bool(changed)
    }
}
