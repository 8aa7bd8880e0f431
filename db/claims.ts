/** Names and addresses that nobody else may have. A claim is one row under a unique key; the holder's rows go when it goes. */
import type { Transaction } from 'kysely'
import { conflict, type Problem } from '../domain/problem.ts'
import type { Random } from '../kit/sys/random.ts'
import type { Queries } from './open.ts'
import type { Holding } from './quotas.ts'
import type { Tables } from './tables.ts'

interface Claim extends Holding {
  readonly kind: 'hostname' | 'mac'
  /** Where the value is unique; empty for everywhere. */
  readonly scope: string
  readonly value: string
}

/** Claims the host name in the account and zone. Free when the holder has it already.
 *  Throws the Problem `name_taken` (409) when another server has it. */
export async function claimHostname(tx: Transaction<Tables>, claim: Holding & { readonly zone: string; readonly hostname: string }, now: Date): Promise<void> {
  const { accountId, holder, zone, hostname } = claim
  if (!(await insertClaim(tx, { kind: 'hostname', scope: `${accountId}/${zone}`, value: hostname, accountId, holder }, now))) throw hostnameTaken(hostname, zone)
}

const hostnameTaken = (hostname: string, zone: string): Problem =>
  conflict('name_taken', `Another server of the account is called ${hostname} in zone ${zone}. Choose another hostname.`)

const MAC_TRIES_MAXIMUM = 16

/** The holder's MAC address, made up (locally administered, unicast) when it has none. */
export async function claimMacAddress(tx: Transaction<Tables>, holding: Holding, random: Random, now: Date): Promise<string> {
  const earlier = await findMacAddress(tx, holding)
  if (earlier !== undefined) return earlier
  for (let tries = 0; tries < MAC_TRIES_MAXIMUM; tries++) {
    const value = ['52', '54', '00', ...[...random.bytes(3)].map((byte) => byte.toString(16).padStart(2, '0'))].join(':')
    if (await insertClaim(tx, { kind: 'mac', scope: '', value, ...holding }, now)) return value
  }
  throw new Error(`no free MAC address in ${MAC_TRIES_MAXIMUM} tries`)
}

/** Undefined while the holder has none. */
export async function findMacAddress(db: Queries, { accountId, holder }: Holding): Promise<string | undefined> {
  const row = await db.selectFrom('address_claim').select('value')
    .where('account_id', '=', accountId).where('holder', '=', holder).where('kind', '=', 'mac').executeTakeFirst()
  return row?.value
}

/** True when the holder has the value now, whether it is new or was claimed before. */
async function insertClaim(tx: Transaction<Tables>, { kind, scope, value, accountId, holder }: Claim, now: Date): Promise<boolean> {
  const inserted = await tx.insertInto('address_claim').values({ kind, scope, value, account_id: accountId, holder, claimed_at: now })
    .onConflict((onConflict) => onConflict.doNothing()).executeTakeFirst()
  if (inserted.numInsertedOrUpdatedRows === 1n) return true
  if (kind === 'mac') return false // a new random value that somebody has
  const row = await tx.selectFrom('address_claim').select(['account_id', 'holder']).where('kind', '=', kind).where('scope', '=', scope).where('value', '=', value).executeTakeFirst()
  return row?.account_id === accountId && row.holder === holder
}

/** What the one holder has claimed becomes the other's, in place of what that one has of the same kinds. */
export async function passClaims(tx: Transaction<Tables>, { accountId, holder: from }: Holding, to: string): Promise<void> {
  await tx.deleteFrom('address_claim').where('account_id', '=', accountId).where('holder', '=', to)
    .where('kind', 'in', (claim) => claim.selectFrom('address_claim as passed').select('passed.kind').where('passed.account_id', '=', accountId).where('passed.holder', '=', from)).execute()
  await tx.updateTable('address_claim').set({ holder: to }).where('account_id', '=', accountId).where('holder', '=', from).execute()
}

/** Undefined while the holder has none. */
export async function findHostname(db: Queries, { accountId, holder }: Holding): Promise<string | undefined> {
  const row = await db.selectFrom('address_claim').select('value').where('account_id', '=', accountId).where('holder', '=', holder).where('kind', '=', 'hostname').executeTakeFirst()
  return row?.value
}

/** Frees everything that the holder has claimed. */
export async function releaseClaims(tx: Transaction<Tables>, { accountId, holder }: Holding): Promise<void> {
  await tx.deleteFrom('address_claim').where('account_id', '=', accountId).where('holder', '=', holder).execute()
}
