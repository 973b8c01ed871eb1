<?php
// Keeps a session, as pages that stay open ask for from time to time. It asks no database.
require __DIR__ . '/lib.php';

open_session(true);
header('Content-Type: text/plain; charset=utf-8');
echo $_SESSION['pages'], "\n";
