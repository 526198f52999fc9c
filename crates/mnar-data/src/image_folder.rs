//! A folder of images: one folder per class, and `unlabelled/` for the rest.

use crate::dataset::Split;
use crate::error::{DataError, shorten, show};
use crate::format::open_regular;
use crate::guard::{Memory, fenced};
use crate::images::{ImageShape, Images};
use crate::picture::{LARGEST, Picture, TooLarge};
use rayon::prelude::*;
use std::io::BufReader;
use std::path::Path;

/// The images below a folder, sorted by name, and what else is there.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<ImageFile>,
    /// Files that are not images, and folders without any.
    pub(crate) skipped: Vec<String>,
}

/// An image below a folder.
pub(crate) struct ImageFile {
    /// The path below the folder, with `/` on every system.
    pub(crate) name: String,
    pub(crate) place: ClassPlace,
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClassPlace {
    /// In the folder of a class.
    Class(String),
    /// In `unlabelled/`.
    Unlabelled,
    /// Outside of these folders.
    Loose,
}

/// Whether this is the name of an image in a known format.
pub(crate) fn names_image(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["png", "jpg", "jpeg", "bmp"].iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// Lists the images of the requested parts: `train/`, `val/` and `test/`, if the folders of classes are inside these.
pub(crate) fn list(root: &Path, split: Split) -> Result<Listing, DataError> {
    let parts: Vec<(Split, String)> = entries(root)?
        .into_iter()
        .filter(|entry| entry.is_folder)
        .filter_map(|entry| Some((split_of(&entry.name)?, entry.name)))
        .filter(|(_, name)| entries(&root.join(name)).is_ok_and(|below| below.iter().any(|entry| entry.is_folder)))
        .collect();
    let mut listing = Listing::default();
    if parts.is_empty() {
        // A folder without parts counts as the requested part.
        walk(root, "", &mut Vec::new(), &mut listing)?;
        return Ok(listing);
    }
    let wanted: Vec<&String> =
        parts.iter().filter(|(part, _)| split == Split::All || *part == split).map(|(_, name)| name).collect();
    if wanted.is_empty() {
        let names: Vec<String> = parts.iter().map(|(_, name)| format!("{name}/")).collect();
        let has = format!("there is {}", names.join(", "));
        return Err(DataError::NoSplit { path: show(root), split: split.name(), has });
    }
    for part in wanted {
        walk(&root.join(part), &format!("{part}/"), &mut Vec::new(), &mut listing)?;
    }
    Ok(listing)
}

fn split_of(name: &str) -> Option<Split> {
    match name.to_ascii_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "val" | "valid" | "validation" => Some(Split::Validation),
        "test" | "testing" => Some(Split::Test),
        _ => None,
    }
}

struct Entry {
    name: String,
    is_folder: bool,
    /// Neither a file nor a folder: opening a pipe would wait for someone to write to it.
    is_special: bool,
}

/// The entries of a folder, sorted, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<Entry>, DataError> {
    let failed = |error| DataError::io(&show(folder), "read", error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links are followed, and one that leads nowhere is a file that will not decode.
        let metadata = entry.path().metadata();
        let is_folder = metadata.as_ref().is_ok_and(|metadata| metadata.is_dir());
        let is_special = metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        match entry.file_name().into_string() {
            Ok(name) if name.starts_with('.') => {}
            Ok(name) => found.push(Entry { name, is_folder, is_special }),
            Err(name) => {
                let path = show(&folder.join(name));
                return Err(DataError::NotUtf8 { path, place: "the name of the file".into() });
            }
        }
    }
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Anything deeper is a link that leads back to itself.
const DEEPEST: usize = 24;

/// `before` is the name of the folder with its `/`, `above` the folders between the classes' parent and it.
fn walk(folder: &Path, before: &str, above: &mut Vec<String>, out: &mut Listing) -> Result<(), DataError> {
    let images_before = out.files.len();
    for Entry { name, is_folder, is_special } in entries(folder)? {
        let full = format!("{before}{name}");
        if is_folder {
            if above.len() == DEEPEST {
                out.skipped.push(format!("{full}/ (too deep)"));
                continue;
            }
            above.push(name.clone());
            walk(&folder.join(&name), &format!("{full}/"), above, out)?;
            above.pop();
        } else if is_special {
            out.skipped.push(format!("{full} (a pipe or a device)"));
        } else if names_image(&name) {
            let place = match above.first() {
                None => ClassPlace::Loose,
                Some(class) if ["unlabelled", "unlabeled"].iter().any(|no| no.eq_ignore_ascii_case(class)) => {
                    ClassPlace::Unlabelled
                }
                Some(class) => ClassPlace::Class(class.clone()),
            };
            out.files.push(ImageFile { name: full, place });
        } else {
            out.skipped.push(full);
        }
    }
    if above.len() == 1 && out.files.len() == images_before {
        out.skipped.push(format!("{before} (no images)"));
    }
    Ok(())
}

/// Decodes images of one size: grey if all are grey, else red, green and blue; an alpha channel is dropped. `resize` is
/// the height and width that all are resized to.
pub(crate) fn decode(
    root: &Path,
    names: &[String],
    resize: Option<(usize, usize)>,
    memory: Memory,
) -> Result<Images, DataError> {
    let decoder = Decoder { root, resize, memory: memory.resolved() };
    let mut shape: Option<ImageShape> = None;
    let mut pixels: Vec<u8> = Vec::new();
    let (mut done, mut at_once) = (0, 1);
    while done < names.len() {
        let files = &names[done..names.len().min(done + at_once)];
        for (name, decoded) in files.iter().zip(decoder.decode(files)) {
            let (Picture { height, width, grey, bytes }, unpacked) = decoded?;
            let known = *shape.get_or_insert_with(|| ImageShape::flat(height, width, if grey { 1 } else { 3 }));
            if done == 0 {
                // The first image shows what all take together, and how many of them fit into memory beside that.
                at_once = decoder.at_once(names.len(), known, unpacked)?;
                pixels.reserve(names.len().saturating_mul(bytes.len()).min(1 << 28));
            }
            if (known.height, known.width) != (height, width) {
                return Err(DataError::ImageSizes {
                    first: show(&root.join(&names[0])),
                    first_size: format!("{}x{}", known.height, known.width),
                    second: show(&root.join(name)),
                    second_size: format!("{height}x{width}"),
                });
            }
            match (known.channels, grey) {
                (1, true) | (3, false) => pixels.extend_from_slice(&bytes),
                (_, true) => pixels.extend(bytes.iter().flat_map(|&grey| [grey; 3])),
                (_, false) => {
                    // The first coloured image: those before it become coloured too.
                    decoder.check_all(names.len(), ImageShape { channels: 3, ..known }, unpacked)?;
                    pixels = Images::new(known, pixels, &show(root))?.into_colour().into_pixels();
                    shape = Some(ImageShape { channels: 3, ..known });
                    pixels.extend_from_slice(&bytes);
                }
            }
            done += 1;
        }
    }
    let shape = shape.ok_or_else(|| DataError::NoImages { path: show(root), advice: ADVICE })?;
    Images::new(shape, pixels, &show(root))
}

pub(crate) const ADVICE: &str =
    "png, jpeg and bmp images are read, from one folder per class and a folder `unlabelled` for the rest";

/// Decodes the files below a folder.
struct Decoder<'a> {
    root: &'a Path,
    resize: Option<(usize, usize)>,
    memory: Memory,
}

/// Bytes that a decoder may need, per byte of the image.
const WORKSPACE: u64 = 4;

/// An image, and the bytes that it took before it was resized.
type Decoded = Result<(Picture, usize), DataError>;

impl Decoder<'_> {
    /// Bytes that all images that are decoded at a time may take: decoders and resizing need several times as many.
    fn workspace(&self) -> usize {
        usize::try_from(self.memory.limit() / WORKSPACE).unwrap_or(usize::MAX)
    }

    /// How many images to decode at a time: enough for all cores, few enough to be small beside the images that are kept.
    fn at_once(&self, images: usize, shape: ImageShape, unpacked: usize) -> Result<usize, DataError> {
        const AT_ONCE: usize = 256;
        self.check_all(images, shape, unpacked)?;
        Ok((self.workspace() / unpacked.saturating_mul(2).max(1)).clamp(1, AT_ONCE))
    }

    fn check_all(&self, images: usize, shape: ImageShape, unpacked: usize) -> Result<(), DataError> {
        let all = (images as u64).saturating_mul(shape.len() as u64);
        self.memory.check(all.saturating_add(2 * unpacked as u64), "the images", &show(self.root))
    }

    /// Decodes files side by side; what is larger than its share of the memory is decoded when nothing else is. In order,
    /// so that of several bad images the first is named, whichever is decoded first.
    fn decode<'a>(&'a self, files: &'a [String]) -> impl Iterator<Item = Decoded> + 'a {
        let share = self.workspace() / files.len().max(1);
        let decoded: Vec<Decoded> = files.par_iter().map(|name| self.decode_file(name, share)).collect();
        files.iter().zip(decoded).map(move |(name, decoded)| match decoded {
            Err(DataError::Memory { .. }) if files.len() > 1 => self.decode_file(name, self.workspace()),
            other => other,
        })
    }

    fn decode_file(&self, name: &str, most: usize) -> Decoded {
        let path = self.root.join(name);
        let bad = |cause: String| DataError::Image { path: show(&path), source: cause.into() };
        fenced(bad, || {
            let file = open_regular(&path, "an image is a file")?;
            let most = most.min(LARGEST);
            let decoded = Picture::decode(BufReader::new(file), most).and_then(|picture| {
                let unpacked = picture.bytes.len();
                let picture = match self.resize {
                    Some((height, width)) => picture.resized(height, width, most)?,
                    None => picture,
                };
                Ok((picture, unpacked))
            });
            decoded.map_err(|error| match error.downcast_ref::<TooLarge>() {
                // More memory would help, unless the image is larger than any may be.
                Some(too_large) if too_large.bytes <= LARGEST as u64 => DataError::Memory {
                    path: show(&path),
                    what: "its pixels, while they are decoded,",
                    needed: too_large.bytes.saturating_mul(WORKSPACE),
                    limit: self.memory.limit(),
                },
                Some(too_large) => bad(too_large.to_string()),
                None => bad(shorten(&error.to_string(), 200)),
            })
        })
    }
}
