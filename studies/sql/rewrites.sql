-- Queries as they were found in an application, and as they were rewritten. The variable `query` says which one is sent.
--
-- 18,000 events, almost all of them in the future, each with some of 4,000 tags and some people who attend.

-- \set event random(1, 18000)
-- \set letters random_string('@@')
-- \set offset random(1, 800) * 20

-- \setup SELECT COUNT(*) = 18000 FROM event
DROP TABLE IF EXISTS digit, number, event, tag, event_tag, attends;
CREATE TABLE digit (d INT NOT NULL PRIMARY KEY);
INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE number (n INT NOT NULL PRIMARY KEY);
INSERT INTO number SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d FROM digit a, digit b, digit c, digit d, digit e;
CREATE TABLE tag (id INT NOT NULL PRIMARY KEY, name VARCHAR(32) NOT NULL, refcount INT NOT NULL, KEY name (name));
INSERT INTO tag SELECT n + 1, CONCAT(CHAR(97 + n % 26), CHAR(97 + n DIV 26 % 26), 'tag', n), 1 + n % 9 FROM number WHERE n < 4000;
CREATE TABLE event (id INT NOT NULL PRIMARY KEY, title VARCHAR(64) NOT NULL, summary VARCHAR(255) NOT NULL, image VARCHAR(64) NOT NULL, created DATETIME NOT NULL, at DATETIME NOT NULL, on_day DATE NOT NULL, submitter INT NOT NULL, KEY at (at), KEY submitter (submitter));
INSERT INTO event SELECT n + 1, CONCAT(CHAR(97 + n % 26), CHAR(97 + n DIV 26 % 26), 'event', n), REPEAT('summary ', 20), CONCAT('image', n, '.jpg'), '2008-01-01', '2037-01-01' + INTERVAL (n * 7919 % 18000) HOUR, DATE('2037-01-01' + INTERVAL (n * 7919 % 18000) HOUR), n % 2000 FROM number WHERE n < 18000;
UPDATE event SET at = '2008-06-01' + INTERVAL id MINUTE, on_day = '2008-06-01' WHERE id <= 90;
CREATE TABLE event_tag (event INT NOT NULL, tag INT NOT NULL, PRIMARY KEY (event, tag));
INSERT IGNORE INTO event_tag SELECT n DIV 3 + 1, n * 7907 % 4000 + 1 FROM number WHERE n < 54000;
ANALYZE TABLE tag, event, event_tag;

-- \transaction query
-- \if :query = 1
-- \kind subquery
SELECT name, refcount FROM tag WHERE id IN (SELECT tag FROM event_tag WHERE event = :event) AND refcount > 0 ORDER BY name;
-- \elif :query = 2
-- \kind join
SELECT t.name, t.refcount FROM tag t, event_tag et WHERE t.id = et.tag AND et.event = :event AND t.refcount > 0 ORDER BY t.name;
-- \elif :query = 3
-- \kind count_almost_all
SELECT COUNT(*) FROM event WHERE at >= CURRENT_TIMESTAMP;
-- \elif :query = 4
-- \kind count_all
SELECT COUNT(*) FROM event;
-- \kind count_few
SELECT COUNT(*) FROM event WHERE at < CURRENT_TIMESTAMP;
-- \elif :query = 5
-- \kind order_by_day
SELECT id, title, summary, image, created, on_day, submitter FROM event WHERE at >= CURRENT_TIMESTAMP ORDER BY on_day LIMIT 0, 10;
-- \elif :query = 6
-- \kind order_by_time
SELECT id, title, summary, image, created, on_day, submitter FROM event WHERE at >= CURRENT_TIMESTAMP ORDER BY at LIMIT 0, 10;
-- \elif :query = 7
-- \kind like_anywhere
SELECT id, name FROM tag WHERE name LIKE CONCAT('%', :letters, 'tag1%') LIMIT 20;
-- \elif :query = 8
-- \kind like_prefix
SELECT id, name FROM tag WHERE name LIKE CONCAT(:letters, 'tag1%') LIMIT 20;
-- \elif :query = 9
-- \kind page_by_offset
SELECT id, title FROM event ORDER BY id LIMIT {offset}, 20;
-- \else
-- \kind page_by_key
SELECT id, title FROM event WHERE id > :offset ORDER BY id LIMIT 20;
-- \endif
