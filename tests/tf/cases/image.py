"""Examples of `tf.image`."""

from __future__ import annotations

PIXELS = "tf.cast(tf.reshape(tf.range(12), [2, 2, 3]) * 20, tf.uint8)"
JPEG = "tf.io.encode_jpeg(tf.fill([8, 16, 3], tf.constant(77, tf.uint8)))"
BOXES = "tf.constant([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [1, 0, 0, 0.4]])"
SCORES = "tf.constant([0.9, 0.8, 0.7, 0.95])"

EXAMPLES = {
    "image.adjust_brightness": (
        "image.adjust_brightness(p(2, 2, 1), 0.1)",
        "image.adjust_brightness(tf.constant([[[0, 100, 250]]], tf.uint8), 0.1)",
        "image.adjust_brightness(tf.constant([[[0, 100, 250]]], tf.uint8), -0.5)",
    ),
    "image.adjust_contrast": (
        "image.adjust_contrast(p(2, 2, 2), 2.0)", "image.adjust_contrast(p(2, 2), 2.0)",
        "image.adjust_contrast(tf.constant([[[0], [100]], [[60], [250]]], tf.uint8), 0.5)",
    ),
    "image.adjust_gamma": (
        "image.adjust_gamma(p(2, 2, 1), 2.0, 3)", "image.adjust_gamma(tf.ones([2, 2, 1]))",
        "image.adjust_gamma(tf.constant([[[0, 100, 250]]], tf.uint8), 0.5)",
    ),
    "image.adjust_hue": (
        "image.adjust_hue(p(1, 1, 3), 0.1)",
        "image.adjust_hue(tf.constant([[[0.1, 0.5, 0.3]]]), -0.4)",
        "image.adjust_hue(tf.constant([[[0, 100, 250]]], tf.uint8), 0.1)",
    ),
    "image.adjust_jpeg_quality": (
        "image.adjust_jpeg_quality(tf.zeros([8, 8, 3]), 75)",
        "image.adjust_jpeg_quality(tf.zeros([8, 8, 1], tf.uint8), 90)",
        "image.adjust_jpeg_quality(tf.ones([8, 8, 3]), 20)",
    ),
    "image.adjust_saturation": (
        "image.adjust_saturation(p(1, 1, 3), 0.5)",
        "image.adjust_saturation(tf.constant([[[0.1, 0.5, 0.3]]]), 2.0)",
        "image.adjust_saturation(tf.constant([[[0, 100, 250]]], tf.uint8), 0.5)",
    ),
    "image.central_crop": (
        "image.central_crop(r(4, 5, 1), 0.5)", "image.central_crop(i(1, 5, 3, 1), 0.4)",
        "image.central_crop(i(2, 2, 1), 1.0)",
    ),
    "image.combined_non_max_suppression": (
        (f"image.combined_non_max_suppression({BOXES}[None, :, None], tf.stack([{SCORES}, 1 - "
        f"{SCORES}], -1)[None], 2, 3)"),
        (f"image.combined_non_max_suppression({BOXES}[None, :, None], tf.stack([{SCORES}, 1 - "
        f"{SCORES}], -1)[None], 2, 10, 0.5, 0.25, True, False)"),
        (f"image.combined_non_max_suppression({BOXES}[None, :, None], {SCORES}[None, :, None], "
        "1, 3)"),
    ),
    "image.convert_image_dtype": (
        "image.convert_image_dtype(p(2, 2, 1), tf.uint8, saturate=True)",
        "image.convert_image_dtype(tf.constant([[[0], [51], [255]]], tf.uint8), tf.float32)",
        "image.convert_image_dtype(tf.constant([256, 65535], tf.uint16), tf.uint8)",
        "image.convert_image_dtype(tf.constant([3], tf.uint8), tf.int32)",
    ),
    "image.crop_and_resize": (
        ("image.crop_and_resize(r(2, 4, 5, 1), [[0.0, 0.1, 0.9, 1.0], [0.2, 0.5, 0.1, 1.2]], "
        "[1, 0], [2, 3])"),
        "image.crop_and_resize(r(1, 4, 5, 1), [[0.0, 0.1, 0.9, 1.0]], [0], [2, 3], 'nearest')",
        ("image.crop_and_resize(r(1, 3, 3, 2), [[-0.5, 0.0, 1.0, 1.0]], [0], [3, 1], "
        "extrapolation_value=7.0)"),
        "image.crop_and_resize(r(1, 3, 3, 1), [[0.0, 0.0, 1.0, 1.0]], [1], [2, 2])",
    ),
    "image.crop_to_bounding_box": (
        "image.crop_to_bounding_box(r(3, 4, 1), 1, 0, 2, 3)",
        "image.crop_to_bounding_box(i(2, 3, 2, 1), 0, 1, 1, 1)",
        "image.crop_to_bounding_box(i(2, 2, 1), 0, 0, 2, 2)",
    ),
    "image.decode_and_crop_jpeg": (
        f"image.decode_and_crop_jpeg({JPEG}, [1, 2, 2, 1])",
        f"image.decode_and_crop_jpeg({JPEG}, [0, 0, 1, 1], channels=1)",
        f"image.decode_and_crop_jpeg({JPEG}, [1, 2, 20, 1])",
    ),
    "image.decode_bmp": (
        "image.decode_bmp(b'BM')", f"image.decode_bmp(tf.io.encode_png({PIXELS}))",
        "image.decode_bmp(['a', 'b'])",
    ),
    "image.decode_gif": (
        f"image.decode_gif(tf.io.encode_png({PIXELS}))", "image.decode_gif(b'GIF89a')",
        "image.decode_gif(b'')",
    ),
    "image.decode_image": (
        f"image.decode_image(tf.io.encode_png({PIXELS}))",
        f"image.decode_image(tf.io.encode_png({PIXELS}), 1, tf.float32)",
        "image.decode_image(b'GIF89a')",
    ),
    "image.decode_jpeg": (
        f"image.decode_jpeg(tf.io.encode_png({PIXELS}))",
        f"image.decode_jpeg(tf.io.encode_png({PIXELS}), channels=3)", "image.decode_jpeg(b'abc')",
    ),
    "image.decode_png": (
        f"image.decode_png(tf.io.encode_png({PIXELS}))",
        f"image.decode_png(tf.io.encode_png({PIXELS}), channels=1)",
        f"image.decode_png(tf.io.encode_png({PIXELS}), 4)", "image.decode_png(b'abc')",
    ),
    "image.draw_bounding_boxes": (
        ("image.draw_bounding_boxes(tf.zeros([1, 4, 4, 3]), [[[0.0, 0.0, 0.7, 0.7], [0.4, "
        "-0.5, 1.5, 0.9]]], None)"),
        "image.draw_bounding_boxes(tf.ones([1, 3, 3, 1]), [[[0.1, 0.1, 0.9, 0.6]]], [[5.0]])",
        "image.draw_bounding_boxes(tf.ones([1, 3, 3, 1]), [[[0.9, 0.1, 0.1, 0.6]]], None)",
    ),
    "image.encode_jpeg": (
        f"image.extract_jpeg_shape(tf.image.encode_jpeg({PIXELS}))",
        "image.encode_jpeg(tf.zeros([2, 2, 3]))", f"image.encode_jpeg({PIXELS}, quality=101)",
    ),
    "image.encode_png": (
        f"image.decode_png(tf.image.encode_png({PIXELS}, compression=3))",
        "image.encode_png(tf.zeros([2, 2, 3]))", "image.encode_png(tf.zeros([2, 2], tf.uint8))",
    ),
    "image.extract_glimpse": (
        "image.extract_glimpse(r(2, 4, 5, 1), [2, 3], [[0.1, -0.2], [0.9, 0.5]], noise='zero')",
        "image.extract_glimpse(r(1, 4, 5, 1), [2, 3], [[1.0, 2.5]], False, False, 'zero')",
        "image.extract_glimpse(r(1, 4, 5, 1), [2, 3], [[1.0, -1.0]], True, False, 'zero')",
        "image.extract_glimpse(r(1, 4, 5, 1), [2, 3], [[0.5, 0.3]], False, True, 'zero')",
    ),
    "image.extract_jpeg_shape": (
        f"image.extract_jpeg_shape({JPEG})",
        f"image.extract_jpeg_shape({JPEG}, output_type=tf.int64)", "image.extract_jpeg_shape(b'a')",
    ),
    "image.extract_patches": (
        "image.extract_patches(r(1, 4, 5, 2), [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 1, 1], 'VALID')",
        "image.extract_patches(i(1, 4, 3, 1), [1, 2, 2, 1], [1, 1, 2, 1], [1, 2, 1, 1], 'SAME')",
        "image.extract_patches(r(4, 4, 1), [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    ),
    "image.flip_left_right": (
        "image.flip_left_right(r(2, 3, 1))", "image.flip_left_right(i(2, 1, 2, 1))",
        "image.flip_left_right(b(1, 2, 1))",
    ),
    "image.flip_up_down": (
        "image.flip_up_down(r(2, 3, 1))", "image.flip_up_down(i(2, 2, 1, 1))",
        "image.flip_up_down(b(2, 1, 1))",
    ),
    "image.grayscale_to_rgb": (
        "image.grayscale_to_rgb(p(2, 2, 1))", "image.grayscale_to_rgb(i(1, 2, 1, 1))",
        "image.grayscale_to_rgb(i(0, 2, 1))",
    ),
    "image.hsv_to_rgb": (
        "image.hsv_to_rgb(tf.constant([[[0.1, 0.5, 0.3]]]))",
        "image.hsv_to_rgb(tf.zeros([1, 1, 3]))", "image.hsv_to_rgb(tf.constant([[0.9, 1.0, 2.0]]))",
    ),
    "image.image_gradients": (
        "image.image_gradients(r(1, 3, 4, 2))", "image.image_gradients(i(2, 1, 2, 1))",
        "image.image_gradients(r(3, 3, 1))",
    ),
    "image.is_jpeg": (
        "image.is_jpeg(b'abc')", f"image.is_jpeg({JPEG})",
        f"image.is_jpeg(tf.io.encode_png({PIXELS}))",
    ),
    "image.non_max_suppression": (
        f"image.non_max_suppression({BOXES}, {SCORES}, 3)",
        f"image.non_max_suppression({BOXES}, {SCORES}, 5, 0.95, 0.75)",
        "image.non_max_suppression(tf.zeros([0, 4]), tf.zeros([0]), 2)",
        f"image.non_max_suppression({BOXES}, {SCORES}, 3, iou_threshold=2.0)",
    ),
    "image.non_max_suppression_overlaps": (
        "image.non_max_suppression_overlaps([[1.0, 0.6], [0.6, 1.0]], [0.5, 0.7], 2)",
        "image.non_max_suppression_overlaps([[1.0, 0.6], [0.6, 1.0]], [0.5, 0.7], 2, 0.8)",
        "image.non_max_suppression_overlaps([[1.0, 0.6]], [0.5], 2)",
    ),
    "image.non_max_suppression_padded": (
        f"image.non_max_suppression_padded({BOXES}, {SCORES}, 5, pad_to_max_output_size=True)",
        (f"image.non_max_suppression_padded({BOXES}[None], {SCORES}[None], 2, 0.95, "
        "pad_to_max_output_size=True)"),
        f"image.non_max_suppression_padded({BOXES}, {SCORES}, 3)",
        f"image.non_max_suppression_padded({BOXES}[None], {SCORES}[None], 2)",
    ),
    "image.non_max_suppression_with_scores": (
        (f"image.non_max_suppression_with_scores({BOXES}, {SCORES}, 4, soft_nms_sigma=0.5, "
        "iou_threshold=1.0)"),
        f"image.non_max_suppression_with_scores({BOXES}, {SCORES}, 4, 0.5, 0.1, 0.5)",
        f"image.non_max_suppression_with_scores({BOXES}, {SCORES}, 2)",
    ),
    "image.pad_to_bounding_box": (
        "image.pad_to_bounding_box(r(2, 1, 1), 1, 0, 4, 2)",
        "image.pad_to_bounding_box(i(1, 1, 2, 1), 0, 1, 2, 4)",
        "image.pad_to_bounding_box(i(2, 2, 1), 0, 0, 2, 2)",
    ),
    "image.per_image_standardization": (
        "image.per_image_standardization(p(2, 2, 1))",
        "image.per_image_standardization(i(2, 2, 1, 3))",
        "image.per_image_standardization(tf.zeros([2, 2, 1]))",
    ),
    "image.psnr": (
        "image.psnr(p(2, 2, 1), p(2, 2, 1), 1.0)",
        "image.psnr(tf.ones([2, 2, 1]), tf.ones([2, 2, 1]), 1.0)",
        "image.psnr(*[tf.constant([[[n]]], tf.uint8) for n in (9, 12)], max_val=255)",
    ),
    "image.random_brightness": (
        "image.random_brightness(p(2, 2, 1), 1e-9, seed=1)",
        "image.random_brightness(tf.ones([2, 2, 1]), 1e-9, seed=2)",
        "image.random_brightness(tf.ones([2, 2, 1]), -1.0, seed=3)",
    ),
    "image.random_contrast": (
        "image.random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0, seed=1)",
        "image.random_contrast(tf.ones([1, 2, 2, 1]), 0.5, 2.0, seed=2)",
        "image.random_contrast(tf.ones([1, 2, 2, 1]), 2.0, 1.0, seed=3)",
    ),
    "image.random_crop": (
        "image.random_crop(tf.ones([3, 3, 1]), [2, 2, 1], seed=1)",
        "image.random_crop(tf.ones([3, 3, 1]), [3, 3, 1], seed=2)",
        "image.random_crop(tf.ones([2]), [3], seed=3)",
    ),
    "image.random_flip_left_right": (
        "image.random_flip_left_right(tf.ones([2, 3, 1]), seed=1)",
        "image.random_flip_left_right(tf.ones([2, 1, 1]), seed=2)",
        "image.random_flip_left_right(tf.ones([1, 2, 3, 1]), seed=3)",
    ),
    "image.random_flip_up_down": (
        "image.random_flip_up_down(tf.ones([2, 3, 1]), seed=1)",
        "image.random_flip_up_down(tf.ones([1, 2, 1]), seed=2)",
        "image.random_flip_up_down(tf.ones([1, 2, 3, 1]), seed=3)",
    ),
    "image.random_hue": (
        "image.random_hue(tf.ones([1, 1, 3]), 0.5, seed=1)",
        "image.random_hue(tf.zeros([1, 1, 3]), 0.1, seed=2)",
        "image.random_hue(tf.ones([1, 1, 1, 3]), 0.6, seed=3)",
    ),
    "image.random_jpeg_quality": (
        "image.random_jpeg_quality(tf.zeros([8, 8, 3]), 99, 100, seed=1)",
        "image.random_jpeg_quality(tf.zeros([8, 8, 3], tf.uint8), 99, 100, seed=2)",
        "image.random_jpeg_quality(tf.zeros([8, 8, 3]), 80, 20, seed=3)",
    ),
    "image.random_saturation": (
        "image.random_saturation(tf.ones([1, 1, 3]), 0.5, 2.0, seed=1)",
        "image.random_saturation(tf.zeros([1, 1, 3]), 0.5, 2.0, seed=2)",
        "image.random_saturation(tf.ones([1, 1, 1, 3]), -1.0, 1.0, seed=3)",
    ),
    "image.resize": (
        "image.resize(r(2, 3, 1), [4, 5])", "image.resize(i(1, 4, 4, 1), [2, 3], method='nearest')",
        "image.resize(i(4, 5, 1), [2, 3])", "image.resize(i(2, 3, 1), [4, 4], 'bicubic')",
        "image.resize(i(5, 6, 1), [2, 3], antialias=True)",
        "image.resize(i(2, 4, 1), [4, 4], preserve_aspect_ratio=True)",
        "image.resize(i(4, 4, 1), [2, 7], 'lanczos3', antialias=True)",
        "image.resize(r(2, 2, 1), [0, 3])", "image.resize(r(5, 4, 1), [3, 6], 'area')",
        "image.resize(r(5, 4, 1), [3, 6], 'gaussian')",
        "image.resize(r(6, 4, 1), [3, 6], 'gaussian', antialias=True)",
        "image.resize(r(5, 4, 1), [3, 6], 'mitchellcubic', antialias=True)",
        "image.resize(r(1, 3, 4, 1), [2, 6], 'mitchellcubic')",
        "image.resize(r(7, 3, 1), [3, 3], 'lanczos5', antialias=True)",
        "image.resize(r(7, 3, 1), [3, 3], 'bicubic', antialias=True)",
        "image.resize(r(2, 2, 1), [1, 1], 'box')",
    ),
    "image.resize_with_crop_or_pad": (
        "image.resize_with_crop_or_pad(r(2, 5, 1), 5, 2)",
        "image.resize_with_crop_or_pad(i(1, 3, 3, 1), 2, 4)",
        "image.resize_with_crop_or_pad(i(2, 2, 1), 2, 2)",
    ),
    "image.resize_with_pad": (
        "image.resize_with_pad(r(2, 4, 1), 4, 4)", "image.resize_with_pad(i(1, 3, 2, 1), 4, 4)",
        "image.resize_with_pad(r(3, 5, 1), 4, 2, 'nearest')",
        "image.resize_with_pad(r(3, 5, 1), 0, 2)",
    ),
    "image.rgb_to_grayscale": (
        "image.rgb_to_grayscale(p(2, 2, 3))", "image.rgb_to_grayscale(p(1, 2, 1, 3))",
        "image.rgb_to_grayscale(tf.constant([[[0, 100, 250]]], tf.uint8))",
        "image.rgb_to_grayscale(p(2, 2))",
    ),
    "image.rgb_to_hsv": (
        "image.rgb_to_hsv(p(1, 1, 3))", "image.rgb_to_hsv(tf.zeros([1, 1, 3]))",
        "image.rgb_to_hsv(tf.constant([[[0.1, 0.5, 0.3]]]))",
    ),
    "image.rgb_to_yiq": (
        "image.rgb_to_yiq(p(1, 2, 3))", "image.rgb_to_yiq(tf.constant([[[0.1, 0.5, 0.3]]]))",
        "image.rgb_to_yiq(p(2, 2))",
    ),
    "image.rgb_to_yuv": (
        "image.rgb_to_yuv(p(1, 2, 3))", "image.rgb_to_yuv(tf.constant([[[0.1, 0.5, 0.3]]]))",
        "image.rgb_to_yuv(p(2, 2))",
    ),
    "image.rot90": (
        "image.rot90(r(2, 3, 1))", "image.rot90(i(1, 2, 3, 1), k=3)", "image.rot90(i(2, 3, 1), 6)",
    ),
    "image.sample_distorted_bounding_box": (
        ("image.sample_distorted_bounding_box([4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], 1, "
        "min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, 1.0))"),
        "image.sample_distorted_bounding_box([4, 4, 3], tf.zeros([1, 0, 4]))",
        ("image.sample_distorted_bounding_box([4, 4, 3], tf.zeros([1, 0, 4]), 3, "
        "use_image_if_no_bounding_boxes=True, min_object_covered=1.0, area_range=(1.0, 1.0), "
        "aspect_ratio_range=(1.0, 1.0))"),
    ),
    "image.sobel_edges": (
        "image.sobel_edges(r(1, 3, 4, 2))", "image.sobel_edges(tf.ones([1, 2, 2, 1]))",
        "image.sobel_edges(r(3, 3, 1))",
    ),
    "image.ssim": (
        "image.ssim(p(12, 13, 2), p(12, 13, 2), 1.0)",
        "image.ssim(p(2, 5, 5, 1), p(2, 5, 5, 1), 2.0, filter_size=4)",
        ("image.ssim(*[tf.ones([5, 5, 1], tf.uint8) * n for n in (9, 12)], max_val=255, "
        "filter_size=3)"),
        "image.ssim(p(4, 4, 1), p(4, 4, 1), 1.0, filter_size=3, return_index_map=True)",
        "image.ssim(p(4, 4, 1), p(4, 4, 1), 1.0)", "image.ssim(p(4, 4, 1), p(4, 5, 1), 1.0)",
    ),
    "image.ssim_multiscale": (
        "image.ssim_multiscale(p(9, 8, 1), tf.ones([9, 8, 1]), 1.0, (0.5, 0.5), filter_size=3)",
        ("image.ssim_multiscale(p(2, 7, 7, 1), tf.ones([2, 7, 7, 1]), 2.0, (0.2, 0.3, 0.5), "
        "filter_size=2)"),
        "image.ssim_multiscale(p(4, 4, 1), p(4, 4, 1), 1.0)",
    ),
    "image.stateless_random_brightness": (
        "image.stateless_random_brightness(p(2, 2, 1), 1e-9, seed=(1, 5))",
        "image.stateless_random_brightness(tf.ones([2, 2, 1]), 1e-9, seed=(2, 5))",
        "image.stateless_random_brightness(tf.ones([2, 2, 1]), -1.0, seed=(3, 5))",
    ),
    "image.stateless_random_contrast": (
        "image.stateless_random_contrast(tf.ones([2, 2, 1]), 0.5, 2.0, seed=(1, 5))",
        "image.stateless_random_contrast(tf.ones([1, 2, 2, 1]), 0.5, 2.0, seed=(2, 5))",
        "image.stateless_random_contrast(tf.ones([1, 2, 2, 1]), 2.0, 1.0, seed=(3, 5))",
    ),
    "image.stateless_random_crop": (
        "image.stateless_random_crop(tf.ones([3, 3, 1]), [2, 2, 1], seed=(1, 5))",
        "image.stateless_random_crop(tf.ones([3, 3, 1]), [3, 3, 1], seed=(2, 5))",
        "image.stateless_random_crop(tf.ones([2]), [3], seed=(3, 5))",
    ),
    "image.stateless_random_flip_left_right": (
        "image.stateless_random_flip_left_right(tf.ones([2, 3, 1]), seed=(1, 5))",
        "image.stateless_random_flip_left_right(tf.ones([2, 1, 1]), seed=(2, 5))",
        "image.stateless_random_flip_left_right(tf.ones([1, 2, 3, 1]), seed=(3, 5))",
    ),
    "image.stateless_random_flip_up_down": (
        "image.stateless_random_flip_up_down(tf.ones([2, 3, 1]), seed=(1, 5))",
        "image.stateless_random_flip_up_down(tf.ones([1, 2, 1]), seed=(2, 5))",
        "image.stateless_random_flip_up_down(tf.ones([1, 2, 3, 1]), seed=(3, 5))",
    ),
    "image.stateless_random_hue": (
        "image.stateless_random_hue(tf.ones([1, 1, 3]), 0.5, seed=(1, 5))",
        "image.stateless_random_hue(tf.zeros([1, 1, 3]), 0.1, seed=(2, 5))",
        "image.stateless_random_hue(tf.ones([1, 1, 1, 3]), 0.6, seed=(3, 5))",
    ),
    "image.stateless_random_jpeg_quality": (
        "image.stateless_random_jpeg_quality(tf.zeros([8, 8, 3]), 99, 100, seed=(1, 5))",
        "image.stateless_random_jpeg_quality(tf.zeros([8, 8, 3], tf.uint8), 99, 100, seed=(2, 5))",
        "image.stateless_random_jpeg_quality(tf.zeros([8, 8, 3]), 80, 20, seed=(3, 5))",
    ),
    "image.stateless_random_saturation": (
        "image.stateless_random_saturation(tf.ones([1, 1, 3]), 0.5, 2.0, seed=(1, 5))",
        "image.stateless_random_saturation(tf.zeros([1, 1, 3]), 0.5, 2.0, seed=(2, 5))",
        "image.stateless_random_saturation(tf.ones([1, 1, 1, 3]), -1.0, 1.0, seed=(3, 5))",
    ),
    "image.stateless_sample_distorted_bounding_box": (
        ("image.stateless_sample_distorted_bounding_box([4, 4, 3], [[[0.0, 0.0, 1.0, 1.0]]], "
        "(1, 2), min_object_covered=1.0, area_range=(1.0, 1.0), aspect_ratio_range=(1.0, "
        "1.0))"),
        "image.stateless_sample_distorted_bounding_box([4, 4, 3], tf.zeros([1, 0, 4]), (1, 2))",
        ("image.stateless_sample_distorted_bounding_box([4, 4, 3], tf.zeros([1, 0, 4]), (3, "
        "4), use_image_if_no_bounding_boxes=True, min_object_covered=1.0, area_range=(1.0, "
        "1.0), aspect_ratio_range=(1.0, 1.0))"),
    ),
    "image.total_variation": (
        "image.total_variation(p(2, 3, 2))", "image.total_variation(i(2, 2, 2, 1))",
        "image.total_variation(tf.ones([1, 1, 1]))",
    ),
    "image.transpose": (
        "image.transpose(r(2, 3, 1))", "image.transpose(i(1, 2, 3, 1))",
        "image.transpose(b(1, 2, 1))",
    ),
    "image.yiq_to_rgb": (
        "image.yiq_to_rgb(p(1, 2, 3))", "image.yiq_to_rgb(tf.constant([[[0.1, 0.5, 0.3]]]))",
        "image.yiq_to_rgb(p(2, 2))",
    ),
    "image.yuv_to_rgb": (
        "image.yuv_to_rgb(p(1, 2, 3))", "image.yuv_to_rgb(tf.constant([[[0.1, 0.5, 0.3]]]))",
        "image.yuv_to_rgb(p(2, 2))",
    ),
}  # fmt: skip
