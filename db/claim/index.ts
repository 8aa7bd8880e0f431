/** Unique names and addresses. A claim is one row under a unique key; a holder's rows are deleted with it. */
import { sql, type Transaction } from 'kysely'
import { isHiddenMachineId } from '../../domain/managed-machine/rules.ts'
import { nameTaken, type Problem } from '../../domain/problem.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Queries } from '../kit/open.ts'
import type { Holding } from '../account/index.ts'
import { requireLook } from '../look/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export {
  forgetUse,
  forgetUseOf,
  isInUseByOthers,
  keepInUse,
  listDeletedUsers,
  listInUse,
  usesSomething,
} from './host-use.ts'

interface Claim extends Holding {
  readonly kind: 'hostname' | 'mac'
  /** Where the value is unique; empty for everywhere. */
  readonly scope: string
  readonly value: string
}

/** Claims the host name in the account and zone. Does nothing when the holder has it already.
 *  Throws the Problem `name_taken` (409) when another server has it. */
export async function claimHostname(
  tx: Transaction<Tables>,
  claim: Holding & { readonly zone: string; readonly hostname: string },
  now: Date,
): Promise<void> {
  const { accountId, holder, zone, hostname } = claim
  if (
    !(await insertClaim(
      tx,
      { kind: 'hostname', scope: `${accountId}/${zone}`, value: hostname, accountId, holder },
      now,
    ))
  )
    throw await hostnameTaken(tx, claim, [])
}

/** The refusal, with the server that has the name. `refused` are not made, so that it is none of them. */
async function hostnameTaken(
  tx: Transaction<Tables>,
  { accountId, zone, hostname }: Pick<NamesDemand, 'accountId' | 'zone' | 'hostname'>,
  refused: readonly Holding[],
): Promise<Problem> {
  const owner = await selectWhere(tx, 'address_claim', {
    kind: 'hostname',
    scope: `${accountId}/${zone}`,
    value: hostname,
  })
    .select('holder')
    .executeTakeFirst()
  const id = owner?.holder.replace(/^[^/]*\//, '')
  const isMade = owner !== undefined && !refused.some(({ holder }) => holder === owner.holder)
  return nameTaken(
    `Another server of the account is called ${hostname} in zone ${zone}. Choose another hostname.`,
    // machines of managed services are no servers for customers
    isMade && id !== undefined && !isHiddenMachineId(id) ? { type: 'server', id } : undefined,
  )
}

const MAC_TRIES_MAXIMUM = 16

interface NamesDemand extends Holding {
  readonly zone: string
  readonly hostname: string
}

/** Claims the host names of new holders, and for each a random MAC address (locally administered, unicast). Returns the
 *  MAC addresses by holder.
 *  Throws the Problem `name_taken` (409). */
export async function claimNames(
  tx: Transaction<Tables>,
  demands: readonly NamesDemand[],
  { now, random }: { readonly now: Date; readonly random: Random },
): Promise<ReadonlyMap<string, string>> {
  let missing: readonly Holding[] = demands
  let hostnames = demands.map(
    ({ accountId, holder, zone, hostname }): Claim => ({
      kind: 'hostname',
      scope: `${accountId}/${zone}`,
      value: hostname,
      accountId,
      holder,
    }),
  )
  const macAddresses = new Map<string, string>()
  for (let tries = 0; tries < MAC_TRIES_MAXIMUM; tries++) {
    const claims = await insertClaims(
      tx,
      [
        ...hostnames,
        ...missing.map(
          ({ accountId, holder }): Claim => ({
            kind: 'mac',
            scope: '',
            value: newMacAddress(random),
            accountId,
            holder,
          }),
        ),
      ],
      now,
    )
    const nameless = hostnames.findIndex(
      ({ holder }) => !claims.some((claim) => claim.kind === 'hostname' && claim.holder === holder),
    )
    const refused = demands[nameless]
    if (refused !== undefined) throw await hostnameTaken(tx, refused, demands)
    hostnames = []
    for (const { kind, holder, value } of claims) if (kind === 'mac') macAddresses.set(holder, value)
    missing = missing.filter(({ holder }) => !macAddresses.has(holder))
    if (missing.length === 0) return macAddresses
  }
  throw new Error(`no free MAC address in ${MAC_TRIES_MAXIMUM} tries`)
}

/** Claims a random MAC address for a holder that has none. */
export async function claimMacAddress(
  tx: Transaction<Tables>,
  { accountId, holder }: Holding,
  { now, random }: { readonly now: Date; readonly random: Random },
): Promise<string> {
  for (let tries = 0; tries < MAC_TRIES_MAXIMUM; tries++) {
    const value = newMacAddress(random)
    if ((await insertClaims(tx, [{ kind: 'mac', scope: '', value, accountId, holder }], now)).length === 1) return value
  }
  throw new Error(`no free MAC address in ${MAC_TRIES_MAXIMUM} tries`)
}

const newMacAddress = (random: Random): string =>
  ['52', '54', '00', ...[...random.bytes(3)].map((byte) => byte.toString(16).padStart(2, '0'))].join(':')

/** Undefined while the holder has none. */
export async function findMacAddress(db: Queries, { accountId, holder }: Holding): Promise<string | undefined> {
  const row = await selectWhere(db, 'address_claim', { account_id: accountId, holder, kind: 'mac' })
    .select('value')
    .executeTakeFirst()
  return row?.value
}

/** Returns true when the holder has the value, newly or from before. */
async function insertClaim(
  tx: Transaction<Tables>,
  { kind, scope, value, accountId, holder }: Claim,
  now: Date,
): Promise<boolean> {
  if ((await insertClaims(tx, [{ kind, scope, value, accountId, holder }], now)).length === 1) return true
  const row = await selectWhere(tx, 'address_claim', { kind, scope, value })
    .select(['account_id', 'holder'])
    .executeTakeFirst()
  return row?.account_id === accountId && row.holder === holder
}

/** Returns the new ones. */
async function insertClaims(
  tx: Transaction<Tables>,
  claims: readonly Claim[],
  now: Date,
): Promise<readonly Pick<Claim, 'kind' | 'holder' | 'value'>[]> {
  await requireLook(tx)
  // A value that is used without a claim is as unavailable as a claimed one.
  const { rows: newClaims } = await sql<Pick<Claim, 'kind' | 'holder' | 'value'>>`
    insert into address_claim (kind, scope, value, account_id, holder, claimed_at)
    select kind, scope, value, account_id, holder, ${now}::timestamptz
    from unnest(
      ${claims.map(({ kind }) => kind)}::text[], ${claims.map(({ scope }) => scope)}::text[],
      ${claims.map(({ value }) => value)}::text[], ${claims.map(({ accountId }) => accountId)}::uuid[],
      ${claims.map(({ holder }) => holder)}::text[]
    ) as wanted (kind, scope, value, account_id, holder)
    where not exists (
      select from host_use used
      where used.kind = wanted.kind and used.scope = wanted.scope and used.value = wanted.value
        and (used.account_id, used.holder) <> (wanted.account_id, wanted.holder)
    )
    on conflict do nothing returning kind, holder, value`.execute(tx)
  return newClaims
}

/** Transfers the claims of one holder to another, replacing the other's claims of the same kinds. */
export async function passClaims(
  tx: Transaction<Tables>,
  { accountId, holder: from }: Holding,
  to: string,
): Promise<void> {
  await deleteWhere(tx, 'address_claim', { account_id: accountId, holder: to })
    .where('kind', 'in', (claim) =>
      claim
        .selectFrom('address_claim as passed')
        .select('passed.kind')
        .where('passed.account_id', '=', accountId)
        .where('passed.holder', '=', from),
    )
    .execute()
  await updateWhere(tx, 'address_claim', { account_id: accountId, holder: from }).set({ holder: to }).execute()
}

/** Undefined while the holder has none. */
export async function findHostname(db: Queries, { accountId, holder }: Holding): Promise<string | undefined> {
  const row = await selectWhere(db, 'address_claim', { account_id: accountId, holder, kind: 'hostname' })
    .select('value')
    .executeTakeFirst()
  return row?.value
}

/** Releases all claims of the holder. */
export async function releaseClaims(tx: Transaction<Tables>, { accountId, holder }: Holding): Promise<void> {
  await deleteWhere(tx, 'address_claim', { account_id: accountId, holder }).execute()
}
