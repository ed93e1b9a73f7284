//! Charts, timelines and pictures of fields, as SVG and PNG.
//!
//! A picture is a struct of what it shows; its `draw` gives a [`Picture`], which is SVG text, makes a PNG of the
//! same drawing, and saves either. The PNG is made with a font that is part of the program, so equal data give
//! equal bytes on every machine.
//!
//! ```
//! use ft_figures::{ChartAxis, LineChart, Series};
//!
//! let chart = LineChart {
//!     title: "Convergence".to_owned(),
//!     x: ChartAxis::linear("iteration"),
//!     y: ChartAxis::log("relative residual"),
//!     series: vec![Series::new("CG", (0..40).map(|i| (f64::from(i), 0.5f64.powi(i))))],
//! };
//! let picture = chart.draw();
//! assert!(picture.svg().starts_with("<svg"));
//! assert!(picture.png()?.starts_with(b"\x89PNG"));
//! # Ok::<(), ft_figures::FigureError>(())
//! ```
//!
//! | picture | what it is for |
//! |---|---|
//! | [`LineChart`] | several series over a common axis, linear or logarithmic, with error bars |
//! | [`GroupedBars`] | the same few things compared in several groups |
//! | [`StackedBars`] | times by phase |
//! | [`Timeline`] | what every rank did and when |
//! | [`Density`] | wave fields, gathers and velocity models as colors |
//! | [`Wiggle`] | seismic sections as traces |
//! | [`html_page`] | all of these with words and tables in one page |
//!
//! Values that are not finite are left out, and a picture without data says so: nothing here panics or fails but
//! for making and saving a PNG.
//!
//! The font is Ubuntu Light, Copyright 2011 Canonical Ltd., under the Ubuntu Font License 1.0.

#![forbid(unsafe_code)]

mod axis;
mod base64;
mod chart;
mod color;
mod density;
mod error;
mod field;
mod font;
mod frame;
mod legend;
mod page;
mod paint;
mod picture;
mod svg;
mod symbol;
mod thin;
mod timeline;
mod wiggle;

pub use axis::{AxisRange, ChartAxis, Spacing};
pub use chart::{BarSeries, GroupedBars, Hue, LineChart, Point, Series, StackedBars, StackedRow};
pub use density::{Density, Marker, MarkerKind, Scale};
pub use error::FigureError;
pub use page::{Section, Table, html_page};
pub use picture::{Picture, check_name, check_path};
pub use timeline::{Group, Kind, Mark, Row, Span, Timeline};
pub use wiggle::Wiggle;
