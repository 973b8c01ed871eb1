<?php
// What the pages share: settings, the database, the session, and HTML.

/** A setting of php.ini. */
function setting(string $name): string
{
    return (string) get_cfg_var('calendar.' . $name);
}

/** Whether this trouble is planted. */
function has_trouble(string $name): bool
{
    return in_array($name, explode(',', setting('troubles')), true);
}

function database(): PDO
{
    static $database = null;
    if ($database === null) {
        $address = 'mysql:' . setting('database') . ';dbname=calendar;charset=utf8mb4';
        $database = new PDO($address, 'calendar', '', [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
            PDO::ATTR_PERSISTENT => setting('database_connections') === 'persistent',
        ]);
    }
    return $database;
}

function query(string $sql, array $values = []): PDOStatement
{
    $statement = database()->prepare($sql);
    $statement->execute($values);
    return $statement;
}

/** All rows of a query. */
function rows(string $sql, array $values = []): array
{
    return query($sql, $values)->fetchAll();
}

/**
 * Opens the session. Visitors who have not signed in have none, so that a page that is only read writes no file.
 * Where requests change their session's id, every request has one, as in applications that call session_start() at the top.
 */
function open_session(bool $create = false): void
{
    $changes = (int) setting('session_changes');
    if ($create || isset($_COOKIE[session_name()]) || $changes > 0) {
        session_start();
        for ($change = 0; $change < $changes; $change++) {
            session_regenerate_id(true);
        }
        $_SESSION['pages'] = ($_SESSION['pages'] ?? 0) + 1;
    }
}

/** The signed-in person, or null. */
function signed_in(): ?array
{
    return $_SESSION['person'] ?? null;
}

/** The token that a form has to send back. */
function token(): string
{
    if (!isset($_SESSION['token'])) {
        $_SESSION['token'] = bin2hex(random_bytes(16));
    }
    return $_SESSION['token'];
}

/** Ends the request unless it is a form of this session. */
function require_form(): void
{
    $sent = $_POST['token'] ?? '';
    if (!is_string($sent) || !isset($_SESSION['token']) || !hash_equals($_SESSION['token'], $sent)) {
        refuse(403, 'This form is not from this session. Open the page again.');
    }
}

function require_person(): array
{
    return signed_in() ?? refuse(403, 'Sign in first.');
}

/** @return never */
function refuse(int $status, string $why)
{
    http_response_code($status);
    page('Not possible', '<p>' . text($why) . '</p>');
    exit;
}

/** A parameter of the address that is a positive number, or the default. */
function number_parameter(string $name, int $default): int
{
    $number = filter_input(INPUT_GET, $name, FILTER_VALIDATE_INT, ['options' => ['min_range' => 1, 'max_range' => 1000000000]]);
    return is_int($number) ? $number : $default;
}

/** A field of a form, without white space around it; ends the request if it is empty or too long. */
function field(string $name, int $characters_max): string
{
    $value = $_POST[$name] ?? '';
    $value = is_string($value) ? trim($value) : '';
    // Counted as UTF-8, without the extension mbstring. preg_match is 0 or false where it is too long or no UTF-8.
    if (preg_match('/^.{1,' . $characters_max . '}$/su', $value) !== 1) {
        refuse(400, "The field $name needs 1 to $characters_max characters.");
    }
    return $value;
}

function text(string $text): string
{
    return htmlspecialchars($text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

function event_list(array $events): string
{
    $items = array_map(function (array $event): string {
        return '<li><a href="event.php?id=' . (int) $event['id'] . '">' . text($event['title']) . '</a> '
            . text($event['starts_at'] . ', ' . $event['city']) . '<br>' . text($event['summary']) . '</li>';
    }, $events);
    return '<ul>' . implode("\n", $items) . '</ul>';
}

function page(string $title, string $body): void
{
    header('Content-Type: text/html; charset=utf-8');
    $person = signed_in();
    $who = $person === null ? '<a href="sign_in.php">Sign in</a>'
        : '<a href="person.php?id=' . (int) $person['id'] . '">' . text($person['name']) . '</a> <a href="add_event.php">Add an event</a>';
    echo '<!doctype html><html lang="en"><head><title>', text($title), '</title><link rel="stylesheet" href="style.css"></head>',
        '<body><nav><a href="index.php">Calendar</a> ', $who, '</nav><h1>', text($title), "</h1>\n", $body, "</body></html>\n";
}
