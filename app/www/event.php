<?php
// One event: its text, tags, guests, comments, related events, and the count of its views.
require __DIR__ . '/lib.php';

open_session();
$id = number_parameter('id', 1);

/** Counts this view. */
function count_view(int $id): void
{
    query('UPDATE events SET views = views + 1 WHERE id = ?', [$id]);
}

/** Events in the same city with the same word in their text: no index helps this one. */
function related_events(array $event): array
{
    $word = strtok($event['title'], ' ');
    return rows(
        'SELECT id, title, summary, city, starts_at FROM events WHERE city = ? AND id <> ? AND description LIKE ? AND title LIKE ?'
            . ' ORDER BY starts_at DESC LIMIT 5',
        [$event['city'], $event['id'], '%something to eat%', $word . '%']
    );
}

/** Asks for the weather there. No such service is asked: the page only waits for as long as one would take. */
function weather(string $city): string
{
    usleep(1000 * (int) setting('weather_ms'));
    return ['sun', 'rain', 'wind'][crc32($city) % 3];
}

// The trouble hot-row: the row of the counter is locked first, and stays locked while the page is made.
$holds_row = has_trouble('hot-row');
if ($holds_row) {
    database()->beginTransaction();
    count_view($id);
}
$event = query('SELECT e.*, p.name AS owner_name FROM events AS e JOIN people AS p ON p.id = e.owner WHERE e.id = ?', [$id])->fetch();
if ($event === false) {
    refuse(404, 'There is no such event.');
}
$tags = rows('SELECT t.tag FROM tags AS t JOIN event_tags AS et ON et.tag = t.id WHERE et.event = ? ORDER BY t.tag', [$id]);
$guests = rows('SELECT p.id, p.name FROM people AS p JOIN guests AS g ON g.person = p.id WHERE g.event = ? ORDER BY p.name', [$id]);
$comments = rows(
    'SELECT c.rating, c.body, c.written_at, p.name FROM comments AS c JOIN people AS p ON p.id = c.person'
        . ' WHERE c.event = ? ORDER BY c.written_at DESC LIMIT 50',
    [$id]
);
$related = related_events($event);
$weather = weather($event['city']);
if ($holds_row) {
    query('INSERT INTO visits (event, visited_at) VALUES (?, NOW())', [$id]);
    database()->commit();
} else {
    query('INSERT INTO visits (event, visited_at) VALUES (?, NOW())', [$id]);
    count_view($id);
}

$body = '<p>' . text($event['starts_at'] . ', ' . $event['city']) . ', by <a href="person.php?id=' . (int) $event['owner'] . '">'
    . text($event['owner_name']) . '</a>, ' . (int) $event['views'] . ' views, ' . $weather . '</p>';
if ($event['image'] !== null) {
    $body .= '<p><img src="image.php?event=' . $id . '" alt=""></p>';
}
$body .= '<p>' . text($event['description']) . '</p><p>';
foreach ($tags as $row) {
    $body .= '<a href="tag.php?tag=' . rawurlencode($row['tag']) . '">' . text($row['tag']) . '</a> ';
}
$body .= '</p><h2>' . count($guests) . ' guests</h2><p>';
foreach ($guests as $guest) {
    $body .= '<a href="person.php?id=' . (int) $guest['id'] . '">' . text($guest['name']) . '</a> ';
}
$body .= '</p><h2>Comments</h2>';
foreach ($comments as $comment) {
    $body .= '<p>' . str_repeat('★', (int) $comment['rating']) . ' ' . text($comment['name'] . ': ' . $comment['body']) . '</p>';
}
page($event['title'], $body . '<h2>Related</h2>' . event_list($related));
