//! What was decided about an instruction that looked the same.
//!
//! Formally: two instructions *look the same* if name, dictionary and, per operand, role, access and type
//! are equal, and the same operands are of one location. Forms that are local (`Form::is_local`) answer
//! alike for both, and make the same of them. So the rules are asked once for each look, and of an
//! instruction that looks like one before only its row and operands are read.
//!
//! Not recalled: instructions with loop indices or results, and those for which a form that is not
//! local has to be asked.

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, NewOperand, Op};
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::{Tried, Work};
use crate::automaton::{Automaton, FormId};
use crate::matcher::Miss;
use crate::rewriter::{Recast, Rewriter, recast};

/// What happens at instructions of one look.
enum Outcome {
    /// Nobody knows without looking further.
    Open,
    /// No rule fires.
    Nothing,
    /// This rule fires.
    Fires(u32, Recast),
}

struct Entry {
    /// Where its key ends.
    end: u32,
    /// How often it was recalled.
    hits: u64,
    /// How often its rule fired.
    fired: u64,
    /// What each of these counts.
    tried: Vec<Tried>,
    outcome: Outcome,
}

/// What is known of looks.
#[derive(Default)]
pub(super) struct Recall {
    table: HashTable<u32>,
    entries: Vec<Entry>,
    keys: Vec<u64>,
    key: Vec<u64>,
}

/// What recalling says.
pub(super) enum Said {
    /// The rules have to be asked.
    Ask,
    /// No rule fires.
    Nothing,
    /// This rule may fire: number of the look.
    Fires(u32),
}

fn hash(words: &[u64]) -> u64 {
    let fold = |hash: u64, &word: &u64| {
        let wide = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        (wide >> 64) as u64 ^ wide as u64
    };
    words.iter().fold(0x2d35_8dcc_aa6c_78a5, fold)
}

impl Recall {
    /// What happens at an instruction.
    pub(super) fn ask(
        &mut self,
        ir: &mut Ir,
        work: &mut Work<'_>,
        automaton: &mut Automaton,
        op: Op,
    ) -> Said {
        if !look(ir, op, &mut self.key) {
            return Said::Ask;
        }
        let hash = hash(&self.key);
        let known = self.table.find(hash, |&at| self.key_of(at) == self.key);
        let number = match known {
            Some(&number) => number,
            None => {
                let (tried, outcome) = learn(ir, work, automaton, op);
                let number = self.entries.len() as u32;
                self.keys.extend_from_slice(&self.key);
                self.entries.push(Entry {
                    end: self.keys.len() as u32,
                    hits: 0,
                    fired: 0,
                    tried,
                    outcome,
                });
                let (keys, entries) = (&self.keys, &self.entries);
                self.table.insert_unique(hash, number, |&other| {
                    self::hash(key_of(keys, entries, other))
                });
                number
            }
        };
        let entry = &mut self.entries[number as usize];
        match entry.outcome {
            Outcome::Open => Said::Ask,
            Outcome::Nothing => {
                entry.hits += 1;
                Said::Nothing
            }
            Outcome::Fires(..) => Said::Fires(number),
        }
    }

    fn key_of(&self, at: u32) -> &[u64] {
        key_of(&self.keys, &self.entries, at)
    }

    /// Makes of an instruction what the rule of its look does, and says which it is; nothing where the run
    /// ends before.
    pub(super) fn fire(
        &mut self,
        ir: &mut Ir,
        work: &mut Work<'_>,
        number: u32,
        op: Op,
    ) -> Option<u32> {
        let entry = &mut self.entries[number as usize];
        let Outcome::Fires(rule, made) = &entry.outcome else {
            return None;
        };
        entry.hits += 1;
        if !work.may(ir, *rule as usize, op) {
            return None;
        }
        entry.fired += 1;
        let mut operands: SmallVec<[NewOperand; 8]> = SmallVec::new();
        for &(from, role, annot) in &made.operands {
            let value = ir.operands(op)[usize::from(from)].value;
            operands.push(NewOperand { value, role, annot });
        }
        recast(ir, &mut work.flow, op, made.name, &operands, made.dict);
        work.report.applied += 1;
        Some(*rule)
    }

    /// Adds what was tried to the counters of a run: where it ends.
    pub(super) fn count(&self, work: &mut Work<'_>) {
        for entry in &self.entries {
            for tried in &entry.tried {
                work.count(tried, entry.hits);
            }
            if let Outcome::Fires(rule, _) = entry.outcome {
                let counter = &mut work.report.counters[rule as usize];
                counter.matched += entry.fired;
                counter.applied += entry.fired;
            }
        }
    }
}

fn key_of<'a>(keys: &'a [u64], entries: &[Entry], at: u32) -> &'a [u64] {
    let start = match at {
        0 => 0,
        _ => entries[at as usize - 1].end as usize,
    };
    &keys[start..entries[at as usize].end as usize]
}

/// How an instruction looks; whether that is all there is to it.
fn look(ir: &Ir, op: Op, key: &mut Vec<u64>) -> bool {
    let Some(code) = OpCode::of(ir, op) else {
        return false;
    };
    let indices = code.def().indices_role();
    let operands = ir.operands(op);
    key.clear();
    key.push((code as u64) << 32 | ir.dict(op).index() as u64);
    for (at, operand) in operands.iter().enumerate() {
        if usize::from(operand.role) == indices {
            return false;
        }
        let same = operands[..at]
            .iter()
            .position(|other| other.value == operand.value)
            .unwrap_or(at);
        let ty = ir.value_type(operand.value).index();
        key.push(
            (same as u64) << 40 | u64::from(operand.role) << 32 | operand.annot.index() as u64,
        );
        key.push(ty as u64);
    }
    operands.len() < 256 && ir.results(op).len() == 0 && ir.regions(op).is_empty()
}

/// Asks the rules about an instruction of a new look.
fn learn(
    ir: &mut Ir,
    work: &mut Work<'_>,
    automaton: &mut Automaton,
    op: Op,
) -> (Vec<Tried>, Outcome) {
    let open = (Vec::new(), Outcome::Open);
    let candidates: Vec<FormId> = automaton.candidates(ir, op).to_vec();
    let set = work.set;
    let local = |&(rule, form): &FormId| set.rules[rule as usize].forms[form as usize].is_local();
    let mut tried = Vec::new();
    for forms in candidates.chunk_by(|a, b| a.0 == b.0) {
        if !forms.iter().all(local) {
            return open;
        }
        let rule = forms[0].0;
        let mut one = Tried::new(rule);
        for &(_, form) in forms {
            match work.decide(ir, rule as usize, form, op) {
                Ok((_, plan)) => {
                    one.forms += 1;
                    let mut rewriter = Rewriter::new(ir, &mut work.flow, &mut work.estate);
                    let Some(recast) = rewriter.pattern_of(&plan) else {
                        return open;
                    };
                    one.miss = None;
                    tried.push(one);
                    return (tried, Outcome::Fires(rule, recast));
                }
                // An error of the rule, which is told where it is tried.
                Err(Miss::Unchanged) => return open,
                Err(miss) => one.add(form, miss),
            }
        }
        tried.push(one);
    }
    (tried, Outcome::Nothing)
}
