WITH "step" AS MATERIALIZED (
  SELECT "a"."position" AS "a_position", "a"."time" AS "a_time", "d"."position" AS "d_position", "d"."time" AS "d_time"
  FROM (
    SELECT "a"."position", "a"."time", "a"."type", "a"."x", unnest([CAST("a"."time" AS BIGINT) // 9, CAST("a"."time" AS BIGINT) // 9 + 1]) AS "bucket"
    FROM "events" AS "a"
    WHERE "a"."type" = 'A'
  ) AS "a", "events" AS "d"
  WHERE CAST("d"."time" AS BIGINT) // 9 = "a"."bucket"
    AND "d"."type" = 'D'
    AND CAST("d"."s" AS VARCHAR) <> 'it''s'
    AND "a"."time" < "d"."time"
    AND "d"."time" <= "a"."time" + 9::BIGINT
    AND "a"."x" < "d"."x" AND NOT isnan(CAST("d"."x" AS DOUBLE))
)
SELECT "step"."a_position" AS "a", "c"."position" AS "c", "step"."d_position" AS "d"
FROM "step", (
    SELECT "c"."position", "c"."time", "c"."type", "c"."y", unnest([CAST("c"."time" AS BIGINT) // 9 - 1, CAST("c"."time" AS BIGINT) // 9]) AS "bucket"
    FROM "events" AS "c"
    WHERE "c"."type" = 'C'
  ) AS "c"
WHERE CAST("step"."a_time" AS BIGINT) // 9 = "c"."bucket"
  AND "step"."a_time" < "c"."time"
  AND "c"."time" <= "step"."a_time" + 9::BIGINT
  AND NOT EXISTS (SELECT 1 FROM (
    SELECT "n"."time", "n"."type", "n"."y", unnest([CAST("n"."time" AS BIGINT) // 9 - 1, CAST("n"."time" AS BIGINT) // 9]) AS "bucket"
    FROM "events" AS "n"
    WHERE "n"."type" = 'B'
  ) AS "n" WHERE CAST("step"."a_time" AS BIGINT) // 9 = "n"."bucket" AND "step"."a_time" < "n"."time" AND "n"."time" < "c"."time" AND "n"."time" < "step"."d_time" AND "n"."y" = "c"."y" AND NOT (typeof("n"."y") IN ('FLOAT', 'DOUBLE') AND isnan(TRY_CAST("n"."y" AS DOUBLE))))
ORDER BY greatest("step"."a_position", "c"."position", "step"."d_position"), "step"."a_position", "c"."position", "step"."d_position"
