//! Properties of whole batches.

use super::*;
use mnar_data::ImageShape;
use proptest::prelude::*;
use rand::RngExt;
use std::ops::Range;

const DIGITS: ImageShape = ImageShape { depth: 1, height: 28, width: 28, channels: 1 };
const COLOUR: ImageShape = ImageShape { depth: 1, height: 32, width: 32, channels: 3 };
const VOLUME: ImageShape = ImageShape { depth: 9, height: 10, width: 10, channels: 1 };

/// Images of noise.
fn batch(n: usize, shape: ImageShape) -> Vec<f32> {
    let mut draws = batch::BatchKey { seed: 77, step: 0, kind: batch::Kind::Weak }.draws(usize::MAX);
    (0..n * shape.len()).map(|_| draws.random()).collect()
}

fn strong(images: &[f32], shape: ImageShape, seed: u64, step: u64) -> Vec<f32> {
    let mut images = images.to_vec();
    Augment::for_shape(shape).orientation_free().strong.apply(&mut images, shape, seed, step);
    images
}

#[test]
fn the_number_of_threads_does_not_matter() {
    for shape in [DIGITS, COLOUR, VOLUME] {
        let images = batch(70, shape);
        let with_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a small pool");
            pool.install(|| {
                let mut weak = images.clone();
                Augment::for_shape(shape).orientation_free().weak.apply(&mut weak, shape, 5, 6);
                (weak, strong(&images, shape, 5, 6))
            })
        };
        assert!(with_threads(1) == with_threads(2));
    }
}

#[test]
fn an_image_does_not_depend_on_the_others() {
    let images = batch(20, COLOUR);
    let len = COLOUR.len();
    assert!(strong(&images, COLOUR, 5, 6)[..3 * len] == strong(&images[..3 * len], COLOUR, 5, 6));
}

#[test]
fn seed_step_position_and_view_all_matter() {
    let one = batch(1, COLOUR);
    let two = [one.clone(), one.clone()].concat();
    let views = strong(&two, COLOUR, 5, 6);
    let (first, second) = views.split_at(COLOUR.len());
    assert!(first != second, "position");
    assert!(first != strong(&one, COLOUR, 5, 7), "step");
    assert!(first != strong(&one, COLOUR, 6, 6), "seed");
    let augment = Augment::for_shape(COLOUR).orientation_free();
    let (mut weak, mut weak_in_strong) = (batch(8, COLOUR), batch(8, COLOUR));
    augment.weak.apply(&mut weak, COLOUR, 5, 6);
    Strong { operations: 0, cutout: 0.0, ..augment.strong }.apply(&mut weak_in_strong, COLOUR, 5, 6);
    assert!(weak != weak_in_strong, "view");
}

/// Pins the layout of the key and what the generator makes of it: another layout would change every seeded run.
#[test]
fn a_key_keeps_its_draws() {
    let draws = |seed, step, position| {
        let key = batch::BatchKey { seed, step, kind: batch::Kind::Strong };
        key.draws(position).random_range(0..1_000_000_u32)
    };
    assert_eq!([draws(0, 0, 0), draws(1, 0, 0), draws(0, 1, 0), draws(0, 0, 1)], [866_790, 334_482, 479_853, 467_533]);
}

#[test]
fn every_weak_setting_is_seen_in_some_image() {
    let shape = ImageShape { depth: 2, height: 8, width: 8, channels: 1 };
    let settings = [
        Weak { flip_horizontal: true, ..Weak::default() },
        Weak { flip_vertical: true, ..Weak::default() },
        Weak { flip_depth: true, ..Weak::default() },
        Weak { quarter_turns: true, ..Weak::default() },
        Weak { shift: 1, ..Weak::default() },
    ];
    let changed = |weak: &Weak| {
        let original = batch(400, shape);
        let mut images = original.clone();
        weak.apply(&mut images, shape, 1, 1);
        images.chunks(shape.len()).zip(original.chunks(shape.len())).filter(|(a, b)| a != b).count()
    };
    assert_eq!(changed(&Weak::default()), 0);
    // Half the images; three quarters and eight ninths of them where one of four turns or nine shifts leaves them
    // unchanged.
    let expected: [Range<usize>; 5] = [160..240, 160..240, 160..240, 265..335, 330..380];
    for (weak, expected) in settings.iter().zip(expected) {
        assert!(expected.contains(&changed(weak)), "{weak:?} changed {} of 400", changed(weak));
    }
}

#[test]
fn weak_views_keep_the_mean_intensity() {
    for shape in [DIGITS, COLOUR, VOLUME] {
        // Half the frame is bright, so that a shift could change the mean a lot.
        let images: Vec<f32> = (0..64 * shape.len()).map(|i| f32::from(u8::from(i / shape.channels % 4 < 2))).collect();
        let mut weak = images.clone();
        Augment::for_shape(shape).orientation_free().weak.apply(&mut weak, shape, 2, 3);
        let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
        assert!((mean(&weak) - mean(&images)).abs() < 0.01, "{} became {}", mean(&images), mean(&weak));
    }
}

#[test]
fn a_short_stack_of_slices_moves_by_few_of_them() {
    // Slice z holds the value z / 4, so a shift by one slice changes values by 1/4.
    let shape = ImageShape { depth: 5, height: 16, width: 16, channels: 1 };
    let original: Vec<f32> = (0..200 * shape.len()).map(|i| (i / 256 % 5) as f32 / 4.0).collect();
    let mut images = original.clone();
    Weak { shift: 2, ..Weak::default() }.apply(&mut images, shape, 0, 0);
    let worst = images.iter().zip(&original).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert_eq!(worst, 0.25);
}

#[test]
fn presets_fit_the_kind_of_image() {
    let digits = Augment::for_shape(DIGITS);
    assert_eq!(digits.weak, Weak { shift: 3, ..Weak::default() });
    assert!(!digits.strong.pool.contains(&Operation::Saturation));
    let colour = Augment::for_shape(COLOUR);
    assert_eq!(colour.weak, Weak { flip_horizontal: true, shift: 4, ..Weak::default() });
    assert_eq!(colour.strong.pool, Operation::COLOUR);
    let four = Augment::for_shape(ImageShape { channels: 4, ..COLOUR });
    assert_eq!(four.strong.pool.len(), Operation::COLOUR.len() - 1);
    let volume = Augment::for_shape(VOLUME);
    assert!(volume.weak.flip_horizontal && volume.weak.flip_vertical && volume.weak.flip_depth);
    let skin = Augment::for_shape(COLOUR).orientation_free();
    assert!(skin.weak.flip_vertical && skin.weak.quarter_turns && !skin.weak.flip_depth);
    assert_eq!(skin.strong.weak, skin.weak);
    let medical = Augment::medical(COLOUR);
    assert_eq!(medical.weak, skin.weak);
    assert!(!medical.strong.pool.contains(&Operation::Solarize) && medical.strong.cutout < skin.strong.cutout);
    for augment in [digits, colour, four, volume, skin, medical] {
        assert_eq!(augment.check(), Ok(()));
    }
}

#[test]
fn settings_survive_json_and_misspelt_ones_do_not() {
    let augment = Augment::medical(VOLUME);
    let json = serde_json::to_string(&augment).expect("plain settings");
    assert_eq!(serde_json::from_str::<Augment>(&json).expect("what was just written"), augment);
    let error = serde_json::from_str::<Weak>(r#"{"flip_horizontl": true}"#).expect_err("a misspelt name");
    assert!(error.to_string().contains("flip_horizontl"), "{error}");
}

#[test]
fn settings_out_of_range_are_found() {
    let strong = Augment::for_shape(COLOUR).strong;
    assert_eq!(strong.check(), Ok(()));
    let error = Strong { magnitude: 1.5, ..strong.clone() }.check();
    assert_eq!(error, Err(AugmentError::OutsideUnitRange { name: "magnitude", value: 1.5 }));
    assert!(Strong { cutout: f32::NAN, ..strong.clone() }.check().is_err());
    let error = Strong { pool: vec![], ..strong }.check();
    assert_eq!(error, Err(AugmentError::EmptyPool { operations: 2 }));
}

#[test]
fn an_empty_batch_is_fine() {
    Augment::for_shape(COLOUR).strong.apply(&mut [], COLOUR, 0, 0);
}

#[test]
#[should_panic(expected = "not a whole number of images")]
fn a_torn_batch_is_not() {
    Augment::for_shape(COLOUR).weak.apply(&mut [0.0; 100], COLOUR, 0, 0);
}

fn shapes() -> impl Strategy<Value = ImageShape> {
    let channels = prop::sample::select(vec![1, 2, 3, 4]);
    (prop::sample::select(vec![1, 1, 2, 5]), 1..12_usize, 1..12_usize, channels)
        .prop_map(|(depth, height, width, channels)| ImageShape { depth, height, width, channels })
}

fn every_operation() -> Vec<Operation> {
    [&Operation::COLOUR[..], &Operation::VOLUME[..]].concat()
}

proptest! {
    #[test]
    fn values_stay_in_the_unit_range(
        shape in shapes(),
        (seed, step) in (any::<u64>(), any::<u64>()),
        (magnitude, cutout) in (0.0..=1.0_f32, 0.0..=1.0_f32),
        shift in prop::sample::select(vec![0, 1, 3, 40, usize::MAX]),
        (operations, binary) in (0..6_usize, any::<bool>()),
    ) {
        let mut images = batch(12, shape);
        if binary {
            images.iter_mut().for_each(|value| *value = value.round());
        }
        let weak = Weak { shift, ..Augment::for_shape(shape).orientation_free().weak };
        let strong = Strong { weak: weak.clone(), operations, pool: every_operation(), magnitude, cutout };
        let mut weak_view = images.clone();
        weak.apply(&mut weak_view, shape, seed, step);
        strong.apply(&mut images, shape, seed, step);
        prop_assert!(weak_view.iter().chain(&images).all(|value| (0.0..=1.0).contains(value)));
    }
}
