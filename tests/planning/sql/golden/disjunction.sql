WITH `numbered` AS (
  SELECT `type`, `time`, `position`, `y`, `s`, row_number() OVER (PARTITION BY `s` ORDER BY `position`) AS `rank`
  FROM `events`
),
`found` AS (
  SELECT `a`.`position` AS `a`, `b`.`position` AS `b`, NULL AS `d`, 0 AS branch
  FROM `numbered` AS `a`, `numbered` AS `b`
  WHERE `a`.`type` = 'A'
    AND `b`.`type` = 'B'
    AND `a`.`time` < `b`.`time`
    AND `b`.`time` <= timestampadd(SECOND, 120, `a`.`time`)
    AND `b`.`rank` = `a`.`rank` + 1
    AND coalesce(try_divide(CAST(`a`.`y` AS DOUBLE), CAST(`b`.`y` AS DOUBLE)), CASE CAST(CAST(`b`.`y` AS DOUBLE) AS STRING) WHEN '0.0' THEN CAST(`a`.`y` AS DOUBLE) * CAST('Infinity' AS DOUBLE) WHEN '-0.0' THEN CAST(`a`.`y` AS DOUBLE) * CAST('-Infinity' AS DOUBLE) END) <= 0.5e0
    AND `a`.`s` = `b`.`s` AND NOT (typeof(`a`.`s`) IN ('float', 'double') AND isnan(try_cast(`a`.`s` AS DOUBLE)))
  UNION ALL
  SELECT `a`.`position` AS `a`, `b`.`position` AS `b`, NULL AS `d`, 1 AS branch
  FROM `numbered` AS `b`, `numbered` AS `a`
  WHERE `b`.`type` = 'B'
    AND `a`.`type` = 'A'
    AND `a`.`time` <= timestampadd(SECOND, 120, `b`.`time`)
    AND `a`.`rank` - `b`.`rank` BETWEEN -1 AND 1
    AND `b`.`time` <= timestampadd(SECOND, 120, `a`.`time`)
    AND coalesce(try_divide(CAST(`a`.`y` AS DOUBLE), CAST(`b`.`y` AS DOUBLE)), CASE CAST(CAST(`b`.`y` AS DOUBLE) AS STRING) WHEN '0.0' THEN CAST(`a`.`y` AS DOUBLE) * CAST('Infinity' AS DOUBLE) WHEN '-0.0' THEN CAST(`a`.`y` AS DOUBLE) * CAST('-Infinity' AS DOUBLE) END) <= 0.5e0
    AND `b`.`s` = `a`.`s` AND NOT (typeof(`b`.`s`) IN ('float', 'double') AND isnan(try_cast(`b`.`s` AS DOUBLE)))
  UNION ALL
  SELECT NULL AS `a`, NULL AS `b`, `d`.`position` AS `d`, 2 AS branch
  FROM `numbered` AS `d`
  WHERE `d`.`type` = 'D'
    AND `d`.`s` = `d`.`s` AND NOT (typeof(`d`.`s`) IN ('float', 'double') AND isnan(try_cast(`d`.`s` AS DOUBLE)))
),
`once` AS (
  SELECT `a`, `b`, `d`, min(branch) AS branch
  FROM `found`
  GROUP BY `a`, `b`, `d`
)
SELECT count(*) AS matches
FROM `once`
