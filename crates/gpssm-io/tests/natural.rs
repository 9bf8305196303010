//! Mistakes that are natural in tables, as spreadsheets, loggers and people make them: the right record with a note, or one
//! line that says what to do.

use gpssm_io::table::{Columns, Data, DataError, read_record};

/// A file, the columns that are asked for, and what comes of it.
struct Case {
    name: &'static str,
    file: &'static str,
    /// `y`, `u`, `time`, `sequence`, each with `=`, between blanks.
    asked: &'static str,
    expected: Expected,
}

enum Expected {
    /// Outputs of all sequences (NaN is missing), and parts of notes; without parts there is no note.
    Read(&'static [f64], &'static [&'static str]),
    /// Parts of the error.
    Refused(&'static [&'static str]),
}

use Expected::{Read, Refused};

const N: f64 = f64::NAN;
const YT: &str = "y=y time=t";
const YU: &str = "y=y u=u";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Spreadsheets.
    Case { name: "semicolons and decimal commas", file: "t;u;y\n0;1,5;0,25\n1;2;-1,75\n", asked: YU, expected: Read(&[0.25, -1.75], &["decimal commas"]) },
    Case { name: "decimal commas in quotes", file: "u,y\n1,\"0,5\"\n2,\"1,5\"\n", asked: YU, expected: Read(&[0.5, 1.5], &["decimal commas"]) },
    Case { name: "tabs and decimal commas", file: "u\ty\n1\t0,5\n2\t1,5\n", asked: YU, expected: Read(&[0.5, 1.5], &["decimal commas"]) },
    Case { name: "decimal commas in times", file: "t;y\n0,0;1\n0,5;2\n1,0;3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &["decimal commas"]) },
    Case { name: "decimal commas without quotes", file: "u,y\n1,0,5\n2,1,5\n", asked: YU, expected: Refused(&["line 2: 3 fields", "decimal commas?"]) },
    Case { name: "decimal commas and points", file: "u;y\n1;0,5\n2;1.5\n", asked: YU, expected: Refused(&["line 2", "'0,5' has a decimal comma, but '1.5'"]) },
    Case { name: "thousands in quotes", file: "u,y\n1,\"1,234.5\"\n2,\"12,000.0\"\n", asked: YU, expected: Read(&[1234.5, 12_000.0], &["commas between thousands"]) },
    Case { name: "European thousands", file: "u;y\n1;1.234,5\n2;12.000,0\n3;1.234\n", asked: YU, expected: Read(&[1234.5, 12_000.0, 1234.0], &["points between thousands"]) },
    Case { name: "millions", file: "u;y\n1;1,234,567\n2;2,000,000\n", asked: YU, expected: Read(&[1_234_567.0, 2e6], &["commas between thousands"]) },
    Case { name: "thousands or decimals", file: "u\ty\n1\t1,234\n2\t2,345\n", asked: YU, expected: Refused(&["line 2, column 'y'", "'1,234' may be"]) },
    Case { name: "three decimals between semicolons", file: "u;y\n1;1,234\n2;2,345\n", asked: YU, expected: Read(&[1.234, 2.345], &["decimal commas"]) },
    Case { name: "Swiss thousands", file: "u;y\n1;1'234.5\n2;12'000\n", asked: YU, expected: Read(&[1234.5, 12_000.0], &["apostrophes between thousands"]) },
    Case { name: "blanks between thousands", file: "u;y\n1;1 234,5\n2;12 000\n", asked: YU, expected: Read(&[1234.5, 12_000.0], &["blanks between thousands"]) },
    Case { name: "narrow blanks between thousands", file: "u;y\n1;1\u{202f}234,5\n2;12\u{a0}000\n", asked: YU, expected: Read(&[1234.5, 12_000.0], &["decimal commas"]) },
    Case { name: "byte order mark", file: "\u{feff}u,y\n1,2\n2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "separator line", file: "sep=;\nu;y\n1;2\n2;3\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "no data available", file: "u,y\n1,2\n2,#N/A\n3,4\n4,#N/A\n", asked: YU, expected: Read(&[2.0, N, 4.0, N], &["'#N/A' (twice, first in line 3) is read as missing"]) },
    Case { name: "errors of formulas", file: "u,y\n1,2\n2,#DIV/0!\n3,#VALUE!\n", asked: YU, expected: Read(&[2.0, N, N], &["'#DIV/0!'", "'#VALUE!'"]) },
    Case { name: "an input that is not available", file: "u,y\n1,2\n#N/A,3\n3,4\n", asked: YU, expected: Refused(&["line 3, column 'u': the input is missing"]) },
    Case { name: "trailing commas", file: "u,y,\n1,2,\n2,3,\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "trailing commas below the header", file: "u,y\n1,2,\n2,3,,\n", asked: YU, expected: Read(&[2.0, 3.0], &["2 rows end in blank fields"]) },
    Case { name: "blank rows at the end", file: "u,y\n1,2\n2,3\n,\n,\n", asked: YU, expected: Read(&[2.0, 3.0], &["2 blank rows were skipped (first in line 4)"]) },
    Case { name: "a blank row between rows with times", file: "t,y\n0,1\n,\n1,2\n2,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &["1 blank rows were skipped"]) },
    Case { name: "a blank row is a missing output", file: "a,y\n0,1\n,\n1,2\n", asked: "y=y", expected: Read(&[1.0, N, 2.0], &[]) },
    Case { name: "a blank row without inputs", file: "u,y\n0,1\n,\n1,2\n", asked: YU, expected: Refused(&["line 3, column 'u': the input is missing"]) },
    Case { name: "quoted numbers", file: "\"u\",\"y\"\n\"1\",\"2\"\n\"2\",\"3\"\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "a units row", file: "t,u,y\ns,V,degC\n0,1,2\n1,2,3\n", asked: "y=y u=u time=t", expected: Read(&[2.0, 3.0], &["line 2 holds units"]) },
    Case { name: "a units row with blanks", file: "t,u,y\n,[V],[°C]\n0,1,2\n1,2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &["line 2 holds units"]) },
    Case { name: "units behind numbers", file: "u,y\n1,2 bar\n2,3 bar\n", asked: YU, expected: Refused(&["line 2, column 'y': '2 bar'", "its unit in the header"]) },
    Case { name: "per cent", file: "u,y\n1,45%\n2,46%\n", asked: YU, expected: Refused(&["'45%' is not a number", "unit in the header"]) },
    Case { name: "a title above the header", file: "Logger 17\nserial,0815\n\nu,y\n1,2\n2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &["header was found in line 4"]) },
    Case { name: "comments above the header", file: "# made by hand\n# 2024\nu,y\n1,2\n2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "the header is a comment", file: "# u,y\n1,2\n2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "the header again", file: "t,y\n0,1\n1,2\nt,y\n2,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &["repeat the header", "line 4"]) },
    Case { name: "two files in one", file: "t,y\n0,1\n1,2\nt,y\n0,3\n1,4\n", asked: YT, expected: Refused(&["line 5, column 't'", "--sequence"]) },
    Case { name: "two columns of one name", file: "y,y\n1,2\n2,3\n", asked: "y=y", expected: Refused(&["2 columns have the name 'y': rename"]) },
    Case { name: "a name without its unit", file: "t,level2 [cm]\n0,1\n1,2\n", asked: "y=level2", expected: Refused(&["did you mean 'level2 [cm]'?"]) },
    Case { name: "a name in capitals", file: "U,Y\n1,2\n2,3\n", asked: YU, expected: Refused(&["there is no column 'y'; did you mean 'Y'?"]) },
    Case { name: "bars between columns", file: "u|y\n1|2\n2|3\n", asked: YU, expected: Read(&[2.0, 3.0], &[]) },
    Case { name: "blanks between columns", file: "u y\n1 2\n2 3\n", asked: YU, expected: Refused(&["separated by blanks: separate them with commas"]) },
    Case { name: "a typographic minus", file: "u,y\n1,\u{2212}2.5\n2,3\n", asked: YU, expected: Read(&[-2.5, 3.0], &[]) },
    Case { name: "Fortran exponents", file: "u,y\n1,1.5D+02\n2,3.0D-01\n", asked: YU, expected: Read(&[150.0, 0.3], &[]) },
    Case { name: "switches", file: "u,y\nTRUE,1\nFALSE,2\n", asked: YU, expected: Read(&[1.0, 2.0], &["TRUE and FALSE are read as 1 and 0"]) },
    Case { name: "words", file: "u,y\non,1\n1,2\noff,3\n", asked: YU, expected: Refused(&["line 2, column 'u': 'on' is not a number"]) },
    Case { name: "a mark of missing values", file: "y\n1\n-9999\n2\n1.5\n-9999\n1\n", asked: "y=y", expected: Read(&[1.0, -9999.0, 2.0, 1.5, -9999.0, 1.0], &["column 'y' is -9999 in 2 rows"]) },
    Case { name: "a footer", file: "u,y\n1,2\n2,3\nend of file\n", asked: YU, expected: Refused(&["line 4: 1 field, but the header names 2"]) },
    Case { name: "null", file: "u,y\n1,2\n2,null\n", asked: YU, expected: Read(&[2.0, N], &["'null' (line 3) is read as missing"]) },
    Case { name: "Windows-1252", file: "", asked: "y=T_[°C] u=u", expected: Read(&[2.0, 3.0], &["Windows-1252"]) },
    Case { name: "row names that the header leaves out", file: "u,y\n\"1\",1.5,2.5\n\"2\",1.5,3.5\n", asked: YU, expected: Refused(&["line 2: 3 fields", "row names that the header leaves out?"]) },
    Case { name: "another separator than the header's", file: "u;y\n1,2\n2,3\n", asked: YU, expected: Refused(&["line 2: 1 field,", "separated by another mark"]) },
    Case { name: "not available in points", file: "u,y\n1,n.a.\n2,3\n3,.\n", asked: YU, expected: Read(&[N, 3.0, N], &["'.' (line 4) and 'n.a.' (line 2) are read as missing"]) },
    Case { name: "currency", file: "u,y\n1,$12.50\n2,$13.00\n", asked: YU, expected: Refused(&["line 2, column 'y': '$12.50'", "write the number alone"]) },
    Case { name: "categories", file: "u,y\n1,2\nB,3\n", asked: YU, expected: Refused(&["line 3, column 'u': 'B' is not a number", "write words as numbers"]) },
    Case { name: "a comment between rows", file: "u,y\n1,2\n# restart\n2,3\n", asked: YU, expected: Read(&[2.0, 3.0], &["1 comments were skipped (first in line 3)"]) },
    Case { name: "a comma in a name", file: "u,\"level, cm\"\n1,2\n2,3\n", asked: "y=level u=u", expected: Refused(&["did you mean 'level, cm'?", "y = [\"level, cm\"]"]) },
    Case { name: "texts where numbers are asked for", file: "u,y\n'1','2'\n'2','3'\n'3','4'\n'4','5'\n", asked: YU, expected: Refused(&["line 5, column 'y': ''5'' is not a number"]) },
    Case { name: "marks of missing values in an input", file: "u,y\n1,1\n9999,2\n2,1\n9999,3\n3,2\n", asked: YU, expected: Read(&[1.0, 2.0, 1.0, 3.0, 2.0], &["column 'u' is 9999 in 2 rows", "fill them in"]) },
    Case { name: "a huge mark of missing values", file: "y\n1\n1e30\n2\n1.5\n1E+30\n1\n", asked: "y=y", expected: Read(&[1.0, 1e30, 2.0, 1.5, 1e30, 1.0], &["column 'y' is 1e30 in 2 rows"]) },
    // Times.
    Case { name: "dates with points", file: "t;y\n01.02.2024 08:00;1\n01.02.2024 08:01;2\n01.02.2024 08:02;3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "American dates", file: "t,y\n12/30/2024,1\n12/31/2024,2\n1/1/2025,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "British dates", file: "t,y\n30/12/2024,1\n31/12/2024,2\n01/01/2025,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "dates that are regular in one order only", file: "t,y\n01/02/2024,1\n02/02/2024,2\n03/02/2024,3\n04/02/2024,4\n", asked: YT, expected: Refused(&["'01/02/2024' may have the day or the month first"]) },
    Case { name: "AM and PM", file: "t,y\n1/31/2024 11:59 AM,1\n1/31/2024 12:00 PM,2\n1/31/2024 12:01 PM,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "years of two digits", file: "t,y\n31.12.24,1\n01.01.25,2\n", asked: YT, expected: Refused(&["line 2, column 't': '31.12.24' is neither a number nor a date"]) },
    Case { name: "clocks alone", file: "t,y\n08:00:00,1\n08:00:01,2\n08:00:02,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "offsets that change", file: "t,y\n2024-03-31T01:30:00+01:00,1\n2024-03-31T03:00:00+02:00,2\n2024-03-31T03:30:00+02:00,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &["the offset of column 't' changes in line 3"]) },
    Case { name: "zones in some rows", file: "t,y\n2024-03-30T01:00:00,1\n2024-03-30T02:00:00Z,2\n", asked: YT, expected: Refused(&["line 3, column 't'", "some have none"]) },
    Case { name: "clocks go forward", file: "t,y\n2024-03-31 01:40,1\n2024-03-31 01:50,2\n2024-03-31 03:00,3\n2024-03-31 03:10,4\n", asked: YT, expected: Refused(&["line 4, column 't': an hour is missing before 2024-03-31 03:00", "UTC"]) },
    Case { name: "clocks go back", file: "t,y\n2024-10-27 02:40,1\n2024-10-27 02:50,2\n2024-10-27 02:00,3\n", asked: YT, expected: Refused(&["line 4, column 't': the time 2024-10-27 02:00 is not after", "offset"]) },
    Case { name: "an hour twice", file: "t,y\n2024-10-27 01:00,1\n2024-10-27 02:00,2\n2024-10-27 02:00,3\n", asked: YT, expected: Refused(&["line 4", "daylight saving ends"]) },
    Case { name: "a gap of an hour on another day", file: "t,y\n2024-05-08 01:40,1\n2024-05-08 01:50,2\n2024-05-08 03:00,3\n2024-05-08 03:10,4\n", asked: YT, expected: Read(&[1.0, 2.0, N, N, N, N, N, N, 3.0, 4.0], &["6 rows are missing after 2024-05-08 01:50 (line 3)"]) },
    Case { name: "days in one number", file: "t,y\n20240130,1\n20240131,2\n20240201,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "fractions in some rows", file: "t,y\n2024-01-01T00:00:00,1\n2024-01-01T00:00:00.500,2\n2024-01-01T00:00:01,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "names of months", file: "t,y\n30-Sep-2024 08:00:00,1\n01-Oct-2024 08:00:00,2\n02-Oct-2024 08:00:00,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "UTC as a word", file: "t,y\n2024-03-31 01:30:00 UTC,1\n2024-03-31 02:30:00 UTC,2\n2024-03-31 03:30:00 UTC,3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "the name of a zone", file: "t,y\n2024-03-31T01:30:00 CET,1\n2024-03-31T03:30:00 CEST,2\n", asked: YT, expected: Refused(&["line 2, column 't': '2024-03-31T01:30:00 CET' is neither", "+01:00"]) },
    Case { name: "the name of a zone beside its offset", file: "t,y\n2024-03-31T01:00:00+01:00[Europe/Berlin],1\n2024-03-31T03:00:00+02:00[Europe/Berlin],2\n2024-03-31T04:00:00+02:00[Europe/Berlin],3\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0], &["the offset of column 't' changes in line 3"]) },
    Case { name: "the clock in a second column", file: "t,clock,y\n2024-01-01,08:00,1\n2024-01-01,08:01,2\n", asked: YT, expected: Refused(&["line 3, column 't': the time 2024-01-01 is the same", "a second column holds the clock"]) },
    Case { name: "clocks over midnight", file: "t,y\n23:58,1\n23:59,2\n00:00,3\n", asked: YT, expected: Refused(&["line 4, column 't': the time 00:00 comes after 23:59", "write the date before the clock"]) },
    Case { name: "jitter", file: "t,y\n0,1\n1.04,2\n2,3\n2.97,4\n4.01,5\n5,6\n", asked: YT, expected: Read(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &["steps of column 't' vary by up to"]) },
    Case { name: "a time that is missing", file: "t,y\n0,1\n#N/A,2\n2,3\n", asked: YT, expected: Refused(&["line 3, column 't': the time is missing"]) },
    Case { name: "rows in the wrong order", file: "t,y\n2,1\n1,2\n0,3\n", asked: YT, expected: Refused(&["line 3, column 't': the time 1 comes after 2: sort"]) },
    // Runs.
    Case { name: "a time that nobody named goes back", file: "Time [s],y\n0,1\n1,2\n0,3\n1,4\n", asked: "y=y", expected: Refused(&["line 4, column 'Time [s]': the time goes back here", "--sequence"]) },
    Case { name: "labels that nobody named", file: "run,y\n1,1\n1,2\n2,3\n2,4\n", asked: "y=y", expected: Refused(&["line 4, column 'run': this column labels 2 runs", "--sequence run"]) },
    Case { name: "a counter is no label", file: "id,y\n1,1\n2,2\n3,3\n", asked: "y=y", expected: Read(&[1.0, 2.0, 3.0], &[]) },
    Case { name: "gaps in a time that nobody named", file: "t,y\n0,1\n1,2\n4,3\n5,4\n", asked: "y=y", expected: Read(&[1.0, 2.0, 3.0, 4.0], &["rows are missing between the times of column 't'", "--time"]) },
    Case { name: "a stamp that nobody named goes back", file: "stamp,y\n2024-01-01,1\n2024-01-02,2\n2024-01-01,3\n2024-01-02,4\n", asked: "y=y", expected: Refused(&["line 4, column 'stamp': the time goes back here"]) },
    Case { name: "runs with labels", file: "run,t,y\na,0,1\na,1,2\nb,0,3\nb,1,4\n", asked: "y=y time=t sequence=run", expected: Read(&[1.0, 2.0, 3.0, 4.0], &[]) },
];

fn read(case: &Case) -> Result<Data, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    // A string cannot hold what spreadsheets write on Windows.
    let windows: &[u8] = b"u;T_[\xb0C]\n1;2\n2;3\n";
    let bytes = if case.file.is_empty() { windows } else { case.file.as_bytes() };
    std::fs::write(&path, bytes).unwrap();
    let mut columns = Columns::default();
    for word in case.asked.split(' ') {
        let (role, name) = word.split_once('=').unwrap();
        match role {
            "y" => columns.y.push(name.to_owned()),
            "u" => columns.u.push(name.to_owned()),
            "time" => columns.time = Some(name.to_owned()),
            _ => columns.sequence = Some(name.to_owned()),
        }
    }
    read_record(&path, &columns)
}

/// What is wrong with what came of a case.
fn wrong(case: &Case) -> Option<String> {
    match (read(case), &case.expected) {
        (Ok(data), Read(y, notes)) => {
            let found: Vec<f64> = data.record.sequences().iter().flat_map(|s| s.output(0)).collect();
            let same = found.len() == y.len()
                && found.iter().zip(*y).all(|(a, b)| (a - b).abs() < 1e-12 || (a.is_nan() && b.is_nan()));
            let said = data.notes.join("; ");
            let unsaid: Vec<_> = notes.iter().filter(|part| !said.contains(**part)).collect();
            // Marks of numbers are told in all cases but the obvious ones.
            let too_much = notes.is_empty() && !said.is_empty();
            (!same || !unsaid.is_empty() || too_much).then(|| format!("read {found:?}, said \"{said}\""))
        }
        (Err(error), Refused(parts)) => {
            let text = error.to_string();
            let bad = text.contains('\n') || parts.iter().any(|part| !text.contains(part));
            bad.then_some(text)
        }
        (Ok(data), Refused(_)) => Some(format!("accepted: {:?}", data.notes)),
        (Err(error), Read(..)) => Some(format!("refused: {error}")),
    }
}

#[test]
fn natural_mistakes_are_read_right_or_refused_in_one_line() {
    let bad: Vec<String> =
        CASES.iter().filter_map(|case| Some(format!("{}: {}", case.name, wrong(case)?))).collect();
    assert!(bad.is_empty(), "{} of {}:\n{}", bad.len(), CASES.len(), bad.join("\n"));
    assert!(CASES.len() >= 60, "{}", CASES.len());
}

#[test]
fn dates_with_two_orders_follow_their_steps() {
    // Day by day with the day first, and 28 February before 1 March with neither.
    let file = "t,y\n01/12/2023,1\n02/12/2023,2\n03/12/2023,3\n13/12/2023,4\n";
    let case = Case { name: "", file, asked: YT, expected: Refused(&[]) };
    let data = read(&case).unwrap();
    assert_eq!(data.clock().texts(&data.time[0])[..3], ["01/12/2023", "02/12/2023", "03/12/2023"]);
    assert_eq!(data.n_rows, 13);
}

#[test]
fn constant_outputs_have_nothing_to_learn() {
    let check = |file: &'static str| {
        read(&Case { name: "", file, asked: "y=y", expected: Refused(&[]) }).unwrap().nothing_to_learn()
    };
    assert!(check("y\n1\nNA\n1\n1\n").is_some_and(|text| text.contains("'y' is 1 wherever it has a value")));
    assert!(check("y\nNA\nNA\n").is_some_and(|text| text.contains("no value in any of the 2 rows")));
    assert_eq!(check("y\n1\n2\n"), None);
}
