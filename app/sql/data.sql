-- Sample data: 500 people, 2,000 events, 40 tags, 5,000 comments, 12,000 guests. The same on every machine: what varies comes from CRC32 of a row's number.
SET SESSION max_recursive_iterations = 20000;
CREATE TEMPORARY TABLE numbers (n INT UNSIGNED NOT NULL PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 12000) SELECT n FROM count;

START TRANSACTION;

INSERT INTO people (id, name, city, about)
SELECT n, CONCAT('person', n),
  ELT(1 + CRC32(CONCAT('city', n)) % 8, 'Aarhus', 'Bergen', 'Cork', 'Delft', 'Espoo', 'Faro', 'Graz', 'Hull'),
  CONCAT('Joined in ', 2015 + n % 10, '. ', REPEAT('Likes long walks and short queries. ', 1 + CRC32(n) % 6))
FROM numbers WHERE n <= 500;

-- One event every five days or so, half of them before 2030.
INSERT INTO events (id, owner, title, summary, description, city, starts_at)
SELECT n, 1 + CRC32(CONCAT('owner', n)) % 500,
  CONCAT(ELT(1 + n % 6, 'Concert', 'Lecture', 'Picnic', 'Workshop', 'Market', 'Walk'), ' number ', n),
  CONCAT('The ', ELT(1 + CRC32(CONCAT('kind', n)) % 4, 'first', 'second', 'spring', 'autumn'), ' meeting of this kind'),
  REPEAT(CONCAT('Everybody is welcome to event ', n, '. Bring something to eat. '), 4 + CRC32(CONCAT('long', n)) % 12),
  ELT(1 + CRC32(CONCAT('place', n)) % 8, 'Aarhus', 'Bergen', 'Cork', 'Delft', 'Espoo', 'Faro', 'Graz', 'Hull'),
  '2016-07-01 18:00:00' + INTERVAL n * 118 + CRC32(CONCAT('hour', n)) % 48 HOUR
FROM numbers WHERE n <= 2000;

INSERT INTO tags (id, tag) SELECT n, CONCAT(ELT(1 + n % 5, 'music', 'talk', 'food', 'craft', 'nature'), n) FROM numbers WHERE n <= 40;

-- Three different tags each.
INSERT INTO event_tags (event, tag)
SELECT events.n, 1 + (CRC32(CONCAT('tag', events.n)) + third.n * 13) % 40
FROM numbers AS events JOIN numbers AS third ON third.n <= 3 WHERE events.n <= 2000;

INSERT IGNORE INTO guests (event, person)
SELECT 1 + CRC32(CONCAT('guest', n)) % 2000, 1 + CRC32(CONCAT('person', n)) % 500 FROM numbers WHERE n <= 12000;

INSERT INTO comments (id, event, person, rating, body, written_at)
SELECT n, 1 + CRC32(CONCAT('on', n)) % 2000, 1 + CRC32(CONCAT('by', n)) % 500, 1 + CRC32(CONCAT('stars', n)) % 5,
  CONCAT('Comment ', n, ': ', REPEAT('it was worth the trip. ', 1 + CRC32(CONCAT('words', n)) % 8)),
  '2025-01-01' + INTERVAL n HOUR
FROM numbers WHERE n <= 5000;

COMMIT;
ANALYZE TABLE people, events, tags, event_tags, guests, comments;
