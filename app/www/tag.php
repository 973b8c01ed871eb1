<?php
// Search by tag.
require __DIR__ . '/lib.php';

open_session();
$tag = is_string($_GET['tag'] ?? null) ? $_GET['tag'] : '';
$events = rows(
    'SELECT e.id, e.title, e.summary, e.city, e.starts_at FROM tags AS t JOIN event_tags AS et ON et.tag = t.id'
        . ' JOIN events AS e ON e.id = et.event WHERE t.tag = ? ORDER BY e.starts_at DESC LIMIT 20',
    [$tag]
);
page('Events with ' . $tag, '<form><input name="tag" value="' . text($tag) . '"> <button>Search</button></form>' . event_list($events));
