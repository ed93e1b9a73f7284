//! A finished drawing, as SVG text, as PNG bytes, or as a file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::FigureError;
use crate::color::GROUND;
use crate::paint::{Shape, paint};
use crate::svg::Area;

/// Pixels of the PNG per px of the drawing, so that text is crisp on paper and on dense screens.
const DENSITY: u32 = 2;

/// A drawing. Equal data give equal bytes, of the SVG and of the PNG.
#[derive(Clone, Debug)]
pub struct Picture {
    svg: String,
    shapes: Vec<Shape>,
    width: u32,
    height: u32,
}

/// Equal drawings look the same.
impl PartialEq for Picture {
    fn eq(&self, other: &Self) -> bool {
        self.svg == other.svg
    }
}

impl Eq for Picture {}

impl Picture {
    pub(crate) fn new(svg: String, shapes: Vec<Shape>, width: u32, height: u32) -> Self {
        Self { svg, shapes, width, height }
    }

    /// The drawing as an SVG element. It has no ids and no XML declaration, so that it can stand in an HTML page
    /// next to others.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Width in px.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in px.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The drawing as a PNG file of twice as many pixels in each direction, 8 bits of red, green and blue each.
    ///
    /// Takes some 20 ms, and 4 bytes of memory per pixel.
    ///
    /// # Errors
    /// [`FigureError::Raster`] when the drawing is too large for memory.
    pub fn png(&self) -> Result<Vec<u8>, FigureError> {
        let failed = |what: String| FigureError::Raster { width: self.width, height: self.height, what };
        let ground = Area::new(0.0, 0.0, self.width.into(), self.height.into());
        let pixels = paint(&self.shapes, ground, GROUND, DENSITY)
            .ok_or_else(|| failed("it is too large".to_owned()))?;
        // The ground is opaque, so alpha is 255 everywhere and says nothing.
        let rgb: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
        encode(&rgb, pixels.width(), pixels.height()).map_err(|error| failed(error.to_string()))
    }

    /// Writes the picture to `path`, as SVG or PNG by how its name ends.
    ///
    /// It is written under a temporary name next to `path` and then renamed: whoever looks finds the old file or
    /// the new one, never a part.
    ///
    /// # Errors
    /// Those of [`check_name`], [`FigureError::NoDirectory`], those of [`Picture::png`], and
    /// [`FigureError::Write`] when the operating system refuses. The temporary file is gone then.
    pub fn save(&self, path: &Path) -> Result<(), FigureError> {
        let kind = Kind::of(path)?;
        require_directory(path)?;
        let bytes = match kind {
            Kind::Svg => self.svg.clone().into_bytes(),
            Kind::Png => self.png()?,
        };
        let temporary = temporary_name(path);
        let written = write(&temporary, &bytes).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|source| {
            // It may never have come to be; the first error is the one to report.
            let _ = fs::remove_file(&temporary);
            FigureError::Write { path: path.to_owned(), source }
        })
    }
}

/// Checks that the name of a picture ends in `.svg` or `.png`.
///
/// # Errors
/// [`FigureError::UnknownKind`].
pub fn check_name(path: &Path) -> Result<(), FigureError> {
    Kind::of(path).map(|_| ())
}

/// Tries whether [`Picture::save`] could write to `path`, for programs that want to know before
/// hours of work. What is there stays as it was.
///
/// # Errors
/// Those of [`check_name`], [`FigureError::NoDirectory`], and [`FigureError::Write`] when the
/// operating system refuses.
pub fn check_path(path: &Path) -> Result<(), FigureError> {
    check_name(path)?;
    require_directory(path)?;
    let temporary = temporary_name(path);
    let tried = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => File::create(&temporary).and_then(|_| fs::remove_file(&temporary)),
    };
    tried.map_err(|source| FigureError::Write { path: path.to_owned(), source })
}

fn require_directory(path: &Path) -> Result<(), FigureError> {
    let directory = directory(path);
    if directory.is_dir() {
        return Ok(());
    }
    Err(FigureError::NoDirectory { directory: directory.to_owned(), path: path.to_owned() })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Svg,
    Png,
}

impl Kind {
    fn of(path: &Path) -> Result<Self, FigureError> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => Err(FigureError::UnknownKind { path: path.to_owned() }),
        }
    }
}

/// Directory of a file; that of a bare name is the current one.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    directory(path).join(format!(".{name}.{}.part", std::process::id()))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn encode(rgb: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(rgb)?;
    Ok(bytes)
}
