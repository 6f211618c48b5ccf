"""Examples of `tf.image`."""

from __future__ import annotations

PIXELS = "tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20, tf.uint8)"
JPEG = "tf.io.encode_jpeg(tf.fill([8, 16, 3], tf.constant(77, tf.uint8)))"
BOXES = "tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [1, 0, 0, 0.4]])"
SCORES = "tf.constant([0.9, 0.8, 0.7, 0.95])"

EXAMPLES = f"""
adjust_brightness: p(2, 2, 1), 0.1 | tf.constant([[[0, 100, 250]]], tf.uint8), 0.1 |
    tf.constant([[[0, 100, 250]]], tf.uint8), -0.5
adjust_contrast: p(2, 2, 2), 2.0 | p(2, 2), 2.0 |
    tf.constant([[[0], [100]], [[60], [250]]], tf.uint8), 0.5
adjust_gamma: p(2, 2, 1), 2.0, 3 | tf.ones([2, 2, 1]) |
    tf.constant([[[0, 100, 250]]], tf.uint8), 0.5
adjust_hue: p(1, 1, 3), 0.1 | tf.constant([[[0.1, 0.5, 0.3]]]), -0.4 |
    tf.constant([[[0, 100, 250]]], tf.uint8), 0.1
adjust_jpeg_quality: tf.zeros([8, 8, 3]), 75 | tf.zeros([8, 8, 1], tf.uint8), 90 |
    tf.ones([8, 8, 3]), 20
adjust_saturation: p(1, 1, 3), 0.5 | tf.constant([[[0.1, 0.5, 0.3]]]), 2.0 |
    tf.constant([[[0, 100, 250]]], tf.uint8), 0.5
central_crop: r(4, 5, 1), 0.5 | i(1, 5, 3, 1), 0.4 | i(2, 2, 1), 1.0
combined_non_max_suppression: {BOXES}[None, :, None], tf.stack([{SCORES}, 1 - {SCORES}],
    -1)[None], 2, 3 |
    {BOXES}[None, :, None], tf.stack([{SCORES}, 1 - {SCORES}], -1)[None], 2, 10, 0.5, 0.25, True,
    False | {BOXES}[None, :, None], {SCORES}[None, :, None], 1, 3
convert_image_dtype: p(2, 2, 1), tf.uint8, saturate=True |
    tf.constant([[[0], [51], [255]]], tf.uint8), tf.float32 |
    tf.constant([256, 65535], tf.uint16), tf.uint8 | tf.constant([3], tf.uint8), tf.int32
crop_and_resize: r(2, 4, 5, 1), [[0.0, 0.1, 0.9, 1.0], [0.2, 0.5, 0.1, 1.2]], [1, 0], [2, 3] |
    r(1, 4, 5, 1), [[0.0, 0.1, 0.9, 1.0]], [0], [2, 3], 'nearest' |
    r(1, 3, 3, 2), [[-0.5, 0.0, 1.0, 1.0]], [0], [3, 1], extrapolation_value=7.0 |
    r(1, 3, 3, 1), [[0.0, 0.0, 1.0, 1.0]], [1], [2, 2]
crop_to_bounding_box: r(3, 4, 1), 1, 0, 2, 3 | i(2, 3, 2, 1), 0, 1, 1, 1 | i(2, 2, 1), 0, 0, 2, 2
decode_and_crop_jpeg: {JPEG}, [1, 2, 2, 1] | {JPEG}, [0, 0, 1, 1], channels=1 |
    {JPEG}, [1, 2, 20, 1]
decode_bmp: b'BM' | tf.io.encode_png({PIXELS}) | ['a', 'b']
decode_gif: tf.io.encode_png({PIXELS}) | b'GIF89a' | b''
decode_image: tf.io.encode_png({PIXELS}) | tf.io.encode_png({PIXELS}), 1, tf.float32 | b'GIF89a'
decode_jpeg: tf.io.encode_png({PIXELS}) | tf.io.encode_png({PIXELS}), channels=3 | b'abc'
decode_png: tf.io.encode_png({PIXELS}) | tf.io.encode_png({PIXELS}), channels=1 |
    tf.io.encode_png({PIXELS}), 4 | b'abc'
draw_bounding_boxes: tf.zeros([1, 4, 4, 3]), [[[0.0, 0.0, 0.7, 0.7], [0.4, -0.5, 1.5, 0.9]]], None |
    tf.ones([1, 3, 3, 1]), [[[0.1, 0.1, 0.9, 0.6]]], [[5.0]] |
    tf.ones([1, 3, 3, 1]), [[[0.9, 0.1, 0.1, 0.6]]], None
encode_jpeg: = image.extract_jpeg_shape(tf.image.encode_jpeg({PIXELS})) | tf.zeros([2, 2, 3]) |
    {PIXELS}, quality=101
encode_png: = image.decode_png(tf.image.encode_png({PIXELS}, compression=3)) | tf.zeros([2, 2, 3]) |
    tf.zeros([2, 2], tf.uint8)
extract_jpeg_shape: {JPEG} | {JPEG}, output_type=tf.int64 | b'a'
extract_patches: r(1, 4, 5, 2), [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1], 'VALID' |
    i(1, 4, 3, 1), [1, 2, 2, 1], [1, 1, 2, 1], [1, 2, 1, 1], 'SAME' |
    r(4, 4, 1), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME'
flip_left_right: r(2, 3, 1) | i(2, 1, 2, 1) | b(1, 2, 1)
flip_up_down: r(2, 3, 1) | i(2, 2, 1, 1) | b(2, 1, 1)
grayscale_to_rgb: p(2, 2, 1) | i(1, 2, 1, 1) | i(0, 2, 1)
hsv_to_rgb: tf.constant([[[0.1, 0.5, 0.3]]]) | tf.zeros([1, 1, 3]) | tf.constant([[0.9, 1.0, 2.0]])
image_gradients: r(1, 3, 4, 2) | i(2, 1, 2, 1) | r(3, 3, 1)
is_jpeg: b'abc' | {JPEG} | tf.io.encode_png({PIXELS})
non_max_suppression: {BOXES}, {SCORES}, 3 | {BOXES}, {SCORES}, 5, 0.95, 0.75 |
    tf.zeros([0, 4]), tf.zeros([0]), 2 | {BOXES}, {SCORES}, 3, iou_threshold=2.0
non_max_suppression_padded: {BOXES}, {SCORES}, 5, pad_to_max_output_size=True |
    {BOXES}[None], {SCORES}[None], 2, 0.95, pad_to_max_output_size=True | {BOXES}, {SCORES}, 3 |
    {BOXES}[None], {SCORES}[None], 2
non_max_suppression_with_scores: {BOXES}, {SCORES}, 4, soft_nms_sigma=0.5, iou_threshold=1.0 |
    {BOXES}, {SCORES}, 4, 0.5, 0.1, 0.5 | {BOXES}, {SCORES}, 2
pad_to_bounding_box: r(2, 1, 1), 1, 0, 4, 2 | i(1, 1, 2, 1), 0, 1, 2, 4 | i(2, 2, 1), 0, 0, 2, 2
per_image_standardization: p(2, 2, 1) | i(2, 2, 1, 3) | tf.zeros([2, 2, 1])
psnr: p(2, 2, 1), p(2, 2, 1), 1.0 | tf.ones([2, 2, 1]), tf.ones([2, 2, 1]), 1.0 |
    *[tf.constant([[[n]]], tf.uint8) for n in (9, 12)], max_val=255
random_brightness: p(2, 2, 1), 1e-9, seed=1 | tf.ones([2, 2, 1]), 1e-9, seed=2 |
    tf.ones([2, 2, 1]), -1.0, seed=3
random_contrast: tf.ones([2, 2, 1]), 0.5, 2.0, seed=1 | tf.ones([1, 2, 2, 1]), 0.5, 2.0, seed=2 |
    tf.ones([1, 2, 2, 1]), 2.0, 1.0, seed=3
random_crop: tf.ones([3, 3, 1]), [2, 2, 1], seed=1 | tf.ones([3, 3, 1]), [3, 3, 1], seed=2 |
    tf.ones([2]), [3], seed=3
random_flip_left_right: tf.ones([2, 3, 1]), seed=1 | tf.ones([2, 1, 1]), seed=2 |
    tf.ones([1, 2, 3, 1]), seed=3
random_flip_up_down: tf.ones([2, 3, 1]), seed=1 | tf.ones([1, 2, 1]), seed=2 |
    tf.ones([1, 2, 3, 1]), seed=3
random_hue: tf.ones([1, 1, 3]), 0.5, seed=1 | tf.zeros([1, 1, 3]), 0.1, seed=2 |
    tf.ones([1, 1, 1, 3]), 0.6, seed=3
random_jpeg_quality: tf.zeros([8, 8, 3]), 99, 100, seed=1 |
    tf.zeros([8, 8, 3], tf.uint8), 99, 100, seed=2 | tf.zeros([8, 8, 3]), 80, 20, seed=3
random_saturation: tf.ones([1, 1, 3]), 0.5, 2.0, seed=1 | tf.zeros([1, 1, 3]), 0.5, 2.0, seed=2 |
    tf.ones([1, 1, 1, 3]), -1.0, 1.0, seed=3
resize: r(2, 3, 1), [4, 5] | i(1, 4, 4, 1), [2, 3], method='nearest' | i(4, 5, 1), [2, 3] |
    i(2, 3, 1), [4, 4], 'bicubic' | i(5, 6, 1), [2, 3], antialias=True |
    i(2, 4, 1), [4, 4], preserve_aspect_ratio=True |
    i(4, 4, 1), [2, 7], 'lanczos3', antialias=True | r(2, 2, 1), [0, 3] |
    r(5, 4, 1), [3, 6], 'area' | r(5, 4, 1), [3, 6], 'gaussian' |
    r(6, 4, 1), [3, 6], 'gaussian', antialias=True |
    r(5, 4, 1), [3, 6], 'mitchellcubic', antialias=True | r(1, 3, 4, 1), [2, 6], 'mitchellcubic' |
    r(7, 3, 1), [3, 3], 'lanczos5', antialias=True | r(7, 3, 1), [3, 3], 'bicubic', antialias=True |
    r(2, 2, 1), [1, 1], 'box'
resize_with_crop_or_pad: r(2, 5, 1), 5, 2 | i(1, 3, 3, 1), 2, 4 | i(2, 2, 1), 2, 2
resize_with_pad: r(2, 4, 1), 4, 4 | i(1, 3, 2, 1), 4, 4 | r(3, 5, 1), 4, 2, 'nearest' |
    r(3, 5, 1), 0, 2
rgb_to_grayscale: p(2, 2, 3) | p(1, 2, 1, 3) | tf.constant([[[0, 100, 250]]], tf.uint8) | p(2, 2)
rgb_to_hsv: p(1, 1, 3) | tf.zeros([1, 1, 3]) | tf.constant([[[0.1, 0.5, 0.3]]])
rgb_to_yuv: p(1, 2, 3) | tf.constant([[[0.1, 0.5, 0.3]]]) | p(2, 2)
rot90: r(2, 3, 1) | i(1, 2, 3, 1), k=3 | i(2, 3, 1), 6
sample_distorted_bounding_box: [4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], 1, min_object_covered=1.0,
    area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0) | [4, 4, 3], tf.zeros([1, 0, 4]) |
    [4, 4, 3], tf.zeros([1, 0, 4]), 3, use_image_if_no_bounding_boxes=True,
    min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0)
sobel_edges: r(1, 3, 4, 2) | tf.ones([1, 2, 2, 1]) | r(3, 3, 1)
ssim: p(12, 13, 2), p(12, 13, 2), 1.0 | p(2, 5, 5, 1), p(2, 5, 5, 1), 2.0, filter_size=4 |
    *[tf.ones([5, 5, 1], tf.uint8) * n for n in (9, 12)], max_val=255, filter_size=3 |
    p(4, 4, 1), p(4, 4, 1), 1.0, filter_size=3, return_index_map=True |
    p(4, 4, 1), p(4, 4, 1), 1.0 | p(4, 4, 1), p(4, 5, 1), 1.0
ssim_multiscale: p(9, 8, 1), tf.ones([9, 8, 1]), 1.0, (0.5, 0.5), filter_size=3 |
    p(2, 7, 7, 1), tf.ones([2, 7, 7, 1]), 2.0, (0.2, 0.3, 0.5), filter_size=2 |
    p(4, 4, 1), p(4, 4, 1), 1.0
stateless_random_brightness: p(2, 2, 1), 1e-9, seed=(1, 5) | tf.ones([2, 2, 1]), 1e-9, seed=(2, 5) |
    tf.ones([2, 2, 1]), -1.0, seed=(3, 5)
stateless_random_contrast: tf.ones([2, 2, 1]), 0.5, 2.0, seed=(1, 5) |
    tf.ones([1, 2, 2, 1]), 0.5, 2.0, seed=(2, 5) | tf.ones([1, 2, 2, 1]), 2.0, 1.0, seed=(3, 5)
stateless_random_crop: tf.ones([3, 3, 1]), [2, 2, 1], seed=(1, 5) |
    tf.ones([3, 3, 1]), [3, 3, 1], seed=(2, 5) | tf.ones([2]), [3], seed=(3, 5)
stateless_random_flip_left_right: tf.ones([2, 3, 1]), seed=(1, 5) |
    tf.ones([2, 1, 1]), seed=(2, 5) | tf.ones([1, 2, 3, 1]), seed=(3, 5)
stateless_random_flip_up_down: tf.ones([2, 3, 1]), seed=(1, 5) | tf.ones([1, 2, 1]), seed=(2, 5) |
    tf.ones([1, 2, 3, 1]), seed=(3, 5)
stateless_random_hue: tf.ones([1, 1, 3]), 0.5, seed=(1, 5) | tf.zeros([1, 1, 3]), 0.1, seed=(2, 5) |
    tf.ones([1, 1, 1, 3]), 0.6, seed=(3, 5)
stateless_random_jpeg_quality: tf.zeros([8, 8, 3]), 99, 100, seed=(1, 5) |
    tf.zeros([8, 8, 3], tf.uint8), 99, 100, seed=(2, 5) | tf.zeros([8, 8, 3]), 80, 20, seed=(3, 5)
stateless_random_saturation: tf.ones([1, 1, 3]), 0.5, 2.0, seed=(1, 5) |
    tf.zeros([1, 1, 3]), 0.5, 2.0, seed=(2, 5) | tf.ones([1, 1, 1, 3]), -1.0, 1.0, seed=(3, 5)
stateless_sample_distorted_bounding_box: [4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], (1, 2),
    min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0) |
    [4, 4, 3], tf.zeros([1, 0, 4]), (1, 2) |
    [4, 4, 3], tf.zeros([1, 0, 4]), (3, 4), use_image_if_no_bounding_boxes=True,
    min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0)
total_variation: p(2, 3, 2) | i(2, 2, 2, 1) | tf.ones([1, 1, 1])
transpose: r(2, 3, 1) | i(1, 2, 3, 1) | b(1, 2, 1)
yuv_to_rgb: p(1, 2, 3) | tf.constant([[[0.1, 0.5, 0.3]]]) | p(2, 2)
"""
