//! Random statements over the whole op table, right and wrong ones, and random changes of texts.
//!
//! Not generated: block labels and branches outside foreign operations, `while`, functions with parameters, several modules, aliases, `loc` aliases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

mod attributes;
mod damage;
mod operands;
mod random;
mod words;

use bir_dialect::bir::ops::{Kind, OPS, OpDef, Syntax};

pub use damage::mutated;
pub use random::Random;

use words::{INDICES, PRELUDE, REGISTERS, TILES, TYPES};

/// One generator of statements.
pub struct Generator {
    pub random: Random,
    fresh: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator {
            random: Random::new(seed),
            fresh: 0,
        }
    }

    /// A program of `statements`, some inside two loops, with their comments and blank lines.
    pub fn program(&mut self, statements: &[String]) -> String {
        let mut out = format!(
            "// head\nbir.module @m {{target = \"trn2\"}} {{\n  bir.func @main {{\n{PRELUDE}"
        );
        out.push_str("    loop %k = 0 to 4 {\n      loop %l = 2 to 8 step 2 {\n");
        for statement in statements {
            out.push_str("        ");
            out.push_str(statement);
            out.push('\n');
        }
        out.push_str("      }\n    }\n  }\n}\n");
        out
    }

    /// A statement of each op in turn.
    pub fn statement(&mut self, number: usize) -> String {
        let ops: Vec<&OpDef> = OPS
            .iter()
            .filter(|op| op.syntax == Syntax::Instruction)
            .collect();
        let op = ops[number % ops.len()];
        let mut text = match number % 9 {
            4 => self.foreign(2),
            _ => self.instruction(op),
        };
        if self.random.percent(4) {
            text = self.damaged(&text);
        }
        match self.random.below(12) {
            0 => text.push_str(" // beside"),
            1 => text = format!("// before\n        {text}"),
            2 => text = format!("\n        // above\n\n        {text}"),
            _ => {}
        }
        text
    }

    fn instruction(&mut self, op: &OpDef) -> String {
        let mut out = String::new();
        let mut left = Vec::new();
        let mut right = Vec::new();
        let mut defines = op.result && self.random.percent(50);
        for operand in op.operands {
            let is_register_out = operand.kind == Kind::RegOut;
            if is_register_out && defines {
                continue;
            }
            if operand.optional && self.random.percent(60) {
                continue;
            }
            let count = if operand.variadic {
                self.random.below(3) + 1
            } else {
                1
            };
            for _ in 0..count {
                let text = self.operand(op, operand);
                if operand.is_left() {
                    left.push(text)
                } else {
                    right.push(text)
                }
            }
        }
        if self.random.percent(2) {
            defines = !defines;
        }
        if defines {
            self.fresh += 1;
            out.push_str(&format!("%new{} = ", self.fresh));
        }
        out.push_str(op.name);
        for word in op.words {
            if let Some(word) = self.word(op, word) {
                out.push(' ');
                out.push_str(&word);
            }
        }
        if !left.is_empty() {
            out.push(' ');
            out.push_str(&left.join(", "));
        }
        if !right.is_empty() || self.random.percent(1) {
            out.push_str(
                self.random
                    .pick(&[" <- ", " <- ", " <- ", "<-", " <-\n          "]),
            );
            out.push_str(&right.join(", "));
        }
        let entries = self.entries(op);
        if !entries.is_empty() || self.random.percent(3) {
            out.push_str(&format!(" {{{}}}", entries.join(", ")));
        }
        if self.random.percent(6) {
            out.push_str(self.random.pick(&[
                " loc(\"k.py\":12:3)",
                " loc(\"k.py\":0:99999999999)",
                " loc(unknown)",
                " loc(#loc1)",
                " loc(\"name\"(\"f\":1:2))",
            ]));
        }
        out
    }

    /// An operation of no known dialect, with results, regions and a use of what it defines.
    fn foreign(&mut self, depth: usize) -> String {
        let mut types = Vec::new();
        let mut names = Vec::new();
        let mut uses = Vec::new();
        for _ in 0..self.random.below(3) {
            self.fresh += 1;
            let name = format!("%new{}", self.fresh);
            let count = self.random.below(3) + 1;
            if count == 1 {
                uses.push(name.clone());
                names.push(name);
            } else {
                uses.extend((0..count).map(|part| format!("{name}#{part}")));
                names.push(format!("{name}:{count}"));
            }
            types.extend((0..count).map(|_| self.random.pick(TYPES)));
        }
        let mut use_types = types.clone();
        if self.random.percent(4) {
            types.push("i32");
        }
        let equals = if names.is_empty() { "" } else { " = " };
        let mut out = format!("{}{equals}\"other.op\"(", names.join(", "));
        let mut operands = Vec::new();
        let mut operand_types = Vec::new();
        for _ in 0..self.random.below(3) {
            let (name, ty) = self.typed_name();
            operands.push(name);
            operand_types.push(ty);
        }
        out.push_str(&operands.join(", "));
        out.push(')');
        let mut dict = || {
            let value = self.any_attr();
            format!("{{a = {value}, unit}}")
        };
        let (props, attrs) = (format!(" <{}>", dict()), format!(" {}", dict()));
        if self.random.percent(20) {
            out.push_str(&props);
        }
        let regions: Vec<String> = (0..self.random.below(3))
            .map(|_| self.region(depth))
            .collect();
        if !regions.is_empty() {
            out.push_str(&format!(" ({{\n{}}})", regions.join("}, {\n")));
        }
        if self.random.percent(30) {
            out.push_str(&attrs);
        }
        let types = match types[..] {
            [ty] => ty.to_owned(),
            _ => format!("({})", types.join(", ")),
        };
        out.push_str(&format!(" : ({}) -> {types}", operand_types.join(", ")));
        if !uses.is_empty() && self.random.percent(60) {
            use_types.truncate(uses.len());
            out.push_str(&format!(
                "\n\"other.use\"({}) : ({}) -> ()",
                uses.join(", "),
                use_types.join(", ")
            ));
        }
        out
    }

    /// What stands in a region of a foreign operation.
    fn region(&mut self, depth: usize) -> String {
        let mut out = String::new();
        let mut argument = None;
        if self.random.percent(30) {
            self.fresh += 1;
            let ty = self.random.pick(TYPES);
            out.push_str(&format!("^bb0(%new{}: {ty}):\n", self.fresh));
            argument = Some(format!(
                "\"other.use\"(%new{}) : ({ty}) -> ()\n",
                self.fresh
            ));
        }
        for _ in 0..self.random.below(3) {
            let statement = match self.random.below(3) {
                0 if depth > 0 => self.foreign(depth - 1),
                _ => {
                    let number = self.random.below(OPS.len());
                    match &OPS[number] {
                        op if op.syntax == Syntax::Instruction => self.instruction(op),
                        _ => "\"other.leaf\"() : () -> ()".to_owned(),
                    }
                }
            };
            out.push_str(&format!("{statement}\n"));
        }
        out.push_str(&argument.unwrap_or_default());
        if self.random.percent(20) {
            self.fresh += 1;
            out.push_str(&format!(
                "\"other.branch\"()[^new{0}] : () -> ()\n^new{0}: // target\n\"other.end\"() : () -> ()\n",
                self.fresh
            ));
        }
        out
    }

    /// A value every statement sees, and its type as the generic form states it.
    fn typed_name(&mut self) -> (String, String) {
        let pool = self.random.pick(&[TILES, REGISTERS, INDICES]);
        let name = self.random.pick(pool);
        let head = format!("%{name} = alloc ");
        let ty = match PRELUDE
            .lines()
            .find_map(|line| line.trim().strip_prefix(&head))
        {
            Some(rest) => {
                let (space, rest) = rest.split_once('<').expect("a shape");
                let (shape, _) = rest.split_once('>').expect("a closed shape");
                format!("!bir.mem<{space}, {shape}>")
            }
            None if INDICES.contains(&name) => "index".to_owned(),
            None => "!bir.reg<i32>".to_owned(),
        };
        (format!("%{name}"), ty)
    }
}
