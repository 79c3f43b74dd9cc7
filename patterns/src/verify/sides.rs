//! Both sides of an instance, run on the same inputs and compared.
//!
//! A result is as good as another if it is the same value, or if what is allowed looks away. What
//! looks away are the inputs, what the left side gives, and what it has in between: a rule that makes
//! NaN of numbers is not excused by its own NaN.

use bir_dialect::bir::num::{DType, same_value, to_f64};
use bir_dialect::ir::Ir;
use bir_sim::{Inputs, Options, Simulation, Tensor, Tolerance, compare};

use super::Check;
use super::inputs::oddities;
use super::layout::{dropped, lanes};
use super::program::{Extras, Instance, Shape};
use super::space::{Assignment, Choice};
use crate::rule::Form;

/// Other NaNs tried where the bits of one may be read as something else.
const SALTS: u32 = 3;

/// Results by the name of their location.
type Results = Vec<(String, Tensor)>;

/// Both sides, ready to run.
pub(super) struct Sides<'a> {
    instance: &'a Instance,
    left: Simulation<'a>,
    right: Result<Simulation<'a>, String>,
    /// The left side where computed NaNs have other bits.
    salted: Vec<Simulation<'a>>,
    /// The left side with what nobody sees written out.
    watched: Option<Simulation<'a>>,
}

/// What a run says.
pub(super) enum Judged {
    /// Nothing: the left side does not take these inputs.
    Nothing,
    /// The right side does not run.
    Fault(String),
    /// What each gave, and where that is too far apart: number of the output, element.
    Results {
        wanted: Results,
        found: Results,
        apart: Vec<(usize, usize)>,
    },
}

/// The left side with what nobody sees written out, where the contract asks for it.
pub(super) enum Watched {
    /// It does not.
    Needless,
    /// This one.
    Instance(Box<Instance>),
    /// It does, and there is none.
    Unknown,
}

impl Watched {
    pub(super) fn of(
        check: &Check<'_>,
        form: &Form,
        assignment: &Assignment,
        shape: Shape,
        extras: &Extras<'_>,
    ) -> Watched {
        let unseen = (0..form.vars.len()).any(|var| {
            let tile = matches!(assignment.vars[var], Choice::Tile(..));
            tile && form.writer(var).is_some() && dropped(form, var)
        });
        if !check.excuses() || !unseen {
            return Watched::Needless;
        }
        let extras = Extras {
            watched: true,
            ..*extras
        };
        match Instance::build(form, assignment, shape, &extras) {
            Some(instance) => Watched::Instance(Box::new(instance)),
            None => Watched::Unknown,
        }
    }
}

impl<'a> Sides<'a> {
    /// `None` where the left side alone is no program that runs, or too little is known of it.
    pub(super) fn new(
        instance: &'a Instance,
        after: &'a Ir,
        watched: &'a Watched,
    ) -> Option<Sides<'a>> {
        let options = Options::default();
        let salts = match instance.text.contains(" as ") {
            true => SALTS,
            false => 0,
        };
        let salted = (0..salts).map(|salt| {
            let options = Options {
                nan_salt: Some(salt),
                ..options
            };
            Simulation::new(&instance.ir, options).ok()
        });
        Some(Sides {
            instance,
            left: Simulation::new(&instance.ir, options).ok()?,
            right: Simulation::new(after, options).map_err(|fault| fault.to_string()),
            salted: salted.collect::<Option<_>>()?,
            watched: match watched {
                Watched::Needless => None,
                Watched::Instance(instance) => Some(Simulation::new(&instance.ir, options).ok()?),
                Watched::Unknown => return None,
            },
        })
    }

    /// Runs both.
    pub(super) fn judge(&self, check: &Check<'_>, given: &Inputs) -> Judged {
        let results = |simulation: &Simulation<'_>| {
            let outcome = simulation.run(given, &mut |_| {});
            outcome.map(|outcome| outcome.outputs)
        };
        // Inputs the left side itself does not take say nothing.
        let Ok(wanted) = results(&self.left) else {
            return Judged::Nothing;
        };
        let mut salted = Vec::new();
        for simulation in &self.salted {
            match results(simulation) {
                Ok(other) => salted.push(other),
                Err(_) => return Judged::Nothing,
            }
        }
        let between: Results = match self.watched.as_ref().map(results) {
            None => Vec::new(),
            Some(Ok(all)) => all,
            Some(Err(_)) => return Judged::Nothing,
        };
        let found = match &self.right {
            Ok(right) => results(right).map_err(|fault| fault.to_string()),
            Err(fault) => Err(fault.clone()),
        };
        let found = match found {
            Ok(found) => found,
            Err(fault) => return Judged::Fault(fault),
        };
        let mut apart = Vec::new();
        for (number, ((_, want), (_, got))) in wanted.iter().zip(&found).enumerate() {
            if want.bytes == got.bytes {
                continue;
            }
            // The bits of a NaN that is computed are nobody's promise.
            let open = |at: usize| {
                salted.iter().any(|other| {
                    let other = other[number].1.bits(at);
                    !same_value(want.dtype, want.bits(at), other)
                })
            };
            let odd = Odd {
                instance: self.instance,
                given,
                wanted: &wanted,
                between: &between,
            };
            for at in 0..want.len() {
                if !check.equal(&odd, want, got, at) && !open(at) {
                    apart.push((number, at));
                }
            }
        }
        Judged::Results {
            wanted,
            found,
            apart,
        }
    }
}

/// What looks away where it is NaN or infinite.
struct Odd<'a> {
    instance: &'a Instance,
    given: &'a Inputs,
    wanted: &'a Results,
    between: &'a Results,
}

impl Odd<'_> {
    /// Whether something a result has to do with on the left side is NaN; whether it is infinite.
    fn at(&self, of: &Tensor, at: usize) -> (bool, bool) {
        let Instance {
            inputs,
            partitions,
            spread,
            ..
        } = self.instance;
        let given = inputs
            .iter()
            .filter_map(|input| self.given.get(&input.port));
        let results = self.wanted.iter().chain(self.between).map(|(_, one)| one);
        let mut odd = (false, false);
        for tensor in given.chain(results) {
            for lane in lanes(*spread, *partitions, at, of.len(), tensor.len()) {
                let (nan, infinite) = oddities(tensor.dtype, tensor.bits(lane));
                odd = (odd.0 || nan, odd.1 || infinite);
            }
        }
        odd
    }
}

impl Check<'_> {
    /// Whether what is allowed looks away where something is NaN or infinite.
    pub(super) fn excuses(&self) -> bool {
        self.allowed.nnan || self.allowed.ninf
    }

    /// Whether two results are as near as the contract and what is allowed want them.
    fn equal(&self, odd: &Odd<'_>, want: &Tensor, got: &Tensor, at: usize) -> bool {
        let (a, b) = (want.bits(at), got.bits(at));
        let dtype = want.dtype;
        if same_value(dtype, a, b) {
            return true;
        }
        let number = |bits| to_f64(dtype, bits);
        if self.allowed.nsz && number(a) == Some(0.0) && number(b) == Some(0.0) {
            return true;
        }
        if self.excuses() {
            let (nan, infinite) = odd.at(want, at);
            if self.allowed.nnan && nan || self.allowed.ninf && infinite {
                return true;
            }
        }
        if self.contract.ulp == 0 {
            return false;
        }
        let tolerance = Tolerance {
            ulp: self.contract.ulp,
            ..Tolerance::default()
        };
        compare(&single(dtype, b), &single(dtype, a), tolerance).is_none()
    }
}

/// A tensor of one element.
fn single(dtype: DType, bits: u64) -> Tensor {
    Tensor {
        dtype,
        dims: vec![1],
        bytes: bits.to_le_bytes()[..dtype.size_bytes() as usize].to_vec(),
    }
}
