//! Arrays and images that a model can be trained on, on tiny files, good and bad, and real data of every kind.
#![allow(clippy::unwrap_used)]

mod common;

use common::{chain, csv, data, file, folder, labelled, npy, npy_ordered, numbers, refused, table};
use mnar_data::{
    Expected, ImageShape, Images, Inputs, ReadOptions, Split, TableEncoder, read_dataset, read_for_prediction, samples,
};
use std::io::{Cursor, Write};
use tempfile::TempDir;

fn images(inputs: &Inputs) -> &Images {
    match inputs {
        Inputs::Images(images) => images,
        Inputs::Table(table) => panic!("{table:?}"),
    }
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(format!("{name}.npy"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn embeddings_in_arrays() {
    let folder = folder();
    let rows: [f32; 6] = [1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0];
    let path = file(&folder, "e.npy", npy("<f4", "(3, 2)", &rows.map(f32::to_le_bytes).concat()));
    let mut options =
        ReadOptions { labels_file: Some(file(&folder, "l.csv", "label\na\n\nb\n")), ..Default::default() };
    let read = read_dataset(&path, &options).unwrap();
    assert_eq!(numbers(table(&read), "x_1"), [2.0, 4.0, 6.0]);
    assert!(numbers(table(&read), "x_0")[2].is_nan());
    // Column by column, and big-endian.
    let columns: [f64; 6] = [1.0, 3.0, 5.0, 2.0, 4.0, 6.0];
    let bytes = npy_ordered(">f8", "(3, 2)", &columns.map(f64::to_be_bytes).concat(), "True");
    let read = read_dataset(&file(&folder, "f.npy", bytes), &options).unwrap();
    assert_eq!(numbers(table(&read), "x_0"), [1.0, 3.0, 5.0]);
    assert_eq!(numbers(table(&read), "x_1"), [2.0, 4.0, 6.0]);
    // For prediction, without labels.
    let encoder = TableEncoder::fit(table(&read)).unwrap();
    let again = read_for_prediction(&path, &Expected::Table(&encoder), Split::Train, None).unwrap();
    assert_eq!(again.inputs.len(), 3);
    let wide = TableEncoder::fit(table(&csv("y,label\n1,a\n2,\n", &labelled("label")).unwrap())).unwrap();
    let error = read_for_prediction(&path, &Expected::Table(&wide), Split::Train, None).unwrap_err().to_string();
    assert!(error.contains("no column `y`"), "{error}");

    options.labels_file = None;
    assert!(refused(&path, &options).contains("a numpy array has no labels; give the labels"));
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 5, 9, 40, whole.len() - 1] {
        let cut = file(&folder, "cut.npy", &whole[..cut]);
        assert!(
            refused(&cut, &options).contains("cut.npy: not a readable numpy array: it ends before its last element")
        );
    }
    let more = file(&folder, "more.npy", [whole, vec![0]].concat());
    assert!(refused(&more, &options).contains("more bytes follow"));
    let object = file(&folder, "o.npy", npy("|O", "(3, 2)", &[]));
    assert!(refused(&object, &options).contains("the array is `|O` of shape (3, 2), but features must be numbers"));
    let huge = file(&folder, "h.npy", npy("|u1", "(1000000000000, 28, 28)", &[1, 2]));
    assert!(refused(&huge, &options).contains("the images take 784.0 TB of memory or more"));
    let huge = file(&folder, "h.npy", npy("|u1", "(9000000000000000000, 9, 9)", &[1, 2]));
    assert!(refused(&huge, &options).contains("claims more than fits any machine"));
    let text = file(&folder, "t.npy", "x,label\n1,a\n");
    assert!(refused(&text, &options).contains("it does not start as one"));
}

#[test]
fn medmnist_archives() {
    let folder = folder();
    let bytes = |n: usize| (0..n).map(|i| i as u8).collect::<Vec<u8>>();
    let arrays = [
        ("train_images", npy("|u1", "(3, 2, 2)", &bytes(12))),
        ("train_labels", npy("<i8", "(3, 1)", &[2_i64, -1, 0].map(i64::to_le_bytes).concat())),
        ("test_images", npy("|u1", "(1, 2, 2)", &bytes(4))),
        ("test_labels", npy("|u1", "(1,)", &[2])),
    ];
    let path = file(&folder, "m.npz", npz(&arrays));
    let mut options = ReadOptions::default();
    let read = read_dataset(&path, &options).unwrap();
    assert_eq!(images(&read.inputs).shape(), ImageShape::flat(2, 2, 1));
    assert_eq!(images(&read.inputs).pixels(2), [8, 9, 10, 11]);
    assert_eq!((read.labels.names(), read.labels.counts()), (&["0".into(), "2".into()][..], &[1, 1][..]));
    options.split = Split::All;
    let all = read_dataset(&path, &options).unwrap();
    assert_eq!((all.inputs.len(), all.labels.counts()), (4, &[1, 2][..]));
    options.split = Split::Test;
    let test = read_dataset(&path, &options).unwrap();
    assert_eq!(test.labels.names(), ["2"]);
    options.split = Split::Validation;
    assert!(refused(&path, &options).contains(
        "m.npz: there is no array `val_images` or `val_x` or `val_X` or `images_val` or `x_val` or `X_val` (the arrays are test_images, test_labels, train_images, train_labels)"
    ));
    let expected = Expected::Images { shape: ImageShape::flat(2, 2, 3), resize: false };
    let rows = read_for_prediction(&path, &expected, Split::Test, None).unwrap();
    assert_eq!(images(&rows.inputs).pixels(0)[..6], [0, 0, 0, 1, 1, 1]);
    let expected = Expected::Images { shape: ImageShape::flat(3, 2, 1), resize: true };
    let error = read_for_prediction(&path, &expected, Split::Test, None).unwrap_err().to_string();
    assert!(error.contains("the images are 2x2 grey, but 3x2 grey, as in training, is needed"), "{error}");

    // Shapes; plain names; a named label.
    options = ReadOptions::default();
    let label = |n: usize| npy("|u1", &format!("({n},)"), &vec![1; n]);
    for (shape, n, expected) in [
        ("(2, 2, 3, 3)", 36, ImageShape::flat(2, 3, 3)),
        ("(2, 5, 2, 6)", 120, ImageShape { depth: 5, height: 2, width: 6, channels: 1 }),
        ("(2, 5, 2, 2, 1)", 40, ImageShape { depth: 5, height: 2, width: 2, channels: 1 }),
    ] {
        let path = file(&folder, "s.npz", npz(&[("x", npy("|u1", shape, &bytes(n))), ("y", label(2))]));
        assert_eq!(images(&read_dataset(&path, &options).unwrap().inputs).shape(), expected);
    }
    let path = file(&folder, "k.npz", npz(&[("images", npy("|u1", "(2, 1, 1)", &[1, 2])), ("grade", label(2))]));
    assert!(refused(&path, &options).contains("no array `labels` or `y` or `Y` (the arrays are grade, images)"));
    assert_eq!(read_dataset(&path, &labelled("grade")).unwrap().labels.counts(), [2]);
    let path = file(&folder, "c.npz", npz(&[("x", npy("|u1", "(2, 3, 5, 5)", &bytes(150))), ("y", label(2))]));
    assert!(refused(&path, &options).contains("channels must come last"));
    let path = file(&folder, "f.npz", npz(&[("x", npy("<f4", "(2, 1, 1)", &bytes(8))), ("y", label(2))]));
    assert!(refused(&path, &options).contains("array `x`: the array is `<f4` of shape (2, 1, 1), but images must be"));
    let path = file(&folder, "r.npz", npz(&[("x", npy("|u1", "(2, 1, 1)", &[1, 2])), ("y", label(3))]));
    assert!(refused(&path, &options).contains("array `y`: there are 3 labels for the 2 rows of the images"));
    let path = file(&folder, "e.npz", npz(&[("x", npy("|u1", "(0, 1, 1)", &[])), ("y", label(0))]));
    assert!(refused(&path, &options).contains("no rows"));
}

#[test]
fn damaged_archives_are_refused() {
    let folder = folder();
    let pixels: Vec<u8> = (0..400_u32).map(|i| (i * i % 251) as u8).collect();
    let labels = npy("<i2", "(100,)", &[1, 0].repeat(100));
    let whole = npz(&[("train_images", npy("|u1", "(100, 2, 2)", &pixels)), ("train_labels", labels)]);
    let options = ReadOptions::default();
    read_dataset(&file(&folder, "w.npz", &whole), &options).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        let message = refused(&file(&folder, "w.npz", &whole[..cut]), &options);
        assert!(message.starts_with("w.npz"), "{message}");
    }
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            if let Err(error) = read_dataset(&file(&folder, "w.npz", &bytes), &options) {
                assert!(chain(&error).contains("w.npz"), "{error}");
            }
        }
    }
    assert!(refused(&file(&folder, "t.npz", "x,label\n"), &options).contains("not a readable .npz file"));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.txt", zip::write::SimpleFileOptions::default()).unwrap();
    let text = writer.finish().unwrap().into_inner();
    assert!(refused(&file(&folder, "t.zip", text), &options).contains("it holds no numpy arrays"));
}

fn idx(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = magic.to_be_bytes().to_vec();
    sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    file
}

#[test]
fn mnist_folders_and_files() {
    let folder = folder();
    let train = file(&folder, "train-images-idx3-ubyte", idx(0x803, &[2, 1, 2], &[1, 2, 3, 4]));
    let mut options = ReadOptions::default();
    assert!(refused(folder.path(), &options).contains("no file of labels"));
    file(&folder, "train-labels-idx1-ubyte", idx(0x801, &[2], &[7, 9]));
    for path in [folder.path(), &train] {
        let read = read_dataset(path, &options).unwrap();
        assert_eq!(images(&read.inputs).all(), [1, 2, 3, 4]);
        assert_eq!(read.labels.names(), ["7", "9"]);
    }
    options.split = Split::Test;
    assert!(refused(folder.path(), &options).contains("there is no test part (it holds train-images-idx3-ubyte)"));
    file(&folder, "t10k-images-idx3-ubyte", idx(0x803, &[1, 1, 2], &[5, 6]));
    file(&folder, "t10k-labels-idx1-ubyte", idx(0x801, &[1], &[9]));
    assert_eq!(images(&read_dataset(folder.path(), &options).unwrap().inputs).all(), [5, 6]);
    options.split = Split::All;
    assert_eq!(read_dataset(folder.path(), &options).unwrap().labels.counts(), [1, 2]);
    let expected = Expected::Images { shape: ImageShape::flat(1, 2, 1), resize: false };
    assert_eq!(read_for_prediction(folder.path(), &expected, Split::All, None).unwrap().inputs.len(), 3);
    assert!(refused(folder.path(), &labelled("digit")).contains("an MNIST file has no column `digit`"));
    file(&folder, "t10k-labels-idx1-ubyte", idx(0x801, &[2], &[9, 9]));
    assert!(refused(folder.path(), &options).contains("there are 2 labels for the 1 rows"));
    file(&folder, "t10k-images-idx3-ubyte", idx(0x803, &[1, 1, 2], &[5]));
    assert!(refused(folder.path(), &options).contains("only 1 follow"));
}

#[test]
fn cifar_batches() {
    let folder = folder();
    let record = |class: u8, red: u8| [vec![class], vec![red; 1024], vec![2; 1024], vec![3; 1024]].concat();
    for k in 1..=5 {
        file(&folder, &format!("data_batch_{k}.bin"), [record(k, 10 * k), record(0, 1)].concat());
    }
    let mut options = ReadOptions::default();
    let read = read_dataset(folder.path(), &options).unwrap();
    assert_eq!(images(&read.inputs).shape(), ImageShape::flat(32, 32, 3));
    assert_eq!(images(&read.inputs).pixels(2)[..6], [20, 2, 3, 20, 2, 3]);
    assert_eq!(read.labels.counts()[..3], [5, 1, 1]);
    let classes = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    file(&folder, "batches.meta.txt", classes);
    file(&folder, "test_batch.bin", record(8, 0));
    options.split = Split::Test;
    let test = read_dataset(folder.path(), &options).unwrap();
    assert_eq!(test.labels.name(test.labels.get(0).unwrap()), "ship");
    file(&folder, "test_batch.bin", &record(8, 0)[..99]);
    assert!(
        refused(folder.path(), &options)
            .contains("test_batch.bin: not a readable CIFAR-10 file: it ends within image 1")
    );
    file(&folder, "test_batch.bin", record(77, 0));
    assert!(refused(folder.path(), &options).contains("image 1 is of class 77"));
    options.split = Split::Validation;
    assert!(refused(folder.path(), &options).contains("there is no validation part"));
    std::fs::remove_file(folder.path().join("data_batch_3.bin")).unwrap();
    assert!(refused(folder.path(), &ReadOptions::default()).contains("data_batch_3.bin: cannot be opened"));
}

/// Saves an image of one colour, grey or not, as the extension says.
fn picture(folder: &TempDir, name: &str, width: usize, height: usize, colour: &[u8]) {
    let bytes = match name.rsplit('.').next().unwrap() {
        "bmp" => bmp(width, height, [colour[0], colour[colour.len() / 2], colour[colour.len() - 1]]),
        "jpg" => include_bytes!("images/colour.jpg").to_vec(),
        _ => {
            let shape = ImageShape::flat(height, width, colour.len());
            Images::new(shape, colour.repeat(width * height), name).unwrap().png(0).unwrap()
        }
    };
    file(folder, name, bytes);
}

/// 24 bits per pixel.
fn bmp(width: usize, height: usize, [red, green, blue]: [u8; 3]) -> Vec<u8> {
    let mut bytes = [b"BM".to_vec(), vec![0; 8]].concat();
    for value in [54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        bytes.extend(u32::try_from(value).unwrap().to_le_bytes());
    }
    let mut row = [blue, green, red].repeat(width);
    row.resize(row.len().next_multiple_of(4), 0);
    bytes.extend(row.repeat(height));
    bytes
}

fn grey(folder: &TempDir, name: &str, width: usize, height: usize, value: u8) {
    picture(folder, name, width, height, &[value]);
}

/// Where it is a jpeg, the colour is 200, 100, 0.
fn colour(folder: &TempDir, name: &str, value: [u8; 3]) {
    picture(folder, name, 3, 2, &value);
}

#[test]
fn image_folders() {
    let folder = folder();
    grey(&folder, "dog/b.png", 3, 2, 20);
    grey(&folder, "dog/a.PNG", 3, 2, 10);
    grey(&folder, "cat/deep/x.bmp", 3, 2, 30);
    grey(&folder, "unlabelled/u.png", 3, 2, 40);
    grey(&folder, "loose.png", 3, 2, 50);
    file(&folder, "cat/notes.txt", "x");
    file(&folder, ".hidden/x.png", "x");
    file(&folder, "cat/.DS_Store", "x");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let mut options = ReadOptions::default();
    let read = read_dataset(folder.path(), &options).unwrap();
    assert_eq!(
        read.row_names.as_ref().unwrap().names,
        ["cat/deep/x.bmp", "dog/a.PNG", "dog/b.png", "unlabelled/u.png"]
    );
    assert_eq!(read.skipped, ["cat/notes.txt", "empty/ (no images)", "loose.png (not in the folder of a class)"]);
    assert_eq!(images(&read.inputs).shape(), ImageShape::flat(2, 3, 1));
    let first: Vec<u8> = (0..4).map(|i| images(&read.inputs).pixels(i)[0]).collect();
    assert_eq!(first, [30, 10, 20, 40]);
    assert_eq!((read.labels.names(), read.labels.counts()), (&["cat".into(), "dog".into()][..], &[1, 2][..]));
    // One coloured image makes all coloured.
    colour(&folder, "dog/c.jpg", [200, 100, 0]);
    let read = read_dataset(folder.path(), &options).unwrap();
    assert_eq!(images(&read.inputs).shape(), ImageShape::flat(2, 3, 3));
    assert_eq!(images(&read.inputs).pixels(1)[..4], [10; 4]);
    assert!(images(&read.inputs).pixels(3)[0].abs_diff(200) < 5);
    assert_eq!(images(&read.inputs).pixels(4)[..3], [40; 3]);

    // Labels by the name of the file; those not named are unlabelled.
    let named = |text: &str| ReadOptions { labels_file: Some(file(&folder, "l.csv", text)), ..Default::default() };
    let read = read_dataset(folder.path(), &named("file,label\nloose.png,bird\ndog/b.png,\ndog/a.PNG,dog\n")).unwrap();
    assert_eq!((read.labels.names(), read.labels.len()), (&["bird".into(), "dog".into()][..], 6));
    // Further columns of the file are matched in the same way; a file that is not named has no value.
    {
        let text = "file,label,site,age\nloose.png,bird,N,50\n./dog\\b.png,,S,NA\ndog/a.PNG,dog,N,30\n";
        let options = named(text);
        let read = read_dataset(folder.path(), &options).unwrap();
        let file_of_labels = options.labels_file.as_deref().unwrap();
        let columns = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            mnar_data::read_label_columns(file_of_labels, &names, &options, &read, mnar_data::Memory::default())
        };
        let found = columns(&["site", "age"]).unwrap();
        let names = &read.row_names.as_ref().unwrap().names;
        for (row, name) in names.iter().enumerate() {
            let mnar_data::ColumnValues::Categorical(site) = &found.columns()[0].values else { unreachable!() };
            let mnar_data::ColumnValues::Numeric(age) = &found.columns()[1].values else { unreachable!() };
            let expected = match name.as_str() {
                "loose.png" => (Some("N"), 50.0),
                "dog/b.png" => (Some("S"), f32::NAN),
                "dog/a.PNG" => (Some("N"), 30.0),
                _ => (None, f32::NAN),
            };
            assert_eq!(site.code(row).map(|code| site.levels()[code].as_str()), expected.0, "{name}");
            assert_eq!(age[row].to_string(), expected.1.to_string(), "{name}");
        }
        assert!(columns(&["sites"]).unwrap_err().to_string().contains("did you mean `site`?"));
    }
    assert!(
        refused(folder.path(), &named("file,label\nnone.png,x\n")).contains("row 1 names `none.png`, which is not in")
    );
    assert!(refused(folder.path(), &named("file,label\nloose.png,x\nloose.png,x\n")).contains("as row 1 does"));
    assert!(refused(folder.path(), &named("label\nx\n")).contains("there are 1 labels for the 6 rows"));
    std::fs::remove_file(folder.path().join("l.csv")).unwrap();

    grey(&folder, "dog/d.png", 5, 4, 60);
    let refusal = refused(folder.path(), &options);
    assert_eq!(
        refusal,
        "dog/d.png is 4x5 pixels but cat/deep/x.bmp is 2x3; all images must have the same size, or be resized to one"
    );
    options.resize = Some((4, 4));
    let read = read_dataset(folder.path(), &options).unwrap();
    assert_eq!(images(&read.inputs).shape(), ImageShape::flat(4, 4, 3));
    let expected = Expected::Images { shape: ImageShape::flat(4, 4, 3), resize: true };
    let rows = read_for_prediction(folder.path(), &expected, Split::Train, None).unwrap();
    assert_eq!((rows.inputs.len(), rows.row_names.unwrap().names.last().unwrap().as_str()), (7, "unlabelled/u.png"));
    let one = folder.path().join("loose.png");
    assert_eq!(read_for_prediction(&one, &expected, Split::Train, None).unwrap().inputs.len(), 1);
    assert!(refused(&one, &options).contains("it holds one image, but a folder of images"));

    file(&folder, "dog/0.png", "this is not an image");
    let refusal = refused(folder.path(), &options);
    assert!(refusal.starts_with("dog/0.png: not a readable image: "), "{refusal}");
    assert!(refused(&folder.path().join("empty"), &options).contains("there are no images in the folder"));
    assert!(refused(folder.path(), &labelled("x")).contains("an image folder has no column `x`"));
}

#[test]
fn damaged_images_never_panic() {
    let folder = folder();
    for name in ["a/x.png", "a/x.jpg", "a/x.bmp"] {
        colour(&folder, name, [200, 100, 0]);
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            for bytes in [&bytes[..], &whole[..at]] {
                std::fs::write(&path, bytes).unwrap();
                if let Err(error) = read_dataset(folder.path(), &ReadOptions::default()) {
                    assert!(error.to_string().contains("a/x."), "{error}");
                }
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn image_folders_in_parts() {
    let folder = folder();
    grey(&folder, "train/a/1.png", 1, 1, 1);
    grey(&folder, "train/b/1.png", 1, 1, 2);
    grey(&folder, "test/a/1.png", 1, 1, 3);
    let read = |split| read_dataset(folder.path(), &ReadOptions { split, ..Default::default() });
    assert_eq!(read(Split::Train).unwrap().row_names.unwrap().names, ["train/a/1.png", "train/b/1.png"]);
    assert_eq!(read(Split::All).unwrap().labels.counts(), [2, 1]);
    assert_eq!(images(&read(Split::Test).unwrap().inputs).all(), [3]);
    let error = read(Split::Validation).unwrap_err().to_string();
    assert!(error.contains("there is no validation part (there is test/, train/)"), "{error}");
}

#[test]
fn samples_are_data_sets() {
    let digits = samples::digits_as_images();
    assert_eq!((digits.inputs.len(), images(&digits.inputs).shape()), (1797, ImageShape::flat(8, 8, 1)));
    assert_eq!(images(&digits.inputs).all().iter().max(), Some(&240));
    let tumours = samples::breast_cancer().to_dataset();
    assert_eq!(table(&tumours).columns().len(), 30);
    assert_eq!(tumours.labels.counts(), [212, 357]);
}

#[test]
fn real_archives() {
    for (name, shape, n, counts) in [
        (
            "dermamnist/dermamnist_recon28.npz",
            ImageShape::flat(28, 28, 3),
            [7007, 1003, 2005],
            &[228, 359, 769, 80, 779, 4693, 99][..],
        ),
        (
            "adrenalmnist3d/adrenalmnist3d.npz",
            ImageShape { depth: 28, height: 28, width: 28, channels: 1 },
            [1188, 98, 298],
            &[929, 259],
        ),
        ("lidc/lidc2d_28.npz", ImageShape::flat(28, 28, 1), [1016, 152, 320], &[612, 404]),
    ] {
        let Some(path) = data(name) else { continue };
        for (split, n) in [Split::Train, Split::Validation, Split::Test].into_iter().zip(n) {
            let read = read_dataset(&path, &ReadOptions { split, ..Default::default() }).unwrap();
            assert_eq!((images(&read.inputs).shape(), read.inputs.len()), (shape, n), "{name}");
            if split == Split::Train {
                assert_eq!(read.labels.counts(), counts, "{name}");
            }
        }
    }
}

#[test]
fn real_mnist() {
    let Some(path) = data("mnist") else { return };
    let read = read_dataset(&path, &ReadOptions { split: Split::All, ..Default::default() }).unwrap();
    assert_eq!((read.inputs.len(), images(&read.inputs).shape()), (70_000, ImageShape::flat(28, 28, 1)));
    assert_eq!(read.labels.names().len(), 10);
}

#[test]
fn real_tables() {
    if let Some(path) = data("optdigits/optdigits.tra") {
        // Without a header; the name says nothing, and so it is CSV.
        let folder = folder();
        let header: Vec<String> = (0..64).map(|i| format!("p{i}")).chain(["digit".into()]).collect();
        let text = format!("{}\n{}", header.join(","), std::fs::read_to_string(path).unwrap());
        let read = read_dataset(&file(&folder, "optdigits.csv", text), &labelled("digit")).unwrap();
        assert_eq!((read.inputs.len(), read.labels.names().len()), (3823, 10));
        let encoder = TableEncoder::fit(table(&read)).unwrap();
        // Two pixels are never touched.
        assert_eq!(encoder.dropped(), ["p0", "p39"]);
        assert_eq!(encoder.encode(table(&read)).unwrap().dim(), (3823, 62));
    }
    if let Some(path) = data("lidc/lidc_annotations.csv") {
        let mut options = labelled("malignancy");
        options.ignore = vec!["patient_id".into()];
        let read = read_dataset(&path, &options).unwrap();
        assert_eq!((read.inputs.len(), read.labels.names()), (6859, &["1", "2", "3", "4", "5"].map(String::from)[..]));
    }
}
