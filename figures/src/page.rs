//! Pictures, tables and words in one HTML page that needs nothing but itself.

use std::fmt::Write as _;

use crate::picture::Picture;
use crate::svg::escape;

/// A part of a page; what is empty or none is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section<'a> {
    /// Heading.
    pub heading: String,
    /// Plain text, each a paragraph.
    pub paragraphs: Vec<String>,
    /// Shown below the paragraphs.
    pub picture: Option<&'a Picture>,
    /// Shown below the picture.
    pub table: Option<Table>,
}

/// A table of plain text. Cells that begin with a number are aligned to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// Words and pictures have the width of a readable line; a table takes what it needs of the page. The picture keeps a
/// readable size on a narrow screen, where it is moved sideways; on paper it is made to fit.
const STYLE: &str = "\
body{margin:0 auto;max-width:72rem;padding:1rem;color:#222;background:#fff;\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Ubuntu,Helvetica,Arial,sans-serif}
h1{font-size:1.6rem;line-height:1.25}
h2,p,figure{max-width:52rem}
h2{font-size:1.2rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
figure,.table{margin:1rem 0;overflow-x:auto}
svg{display:block;width:100%;min-width:36rem;height:auto}
table{border-collapse:collapse;font-size:.9rem}
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
th{border-bottom:2px solid #999}
.n{text-align:right;font-variant-numeric:tabular-nums}
@media(max-width:60rem){table{font-size:.75rem}th,td{padding:.2rem .35rem}}
@media print{body{max-width:none;padding:0;font-size:10pt}figure,tr{break-inside:avoid}h2{break-after:avoid}\
figure,.table{overflow:visible}svg{min-width:0}}
";

/// A page of HTML 5 in UTF-8 with the pictures in it; it loads nothing. Titles, headings, paragraphs and cells are
/// plain text.
pub fn html_page(title: &str, sections: &[Section<'_>]) -> String {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    for section in sections {
        write_section(&mut page, section);
    }
    page.push_str("</body>\n</html>\n");
    page
}

// Writing to a string cannot fail, here and below.
fn write_section(page: &mut String, section: &Section<'_>) {
    page.push_str("<section>\n");
    if !section.heading.is_empty() {
        let _ = writeln!(page, "<h2>{}</h2>", escape(&section.heading));
    }
    for paragraph in &section.paragraphs {
        let _ = writeln!(page, "<p>{}</p>", escape(paragraph));
    }
    if let Some(picture) = section.picture {
        let _ = writeln!(page, "<figure>\n{}</figure>", picture.svg());
    }
    if let Some(table) = &section.table {
        write_table(page, table);
    }
    page.push_str("</section>\n");
}

fn write_table(page: &mut String, table: &Table) {
    page.push_str("<div class=\"table\"><table>\n");
    if !table.header.is_empty() {
        // A heading stands over its column as the cells do.
        let aligned = |column: usize| table.rows.first().and_then(|row| row.get(column)).map(String::as_str);
        let cells = table.header.iter().enumerate();
        let cells: String = cells.map(|(i, name)| cell("th", name, aligned(i).unwrap_or_default())).collect();
        let _ = writeln!(page, "<thead><tr>{cells}</tr></thead>");
    }
    page.push_str("<tbody>\n");
    for row in &table.rows {
        let cells: String = row.iter().map(|text| cell("td", text, text)).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</tbody>\n</table></div>\n");
}

/// A cell that is aligned as `like` is.
fn cell(tag: &str, text: &str, like: &str) -> String {
    let number = like.trim_start_matches(['-', '−', '+']).starts_with(|letter: char| letter.is_ascii_digit());
    let class = if number { " class=\"n\"" } else { "" };
    format!("<{tag}{class}>{}</{tag}>", escape(text))
}
