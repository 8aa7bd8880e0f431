/** Metered hours and traffic of an account, in the form that `billMonth` needs. */
import { sql } from 'kysely'
import type { LiveResource, MeteredHours, MonthUsage, TransferDay } from '../../domain/billing/rules.ts'
import type { Month } from '../../domain/billing/transfer.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'

/** Everything of the month; resources that still exist belong to the month that contains the given time. */
export async function readMonthUsage(
  queries: Queries,
  accountId: string,
  month: Month,
  now?: Date,
): Promise<MonthUsage> {
  return {
    hours: await listMeteredHours(queries, accountId, month),
    transfers: await listTransferDays(queries, accountId, month),
    live: now === undefined ? [] : await listLiveResources(queries, accountId, now),
  }
}

const DATE_LENGTH = 'YYYY-MM-DD'.length
const dayOf = (at: Date) => sql<Date>`${at.toISOString().slice(0, DATE_LENGTH)}::date`

async function listMeteredHours(
  queries: Queries,
  accountId: string,
  { start, end }: Month,
): Promise<readonly MeteredHours[]> {
  return await queries
    .selectFrom('usage_day as day')
    .innerJoin('billed_life as life', 'life.id', 'day.life')
    .innerJoin('billed_resource as thing', 'thing.id', 'day.resource')
    .select([
      'day.resource',
      'thing.resource_type as resourceType',
      'thing.resource_id as resourceId',
      'thing.name',
      'life.plan',
      'day.monthly_cents as monthlyCents',
      sql<string>`to_char(day.date, 'YYYY-MM-DD')`.as('date'),
      'day.first_hour as firstHour',
      'day.hours',
    ])
    .where('day.account_id', '=', accountId)
    .where('day.date', '>=', dayOf(start))
    .where('day.date', '<', dayOf(end))
    .where('day.hours', '>', 0)
    .execute()
}

async function listTransferDays(
  queries: Queries,
  accountId: string,
  { start, end }: Month,
): Promise<readonly TransferDay[]> {
  return await selectWhere(queries, 'network_transfer', { account_id: accountId })
    .select([
      'server_id as serverId',
      'server_name as serverName',
      sql<string>`to_char(date, 'YYYY-MM-DD')`.as('date'),
      'transmitted_bytes as transmittedBytes',
    ])
    .where('date', '>=', dayOf(start))
    .where('date', '<', dayOf(end))
    .orderBy('date')
    .orderBy('server_id')
    .execute()
}

/** At their current prices; resources without a price are left out. */
async function listLiveResources(queries: Queries, accountId: string, now: Date): Promise<readonly LiveResource[]> {
  const { rows } = await sql<LiveResource>`
    select thing.id as resource, thing.resource_type as "resourceType", thing.resource_id as "resourceId", thing.name,
      life.plan, (2 * life.quantity * price.unit_millicents + 1000) / 2000 as "monthlyCents",
      life.metered_until as "meteredUntil"
    from billed_life life
    join billed_resource thing on thing.id = life.resource
    cross join lateral (
      select unit_millicents from price
      where resource_type = thing.resource_type and plan = life.plan and valid_from <= ${now}
      order by valid_from desc limit 1
    ) price
    where life.account_id = ${accountId} and life.until is null`.execute(queries)
  return rows
}

/** When the account's first hour or byte was counted; undefined before. */
export async function firstUsageAt(queries: Queries, accountId: string): Promise<Date | undefined> {
  const { rows } = await sql<{ first: Date | null }>`
    select least(
      (select min(date) from usage_day where account_id = ${accountId}),
      (select min(date) from network_transfer where account_id = ${accountId})
    )::timestamp at time zone 'UTC' as first`.execute(queries)
  return rows[0]?.first ?? undefined
}
