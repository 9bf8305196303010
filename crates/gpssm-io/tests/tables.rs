//! Tables that are read as they should be, whatever they look like.

use std::path::Path;

use gpssm_io::table::{Columns, Data, DataError, TimeUnit, read_header, read_record};

fn columns(y: &[&str], u: &[&str]) -> Columns {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Columns { y: own(y), u: own(u), ..Columns::default() }
}

fn read(bytes: &[u8], columns: &Columns) -> Result<Data, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, bytes).unwrap();
    read_record(&path, columns)
}

#[test]
fn layouts_of_the_same_table_give_the_same_record() {
    let asked = columns(&["y"], &["u"]);
    let plain = read(b"t,u,y\n0,1,0.5\n1,2,\n2,3,1.5e1\n", &asked).unwrap();
    assert_eq!(plain.record.sequences()[0].u(2), [3.0]);
    assert!(plain.record.sequences()[0].y(1)[0].is_nan());
    assert_eq!((plain.n_rows, plain.n_missing), (3, 1));
    assert_eq!(plain.lines, [[2, 3, 4]]);
    assert_eq!(plain.time, [[0.0, 1.0, 2.0]]);
    assert_eq!((plain.time_unit, plain.dt), (TimeUnit::Rows, None));
    for other in [
        &b"\xef\xbb\xbft,u,y\r\n0,1,0.5\r\n1,2,NA\r\n2,3,15\r\n\r\n"[..],
        b"t;u;y\n0;1;.5\n1;2;nan\n2;3;15.0",
        b"t\tu\ty\n0\t1\t0.5\n1\t2\t\n2\t3\t15\n",
        b"\"t\",\"u\",\"y\"\n0,\"1\",\"0.5\"\n1,2,\"\"\n2, 3 , 15 \n",
        b"y,note,u\n0.5,\"a, b\",1\n,\"c\nd\",2\n15,,3\n",
    ] {
        let data = read(other, &asked).unwrap();
        assert_eq!(data.sha256, plain.sha256, "{}", String::from_utf8_lossy(other));
        assert_eq!(data.n_missing, 1);
    }
    let renamed = read(b"u,z\n1,0.5\n2,\n3,15\n", &columns(&["z"], &["u"])).unwrap();
    assert_ne!(renamed.sha256, plain.sha256);
    let changed = read(b"u,y\n1,0.5\n2,\n3,15.000000000000002\n", &asked).unwrap();
    assert_ne!(changed.sha256, plain.sha256);
}

#[test]
fn rows_can_be_chosen_and_thinned() {
    let text: String = (0..20).map(|i| format!("{},{i}\n", 0.5 * f64::from(i))).collect();
    let text = format!("t,y\n{text}");
    let asked =
        Columns { time: Some("t".into()), rows: Some((3, 12)), every: Some(3), ..columns(&["y"], &[]) };
    let data = read(text.as_bytes(), &asked).unwrap();
    let y: Vec<f64> = data.record.sequences()[0].output(0).collect();
    assert_eq!(y, [2.0, 5.0, 8.0, 11.0]);
    assert_eq!(data.time, [[1.0, 2.5, 4.0, 5.5]]);
    assert_eq!(data.dt, Some(1.5));
    assert_eq!(data.lines, [[4, 7, 10, 13]]);
    let by_step = Columns { dt: Some(0.5), time: None, ..asked };
    assert_eq!(read(text.as_bytes(), &by_step).unwrap().time, [[0.0, 1.5, 3.0, 4.5]]);
}

#[test]
fn sequences_are_told_apart_by_labels() {
    let text = b"run,t,y\na,0,1\na,1,2\na,2,3\nb b,5,4\nb b,6,5\n7,0,1\n7,1,1\n";
    let asked = Columns {
        sequence: Some("run".into()),
        time: Some("t".into()),
        every: Some(1),
        ..columns(&["y"], &[])
    };
    let data = read(text, &asked).unwrap();
    assert_eq!(data.sequence_labels, ["a", "b b", "7"]);
    assert_eq!(data.record.sequences().len(), 3);
    assert_eq!(data.time[1], [5.0, 6.0]);
    assert_eq!(data.dt, Some(1.0));
}

#[test]
fn dates_are_times() {
    let asked = Columns { time: Some("when".into()), ..columns(&["y"], &[]) };
    let weekly = read(b"when,y\n1970-01-08,1\n1970-01-15,2\n1970-01-22,3\n", &asked).unwrap();
    assert_eq!((weekly.time_unit, weekly.dt), (TimeUnit::Seconds, Some(604_800.0)));
    assert_eq!(weekly.time, [[0.0, 604_800.0, 1_209_600.0]]);
    assert_eq!(weekly.clock().texts(&weekly.time[0]), ["1970-01-08", "1970-01-15", "1970-01-22"]);
    let monthly = read(b"when,y\n1970-01-31,1\n1970-02-28,2\n1970-03-31,3\n1970-04-30,3\n", &asked).unwrap();
    let dates = monthly.dates.as_ref().unwrap();
    assert_eq!((dates.months, dates.frequency.as_deref()), (Some(1), Some("ME")));
    assert_eq!(monthly.clock().text(monthly.clock().after(&monthly.time[0], 4.0)), "1970-05-31");
    let hourly =
        read(b"when,y\n2024-03-01T00:00:00Z,1\n2024-03-01T01:00:00Z,2\n2024-03-01T02:00:00Z,3\n", &asked)
            .unwrap();
    assert_eq!(hourly.dt, Some(3600.0));
    assert_eq!(hourly.clock().text(hourly.time[0][1]), "2024-03-01T01:00:00Z");
}

#[test]
fn rows_that_are_missing_between_the_times_are_put_in() {
    let asked = Columns { time: Some("t".into()), ..columns(&["y"], &["u"]) };
    let data =
        read(b"t,u,y\n2024-01-01T10:00,1,5\n2024-01-01T10:01,2,6\n2024-01-01T10:04,3,7\n", &asked).unwrap();
    let sequence = &data.record.sequences()[0];
    assert_eq!(sequence.n_rows(), 5);
    assert!(sequence.y(2)[0].is_nan() && sequence.y(3)[0].is_nan());
    assert_eq!((1..5).map(|t| sequence.u(t)[0]).collect::<Vec<_>>(), [2.0, 2.0, 2.0, 3.0]);
    assert_eq!((data.n_rows, data.n_missing, &data.lines[0][..]), (5, 2, &[2, 3, 3, 3, 4][..]));
    assert_eq!(data.clock().text(data.time[0][3]), "2024-01-01T10:03");
    let [note] = &data.notes[..] else { panic!("{:?}", data.notes) };
    assert!(note.starts_with("2 rows are missing after 2024-01-01T10:01 (line 3) and were put in"), "{note}");
    // A finer grid, with its cost.
    let data = read(b"t,u,y\n0,1,5\n3,2,6\n5,3,7\n8,3,7\n10,2,6\n13,1,2\n", &asked).unwrap();
    assert_eq!((data.n_rows, data.dt), (14, Some(1.0)));
    assert!(
        data.notes[0].contains("2.333 times as much") && data.notes[0].contains("--dt"),
        "{:?}",
        data.notes
    );
    let half = Columns { dt: Some(0.5), ..asked.clone() };
    assert_eq!(read(b"t,u,y\n0,1,5\n3,2,6\n5,3,7\n", &half).unwrap().n_rows, 11);
    // Thinned after the rows are there.
    let second = Columns { every: Some(2), ..asked };
    let data = read(b"t,u,y\n0,1,5\n1,2,6\n2,3,7\n5,4,8\n6,5,9\n", &second).unwrap();
    assert_eq!(data.time, [[0.0, 2.0, 4.0, 6.0]]);
}

#[test]
fn columns_that_nobody_asks_for_may_hold_anything() {
    let data = read(b"y,y2,y2,\n1,\xff\xfe,inf,x\n2,\"a\"\"b\",,\n", &columns(&["y"], &[])).unwrap();
    assert_eq!(data.n_rows, 2);
}

#[test]
fn the_header_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.csv");
    std::fs::write(&path, "a; b ;\"c,d\"\n1;2;3\n").unwrap();
    let header = read_header(&path).unwrap();
    assert_eq!(header.columns, ["a", "b", "c,d"]);
    assert_eq!(header.delimiter, b';');
    assert!(read_header(Path::new("nowhere.csv")).is_err());
}
