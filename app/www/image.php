<?php
// The image of an event. Images lie outside of the web server's folder, so that none is ever run as a program.
require __DIR__ . '/lib.php';

open_session();
$name = query('SELECT image FROM events WHERE id = ?', [number_parameter('event', 1)])->fetchColumn();
if (!is_string($name) || !preg_match('/^[0-9a-f]{32}\.(png|jpeg|gif)$/', $name, $parts)) {
    refuse(404, 'This event has no image.');
}
$path = setting('uploads') . '/' . $name;
if (!is_file($path)) {
    refuse(404, 'The image is gone.');
}
header('Content-Type: image/' . $parts[1]);
header('Content-Length: ' . filesize($path));
header('X-Content-Type-Options: nosniff');
readfile($path);
