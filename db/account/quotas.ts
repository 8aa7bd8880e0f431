/** Quotas of accounts. A resource holds amounts under its holder name (`server/<id>`). Taking is one conditional update
 *  and deleting the holding releases it, so that neither can happen twice. Rows are always locked in the order of their
 *  names. */
import { sql, type Transaction } from 'kysely'
import { notFound, quotaExceeded } from '../../domain/problem.ts'
import { DEFAULT_QUOTAS, type QuotaAmounts, type QuotaHolder, type QuotaName } from '../../domain/account/quota.ts'
import { isDryRun, type DryRunContext, dryRunNotes } from '../../kit/sys/dry-run.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface Holding {
  readonly accountId: string
  /** The holder, as `<noun>/<id>`. */
  readonly holder: string
}

/** Amounts that a dry run would take, by holder and quota; negative for those that it would release. */
const claimed = dryRunNotes(() => new Map<string, { readonly name: string; readonly amount: number }>())

const note = (holder: string, name: string, amount: number): void =>
  void claimed.current()?.set(`${holder} ${name}`, { name, amount })

/** How much of each quota a dry run would take or, if negative, release. */
export function dryRunQuotas(dryRun: DryRunContext): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { name, amount } of claimed.of(dryRun).values()) sums.set(name, (sums.get(name) ?? 0) + amount)
  return sums
}

interface QuotaHolding extends Holding {
  readonly holder: `${QuotaHolder}/${string}`
}

/** Sets the default limits of a new account; existing limits stay. */
export async function openQuotas(tx: Transaction<Tables>, accountId: string): Promise<void> {
  const rows = Object.entries(DEFAULT_QUOTAS).map(([name, limit]) => ({ account_id: accountId, name, limit }))
  await tx
    .insertInto('account_quota')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Takes each amount once: an amount that a holder holds already stays as it is. All holders belong to one account.
 *  Throws the Problem `quota_exceeded` (422) for the first limit that does not allow it; the transaction must then be
 *  rolled back. */
export async function takeQuotas(
  tx: Transaction<Tables>,
  ...holdings: readonly (QuotaHolding & { readonly amounts: QuotaAmounts })[]
): Promise<void> {
  const [first] = holdings
  if (first === undefined) return
  const { accountId } = first
  const wanted = holdings.flatMap(({ holder, amounts }) =>
    inNameOrder(amounts)
      .filter(([, amount]) => amount > 0)
      .map(([name, amount]) => ({ holder, name, amount })),
  )
  const holders = wanted.map(({ holder }) => holder)
  const names = wanted.map(({ name }) => name)
  const amounts = wanted.map(({ amount }) => amount)
  if (isDryRun()) {
    const held = await selectWhere(tx, 'quota_holding', { account_id: accountId })
      .select(['holder', 'name'])
      .where('holder', 'in', [...holders, ''])
      .execute()
    for (const { holder, name, amount } of wanted)
      if (!held.some((each) => each.holder === holder && each.name === name)) note(holder, name, amount)
  }
  // One statement for all of them: it locks these rows against other changes of the account until this transaction
  // ends.
  const { rows: refused } = await sql<{ name: QuotaName; amount: number }>`
    with held as (
      insert into quota_holding (account_id, holder, name, amount)
      select ${accountId}::uuid, holder, name, amount
      from unnest(${holders}::text[], ${names}::text[], ${amounts}::bigint[]) as wanted (holder, name, amount)
      on conflict do nothing returning name, amount
    ), requested as (
      select name, sum(amount)::bigint as amount from held group by name
    ), locked as (
      select name from account_quota where account_id = ${accountId} and name in (select name from requested)
      order by name for update
    ), taken as (
      update account_quota quota set used = used + amount from requested join locked using (name)
      where quota.account_id = ${accountId} and quota.name = requested.name and used + amount <= quota."limit"
      returning quota.name
    )
    select name, amount from requested where name not in (select name from taken) order by name`.execute(tx)
  for (const { name, amount } of refused) await addOrRefuse(tx, accountId, name, amount)
}

async function addOrRefuse(tx: Transaction<Tables>, accountId: string, name: QuotaName, amount: number): Promise<void> {
  const isTaken =
    (await addUsed(tx, accountId, name, amount)) ||
    (await openQuotas(tx, accountId), await addUsed(tx, accountId, name, amount))
  if (isTaken) return
  const { limit, used } = await selectWhere(tx, 'account_quota', { account_id: accountId, name })
    .select(['limit', 'used'])
    .executeTakeFirstOrThrow()
  throw quotaExceeded({ name, limit, used, requested: amount })
}

async function addUsed(tx: Transaction<Tables>, accountId: string, name: string, amount: number): Promise<boolean> {
  const updated = await updateWhere(tx, 'account_quota', { account_id: accountId, name })
    .set((row) => ({ used: row('used', '+', amount) }))
    .where((row) => row(row('used', '+', amount), '<=', row.ref('limit')))
    .executeTakeFirst()
  return updated.numUpdatedRows > 0n
}

/** The holders of a noun, with the ids of their objects. */
export async function listQuotaHolders(
  db: Queries,
  noun: QuotaHolder,
): Promise<readonly { readonly accountId: string; readonly id: string }[]> {
  const prefix = `${noun}/`
  const rows = await db
    .selectFrom('quota_holding')
    .select(['account_id', sql<string>`substr(holder, ${prefix.length + 1})`.as('id')])
    .distinct()
    .where(sql<boolean>`starts_with(holder, ${prefix})`)
    .execute()
  return rows.map(({ account_id: accountId, id }) => ({ accountId, id }))
}

/** The amount of the quota that the holder holds, locked until the end of the transaction; undefined for none. */
const lockHolding = (
  tx: Transaction<Tables>,
  { accountId, holder, name }: Holding & { readonly name: QuotaName },
): Promise<{ readonly amount: number } | undefined> =>
  selectWhere(tx, 'quota_holding', { account_id: accountId, holder, name })
    .select('amount')
    .forUpdate()
    .executeTakeFirst()

/** Sets the amounts that the holder holds already to exactly these. Throws the Problem `quota_exceeded` (422) for the
 *  first limit that does not allow it; the transaction must then be rolled back. */
export async function changeQuotas(
  tx: Transaction<Tables>,
  { accountId, holder, amounts }: Holding & { readonly amounts: QuotaAmounts },
): Promise<void> {
  for (const [name, amount] of inNameOrder(amounts)) {
    const held = await lockHolding(tx, { accountId, holder, name })
    if (held === undefined || held.amount === amount) continue
    note(holder, name, amount - held.amount)
    await updateWhere(tx, 'quota_holding', { account_id: accountId, holder, name }).set({ amount }).execute()
    if (amount > held.amount) await addOrRefuse(tx, accountId, name, amount - held.amount)
    else await subtractUsed(tx, accountId, name, held.amount - amount)
  }
}

/** Records the amounts of a holder, regardless of the limits: for an existing resource that was measured only now. A
 *  holder of nothing continues to hold nothing. */
export async function recordQuotas(
  tx: Transaction<Tables>,
  { accountId, holder, amounts }: Holding & { readonly amounts: QuotaAmounts },
): Promise<void> {
  if (!(await holdsQuotas(tx, { accountId, holder }))) return
  await openQuotas(tx, accountId)
  for (const [name, amount] of inNameOrder(amounts)) {
    const held = await lockHolding(tx, { accountId, holder, name })
    if (amount > 0)
      await tx
        .insertInto('quota_holding')
        .values({ account_id: accountId, holder, name, amount })
        .onConflict((conflict) => conflict.columns(['account_id', 'holder', 'name']).doUpdateSet({ amount }))
        .execute()
    else await deleteWhere(tx, 'quota_holding', { account_id: accountId, holder, name }).execute()
    note(holder, name, amount - (held?.amount ?? 0))
    await subtractUsed(tx, accountId, name, (held?.amount ?? 0) - amount)
  }
}

/** Releases everything that the holder holds. Idempotent. */
export async function releaseQuotas(tx: Transaction<Tables>, { accountId, holder }: Holding): Promise<void> {
  const held = await deleteWhere(tx, 'quota_holding', { account_id: accountId, holder })
    .returning(['name', 'amount'])
    .execute()
  for (const { name, amount } of held.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    note(holder, name, -amount)
    await subtractUsed(tx, accountId, name, amount)
  }
}

const subtractUsed = async (tx: Transaction<Tables>, accountId: string, name: string, amount: number): Promise<void> =>
  void (await updateWhere(tx, 'account_quota', { account_id: accountId, name })
    .set((row) => ({ used: row('used', '-', amount) }))
    .execute())

/** Whether the holder has claimed anything. */
export const holdsQuotas = async (db: Queries, { accountId, holder }: Holding): Promise<boolean> =>
  (await selectWhere(db, 'quota_holding', { account_id: accountId, holder }).select('name').executeTakeFirst()) !==
  undefined

interface QuotaKey {
  readonly accountId: string
  readonly name: string
}
interface QuotaState {
  readonly limit: number
  readonly used: number
}

/** The quota, with its default limit where the account has none yet. Throws 404 for an unknown name. */
export async function findQuota(tx: Transaction<Tables>, accountId: string, name: string): Promise<QuotaState> {
  await openQuotas(tx, accountId)
  const row = await selectWhere(tx, 'account_quota', { account_id: accountId, name })
    .select(['limit', 'used'])
    .forUpdate()
    .executeTakeFirst()
  if (row === undefined) throw notFound('quota')
  return row
}

/** Returns the quota as it was before. Throws 404 for an unknown name. */
export async function setQuotaLimit(
  tx: Transaction<Tables>,
  { accountId, name, limit }: QuotaKey & { readonly limit: number },
): Promise<QuotaState> {
  const before = await findQuota(tx, accountId, name)
  await updateWhere(tx, 'account_quota', { account_id: accountId, name }).set({ limit }).execute()
  return before
}

/** Every limit of the account, by name. */
export async function listQuotas(
  db: Queries,
  accountId: string,
): Promise<readonly { readonly name: string; readonly limit: number; readonly used: number }[]> {
  return selectWhere(db, 'account_quota', { account_id: accountId })
    .select(['name', 'limit', 'used'])
    .orderBy('name')
    .execute()
}

const inNameOrder = (amounts: QuotaAmounts): [QuotaName, number][] =>
  // the type has these keys only
  (Object.entries(amounts) as [QuotaName, number][]).sort(([a], [b]) => (a < b ? -1 : 1))
