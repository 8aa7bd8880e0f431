/** Records from when to when resources exist, and an hour row for each clock hour (UTC) in between. Every write may be
 *  repeated and may be late: rows are created once, and superfluous ones are deleted until their month is closed. */
import { sql, type Transaction } from 'kysely'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'

/** A resource that costs, as it was observed. */
export interface SeenResource {
  readonly accountId: string
  readonly resourceType: string
  /** Unique among all resources of the type that ever existed, regardless of their names. */
  readonly uid: string
  /** Its id in the API. */
  readonly resourceId: string
  readonly name: string
  readonly plan: string
  /** Units of the price: GiB, or 1. */
  readonly quantity: number
  readonly since: Date
  /** When it got this plan and size, if it had others before. */
  readonly changedAt: Date
  /** When its deletion was requested. */
  readonly until: Date | undefined
}

export type ResourceKey = Pick<SeenResource, 'resourceType' | 'uid'>

/** Must be called in a transaction. Does nothing for what was recorded already. */
export async function recordSeen(tx: Transaction<Tables>, resources: readonly SeenResource[]): Promise<void> {
  if (resources.length === 0) return
  const rows = sql`jsonb_to_recordset(${JSON.stringify(resources.map(toRow))}::jsonb) as seen (
    account_id uuid, resource_type text, uid text, resource_id text, name text, plan text, quantity bigint,
    since timestamptz, changed_at timestamptz, until timestamptz)`
  // In one order, so that two processes that record the same wait for each other and never deadlock.
  await sql`
    insert into billed_resource (account_id, resource_type, uid, resource_id, name)
    select account_id, resource_type, uid, resource_id, name from ${rows} order by resource_type, uid
    on conflict (resource_type, uid) do update set name = excluded.name
    where billed_resource.name <> excluded.name`.execute(tx)
  await sql`
    select 1 from billed_resource r join ${rows} on r.resource_type = seen.resource_type and r.uid = seen.uid
    order by r.resource_type, r.uid for update of r`.execute(tx)
  const ended = await sql<{ id: number }>`
    update billed_life l
    set until = greatest(l.since, case when seen.until is null then seen.changed_at else seen.until end)
    from ${rows} join billed_resource r on r.resource_type = seen.resource_type and r.uid = seen.uid
    where l.resource = r.id and l.until is null
      and (seen.until is not null or l.plan <> seen.plan or l.quantity <> seen.quantity)
    returning l.id`.execute(tx)
  await forgetHoursBeyondEnd(
    tx,
    ended.rows.map(({ id }) => id),
  )
  // Each life is metered from the hour in which it started: among several lives in an hour, the most expensive counts.
  await sql`
    insert into billed_life (resource, account_id, plan, quantity, since, until, metered_until)
    select r.id, seen.account_id, seen.plan, seen.quantity, began.since,
      case when seen.until is null then null else greatest(began.since, seen.until) end,
      date_bin('1 hour', began.since, 'epoch')
    from ${rows}
    join billed_resource r on r.resource_type = seen.resource_type and r.uid = seen.uid
    left join lateral (select max(until) as until from billed_life where resource = r.id) before on true
    cross join lateral (select greatest(seen.since, before.until) as since) began
    where not exists (select from billed_life where resource = r.id and until is null)
      and (seen.until is null or before.until is null)
    order by r.id`.execute(tx)
}

const toRow = (resource: SeenResource) => ({
  account_id: resource.accountId,
  resource_type: resource.resourceType,
  uid: resource.uid,
  resource_id: resource.resourceId,
  name: resource.name,
  plan: resource.plan,
  quantity: resource.quantity,
  since: resource.since,
  changed_at: resource.changedAt,
  until: resource.until ?? null,
})

/** Ends the lives of resources whose deletion nobody observed, as of the given time. */
export async function recordVanished(tx: Transaction<Tables>, keys: readonly ResourceKey[], at: Date): Promise<void> {
  if (keys.length === 0) return
  const ended = await sql<{ id: number }>`
    update billed_life l set until = greatest(l.since, ${at}::timestamptz)
    from jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as gone ("resourceType" text, uid text)
    join billed_resource r on r.resource_type = gone."resourceType" and r.uid = gone.uid
    where l.resource = r.id and l.until is null returning l.id`.execute(tx)
  await forgetHoursBeyondEnd(
    tx,
    ended.rows.map(({ id }) => id),
  )
}

/** Deletes the hours that were metered after the end of lives, except for those of closed months. */
async function forgetHoursBeyondEnd(tx: Transaction<Tables>, lives: readonly number[]): Promise<void> {
  if (lives.length === 0) return
  const closedUntil = await lockClosing(tx)
  await sql`
    with gone as (
      delete from usage_hour h using billed_life l
      where l.id = any(${lives}::bigint[]) and h.resource = l.resource and h.life = l.id
        and h.hour >= l.until and h.hour >= ${closedUntil}
      returning l.account_id, h.life, h.monthly_cents, (h.hour at time zone 'UTC')::date as date
    ), sums as (
      select account_id, life, monthly_cents, date, count(*) as hours from gone group by 1, 2, 3, 4
    )
    update usage_day d set hours = d.hours - sums.hours from sums
    where d.account_id = sums.account_id and d.date = sums.date and d.life = sums.life
      and d.monthly_cents = sums.monthly_cents`.execute(tx)
}

/** The end of the closed months; nobody closes another until the transaction ends. */
async function lockClosing(tx: Transaction<Tables>): Promise<Date> {
  const find = () => tx.selectFrom('metering').select('closed_until').forShare().executeTakeFirst()
  const found = (await find()) ?? (await makeRow(tx).then(find))
  return found?.closed_until ?? NEVER
}

const NEVER = new Date(0)

/** The only row of its table, which is deleted with the others when a database is emptied. */
const makeRow = (queries: Queries) =>
  queries
    .insertInto('metering')
    .values({ closed_until: NEVER })
    .onConflict((conflict) => conflict.doNothing())
    .execute()

/** How many lives, and hours of each, are metered in one transaction. */
export const METER_LIVES_MAXIMUM = 5_000
const HOURS_AT_ONCE_MAXIMUM = 24

/** One batch: hour rows of lives that were not observed through `through`, which is the start of an hour. For an hour
 *  in which a resource had several plans or sizes, the most expensive is recorded. Returns the number of lives; 0 when
 *  none is left that no other process is working on. */
export async function meterBatch(
  db: Database,
  through: Date,
  livesMaximum: number = METER_LIVES_MAXIMUM,
): Promise<number> {
  return await db.transaction().execute(async (tx) => {
    const closedUntil = await lockClosing(tx)
    // Nobody else meters their resources now: the next statement sees all their hours.
    const { rows } = await sql<{ id: number }>`
      select l.id from billed_life l join billed_resource r on r.id = l.resource
      where l.metered_until < ${through}::timestamptz and (l.until is null or l.metered_until < l.until)
      order by l.metered_until, l.id limit ${livesMaximum} for update of l, r skip locked`.execute(tx)
    if (rows.length === 0) return 0
    await sql`
      with due as (
        select id, resource, account_id, plan, quantity, since, metered_until,
          least(${through}::timestamptz, metered_until + ${HOURS_AT_ONCE_MAXIMUM} * interval '1 hour',
            date_bin('1 hour', until - interval '1 microsecond', 'epoch') + interval '1 hour') as looked_until
        from billed_life where id = any(${rows.map(({ id }) => id)}::bigint[])
      ), dearest as (
        select distinct on (due.resource, hour) due.resource, hour, due.id as life,
          (2 * due.quantity * price.unit_millicents + 1000) / 2000 as monthly_cents
        from due
        join billed_resource r on r.id = due.resource
        cross join generate_series(due.metered_until, due.looked_until - interval '1 hour', interval '1 hour') as hour
        cross join lateral (
          select unit_millicents from price
          where resource_type = r.resource_type and plan = due.plan and valid_from <= greatest(hour, due.since)
          order by valid_from desc limit 1
        ) price
        where hour >= ${closedUntil}
        order by due.resource, hour, monthly_cents desc, due.id
      ), replaced as (
        select h.hour, h.life, h.monthly_cents from usage_hour h join dearest d using (resource, hour)
        where h.monthly_cents < d.monthly_cents
      ), made as (
        insert into usage_hour (resource, hour, life, monthly_cents)
        select resource, hour, life, monthly_cents from dearest
        on conflict (resource, hour) do update set life = excluded.life, monthly_cents = excluded.monthly_cents
        where usage_hour.monthly_cents < excluded.monthly_cents
        returning hour, life, monthly_cents
      ), fewer as (
        -- A life loses its last hour only, after which it is never due again: no row here is one of those below.
        update usage_day d set hours = d.hours - gone.hours
        from (
          select l.account_id, r.life, r.monthly_cents, (r.hour at time zone 'UTC')::date as date, count(*) as hours
          from replaced r join billed_life l on l.id = r.life group by 1, 2, 3, 4
        ) gone
        where d.account_id = gone.account_id and d.date = gone.date and d.life = gone.life
          and d.monthly_cents = gone.monthly_cents
      ), days as (
        insert into usage_day (account_id, date, life, monthly_cents, resource, first_hour, hours)
        select due.account_id, (made.hour at time zone 'UTC')::date as date, due.id, made.monthly_cents, due.resource,
          min(extract(hour from made.hour at time zone 'UTC')), count(*)
        from made join due on due.id = made.life
        group by due.account_id, date, due.id, made.monthly_cents, due.resource
        on conflict (account_id, date, life, monthly_cents) do update
        set hours = usage_day.hours + excluded.hours, first_hour = least(usage_day.first_hour, excluded.first_hour)
      )
      update billed_life set metered_until = due.looked_until from due where billed_life.id = due.id`.execute(tx)
    return rows.length
  })
}

export interface Metering {
  /** When all resources were last observed. */
  readonly lookedAt: Date | null
  /** All hours before it are metered. */
  readonly meteredThrough: Date | null
  /** Nothing before it is metered or deleted: invoices were created from it. */
  readonly closedUntil: Date
}

export async function readMetering(queries: Queries): Promise<Metering> {
  const row = await queries.selectFrom('metering').selectAll().executeTakeFirst()
  return {
    lookedAt: row?.looked_at ?? null,
    meteredThrough: row?.metered_through ?? null,
    closedUntil: row?.closed_until ?? NEVER,
  }
}

/** Records that everything was observed; never goes back. */
export async function recordLook(queries: Queries, at: Date): Promise<void> {
  await makeRow(queries)
  await sql`update metering set looked_at = greatest(looked_at, ${at}::timestamptz)`.execute(queries)
}

/** Records that everything before is metered, unless something is not; never goes back. */
export async function recordMetered(queries: Queries, through: Date): Promise<void> {
  await sql`
    update metering set metered_through = greatest(metered_through, ${through}::timestamptz)
    where not exists (
      select from billed_life where metered_until < ${through}::timestamptz and (until is null or metered_until < until)
    )`.execute(queries)
}

/** The recorded resources that have not ended, in any order. */
export async function listOpenLives(
  queries: Queries,
): Promise<readonly (ResourceKey & Pick<SeenResource, 'name' | 'plan' | 'quantity'>)[]> {
  const rows = await queries
    .selectFrom('billed_life as life')
    .innerJoin('billed_resource as resource', 'resource.id', 'life.resource')
    .select(['resource.resource_type', 'resource.uid', 'resource.name', 'life.plan', 'life.quantity'])
    .where('life.until', 'is', null)
    .execute()
  return rows.map(({ resource_type: resourceType, ...row }) => ({ resourceType, ...row }))
}

/** Which of the types are recorded for the uid, and whether they have not ended. */
export async function findRecorded(
  queries: Queries,
  resourceTypes: readonly string[],
  uid: string,
): Promise<readonly { readonly resourceType: string; readonly isOpen: boolean }[]> {
  const rows = await queries
    .selectFrom('billed_resource as resource')
    .leftJoin('billed_life as life', (join) =>
      join.onRef('life.resource', '=', 'resource.id').on('life.until', 'is', null),
    )
    .select(['resource.resource_type', 'life.id'])
    .where('resource.resource_type', 'in', resourceTypes)
    .where('resource.uid', '=', uid)
    .execute()
  return rows.map(({ resource_type: resourceType, id }) => ({ resourceType, isOpen: id !== null }))
}
