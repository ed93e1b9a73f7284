//! What a PNG shows.

mod common;

use common::{density, every_kind};
use ft_figures::{AxisRange, Density, Picture, Scale};
use roxmltree::Document;

struct Pixels {
    rgb: Vec<u8>,
    width: usize,
    height: usize,
}

impl Pixels {
    fn of(picture: &Picture) -> Self {
        let bytes = picture.png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        Self { rgb, width: info.width as usize, height: info.height as usize }
    }

    /// Color at a place of the drawing, in px.
    fn at(&self, x: f64, y: f64) -> [u8; 3] {
        let start = 3 * ((2.0 * y) as usize * self.width + (2.0 * x) as usize);
        self.rgb[start..start + 3].try_into().unwrap()
    }
}

/// x, y, width and height of the image in a picture.
fn image(picture: &Picture) -> [f64; 4] {
    let document = Document::parse(picture.svg()).unwrap();
    let image = document.descendants().find(|node| node.tag_name().name() == "image").unwrap();
    ["x", "y", "width", "height"].map(|name| image.attribute(name).unwrap().parse().unwrap())
}

fn assert_near(seen: [u8; 3], wanted: [u8; 3]) {
    assert!(seen.iter().zip(wanted).all(|(&a, b)| a.abs_diff(b) <= 2), "{seen:?} instead of {wanted:?}");
}

#[test]
fn png_is_the_drawing_at_twice_its_size() {
    for (kind, picture) in every_kind("title", &[]) {
        let pixels = Pixels::of(&picture);
        let size = (2 * picture.width() as usize, 2 * picture.height() as usize);
        assert_eq!((pixels.width, pixels.height), size, "{kind}");
        // Ground in the corner, and ink of the title, which needs the font.
        assert_eq!(pixels.at(1.0, 1.0), [255; 3], "{kind}");
        let dark = (14..40).flat_map(|x| (14..35).map(move |y| (f64::from(x), f64::from(y))));
        assert!(dark.filter(|&(x, y)| pixels.at(x, y)[0] < 140).count() > 10, "{kind}: no title");
    }
}

#[test]
fn values_have_the_colors_of_their_places() {
    // Left: positive above negative. Right: zero above nothing. Arrays of this size are drawn as they are.
    let (nx, nz) = (302, 304);
    let value = |ix: usize, iz: usize| match (ix < nx / 2, iz < nz / 2) {
        (true, true) => 2.0,
        (true, false) => -2.0,
        (false, true) => 0.0,
        (false, false) => f32::NAN,
    };
    let values: Vec<f32> = (0..nx).flat_map(|ix| (0..nz).map(move |iz| value(ix, iz))).collect();
    let scale = Scale::Symmetric { percentile: 100.0 };
    let field = Density { nx, nz, markers: Vec::new(), ..density("field", &values, scale) };
    let picture = field.draw();
    let [x, y, width, height] = image(&picture);
    let pixels = Pixels::of(&picture);
    let at = |across: f64, down: f64| pixels.at(x + across * width, y + down * height);
    assert_near(at(0.25, 0.25), [125, 5, 30]);
    assert_near(at(0.25, 0.75), [5, 48, 125]);
    assert_near(at(0.75, 0.25), [255, 255, 255]);
    assert_near(at(0.75, 0.75), [190, 190, 190]);
    // The color bar: full red on top, full blue at the bottom.
    let bar = |down: f64| pixels.at(x + width + 21.0, y + down * height);
    assert_near(bar(0.005), [124, 6, 31]);
    assert_near(bar(0.995), [6, 49, 126]);
}

#[test]
fn velocities_rise_from_dark_to_bright() {
    let values: Vec<f32> = (0..400).flat_map(|_| (0..400).map(|iz| 1500.0 + iz as f32)).collect();
    let field = Density {
        nx: 400,
        nz: 400,
        markers: Vec::new(),
        z: AxisRange { from: 0.0, to: 4.0, title: "depth [km]".to_owned() },
        ..density("model", &values, Scale::Sequential)
    };
    let picture = field.draw();
    let [x, y, width, height] = image(&picture);
    let pixels = Pixels::of(&picture);
    assert_near(pixels.at(x + width / 2.0, y + 2.0), [68, 1, 84]);
    assert_near(pixels.at(x + width / 2.0, y + height / 2.0), [33, 144, 141]);
    let bottom = pixels.at(x + width / 2.0, y + height - 2.0);
    assert!(bottom[0] > 245 && bottom[2] < 45, "{bottom:?}");
}
