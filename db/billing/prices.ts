/** Prices by the time from which they are valid. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'

export interface PriceKey {
  readonly resourceType: string
  /** Of plans only; else empty. */
  readonly plan: string
}
export interface DatedPrice extends PriceKey {
  readonly validFrom: Date
  /** Of one unit and month. */
  readonly unitMillicents: number
}

const BEGINNING = new Date(0)

/** All dated prices that exist now: new ones are added, and prices that are not valid yet are removed when they are no
 *  longer listed. Prices that were valid stay, because hours were metered by them. */
export async function recordDatedPrices(queries: Queries, prices: readonly DatedPrice[], now: Date): Promise<void> {
  const rows = JSON.stringify(prices)
  await sql`
    delete from price
    where valid_from > ${now} and not exists (
      select from jsonb_to_recordset(${rows}::jsonb) as known ("resourceType" text, plan text, "validFrom" timestamptz)
      where known."resourceType" = price.resource_type and known.plan = price.plan
        and known."validFrom" = price.valid_from)`.execute(queries)
  await sql`
    insert into price (resource_type, plan, valid_from, unit_millicents)
    select "resourceType", plan, "validFrom", "unitMillicents"
    from jsonb_to_recordset(${rows}::jsonb)
      as known ("resourceType" text, plan text, "validFrom" timestamptz, "unitMillicents" bigint)
    on conflict do nothing`.execute(queries)
}

/** A price without a date: valid from the beginning when there was none before, from now on when it differs from the
 *  previous one. */
export async function recordCurrentPrice(
  queries: Queries,
  { resourceType, plan }: PriceKey,
  unitMillicents: number,
  now: Date,
): Promise<void> {
  const newest = await selectWhere(queries, 'price', { resource_type: resourceType, plan })
    .select(['unit_millicents', 'valid_from'])
    .orderBy('valid_from', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (newest?.unit_millicents === unitMillicents) return
  await queries
    .insertInto('price')
    .values({
      resource_type: resourceType,
      plan,
      valid_from: newest === undefined ? BEGINNING : now,
      unit_millicents: unitMillicents,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** What one unit of everything costs: the prices that are valid now, by which hours are metered, and later ones. In the
 *  order of type, plan and validity. */
export async function listPrices(queries: Queries, now: Date): Promise<readonly DatedPrice[]> {
  const { rows } = await sql<DatedPrice>`
    select resource_type as "resourceType", plan, valid_from as "validFrom", unit_millicents as "unitMillicents"
    from price
    where valid_from > ${now} or valid_from = (
      select max(valid_from) from price valid
      where valid.resource_type = price.resource_type and valid.plan = price.plan and valid.valid_from <= ${now}
    )
    order by resource_type collate "C", plan collate "C", valid_from`.execute(queries)
  return rows
}
