//! Saving: which names are taken, and what is left behind.

use std::fs;
use std::path::Path;

use ft_figures::{FigureError, Picture, Section, Table, Timeline, check_path, html_page};
use roxmltree::{Document, ParsingOptions};

fn picture() -> Picture {
    Timeline { title: "<&\">".to_owned(), ..Timeline::default() }.draw()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_picture_is_saved_by_how_its_name_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (svg, png) = (directory.path().join("a.svg"), directory.path().join("b.PNG"));
    fs::write(&svg, "older").unwrap();
    picture().save(&svg).unwrap();
    picture().save(&png).unwrap();
    assert_eq!(fs::read_to_string(&svg).unwrap(), picture().svg());
    assert_eq!(fs::read(&png).unwrap(), picture().png().unwrap());
    let mut names = names(directory.path());
    names.sort();
    assert_eq!(names, ["a.svg", "b.PNG"]);
}

#[test]
fn other_names_are_refused_before_and_after_the_work() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.pdf", "svg", ".svg", "a.svg.gz", ""] {
        let path = directory.path().join("sub").join(name);
        for error in [check_path(&path).unwrap_err(), picture().save(&path).unwrap_err()] {
            assert!(matches!(&error, FigureError::UnknownKind { path: of } if *of == path), "{error}");
        }
    }
    let missing = directory.path().join("missing");
    for error in [check_path(&missing.join("a.svg")), picture().save(&missing.join("a.svg"))] {
        assert!(matches!(error, Err(FigureError::NoDirectory { directory, .. }) if directory == missing));
    }
    assert!(names(directory.path()).is_empty());
    check_path(Path::new("in-the-current-directory.svg")).unwrap();
}

#[test]
fn a_path_that_cannot_be_written_is_refused_before_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.svg");
    fs::write(&old, "older").unwrap();
    check_path(&old).unwrap();
    check_path(&directory.path().join("new.png")).unwrap();
    assert_eq!(
        (fs::read_to_string(&old).unwrap(), names(directory.path())),
        ("older".into(), vec!["old.svg".into()])
    );
    let taken = directory.path().join("taken.svg");
    fs::create_dir(&taken).unwrap();
    // Nobody can make a file in the second one.
    for path in [&taken, Path::new("/proc/a.svg")] {
        let error = check_path(path).unwrap_err();
        assert!(matches!(&error, FigureError::Write { path: of, .. } if of == path), "{error}");
    }
}

#[test]
fn a_failed_save_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // A directory cannot be replaced by a file.
    let taken = directory.path().join("taken.svg");
    fs::create_dir(&taken).unwrap();
    let error = picture().save(&taken).unwrap_err();
    assert!(matches!(&error, FigureError::Write { path, .. } if *path == taken), "{error}");
    assert_eq!(names(directory.path()), ["taken.svg"]);
}

#[cfg(unix)]
#[test]
fn an_unwritable_directory_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let path = directory.path().join("a.svg");
    // Nobody can keep root out.
    let refused = fs::write(directory.path().join("probe"), "").is_err();
    if refused {
        let error = picture().save(&path).unwrap_err();
        assert!(matches!(&error, FigureError::Write { .. }), "{error}");
        assert!(names(directory.path()).is_empty());
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_page_is_whole_and_loads_nothing() {
    let drawn = picture();
    let hostile = "<&\">'</p>";
    let table = Table {
        header: vec!["scheme".to_owned(), hostile.to_owned()],
        rows: vec![vec![hostile.to_owned(), "−1.5 %".to_owned()], vec!["XOR".to_owned()]],
    };
    let section = Section {
        heading: hostile.to_owned(),
        paragraphs: vec![hostile.to_owned()],
        picture: Some(&drawn),
        table: Some(table),
    };
    let page = html_page(hostile, &[section.clone(), section, Section::default()]);

    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).unwrap();
    let count = |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).count();
    assert_eq!(["svg", "h1", "h2", "p", "table", "tr", "td"].map(count), [2, 1, 2, 2, 2, 6, 6]);
    for name in ["h1", "h2", "p"] {
        let node = document.descendants().find(|node| node.tag_name().name() == name).unwrap();
        assert_eq!(node.text(), Some(hostile), "{name}");
    }
    let right: Vec<Option<&str>> = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("n"))
        .map(|node| node.text())
        .collect();
    assert_eq!(right, [Some(hostile), Some("−1.5 %"), Some(hostile), Some("−1.5 %")]);
    for node in document.descendants() {
        for attribute in node.attributes() {
            assert!(!["src", "href", "id"].contains(&attribute.name()), "{attribute:?}");
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}
