WITH "step" AS MATERIALIZED (
  SELECT "a"."position" AS "a_position", "a"."time" AS "a_time", "d"."position" AS "d_position", "d"."time" AS "d_time"
  FROM "events" AS "a", "events" AS "d"
  WHERE "a"."type" = 'A'
    AND "d"."type" = 'D'
    AND "d"."s" <> 'it''s'
    AND "a"."time" < "d"."time"
    AND "d"."time" <= "a"."time" + 9::BIGINT
    AND "a"."x" < "d"."x" AND NOT isnan(CAST("d"."x" AS DOUBLE))
)
SELECT "step"."a_position" AS "a", "c"."position" AS "c", "step"."d_position" AS "d"
FROM "step", "events" AS "c"
WHERE "c"."type" = 'C'
  AND "step"."a_time" < "c"."time"
  AND "c"."time" <= "step"."a_time" + 9::BIGINT
  AND NOT EXISTS (SELECT 1 FROM "events" AS "n" WHERE "n"."type" = 'B' AND "step"."a_time" < "n"."time" AND "n"."time" < "c"."time" AND "n"."time" < "step"."d_time" AND "n"."y" = "c"."y" AND NOT (typeof("n"."y") IN ('FLOAT', 'DOUBLE') AND isnan(TRY_CAST("n"."y" AS DOUBLE))))
ORDER BY greatest("step"."a_position", "c"."position", "step"."d_position"), "step"."a_position", "c"."position", "step"."d_position"
