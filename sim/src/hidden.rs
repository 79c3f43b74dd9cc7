//! State of the vector and pool engines that is no operand: random numbers and cached scalars.
//!
//! Lanes are counted from the first partition of the operand that uses them, as those of the
//! accumulators are, so that moving a tile to other partitions changes nothing.

use bir_dialect::bir::space::{Engine, Target};

use crate::fault::{Fault, FaultKind, Run};

/// Lanes of an engine.
pub(crate) const LANES: usize = 128;
/// Words of the state of one generator.
pub(crate) const WORDS: usize = 6;
/// Generators of a lane of the vector engine from `trn3` on.
const SIDE_BY_SIDE: usize = 4;
/// What a lane's number is multiplied with before it meets the seed (isa-facts §7.6).
const LANE_FACTOR: u32 = 0x9E37_79B9;

/// Marsaglia's xorwow: words x, y, z, w, v and the counter d, which grows by 362437.
#[derive(Clone, Copy)]
pub(crate) struct Xorwow {
    pub(crate) words: [u32; WORDS],
}

/// Mixes a word so that near seeds give far states.
fn mix(mut word: u32) -> u32 {
    word ^= word >> 16;
    word = word.wrapping_mul(0x85EB_CA6B);
    word ^= word >> 13;
    word = word.wrapping_mul(0xC2B2_AE35);
    word ^ word >> 16
}

impl Xorwow {
    /// The state of a seed: word `i` is the mix of `seed + (i + 1) * 0x9E3779B9`.
    pub(crate) fn seeded(seed: u32) -> Xorwow {
        let mut at = seed;
        let mut words = [0; WORDS];
        for word in &mut words {
            at = at.wrapping_add(LANE_FACTOR);
            *word = mix(at);
        }
        Xorwow { words }
    }

    /// The next 32 bits.
    pub(crate) fn next(&mut self) -> u32 {
        let [x, y, z, w, v, d] = self.words;
        let t = x ^ x >> 2;
        let last = v ^ v << 4 ^ t ^ t << 1;
        let count = d.wrapping_add(362_437);
        self.words = [y, z, w, v, last, count];
        count.wrapping_add(last)
    }
}

/// 32 random bits as a number in [0, 1), of 24 bits.
pub(crate) fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The generators of one engine: one per lane, or four that serve the elements of an instruction in
/// turn.
pub(crate) struct Generators {
    per_lane: usize,
    states: Vec<Xorwow>,
}

impl Generators {
    fn new(per_lane: usize) -> Generators {
        let mut generators = Generators {
            per_lane,
            states: Vec::with_capacity(LANES * per_lane),
        };
        generators.seed(0);
        generators
    }

    /// Starts anew: generator `g` of lane `l` from `seed ^ ((l + 128 g) * 0x9E3779B9)`.
    pub(crate) fn seed(&mut self, seed: u32) {
        self.states.clear();
        for lane in 0..LANES {
            for g in 0..self.per_lane {
                let number = (lane + LANES * g) as u32;
                let start = seed ^ number.wrapping_mul(LANE_FACTOR);
                self.states.push(Xorwow::seeded(start));
            }
        }
    }

    /// The generators of a lane.
    pub(crate) fn lane(&mut self, lane: usize) -> &mut [Xorwow] {
        &mut self.states[lane * self.per_lane..][..self.per_lane]
    }

    /// The random word of element `i` of an instruction's row in a lane.
    pub(crate) fn draw(&mut self, lane: usize, i: usize) -> u32 {
        self.states[lane * self.per_lane + i % self.per_lane].next()
    }
}

/// Scalars the vector engine keeps for `tensor_scalar_cache`: two per lane.
pub(crate) struct ScalarCache {
    values: [[Option<f32>; LANES]; 2],
}

impl ScalarCache {
    /// Keeps a scalar.
    pub(crate) fn set(&mut self, slot: usize, lane: usize, value: f32) {
        self.values[slot][lane] = Some(value);
    }

    /// A scalar kept earlier.
    pub(crate) fn get(&self, slot: usize, lane: usize) -> Run<f32> {
        self.values[slot][lane].ok_or_else(|| {
            Fault::new(FaultKind::Cache {
                slot,
                partition: lane,
            })
        })
    }
}

/// Generators of a lane.
fn per_lane(engine: Engine, target: Target) -> usize {
    if engine == Engine::Dve && target >= Target::Trn3 {
        SIDE_BY_SIDE
    } else {
        1
    }
}

/// Words of the random state of a lane.
pub(crate) fn state_words(engine: Engine, target: Target) -> usize {
    WORDS * per_lane(engine, target)
}

/// What the engines keep; made when first used.
#[derive(Default)]
pub(crate) struct Hidden {
    dve: Option<Generators>,
    pool: Option<Generators>,
    cache: Option<Box<ScalarCache>>,
}

impl Hidden {
    /// The random numbers of an engine. Before they are seeded they are those of seed 0.
    pub(crate) fn random(&mut self, engine: Engine, target: Target) -> &mut Generators {
        let generators = if engine == Engine::Pool {
            &mut self.pool
        } else {
            &mut self.dve
        };
        generators.get_or_insert_with(|| Generators::new(per_lane(engine, target)))
    }

    /// The cached scalars.
    pub(crate) fn cache(&mut self) -> &mut ScalarCache {
        self.cache.get_or_insert_with(|| {
            Box::new(ScalarCache {
                values: [[None; LANES]; 2],
            })
        })
    }
}
