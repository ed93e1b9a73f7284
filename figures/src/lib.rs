//! Charts, timelines and pictures of fields, as SVG and PNG.
