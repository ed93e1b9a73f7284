//! The arguments of `seismic`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use ft_seismic::load::Unit;
use ft_seismic::synthetic::Synthetic;

use crate::value::{MS_MAX, U32_MAX, at_least_one, from_to, positive, seconds};

/// No place of a survey is farther from the first point.
const METERS_MAX: f64 = 1e9;

/// The arguments of `seismic`; lengths in meters, times in seconds unless the name says otherwise.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of seismic")]
#[command(group = ArgGroup::new("medium").required(true))]
pub(crate) struct SeismicArgs {
    /// The velocity model: raw float32, .npy, SEG-Y or .su, also with .gz
    #[arg(long, value_name = "FILE", group = "medium")]
    pub(super) model: Option<PathBuf>,
    /// A generated model: homogeneous, layers, gradient or salt
    #[arg(long, value_name = "KIND", group = "medium")]
    pub(super) synthetic: Option<Synthetic>,
    /// Points along the surface and in depth (generated models: default 401x201)
    #[arg(long, value_name = "NXxNZ", value_parser = shape)]
    pub(super) shape: Option<(usize, usize)>,
    /// Meters between two points (generated models: default 10)
    #[arg(long, value_name = "M", value_parser = positive)]
    pub(super) spacing: Option<f64>,
    /// Unit of the velocities in the file: auto, m/s or km/s
    #[arg(long, value_name = "UNIT", default_value_t = Unit::Auto)]
    pub(super) unit: Unit,

    /// Number of shots, spread evenly (default: 1, or as the file of --geometry says)
    #[arg(long, value_name = "K", value_parser = from_to::<u32>(1..=U32_MAX))]
    pub(super) shots: Option<u32>,
    /// Where sources and receivers are, a TOML file; the flags below overrule it
    #[arg(long, value_name = "FILE")]
    pub(super) geometry: Option<PathBuf>,
    /// Tow the receivers behind the source, instead of leaving them where they are
    #[arg(long)]
    pub(super) streamer: bool,
    /// Depth of the sources
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) source_depth: Option<f64>,
    /// x of the first source
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) source_first: Option<f64>,
    /// x of the last source
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) source_last: Option<f64>,
    /// Depth of the receivers
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) receiver_depth: Option<f64>,
    /// x of the first receiver of a fixed spread
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) receiver_first: Option<f64>,
    /// x that no receiver of a fixed spread is beyond
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) receiver_last: Option<f64>,
    /// From one receiver to the next
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) receiver_spacing: Option<f64>,
    /// From the source to the first receiver of a streamer
    #[arg(long, value_name = "M", value_parser = meters)]
    pub(super) near_offset: Option<f64>,
    /// Receivers of a streamer
    #[arg(long, value_name = "N", value_parser = from_to::<u32>(1..=U32_MAX))]
    pub(super) channels: Option<u32>,

    /// Seconds to model
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    pub(super) time: f64,
    /// Peak frequency of the Ricker wavelet, whose peak, 1.5 periods after the first sample, is time 0 of the gathers; of a
    /// given one, for the check of dispersion
    #[arg(long, value_name = "HZ", default_value_t = 15.0, value_parser = positive)]
    pub(super) freq: f64,
    /// The source wavelet, a text file with a time in seconds and a value a line; its time 0 is that of the gathers
    #[arg(long, value_name = "FILE")]
    pub(super) wavelet: Option<PathBuf>,
    /// Space order, even, 2 to 16
    #[arg(long, value_name = "P", default_value_t = 8, value_parser = from_to::<usize>(0..=1024))]
    pub(super) order: usize,
    /// Milliseconds of a time step (default: up to 0.9 of what is stable, a whole number of them a sample)
    #[arg(long, value_name = "MS", value_parser = positive)]
    pub(super) dt: Option<f64>,
    /// Record every N time steps (default: every 4, 2, 1, .. ms, as the wavelet needs)
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) record_every: Option<usize>,

    /// Write one gather a shot into this folder, as SEG-Y (default: keep none)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Write the gathers as Seismic Unix as well
    #[arg(long, requires = "out")]
    pub(super) su: bool,
    /// Draw the model with the survey, and each gather
    #[arg(long, requires = "out")]
    pub(super) pictures: bool,
    /// Draw gathers as wiggles rather than colors
    #[arg(long, requires = "pictures")]
    pub(super) wiggle: bool,
    /// Protect the wave fields too: a lost shot goes on in the middle
    #[arg(long)]
    pub(super) protect_shots: bool,
    /// Milliseconds of computing between two meetings of the ranks; each is a step
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = from_to::<u64>(1..=MS_MAX))]
    pub(super) slice: u64,
}

/// Reads a place or a distance.
fn meters(text: &str) -> Result<f64, String> {
    let meters = text.parse().ok().filter(|meters: &f64| (-METERS_MAX..=METERS_MAX).contains(meters));
    meters.ok_or_else(|| format!("must be a number of meters from -{METERS_MAX} to {METERS_MAX}"))
}

pub(crate) fn shape(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "must be points along the surface x points in depth, as 401x201".to_owned();
    let (nx, nz) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    let number = |text: &str| at_least_one(text).map_err(|_| wrong());
    Ok((number(nx)?, number(nz)?))
}
