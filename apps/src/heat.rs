//! `heat`: the temperatures of a square plate with one hot edge, by Jacobi's method. It shows the resilient loop on
//! blocks of rows with a halo exchange, with the same bits on any number of ranks.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ft_checkpoint::{Flow, Program, RankState};
use ft_comm::limits;
use ft_comm::{CommError, Op, World};
use ft_figures::{AxisRange, Density, Scale};
use ft_linalg::Workspace;
use serde::{Deserialize, Serialize};

use crate::app::{self, App};
use crate::options::Options;
use crate::rank::{self, Reporter};
use crate::value::{U32_MAX, from_to, positive};
use crate::words::count;

mod implicit;
mod plate;

use implicit::Implicit;
use plate::Plate;

/// Steps from one look at the largest change to the next.
const LOOK_EVERY: u64 = 50;

/// Points a side of a picture at most.
const PICTURE_SIDE: usize = 200;

/// A temperature of a picture, to 3 digits.
fn rounded(value: f64) -> f32 {
    ((value * 1e3).round() / 1e3) as f32
}

/// The arguments of `heat`.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of heat")]
pub(crate) struct HeatArgs {
    /// Points a side of the plate
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = from_to::<u32>(1..=32768))]
    grid: u32,
    /// Do N steps at most
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = from_to::<u32>(1..=U32_MAX))]
    steps: u32,
    /// Stop once no temperature changes by TOL; the hot edge has 1
    #[arg(long, value_name = "TOL", value_parser = positive)]
    tol: Option<f64>,
    /// Take time steps of length DT, each a linear system for conjugate gradients, instead of those of Jacobi's method; with DT 1
    /// heat spreads over about one point a step
    #[arg(long, value_name = "DT", value_parser = positive)]
    implicit: Option<f64>,
    /// Draw the temperatures
    #[arg(long, value_name = "FILE.svg|.png")]
    picture: Option<PathBuf>,
}

/// What `heat` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeatResult {
    grid: u32,
    steps: u64,
    /// The most that a temperature changed by in the last step.
    #[serde(with = "crate::number")]
    change: f64,
    /// The temperatures are symmetric, and fall from the hot edge on; of implicit steps, they are between those of the edges.
    plausible: bool,
    answer_hash: String,
    /// Temperatures for the picture, if one is wanted, column by column.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    picture: Vec<f32>,
}

impl App for HeatArgs {
    type Outcome = HeatResult;

    fn check(&self, options: &Options) -> Result<(), String> {
        let (rows, ranks) = (self.grid as usize, options.ranks());
        if rows < ranks {
            return Err(format!("--grid {rows} has fewer rows than there are ranks, {ranks}"));
        }
        self.picture
            .as_deref()
            .map_or(Ok(()), ft_figures::check_path)
            .map_err(|error| format!("--picture: {error}"))
    }

    fn rank(&self) -> ExitCode {
        if let Some(dt) = self.implicit {
            let args = self.clone();
            return rank::run(|settings| {
                let (reporter, work) = (Reporter::new(settings), Workspace::default());
                Implicit { args, dt, reporter, work }
            });
        }
        rank::run(|settings| Heat {
            args: self.clone(),
            steps: 0,
            change: 0.0,
            reporter: Reporter::new(settings),
        })
    }

    fn complaint(&self, HeatResult { steps, change, plausible, .. }: &HeatResult) -> Option<String> {
        if !plausible {
            let what = match self.implicit {
                Some(_) => "are not between those of the edges, or a system could not be solved",
                None => "are not symmetric, or do not fall from the hot edge on",
            };
            return Some(format!("the temperatures {what}"));
        }
        // Not a number is no small change.
        let has_converged = change.is_finite() && self.tol.is_none_or(|tol| *change < tol);
        (!has_converged).then(|| {
            format!("not converged after {}: the largest change is {change:.2e}", count(*steps, "step"))
        })
    }

    fn headline(&self, HeatResult { grid, .. }: &HeatResult) -> String {
        format!("{grid} x {grid} points")
    }

    fn lines(&self, HeatResult { steps, change, answer_hash, .. }: &HeatResult) -> Vec<String> {
        let hash = &answer_hash[..16.min(answer_hash.len())];
        let steps = count(*steps, "step");
        vec![format!("{steps}, the largest change in the last one {change:.2e}, answer {hash}")]
    }

    fn finish(&self, result: Option<&HeatResult>) -> Result<(), String> {
        let (Some(path), Some(HeatResult { steps, picture, .. })) = (&self.picture, result) else {
            return Ok(());
        };
        let points = picture.len().isqrt();
        let axis = |title: &str| AxisRange { from: 0.0, to: 1.0, title: title.into() };
        let density = Density {
            title: format!("Temperatures after {steps} steps"),
            values: picture,
            nx: points,
            nz: points,
            x: axis("along the hot edge"),
            z: axis("distance from the hot edge"),
            scale: Scale::Sequential,
            bar_title: "temperature".into(),
            markers: vec![],
        };
        density.draw().save(path).map_err(|error| limits::explain(&error))
    }
}

struct Heat {
    args: HeatArgs,
    /// Number of the last step and the largest change in it.
    steps: u64,
    change: f64,
    reporter: Reporter,
}

impl Program for Heat {
    type State = Plate;
    type Error = CommError;
    const ALONE: bool = true;
    const SHRINKS: bool = true;
    const GROWS: bool = true;

    fn redistribute(
        &mut self,
        shares: Vec<RankState<Plate>>,
        before: usize,
        world: &World,
    ) -> Result<Plate, CommError> {
        Plate::redistribute(shares, before, self.args.grid as usize, world.comm())
    }

    fn init(&mut self, world: &World) -> Result<Plate, CommError> {
        Ok(Plate::new(self.args.grid as usize, world.comm()))
    }

    fn rebuild(&mut self, plate: &mut Plate, world: &World) -> Result<(), CommError> {
        plate.rebuild(world.comm());
        Ok(())
    }

    fn step(&mut self, plate: &mut Plate, world: &World, number: u64) -> Result<Flow, CommError> {
        plate.exchange(world.comm())?;
        let change = plate.relax();
        self.steps = number;
        let last = u64::from(self.args.steps);
        if !number.is_multiple_of(LOOK_EVERY) && number < last {
            return Ok(Flow::Continue);
        }
        // A maximum is the same in any order, so all numbers of ranks stop at the same step.
        let mut largest = [change];
        world.comm().allreduce(&mut largest, Op::Max)?;
        self.change = largest[0];
        let share = number as f64 / last as f64;
        self.reporter
            .say(world, || (Some(share), format!("step {number}, largest change {:.2e}", largest[0])));
        let converged = self.args.tol.is_some_and(|tol| self.change < tol);
        Ok(if converged || number >= last { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, plate: &mut Plate, world: &World) -> Result<Vec<u8>, CommError> {
        let comm = world.comm();
        plate.exchange(comm)?;
        let mut plausible = [u8::from(plate.is_plausible(comm))];
        comm.allreduce(&mut plausible, Op::Min)?;
        let picture = if self.args.picture.is_some() { plate.picture(comm)? } else { vec![] };
        let result = HeatResult {
            grid: self.args.grid,
            steps: self.steps,
            change: self.change,
            plausible: plausible[0] == 1,
            answer_hash: plate.hash(comm)?,
            picture: if comm.rank() == 0 { picture } else { vec![] },
        };
        Ok(app::write(&result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_change_has_converged() {
        let of = |tol, change, plausible| {
            let args = HeatArgs { grid: 4, steps: 9, tol, implicit: None, picture: None };
            let result = HeatResult {
                grid: 4,
                steps: 9,
                change,
                plausible,
                answer_hash: String::new(),
                picture: vec![],
            };
            args.complaint(&result).unwrap_or_default()
        };
        let tol = Some(0.1);
        assert_eq!((of(tol, 0.09, true), of(None, 9.0, true)), (String::new(), String::new()));
        assert_eq!(of(tol, 0.1, true), "not converged after 9 steps: the largest change is 1.00e-1");
        for tol in [tol, None] {
            let complaint = of(tol, f64::NAN, true);
            assert_eq!(complaint, "not converged after 9 steps: the largest change is NaN");
        }
        assert!(of(tol, 0.09, false).starts_with("the temperatures are not symmetric"));
    }
}
