//! Reads tables of features: types are inferred from text in a single pass, and given by the schema of other tables.

use crate::arrays::{
    Spelling, TypedTable, check_text, days_of, is_date, is_number, is_number_list, is_text, lists_of, numbers_of,
    texts_of, type_name,
};
use crate::arrow_table::Source;
use crate::batch::batch_rows;
use crate::column_builder::{ColumnBuilder, FinishedColumn, MissingFeature, Place, Wanted};
use crate::columns::{find, no_label_column, twice};
use crate::dataset::ReadOptions;
use crate::dates::DateFormat;
use crate::delimited::DelimitedTable;
use crate::encoder::{ColumnEncoding, TableEncoder};
use crate::error::{ColumnRole, DataError, list};
use crate::feature_table::FeatureTable;
use crate::format::AnyTable;
use crate::guard::Memory;
use crate::note::Note;
use crate::row_names::{RowNames, find_id};
use crate::screen::screen;
use crate::text::TextReader;
use crate::values::{Interner, Missing};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use csv::ByteRecord;
use mnar::covariates::Product;

/// What a table is read for.
pub(crate) enum Purpose<'a> {
    /// All columns but the label and the ignored ones are features.
    Train {
        label: Option<&'a str>,
        /// The labels are in another file: a label column is not a feature, and need not exist.
        labels_elsewhere: bool,
        /// The features; all other columns where there is no list.
        only: Option<&'a [String]>,
        ignore: &'a [String],
        missing: &'a [String],
        categorical: &'a [String],
    },
    /// All columns, whatever becomes of them; names that are not columns are problems to be told.
    Survey(&'a ReadOptions),
    /// These columns, for what labelling may depend on.
    Columns { names: &'a [String], missing: &'a [String] },
    /// The columns that a model knows are the features; labels are not read.
    Predict(&'a TableEncoder),
}

impl Purpose<'_> {
    fn missing(&self) -> &[String] {
        match self {
            Purpose::Train { missing, .. } | Purpose::Columns { missing, .. } => missing,
            Purpose::Survey(options) => &options.missing,
            Purpose::Predict(encoder) => encoder.missing(),
        }
    }

    fn is_training(&self) -> bool {
        matches!(self, Purpose::Train { .. } | Purpose::Survey(_))
    }

    /// Whether the features were not named, so that some columns may be left out.
    fn may_choose(&self) -> bool {
        matches!(self, Purpose::Train { only: None, .. })
    }
}

/// What a table holds: its labels where it has them, and the names of its rows where a column was named for them.
pub(crate) struct ReadTable {
    pub(crate) features: FeatureTable,
    pub(crate) labels: Option<Interner>,
    pub(crate) row_names: Option<RowNames>,
    pub(crate) notes: Vec<Note>,
}

/// Reads a table; `id` is the column that names its rows.
pub(crate) fn read_table(source: Source<'_>, purpose: &Purpose<'_>, id: Option<&str>) -> Result<ReadTable, DataError> {
    let shown = source.name();
    let read = read_all(source, purpose, id)?;
    let Read { mut columns, labels, rows, mut notes, .. } = read;
    let row_names = id.and_then(|id| RowNames::take(&mut columns, id.trim()));
    notes.extend(row_names.iter().flat_map(RowNames::notes));
    let screened = screen(columns, purpose.may_choose(), &shown)?;
    notes.extend(screened.notes);
    let features = FeatureTable::new(screened.columns, rows, purpose.missing(), &shown).with_dates(screened.dates);
    // A list `e` beside a column `e_0`.
    let names: Vec<String> = features.columns().iter().map(|column| column.name.clone()).collect();
    crate::columns::check_distinct(&names, &shown)?;
    Ok(ReadTable { features, labels, row_names, notes })
}

/// Reads a table that has rows, without looking at what becomes of its columns.
pub(crate) fn read_all(source: Source<'_>, purpose: &Purpose<'_>, id: Option<&str>) -> Result<Read, DataError> {
    let shown = source.name();
    let source = source.with_memory(source.memory.resolved());
    let read = match AnyTable::open(source)? {
        AnyTable::Text(table) => read_delimited(*table, purpose, id, source.memory, &shown)?,
        AnyTable::Typed(table, notes) => {
            let read = read_typed(table, purpose, id, source.memory, &shown);
            let mut read = read.map_err(|error| in_sheet(error, &notes))?;
            read.notes.splice(..0, notes);
            read
        }
    };
    if read.rows == 0 {
        return Err(DataError::NoRows { path: shown });
    }
    Ok(read)
}

/// The error of a table that lacks columns, with the other sheets of its file, which may have them.
pub(crate) fn in_sheet(error: DataError, notes: &[Note]) -> DataError {
    let several = notes.iter().find_map(|note| match note {
        Note::Sheet { name, others } => Some((name.clone(), others.clone())),
        _ => None,
    });
    match (&error, several) {
        (
            DataError::UnknownColumn { .. }
            | DataError::ModelColumns { .. }
            | DataError::DuplicateColumns { .. }
            | DataError::UnnamedColumns { .. }
            | DataError::TitleRows { .. },
            Some((sheet, others)),
        ) => DataError::OneSheet { lack: Box::new(error), sheet, others },
        _ => error,
    }
}

/// Reads some columns of a table, as [`read_dataset`](crate::read_dataset) would read them.
pub fn read_columns<'a>(
    source: impl Into<Source<'a>>,
    names: &[String],
    missing: &[String],
) -> Result<FeatureTable, DataError> {
    Ok(read_table(source.into(), &Purpose::Columns { names, missing }, None)?.features)
}

/// Reads a column that marks rows with 1 and 0, or yes and no.
pub fn read_marks<'a>(source: impl Into<Source<'a>>, name: &str, missing: &[String]) -> Result<Vec<bool>, DataError> {
    let source = source.into();
    let table = read_columns(source, &[name.to_owned()], missing)?;
    match table.columns() {
        [column] => column.marks(table.source()),
        _ => Err(DataError::NotAMark { path: source.name(), column: name.to_owned(), value: "a list".to_owned() }),
    }
}

/// What was read of a table. A column that cannot be used is an error of its own, so that all are reported at once.
pub(crate) struct Read {
    pub(crate) columns: Vec<Result<FinishedColumn, DataError>>,
    /// The position in the file of each of these columns; those of a list share theirs.
    pub(crate) positions: Vec<usize>,
    pub(crate) header: Vec<String>,
    pub(crate) labels: Option<Interner>,
    pub(crate) rows: usize,
    pub(crate) notes: Vec<Note>,
}

/// A column in the making, or the first thing that is wrong with it.
struct Making<B> {
    column: usize,
    builder: Result<B, DataError>,
}

impl<B> Making<B> {
    /// Adds values, unless the column has failed.
    fn add(&mut self, add: impl FnOnce(&mut B) -> Result<(), DataError>) {
        if let Ok(builder) = &mut self.builder
            && let Err(error) = add(builder)
        {
            self.builder = Err(error);
        }
    }
}

/// The positions of the columns to read.
struct Layout {
    label: Option<usize>,
    features: Vec<(usize, Wanted)>,
}

impl Layout {
    /// `is_list` says which columns hold lists of numbers, each of which becomes one feature per number.
    fn find(
        header: &[String],
        is_list: &[bool],
        purpose: &Purpose<'_>,
        id: Option<&str>,
        path: &str,
    ) -> Result<Self, DataError> {
        match purpose {
            Purpose::Train { label, labels_elsewhere, only, ignore, categorical, .. } => {
                let label = match label {
                    Some(label) if *labels_elsewhere => header.iter().position(|name| name == label.trim()),
                    Some(label) => Some(find(header, label, path)?),
                    None if *labels_elsewhere => None,
                    None => return Err(no_label_column(header, path)),
                };
                let positions = |names: &[String]| -> Result<Vec<usize>, DataError> {
                    names.iter().map(|name| find(header, name, path)).collect()
                };
                let (ignore, categorical) = (positions(ignore)?, positions(categorical)?);
                let only = only.map(positions).transpose()?;
                if let Some(column) = only.iter().flatten().find(|column| Some(**column) == label) {
                    return Err(twice(path, &header[*column], "the label", "a feature"));
                }
                if let Some(column) = label.filter(|label| !labels_elsewhere && ignore.contains(label)) {
                    return Err(twice(path, &header[column], "the label", "ignored"));
                }
                let id = id.map(|id| find_id(header, id, &[(label, "the label")], path)).transpose()?;
                let mut features: Vec<(usize, Wanted)> = (0..header.len())
                    .filter(|column| Some(*column) != label && Some(*column) != id && !ignore.contains(column))
                    .filter(|column| only.as_ref().is_none_or(|only| only.contains(column)))
                    .map(|column| {
                        let forced = categorical.contains(&column);
                        (column, if forced { Wanted::Names { forced } } else { Wanted::Inferred })
                    })
                    .collect();
                if features.is_empty() {
                    return Err(DataError::NoFeatures { path: path.to_owned() });
                }
                features.extend(id.map(|id| (id, Wanted::Names { forced: true })));
                features.sort_unstable_by_key(|(column, _)| *column);
                Ok(Self { label: label.filter(|_| !labels_elsewhere), features })
            }
            Purpose::Survey(options) => {
                let is = |name: &str, given: &str| name == given.trim();
                let named = |column: usize, names: &[String]| names.iter().any(|name| is(&header[column], name));
                let at = |given: Option<&str>| given.and_then(|given| header.iter().position(|name| is(name, given)));
                let (label, id) = (at(options.label.as_deref()), at(options.id.as_deref()));
                let wanted = |column: usize| match named(column, &options.categorical) || Some(column) == id {
                    true => Wanted::Names { forced: true },
                    false => Wanted::Inferred,
                };
                let columns = (0..header.len()).filter(|column| Some(*column) != label);
                let features = columns.map(|column| (column, wanted(column))).collect();
                Ok(Self { label, features })
            }
            Purpose::Columns { names, .. } => {
                let mut features = Vec::with_capacity(names.len());
                let is_column = |name: &str| header.iter().any(|column| column == name.trim());
                // `hospital*age` stands for both columns, each of which may be named elsewhere too.
                let (mut parts, mut alone) = (Vec::new(), Vec::new());
                for name in *names {
                    match Product::parse(name, is_column).map_err(|error| DataError::core(path, error))? {
                        Some(product) => parts.extend([product.first, product.second]),
                        None => alone.push(name.clone()),
                    }
                }
                parts.retain(|part| !alone.contains(part));
                parts.sort_unstable();
                parts.dedup();
                for name in alone.iter().chain(&parts) {
                    let column = find(header, name, path)?;
                    if features.contains(&(column, Wanted::Inferred)) {
                        return Err(twice(path, name, "a given column", "another one"));
                    }
                    features.push((column, Wanted::Inferred));
                }
                features.sort_unstable_by_key(|(column, _)| *column);
                Ok(Self { label: None, features })
            }
            Purpose::Predict(encoder) => {
                check_model_columns(header, is_list, encoder, path)?;
                let mut features = Vec::with_capacity(encoder.columns().len());
                for column in encoder.columns() {
                    let (position, wanted) =
                        match (header.iter().position(|name| *name == column.name), &column.encoding) {
                            (Some(position), ColumnEncoding::Numeric { .. }) => {
                                (position, encoder.date_format(&column.name).map_or(Wanted::Numeric, Wanted::Dates))
                            }
                            (Some(position), ColumnEncoding::Categorical { .. }) => {
                                (position, Wanted::Names { forced: true })
                            }
                            (None, _) => match list_of(header, is_list, &column.name) {
                                Some(position) => (position, Wanted::Numeric),
                                None => (find(header, &column.name, path)?, Wanted::Numeric),
                            },
                        };
                    if features.iter().all(|(other, _)| *other != position) {
                        features.push((position, wanted));
                    }
                }
                if let Some(id) = id {
                    let known: Vec<_> =
                        features.iter().map(|(column, _)| (Some(*column), "a feature of the model")).collect();
                    features.push((find_id(header, id, &known, path)?, Wanted::Names { forced: true }));
                }
                // Parquet hands its columns over in the order of the file.
                features.sort_unstable_by_key(|(column, _)| *column);
                Ok(Self { label: None, features })
            }
        }
    }
}

/// Refuses a table without some of the columns of a model, and names all of them.
fn check_model_columns(
    header: &[String],
    is_list: &[bool],
    encoder: &TableEncoder,
    path: &str,
) -> Result<(), DataError> {
    let names = || encoder.columns().iter().map(|column| column.name.as_str());
    let is_there = |name: &str| header.iter().any(|column| column == name) || list_of(header, is_list, name).is_some();
    let missing: Vec<&str> = names().filter(|name| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let known = |column: &str| names().chain(encoder.dropped().iter().map(String::as_str)).any(|name| name == column);
    let extra: Vec<&str> = header.iter().map(String::as_str).filter(|column| !known(column)).collect();
    Err(DataError::ModelColumns { path: path.to_owned(), missing: list(&missing), extra: list(&extra) })
}

/// The list column that feature `name` is a part of.
fn list_of(header: &[String], is_list: &[bool], name: &str) -> Option<usize> {
    let (list, number) = name.rsplit_once('_')?;
    number.parse::<usize>().ok()?;
    header.iter().zip(is_list).position(|(column, is_list)| *is_list && column == list)
}

/// What takes the memory of a table.
const COLUMNS: &str = "the columns of the table";

/// Rows of text after which the memory is counted.
const COUNTED: usize = 1024;

fn read_delimited(
    mut table: DelimitedTable<TextReader>,
    purpose: &Purpose<'_>,
    id: Option<&str>,
    memory: Memory,
    path: &str,
) -> Result<Read, DataError> {
    let layout = Layout::find(table.header(), &vec![false; table.header().len()], purpose, id, path)?;
    let (missing_label, missing) = (Missing::new(purpose.missing()), MissingFeature::new(purpose.missing()));
    let mut labels = layout.label.map(|column| (column, Interner::default()));
    let commas = table.may_have_commas();
    let builder =
        |column: usize, wanted| ColumnBuilder::new(table.header()[column].clone(), wanted).with_commas(commas);
    let mut columns: Vec<Making<ColumnBuilder>> = layout
        .features
        .iter()
        .map(|&(column, wanted)| Making { column, builder: Ok(builder(column, wanted)) })
        .collect();
    let mut record = ByteRecord::new();
    while table.next(&mut record)? {
        let place = Place { path, row: table.rows() };
        if let Some((column, labels)) = &mut labels {
            labels.push(missing_label.present(table.text(&record[*column], *column)?));
        }
        for making in &mut columns {
            let text = table.text(&record[making.column], making.column)?;
            making.add(|builder| builder.push_text(missing.present(text), &place));
        }
        if table.rows().is_multiple_of(COUNTED) {
            let builders = columns.iter().filter_map(|making| making.builder.as_ref().ok());
            let bytes = builders.map(ColumnBuilder::bytes).sum::<u64>();
            memory.check(bytes + labels.as_ref().map_or(0, |(_, labels)| labels.bytes()), COLUMNS, path)?;
        }
    }
    let training = purpose.is_training();
    let positions = columns.iter().map(|making| making.column).collect();
    let columns = columns.into_iter().map(|making| making.builder?.finish(training, path)).collect();
    let labels = labels.map(|(_, labels)| labels);
    let header = table.header().to_vec();
    Ok(Read { columns, positions, header, labels, rows: table.rows(), notes: table.notes() })
}

fn read_typed(
    table: Box<dyn TypedTable>,
    purpose: &Purpose<'_>,
    id: Option<&str>,
    memory: Memory,
    path: &str,
) -> Result<Read, DataError> {
    let header = table.header().to_vec();
    let spelling = table.spelling();
    let is_list: Vec<bool> = (0..header.len()).map(|column| is_number_list(table.data_type(column))).collect();
    let layout = Layout::find(&header, &is_list, purpose, id, path)?;
    if let Some(label) = layout.label {
        check_text(&*table, label)?;
    }
    let mut columns = layout
        .features
        .iter()
        .map(|&(column, wanted)| {
            let builder = TypedColumn::new(&header[column], table.data_type(column), wanted, spelling, path);
            Making { column, builder }
        })
        .collect::<Vec<_>>();
    let readable = columns.iter().filter(|making| making.builder.is_ok()).map(|making| making.column);
    let mut wanted: Vec<usize> = readable.chain(layout.label).collect();
    wanted.sort_unstable();
    // A list is as wide as many columns; how wide is not known yet.
    let most = if columns.iter().any(|making| is_list[making.column]) { 4096 } else { batch_rows(wanted.len()) };
    let (missing_label, missing) = (Missing::new(purpose.missing()), MissingFeature::new(purpose.missing()));
    let mut labels = layout.label.map(|column| (column, Interner::default()));
    let position = |column: usize| wanted.binary_search(&column).expect("every column is wanted");
    let mut rows = 0;
    for arrays in table.arrays(&wanted, most)? {
        let arrays = arrays?;
        if let Some((column, labels)) = &mut labels {
            labels.extend(&texts_of(&arrays[position(*column)], spelling, path)?, &missing_label);
        }
        for making in columns.iter_mut().filter(|making| making.builder.is_ok()) {
            let array = &arrays[position(making.column)];
            making.add(|builder| builder.extend(array, rows, &missing, path));
        }
        rows += arrays.first().map_or(0, |array| array.len());
        let builders = columns.iter().filter_map(|making| making.builder.as_ref().ok());
        let bytes = builders.map(TypedColumn::bytes).sum::<u64>();
        memory.check(bytes + labels.as_ref().map_or(0, |(_, labels)| labels.bytes()), COLUMNS, path)?;
    }
    let mut finished = Vec::with_capacity(columns.len());
    let mut positions = Vec::with_capacity(columns.len());
    for making in columns {
        match making.builder {
            Ok(builder) => builder.finish(purpose.is_training(), path, &mut finished),
            Err(error) => finished.push(Err(error)),
        }
        positions.resize(finished.len(), making.column);
    }
    let labels = labels.map(|(_, labels)| labels);
    Ok(Read { columns: finished, positions, header, labels, rows, notes: Vec::new() })
}

/// A typed column in the making.
enum TypedColumn {
    Numbers(ColumnBuilder),
    Dates(ColumnBuilder),
    Texts(ColumnBuilder, Spelling),
    List(ListBuilder),
}

impl TypedColumn {
    fn new(
        name: &str,
        data_type: &DataType,
        wanted: Wanted,
        spelling: Spelling,
        path: &str,
    ) -> Result<Self, DataError> {
        let (is_text, is_number) = (is_text(data_type), is_number(data_type));
        let forced = wanted == (Wanted::Names { forced: true });
        let builder = |wanted| ColumnBuilder::new(name.to_owned(), wanted);
        if is_number_list(data_type) && !forced {
            Ok(Self::List(ListBuilder::new(name)))
        } else if forced && (is_text || is_number || is_date(data_type)) {
            Ok(Self::Texts(builder(wanted), spelling))
        } else if is_number {
            Ok(Self::Numbers(builder(Wanted::Numeric)))
        } else if is_date(data_type) {
            Ok(Self::Dates(builder(Wanted::Dates(DateFormat::Iso))))
        } else if is_text {
            // What a Parquet file calls text is not taken for numbers, unless a model needs them.
            let wanted = match (wanted, spelling) {
                (Wanted::Inferred, Spelling::Parquet) => Wanted::Names { forced: false },
                (wanted, _) => wanted,
            };
            Ok(Self::Texts(builder(wanted), spelling))
        } else {
            Err(DataError::ColumnType {
                path: path.to_owned(),
                column: name.to_owned(),
                found: type_name(data_type),
                role: ColumnRole::Feature,
                expected: "a number, a boolean, a date, text or a list of numbers",
            })
        }
    }

    fn extend(
        &mut self,
        array: &ArrayRef,
        first_row: usize,
        missing: &MissingFeature,
        path: &str,
    ) -> Result<(), DataError> {
        match self {
            Self::Numbers(builder) => {
                for (i, value) in numbers_of(array).iter().enumerate() {
                    let value = value.map_or(f64::NAN, |value| missing.number(value));
                    builder.push_number(value, &Place { path, row: first_row + i + 1 })?;
                }
            }
            Self::Dates(builder) => {
                for (i, value) in days_of(array).enumerate() {
                    builder.push_number(value.unwrap_or(f64::NAN), &Place { path, row: first_row + i + 1 })?;
                }
            }
            Self::Texts(builder, spelling) => {
                for (i, text) in texts_of(array, *spelling, path)?.iter().enumerate() {
                    let text = text.and_then(|text| missing.present(text));
                    builder.push_text(text, &Place { path, row: first_row + i + 1 })?;
                }
            }
            Self::List(list) => list.extend(array, first_row, missing, path)?,
        }
        Ok(())
    }

    /// The memory that it takes.
    fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(builder) | Self::Dates(builder) | Self::Texts(builder, _) => builder.bytes(),
            Self::List(list) => list.columns.iter().map(ColumnBuilder::bytes).sum(),
        }
    }

    fn finish(self, training: bool, path: &str, out: &mut Vec<Result<FinishedColumn, DataError>>) {
        match self {
            Self::Numbers(builder) | Self::Dates(builder) | Self::Texts(builder, _) => {
                out.push(builder.finish(training, path));
            }
            Self::List(list) => out.extend(list.columns.into_iter().map(|builder| builder.finish(training, path))),
        }
    }
}

/// A list of numbers per row, such as an embedding, which becomes one feature per number.
struct ListBuilder {
    name: String,
    columns: Vec<ColumnBuilder>,
    /// Rows without a list before the first one that shows how long a list is.
    leading: usize,
}

impl ListBuilder {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), columns: Vec::new(), leading: 0 }
    }

    fn extend(
        &mut self,
        array: &ArrayRef,
        first_row: usize,
        missing: &MissingFeature,
        path: &str,
    ) -> Result<(), DataError> {
        let (numbers, lists) = lists_of(array);
        for (i, list) in lists.into_iter().enumerate() {
            let row = first_row + i + 1;
            let place = Place { path, row };
            let Some((from, to)) = list else {
                if self.columns.is_empty() {
                    self.leading += 1;
                }
                self.columns.iter_mut().try_for_each(|column| column.push_number(f64::NAN, &place))?;
                continue;
            };
            let width = to - from;
            if self.columns.is_empty() {
                self.start(width, path)?;
            }
            if width != self.columns.len() || width == 0 {
                let (found, expected) = (width, self.columns.len());
                let (path, column) = (path.to_owned(), self.name.clone());
                return Err(DataError::ListLength { path, row, column, found, expected });
            }
            for (column, k) in self.columns.iter_mut().zip(from..to) {
                let value = if numbers.is_valid(k) { missing.number(numbers.value(k)) } else { f64::NAN };
                column.push_number(value, &place)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, width: usize, path: &str) -> Result<(), DataError> {
        for k in 0..width {
            let mut column = ColumnBuilder::new(format!("{}_{k}", self.name), Wanted::Numeric);
            for row in 1..=self.leading {
                column.push_number(f64::NAN, &Place { path, row })?;
            }
            self.columns.push(column);
        }
        Ok(())
    }
}
