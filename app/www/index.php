<?php
// The home page: the next events, page by page, and all tags.
require __DIR__ . '/lib.php';

const EVENTS_PER_PAGE = 10;
open_session();

$page = min(number_parameter('page', 1), 1000);
$events = rows(
    'SELECT id, title, summary, city, starts_at FROM events WHERE starts_at >= NOW() ORDER BY starts_at, id LIMIT '
        . EVENTS_PER_PAGE . ' OFFSET ' . ($page - 1) * EVENTS_PER_PAGE
);
$coming = (int) query('SELECT COUNT(*) FROM events WHERE starts_at >= NOW()')->fetchColumn();
$tags = rows('SELECT tag FROM tags ORDER BY tag');

$body = '<p><a href="event.php?id=1">The event of the year</a></p>' . event_list($events);
if ($page * EVENTS_PER_PAGE < $coming) {
    $body .= '<p><a href="index.php?page=' . ($page + 1) . '">Later events</a></p>';
}
$links = array_map(function (array $row): string {
    return '<a href="tag.php?tag=' . rawurlencode($row['tag']) . '">' . text($row['tag']) . '</a>';
}, $tags);
page("$coming events", $body . '<p>' . implode(' ', $links) . '</p>');
