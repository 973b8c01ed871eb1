<?php
// A form that adds an event, with tags and an image.
require __DIR__ . '/lib.php';

const IMAGE_BYTES_MAX = 2000000;
const IMAGE_PIXELS_MAX = 4000;
const IMAGE_TYPES = [IMAGETYPE_PNG => 'png', IMAGETYPE_JPEG => 'jpeg', IMAGETYPE_GIF => 'gif'];
const TAGS_MAX = 5;

/** Keeps the image that the form sent, and returns its file's name. */
function keep_image(): ?string
{
    $file = $_FILES['image'] ?? null;
    if (!is_array($file) || !is_int($file['error']) || $file['error'] === UPLOAD_ERR_NO_FILE) {
        return null;
    }
    if ($file['error'] !== UPLOAD_ERR_OK || $file['size'] > IMAGE_BYTES_MAX) {
        refuse(400, 'The image did not arrive, or has more than ' . IMAGE_BYTES_MAX . ' bytes.');
    }
    $image = @getimagesize($file['tmp_name']);
    if ($image === false || !isset(IMAGE_TYPES[$image[2]]) || max($image[0], $image[1]) > IMAGE_PIXELS_MAX) {
        refuse(400, 'The image must be a PNG, JPEG or GIF, at most ' . IMAGE_PIXELS_MAX . ' pixels wide and high.');
    }
    $name = bin2hex(random_bytes(16)) . '.' . IMAGE_TYPES[$image[2]];
    if (!move_uploaded_file($file['tmp_name'], setting('uploads') . '/' . $name)) {
        refuse(500, 'The image cannot be kept.');
    }
    return $name;
}

/** Gives the event its tags, and makes those that are new. */
function add_tags(int $event, string $words): void
{
    $tags = array_unique(preg_split('/\s+/', strtolower($words), TAGS_MAX + 1, PREG_SPLIT_NO_EMPTY));
    foreach (array_slice($tags, 0, TAGS_MAX) as $tag) {
        if (!preg_match('/^[a-z0-9]{1,30}$/', $tag)) {
            refuse(400, 'A tag has 1 to 30 letters and digits.');
        }
        query('INSERT IGNORE INTO tags (tag) VALUES (?)', [$tag]);
        query('INSERT INTO event_tags (event, tag) SELECT ?, id FROM tags WHERE tag = ?', [$event, $tag]);
    }
}

open_session();
$person = require_person();
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    require_form();
    $starts_at = DateTime::createFromFormat('Y-m-d\TH:i', field('starts_at', 16));
    if ($starts_at === false) {
        refuse(400, 'The time is written as 2030-05-31T18:00.');
    }
    $values = [$person['id'], field('title', 100), field('summary', 200), field('description', 5000), field('city', 40)];
    $tags = field('tags', 200);
    $image = keep_image();
    database()->beginTransaction();
    query(
        'INSERT INTO events (owner, title, summary, description, city, starts_at, image) VALUES (?, ?, ?, ?, ?, ?, ?)',
        array_merge($values, [$starts_at->format('Y-m-d H:i:00'), $image])
    );
    $id = (int) database()->lastInsertId();
    add_tags($id, $tags);
    database()->commit();
    header('Location: event.php?id=' . $id, true, 303);
    exit;
}
page('Add an event', '<form method="post" enctype="multipart/form-data"><input type="hidden" name="token" value="' . token() . '">'
    . '<p>Title <input name="title"></p><p>Summary <input name="summary"></p><p>Text <textarea name="description"></textarea></p>'
    . '<p>City <input name="city"></p><p>Time <input name="starts_at" type="datetime-local"></p><p>Tags <input name="tags"></p>'
    . '<p>Image <input name="image" type="file"></p><button>Add</button></form>');
