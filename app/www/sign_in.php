<?php
// Signing in, by name only: this is a sample application without secrets.
require __DIR__ . '/lib.php';

open_session(true);
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    require_form();
    $person = query('SELECT id, name FROM people WHERE name = ?', [field('name', 40)])->fetch();
    if ($person === false) {
        refuse(403, 'There is no such person.');
    }
    session_regenerate_id(true);
    $_SESSION['person'] = $person;
    header('Location: person.php?id=' . (int) $person['id'], true, 303);
    exit;
}
page('Sign in', '<form method="post"><input type="hidden" name="token" value="' . token() . '">'
    . '<input name="name" value="person1"> <button>Sign in</button></form>');
