//! What instructions that go owe to others, and others to them.
//!
//! Formally, of a rewrite that puts the instructions H, its *heirs*, into the place of others, of which R
//! is one:
//!
//! * edges – who depended on R and stands behind H depends on all of H; H depends on all R depended on
//!   that stands before H. Who stands elsewhere is handed what R depended on, as
//!   [`erase`](fn@bir_dialect::analysis::deps::erase) says;
//! * semaphores – waits and signals of R go to its neighbours on the engine, as `erase` says, but those
//!   of the instruction whose place is taken to H.
//!
//! Until a walk ends, an instruction that owes something leaves an `event_semaphore` in its place, which
//! touches no memory and which no rule looks for. Then all of them are settled at once: one walk over
//! the function and its edges, however many went.

use bir_dialect::analysis::deps::{erase, stand_in};
use bir_dialect::analysis::sync::{Stream, waits_or_signals};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::{COL_DEPS, COL_ID, Dep, DepKind, names, target_of};
use bir_dialect::ir::{Attr, Ir, Op, Str};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::flow::Flow;

type Fixed = foldhash::fast::FixedState;
type Heirs = SmallVec<[Op; 2]>;

/// What is to be settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estate {
    /// What stands in the places of those that went, in the order they did, and for whom.
    left: Vec<(Op, Op)>,
    /// Per instruction that went, who came for it.
    heirs: HashMap<Op, Heirs, Fixed>,
}

impl Estate {
    /// Takes note of an instruction that is about to go, and of who comes for it. What is left in its
    /// place, if it owes something.
    pub(crate) fn leave(&mut self, ir: &mut Ir, op: Op, heirs: &[Op]) -> Option<Op> {
        let owes = ir.int_cell(COL_ID, op).is_some()
            || ir.words_cell(COL_DEPS, op).is_some()
            || waits_or_signals(ir, op);
        if owes || !self.left.is_empty() {
            self.heirs.insert(op, SmallVec::from_slice(heirs));
        }
        if !owes {
            return None;
        }
        let mut entries: SmallVec<[(Str, Attr); 2]> = SmallVec::new();
        for name in [names::WAIT, names::SIGNAL] {
            entries.extend(ir.ctx.dict_get(ir.dict(op), name).map(|attr| (name, attr)));
        }
        let target = target_of(ir, op);
        let stream = Stream::of(ir, op, target);
        let stands = stand_in(ir, op, target, stream, &entries);
        self.left.push((stands, op));
        Some(stands)
    }

    /// Hands everything over; what stood for instructions that went is gone then.
    pub(crate) fn settle(&mut self, ir: &mut Ir, flow: &mut Flow) {
        if self.left.is_empty() {
            return;
        }
        let func = flow.func();
        self.bequeath(ir, func);
        let stands: Vec<Op> = self.left.iter().map(|pair| pair.0).collect();
        if let Some(memory) = flow.known() {
            stands.iter().for_each(|&op| memory.remove(ir, op));
        }
        if erase(ir, func, &stands).left_semaphores > 0 {
            // These have no position yet.
            flow.forget();
        }
        self.left.clear();
        self.heirs.clear();
    }

    /// Heirs that are still there: those of heirs for heirs.
    fn living(&self, ir: &Ir, op: Op) -> Heirs {
        let mut found = Heirs::new();
        let mut todo = Heirs::from_slice(&[op]);
        while let Some(op) = todo.pop() {
            match self.heirs.get(&op) {
                Some(heirs) => todo.extend(heirs.iter().copied()),
                None if !ir.is_erased(op) && !found.contains(&op) => found.push(op),
                None => {}
            }
        }
        found
    }

    /// States the edges of heirs.
    fn bequeath(&self, ir: &mut Ir, func: Op) {
        let numbered = |op: Op| ir.int_cell(COL_ID, op).is_some();
        let owing = |&(op, _): &(Op, Op)| numbered(op) || ir.words_cell(COL_DEPS, op).is_some();
        if !self.left.iter().any(owing) {
            return;
        }
        let mut places = Places::new(ir, func);
        // What heirs depend on comes first: among it may be what has heirs itself.
        let mut heirs_of: HashMap<u32, (Op, Heirs), Fixed> = HashMap::default();
        for &(stands, gone) in &self.left {
            let mut heirs = self.living(ir, gone);
            heirs.sort_unstable_by_key(|op| places.at[op.index()]);
            let words = ir.words_cell(COL_DEPS, stands).map(<[u64]>::to_vec);
            for &heir in &heirs {
                let mut all = ir.words_cell(COL_DEPS, heir).unwrap_or_default().to_vec();
                for &word in words.iter().flatten() {
                    places.before(ir, Dep::from_word(word), heir, &mut all);
                }
                set_deps(ir, heir, all);
            }
            // What was made together is executed as it is written.
            for pair in heirs.windows(2) {
                let id = places.number(ir, pair[0]);
                let dep = Dep {
                    kind: DepKind::Ordered,
                    id,
                    set: false,
                };
                let mut all = ir
                    .words_cell(COL_DEPS, pair[1])
                    .unwrap_or_default()
                    .to_vec();
                all.push(dep.word());
                set_deps(ir, pair[1], all);
            }
            if let Some(id) = ir.int_cell(COL_ID, stands).filter(|_| !heirs.is_empty()) {
                heirs_of.insert(id, (stands, heirs));
            }
        }
        if heirs_of.is_empty() {
            return;
        }
        let stands: HashSet<Op, Fixed> = self.left.iter().map(|pair| pair.0).collect();
        for op in std::mem::take(&mut places.dependent) {
            if !stands.contains(&op) {
                places.depend(ir, op, &heirs_of);
            }
        }
        // Heirs that depended on nothing before.
        let mut all: Vec<Op> = heirs_of.values().flat_map(|pair| pair.1.clone()).collect();
        all.sort_unstable();
        all.dedup();
        for op in all {
            places.depend(ir, op, &heirs_of);
        }
    }
}

fn set_deps(ir: &mut Ir, op: Op, mut words: Vec<u64>) {
    words.sort_unstable();
    words.dedup();
    ir.set_words_cell(COL_DEPS, op, (!words.is_empty()).then_some(&words[..]));
}

/// Where instructions stand, and what sets hold.
struct Places {
    /// By row.
    at: Vec<u32>,
    op_of: HashMap<u32, Op, Fixed>,
    sets: HashMap<u32, Op, Fixed>,
    /// Instructions with dependences, in text order.
    dependent: Vec<Op>,
    next_id: u32,
}

impl Places {
    fn new(ir: &Ir, func: Op) -> Places {
        let mut places = Places {
            at: vec![0; ir.op_rows()],
            op_of: HashMap::default(),
            sets: HashMap::default(),
            dependent: Vec::new(),
            next_id: 0,
        };
        for (at, op) in (0u32..).zip(ir.walk_op(func)) {
            places.at[op.index()] = at;
            let id = ir.int_cell(COL_ID, op);
            if OpCode::of(ir, op) == Some(OpCode::Depset) {
                places.sets.extend(id.map(|id| (id, op)));
                continue;
            }
            if let Some(id) = id {
                places.op_of.insert(id, op);
                places.next_id = places.next_id.max(id.saturating_add(1));
            }
            if ir.words_cell(COL_DEPS, op).is_some() {
                places.dependent.push(op);
            }
        }
        places
    }

    fn is_before(&self, a: Op, b: Op) -> bool {
        self.at[a.index()] < self.at[b.index()]
    }

    /// The instructions a set holds, through sets it holds.
    fn members(&self, ir: &Ir, set: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut seen: HashSet<u32, Fixed> = HashSet::default();
        let mut todo = vec![set];
        while let Some(set) = todo.pop() {
            let Some(&op) = self.sets.get(&set).filter(|_| seen.insert(set)) else {
                continue;
            };
            for &word in ir.words_cell(COL_DEPS, op).unwrap_or_default() {
                let dep = Dep::from_word(word);
                match dep.set {
                    true => todo.push(dep.id),
                    false => found.push(dep.id),
                }
            }
        }
        found
    }

    /// What a dependence is for an heir: what of it stands before it.
    fn before(&self, ir: &Ir, dep: Dep, heir: Op, words: &mut Vec<u64>) {
        let is_before = |id: &u32| {
            self.op_of
                .get(id)
                .is_some_and(|&op| self.is_before(op, heir))
        };
        if !dep.set {
            words.extend(is_before(&dep.id).then(|| dep.word()));
            return;
        }
        let members = self.members(ir, dep.id);
        if members.iter().all(is_before) {
            words.push(dep.word());
            return;
        }
        let one = |id| Dep {
            id,
            set: false,
            ..dep
        };
        words.extend(
            members
                .into_iter()
                .filter(is_before)
                .map(|id| one(id).word()),
        );
    }

    /// Lets an instruction depend on heirs of what it depends on, where these stand before it.
    fn depend(&mut self, ir: &mut Ir, op: Op, heirs_of: &HashMap<u32, (Op, Heirs), Fixed>) {
        let words = ir.words_cell(COL_DEPS, op).unwrap_or_default().to_vec();
        let mut all: Vec<u64> = Vec::with_capacity(words.len());
        for &word in &words {
            let dep = Dep::from_word(word);
            let ids = match dep.set {
                true => self.members(ir, dep.id),
                false => vec![dep.id],
            };
            let mut replaced = !dep.set;
            for (stands, heirs) in ids.iter().filter_map(|id| heirs_of.get(id)) {
                for &heir in heirs {
                    if heir == op || !self.is_before(heir, op) {
                        replaced = false;
                        continue;
                    }
                    let id = self.number(ir, heir);
                    all.push(
                        Dep {
                            kind: dep.kind,
                            id,
                            set: false,
                        }
                        .word(),
                    );
                    // An heir behind what it came for depends on all of that.
                    replaced &= self.is_before(*stands, heir);
                }
            }
            let has_heirs = !dep.set && heirs_of.contains_key(&dep.id);
            if !(replaced && has_heirs) {
                all.push(word);
            }
        }
        if all != words {
            set_deps(ir, op, all);
        }
    }

    /// The number of an instruction, a new one if it has none.
    fn number(&mut self, ir: &mut Ir, op: Op) -> u32 {
        if let Some(id) = ir.int_cell(COL_ID, op) {
            return id;
        }
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        ir.set_int_cell(COL_ID, op, Some(id));
        id
    }
}

/// Whether the program orders an instruction and what stands between it and the place its heirs take,
/// for a reason that is not memory: they cannot stand on the other side then.
pub(crate) fn is_ordered_between(ir: &Ir, gone: Op, place: Op) -> bool {
    let id = ir.int_cell(COL_ID, gone);
    let deps = ir.words_cell(COL_DEPS, gone).unwrap_or_default();
    let ordered = |words: &[u64]| {
        let words = words.iter().map(|&word| Dep::from_word(word));
        words
            .filter(|dep| dep.kind == DepKind::Ordered)
            .collect::<SmallVec<[Dep; 4]>>()
    };
    let own = ordered(deps);
    if id.is_none() && own.is_empty() {
        return false;
    }
    let is_later = ir.order_in_block(gone) < ir.order_in_block(place);
    let (from, to) = match is_later {
        true => (gone, place),
        false => (place, gone),
    };
    let mut at = ir.next(from);
    while let Some(op) = at.filter(|&op| op != to) {
        let hit = ir.walk_op(op).any(|op| match is_later {
            // Sets are not looked into.
            true => ordered(ir.words_cell(COL_DEPS, op).unwrap_or_default())
                .iter()
                .any(|dep| dep.set || Some(dep.id) == id),
            false => own
                .iter()
                .any(|dep| dep.set || Some(dep.id) == ir.int_cell(COL_ID, op)),
        });
        if hit {
            return true;
        }
        at = ir.next(op);
    }
    false
}
