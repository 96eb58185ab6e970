-- Functions for PostgreSQL that return the time, the worker and the text of an id. All are
-- immutable, so indexes can use them:
--
--     psql -f ids.sql
--     SELECT flake_time(id), flake_worker(id), flake_text(id) FROM orders;
--     CREATE INDEX ON orders (flake_time(id));
--
-- Store flake, uuidv7 and ulid ids as uuid, snowflake and flake-idgen ids as bigint, and sno ids
-- as bytea. The text of a uuidv7, snowflake or flake-idgen id is id::text.

-- ids_number returns the number that up to 16 hexadecimal digits represent.
CREATE OR REPLACE FUNCTION ids_number(hex text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ('x' || lpad(hex, 16, '0'))::bit(64)::bigint;

-- ids_time converts milliseconds since 1970 to a timestamp. For a time that PostgreSQL cannot
-- represent, which is of no id, it returns NULL, so that such a row fails no query or index.
CREATE OR REPLACE FUNCTION ids_time(ms bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN ms BETWEEN 0 AND 9223372036854775 -- the year 294247
        -- Not to_timestamp(ms / 1000.0), whose double precision is inexact from the year 2242 on.
        THEN (timestamp '1970-01-01' + ms / 1000 * interval '1 s' + ms % 1000 * interval '1 ms') AT TIME ZONE 'UTC' END;

-- ids_above returns the bits of an id above its lowest bits.
CREATE OR REPLACE FUNCTION ids_above(id bigint, bits int) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN bits = 0 THEN id WHEN bits > 63 THEN 0 ELSE id >> bits & (1::bigint << 64 - bits) - 1 END;

-- ids_base32 returns bytes as digits of 5 bits each, padded with zero bits on the left.
CREATE OR REPLACE FUNCTION ids_base32(id bytea, digits text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (
        SELECT string_agg(substr(digits, substr(bits, i, 5)::bit(5)::int + 1, 1), '' ORDER BY i)
        FROM (SELECT repeat('0', (5 - 8 * length(id) % 5) % 5) || ('x' || encode(id, 'hex'))::varbit::text) AS t(bits),
             generate_series(1, length(bits), 5) AS i);

-- ids_crockford returns the crockford text of an id of any format. Pass a uuid as uuid_send(id),
-- and a bigint as int8send(id).
CREATE OR REPLACE FUNCTION ids_crockford(id bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ids_base32(id, '0123456789ABCDEFGHJKMNPQRSTVWXYZ');

-- flake

CREATE OR REPLACE FUNCTION flake_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ids_time(ids_number(left(encode(uuid_send(id), 'hex'), 16)));

CREATE OR REPLACE FUNCTION flake_worker(id uuid) RETURNS macaddr
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN substr(encode(uuid_send(id), 'hex'), 17, 12)::macaddr;

-- flake_text returns 22 base-62 digits.
CREATE OR REPLACE FUNCTION flake_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (
        SELECT string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
                                 (div(number, 62::numeric ^ i) % 62)::int + 1, 1), '' ORDER BY i DESC)
        FROM (SELECT sum(get_byte(uuid_send(id), 15 - i) * 256::numeric ^ i) FROM generate_series(0, 15) AS i) AS t(number),
             generate_series(0, 21) AS i);

-- ulid

CREATE OR REPLACE FUNCTION ulid_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ids_time(ids_number(left(encode(uuid_send(id), 'hex'), 12)));

CREATE OR REPLACE FUNCTION ulid_worker(id uuid) RETURNS macaddr
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN flake_worker(id);

CREATE OR REPLACE FUNCTION ulid_text(id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ids_crockford(uuid_send(id));

-- uuidv7

-- uuidv7_is returns whether a UUID is of version 7, the nil UUID or the highest.
CREATE OR REPLACE FUNCTION uuidv7_is(id uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN id::text ~ '^.{14}7.{4}[89ab]|^[0-]+$|^[f-]+$';

CREATE OR REPLACE FUNCTION uuidv7_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN uuidv7_is(id) THEN ulid_time(id) END;

CREATE OR REPLACE FUNCTION uuidv7_worker(id uuid) RETURNS macaddr
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN uuidv7_is(id)
        THEN lpad(to_hex(ids_number(right(encode(uuid_send(id), 'hex'), 16)) >> 14 & (1::bigint << 48) - 1), 12, '0')::macaddr END;

-- snowflake and flake-idgen

-- snowflake_time returns the time of an id. epoch is the generator's, in milliseconds since 1970
-- (for flake-idgen 0, unless configured); low_bits is the number of bits below the time, and
-- time_bits that of the time (for flake-idgen 42). For a number with more bits, which is not an id
-- of the layout, this and snowflake_worker return NULL.
CREATE OR REPLACE FUNCTION snowflake_time(id bigint, epoch bigint, low_bits int, time_bits int)
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN ids_above(id, low_bits + time_bits) = 0 THEN ids_time(epoch + ids_above(id, low_bits)) END;

CREATE OR REPLACE FUNCTION snowflake_worker(id bigint, machine_bits int, sequence_bits int, time_bits int)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN ids_above(id, machine_bits + sequence_bits + time_bits) = 0
        THEN id >> sequence_bits & (1::bigint << machine_bits) - 1 END;

-- Without time_bits, it is 41. These are functions of their own, because PostgreSQL can replace a
-- function that an index or a view uses, but cannot drop it to add a parameter.
CREATE OR REPLACE FUNCTION snowflake_time(id bigint, epoch bigint DEFAULT 1288834974657, low_bits int DEFAULT 22)
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN snowflake_time(id, epoch, low_bits, 41);

CREATE OR REPLACE FUNCTION snowflake_worker(id bigint, machine_bits int DEFAULT 10, sequence_bits int DEFAULT 12)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN snowflake_worker(id, machine_bits, sequence_bits, 41);

-- sno

CREATE OR REPLACE FUNCTION sno_time(id bytea) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN length(id) = 10 THEN ids_time(1262304000000 + (ids_number(left(encode(id, 'hex'), 10)) >> 1) * 4) END;

-- sno_worker returns the partition.
CREATE OR REPLACE FUNCTION sno_worker(id bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN length(id) = 10 THEN ids_number(encode(substr(id, 7, 2), 'hex')) END;

CREATE OR REPLACE FUNCTION sno_text(id bytea) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ids_base32(id, '23456789abcdefghijklmnopqrstuvwx');
