/** Accounts as customers of the payment processor, and their suspension for unpaid invoices. */
import { sql, type Transaction } from 'kysely'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

/** Undefined until the account is a customer there. */
export async function findPaymentCustomer(queries: Queries, accountId: string): Promise<string | undefined> {
  const found = await selectWhere(queries, 'payment_customer', { account_id: accountId })
    .select('customer_id')
    .executeTakeFirst()
  return found?.customer_id
}

export async function findAccountOfCustomer(queries: Queries, customerId: string): Promise<string | undefined> {
  const found = await selectWhere(queries, 'payment_customer', { customer_id: customerId })
    .select('account_id')
    .executeTakeFirst()
  return found?.account_id
}

/** Returns the account's customer from now on: the first one recorded. */
export async function recordPaymentCustomer(
  queries: Queries,
  accountId: string,
  customerId: string,
  now: Date,
): Promise<string> {
  await queries
    .insertInto('payment_customer')
    .values({ account_id: accountId, customer_id: customerId, created_at: now })
    .onConflict((conflict) => conflict.column('account_id').doNothing())
    .execute()
  return (await findPaymentCustomer(queries, accountId)) ?? customerId
}

/** The payment method for invoices, as the processor has it; `expiresAt` is the end of its last month. */
export async function recordDefaultMethod(
  queries: Queries,
  customerId: string,
  method: { readonly id: string; readonly expiresAt: Date | null } | undefined,
): Promise<void> {
  await updateWhere(queries, 'payment_customer', { customer_id: customerId })
    .set({ default_method_id: method?.id ?? null, default_method_expires_at: method?.expiresAt ?? null })
    .execute()
}

export interface Payer {
  readonly accountId: string
  readonly name: string
  /** Of an owner; undefined for an account without one. */
  readonly email: string | undefined
}

/** The recipient of the account's invoices. The account must exist. */
export async function readPayer(queries: Queries, accountId: string): Promise<Payer> {
  const { name } = await selectWhere(queries, 'account', { id: accountId }).select('name').executeTakeFirstOrThrow()
  const owner = await queries
    .selectFrom('membership')
    .innerJoin('app_user', 'app_user.id', 'membership.user_id')
    .select('app_user.email')
    .where('membership.account_id', '=', accountId)
    .where('membership.role', '=', 'owner')
    .orderBy('membership.joined_at')
    .executeTakeFirst()
  return { accountId, name, email: owner?.email }
}

/** An invoice of the account has been overdue since before the instant. */
const hasOverdue = (before: Date) =>
  sql<boolean>`exists (select from invoice where account_id = account.id and overdue_since <= ${before})`

/** Accounts whose suspension for payment does not match their invoices. `before`: the grace period has ended for
 *  invoices that became overdue before it. */
export async function listSuspensionsDue(queries: Queries, before: Date, limit: number): Promise<readonly string[]> {
  const rows = await queries
    .selectFrom('account')
    .select('id')
    .where(sql<boolean>`(suspended_for_payment_at is not null) <> ${hasOverdue(before)}`)
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Suspends the account for payment, or lifts the suspension, according to its invoices. Returns what was done. */
export async function adjustSuspension(
  tx: Transaction<Tables>,
  accountId: string,
  before: Date,
  now: Date,
): Promise<'suspended' | 'lifted' | undefined> {
  const account = await selectWhere(tx, 'account', { id: accountId })
    .select(['suspended_for_payment_at', hasOverdue(before).as('has_overdue')])
    .forUpdate()
    .executeTakeFirst()
  if (account === undefined || (account.suspended_for_payment_at !== null) === account.has_overdue) return undefined
  await updateWhere(tx, 'account', { id: accountId })
    .set({ suspended_for_payment_at: account.has_overdue ? now : null })
    .execute()
  return account.has_overdue ? 'suspended' : 'lifted'
}
