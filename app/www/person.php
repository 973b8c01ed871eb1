<?php
// One person: what they offer, and where they are a guest.
require __DIR__ . '/lib.php';

open_session();
$id = number_parameter('id', 1);
$person = query('SELECT * FROM people WHERE id = ?', [$id])->fetch();
if ($person === false) {
    refuse(404, 'There is no such person.');
}
$own = rows('SELECT id, title, summary, city, starts_at FROM events WHERE owner = ? ORDER BY starts_at DESC LIMIT 20', [$id]);
$guest_of = rows(
    'SELECT e.id, e.title, e.summary, e.city, e.starts_at FROM events AS e JOIN guests AS g ON g.event = e.id'
        . ' WHERE g.person = ? ORDER BY e.starts_at DESC LIMIT 20',
    [$id]
);
page($person['name'], '<p>' . text($person['city'] . '. ' . $person['about']) . '</p><h2>Events</h2>' . event_list($own)
    . '<h2>Guest of</h2>' . event_list($guest_of));
