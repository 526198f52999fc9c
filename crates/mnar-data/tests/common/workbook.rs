//! Spreadsheets for tests.

/// A workbook of one sheet or two, by the least that a reader of spreadsheets needs.
pub(crate) fn workbook(sheets: &[(&str, &str)]) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut add = |name: &str, text: String| {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(format!("<?xml version=\"1.0\"?>{text}").as_bytes()).unwrap();
    };
    let office = "http://schemas.openxmlformats.org";
    let main = format!("{office}/spreadsheetml/2006/main");
    let relations = format!("{office}/officeDocument/2006/relationships");
    let package = format!("{office}/package/2006");
    let numbered = || sheets.iter().enumerate();
    add("[Content_Types].xml", format!("<Types xmlns=\"{package}/content-types\"/>"));
    let target = format!("<Relationship Id=\"b\" Type=\"{relations}/officeDocument\" Target=\"xl/workbook.xml\"/>");
    add("_rels/.rels", format!("<Relationships xmlns=\"{package}/relationships\">{target}</Relationships>"));
    let list: String = numbered()
        .map(|(k, (name, _))| format!("<sheet name=\"{name}\" sheetId=\"{}\" r:id=\"r{k}\"/>", k + 1))
        .collect();
    let book = format!("<workbook xmlns=\"{main}\" xmlns:r=\"{relations}\"><sheets>{list}</sheets></workbook>");
    add("xl/workbook.xml", book);
    let links: String = numbered()
        .map(|(k, _)| {
            format!("<Relationship Id=\"r{k}\" Type=\"{relations}/worksheet\" Target=\"worksheets/s{k}.xml\"/>")
        })
        .collect();
    let styles = format!("<Relationship Id=\"st\" Type=\"{relations}/styles\" Target=\"styles.xml\"/>");
    let all = format!("<Relationships xmlns=\"{package}/relationships\">{links}{styles}</Relationships>");
    add("xl/_rels/workbook.xml.rels", all);
    // The second style is a date.
    let formats = "<cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\" applyNumberFormat=\"1\"/></cellXfs>";
    add("xl/styles.xml", format!("<styleSheet xmlns=\"{main}\">{formats}</styleSheet>"));
    for (k, (_, cells)) in numbered() {
        let rows: String = cells.lines().map(sheet_row).collect();
        let sheet = format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>");
        add(&format!("xl/worksheets/s{k}.xml"), sheet);
    }
    zip.finish().unwrap().into_inner()
}

/// Cells separated by bars: a number, `d` and a number for a date, `b` and 0 or 1, `!` for an error,
/// `@` and a place for a 5 there, or else a text.
fn sheet_row(row: &str) -> String {
    let cell = |cell: &str| {
        if cell.is_empty() {
            "<c/>".to_owned()
        } else if cell.parse::<f64>().is_ok() {
            format!("<c><v>{cell}</v></c>")
        } else if let Some(day) = cell.strip_prefix("d:") {
            format!("<c s=\"1\"><v>{day}</v></c>")
        } else if let Some(value) = cell.strip_prefix("b:") {
            format!("<c t=\"b\"><v>{value}</v></c>")
        } else if let Some(place) = cell.strip_prefix('@') {
            format!("<c r=\"{place}\"><v>5</v></c>")
        } else if cell == "!" {
            "<c t=\"e\"><v>#N/A</v></c>".to_owned()
        } else {
            format!("<c t=\"inlineStr\"><is><t>{cell}</t></is></c>")
        }
    };
    format!("<row>{}</row>", row.split('|').map(cell).collect::<String>())
}
