//! `ftrun picture`: draws a shot gather or a velocity model.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_comm::limits;
use ft_seismic::gather::read_gather;
use ft_seismic::load::{ModelOptions, Unit, read_model};

use crate::say::complain;
use crate::seismic::{pictures, shape};
use crate::value::positive;

/// Draw a shot gather (SEG-Y, .su) or a velocity model (raw float32, .npy)
#[derive(Debug, Parser)]
#[command(
    name = "picture",
    display_name = "ftrun picture",
    bin_name = "ftrun picture",
    version,
    max_term_width = 110
)]
pub(crate) struct Picture {
    /// What to draw
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where to, .png or .svg (default: beside the file, as .png)
    #[arg(short, long, value_name = "PICTURE")]
    out: Option<PathBuf>,
    /// Draw traces as wiggles rather than colors
    #[arg(long, conflicts_with = "model")]
    wiggle: bool,
    /// Take a SEG-Y or .su file for a velocity model
    #[arg(long)]
    model: bool,
    /// Points of a model along the surface and in depth
    #[arg(long, value_name = "NXxNZ", value_parser = shape)]
    shape: Option<(usize, usize)>,
    /// Meters between two points of a model
    #[arg(long, value_name = "M", value_parser = positive)]
    spacing: Option<f64>,
    /// Unit of the velocities of a model: auto, m/s or km/s
    #[arg(long, value_name = "UNIT", default_value_t = Unit::Auto)]
    unit: Unit,
}

impl Picture {
    /// Draws it; what is wrong with the input is status 2, what is wrong with the output is 1.
    pub(crate) fn run(&self) -> ExitCode {
        match self.draw() {
            Ok(()) => ExitCode::SUCCESS,
            Err((status, complaint)) => {
                complain(complaint);
                ExitCode::from(status)
            }
        }
    }

    fn draw(&self) -> Result<(), (u8, String)> {
        let bad = |error: &dyn std::fmt::Display| (2, error.to_string());
        let out = self.out.clone().unwrap_or_else(|| self.file.with_extension("png"));
        ft_figures::check_path(&out).map_err(|error| bad(&error))?;
        let name = self.file.to_string_lossy().to_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let has_traces = [".sgy", ".segy", ".su"].iter().any(|extension| name.ends_with(extension));
        let picture = if has_traces && !self.model {
            pictures::gather(&read_gather(&self.file).map_err(|error| bad(&error))?, self.wiggle)
        } else {
            let options = ModelOptions { shape: self.shape, spacing: self.spacing, unit: self.unit };
            pictures::model(&read_model(&self.file, &options).map_err(|error| bad(&error))?, None)
        };
        picture.save(&out).map_err(|error| (1, limits::explain(&error)))
    }
}
