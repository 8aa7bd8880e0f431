/** Playgrounds of accounts, including ended ones: the allowance counts them for ever. An account has one at a time. */
import type { Transaction } from 'kysely'
import { type EndReason, eligibilityOf, type NewPlayground, playgroundRefusal } from '../../domain/playground/rules.ts'
import { nameTaken, notFound } from '../../domain/problem.ts'
import { DEFAULT_QUOTAS } from '../../domain/account/quota.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

export interface PlaygroundId {
  readonly accountId: string
  readonly playgroundId: string
}

export interface Playground extends NewPlayground {
  readonly accountId: string
  readonly endpoint: string | null
  readonly certificateAuthority: string | null
  readonly readyAt: Date | null
  readonly endedAt: Date | null
  readonly deletedAt: Date | null
  readonly endReason: EndReason | null
  readonly failureReason: string | null
}

const ALLOWANCE = 'playgrounds'
const holdingOf = ({ accountId, playgroundId }: PlaygroundId) => ({
  accountId,
  holder: `playground/${playgroundId}` as const,
})

/** How many an account may ever have, and how many of these it has had: those that failed do not count. */
export async function readAllowance(
  db: Queries,
  accountId: string,
): Promise<{ readonly allowance: number; readonly allowanceUsed: number }> {
  const row = await selectWhere(db, 'account_quota', { account_id: accountId, name: ALLOWANCE })
    .select(['limit', 'used'])
    .executeTakeFirst()
  return { allowance: row?.limit ?? DEFAULT_QUOTAS.playgrounds, allowanceUsed: row?.used ?? 0 }
}

/** Uses one of the allowance. Returns its row. Does nothing when it is claimed already. Throws 409 while the account
 *  has another one, and for an id that an earlier one had, and 403 when the allowance is used. */
export async function claimPlayground(
  tx: Transaction<Tables>,
  accountId: string,
  playground: NewPlayground,
): Promise<Playground> {
  const known = await findPlayground(tx, { accountId, playgroundId: playground.id })
  if (known !== undefined && known.deletedAt === null) return known
  if (known !== undefined)
    throw nameTaken('The account had a playground of this name. Choose another one.', {
      type: 'playground',
      id: known.id,
    })
  const { id, name, region, controlPlaneId, release, appDomain, createdAt, expiresAt } = playground
  const added = await tx
    .insertInto('playground')
    .values({
      account_id: accountId,
      id,
      name,
      region,
      control_plane_id: controlPlaneId,
      release,
      app_domain: appDomain,
      created_at: createdAt,
      expires_at: expiresAt,
    })
    .onConflict((clash) => clash.column('account_id').where('deleted_at', 'is', null).doNothing())
    .returningAll()
    .executeTakeFirst()
  const refusal = playgroundRefusal(
    eligibilityOf({
      isOffered: true,
      isSuspended: false,
      hasActive: added === undefined,
      ...(await readAllowance(tx, accountId)),
    }),
    '',
  )
  if (refusal !== undefined || added === undefined) throw refusal ?? notFound('playground')
  await takeQuotas(tx, { ...holdingOf({ accountId, playgroundId: id }), amounts: { [ALLOWANCE]: 1 } })
  return camelRow(added)
}

/** Undefined for an unknown one. */
export async function findPlayground(
  db: Queries,
  { accountId, playgroundId }: PlaygroundId,
): Promise<Playground | undefined> {
  const row = await selectWhere(db, 'playground', { account_id: accountId, id: playgroundId })
    .selectAll()
    .executeTakeFirst()
  return row && camelRow(row)
}

/** Of any account: the newest of that id; one that has not ended comes before all others. */
export async function findPlaygroundAnywhere(db: Queries, id: string): Promise<Playground | undefined> {
  const row = await selectWhere(db, 'playground', { id })
    .selectAll()
    .orderBy('ended_at', (order) => order.desc().nullsFirst())
    .limit(1)
    .executeTakeFirst()
  return row && camelRow(row)
}

/** The existing playground, also while it is ending. */
export async function findLivePlayground(db: Queries, accountId: string): Promise<Playground | undefined> {
  const row = await selectWhere(db, 'playground', { account_id: accountId })
    .selectAll()
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && camelRow(row)
}

/** Newest first. */
export async function listPlaygrounds(
  db: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<readonly Playground[]> {
  const playgrounds = selectWhere(db, 'playground', { account_id: accountId }).selectAll()
  const rows = await newestFirst(playgrounds, after, limit).execute()
  return rows.map(camelRow)
}

/** Records that its API answers there, and its node is ready. Only the first time counts. */
export async function notePlaygroundReady(
  db: Queries,
  { accountId, playgroundId }: PlaygroundId,
  entry: { readonly endpoint: string | null; readonly certificateAuthority: string | null; readonly at: Date },
): Promise<void> {
  await updateWhere(db, 'playground', { account_id: accountId, id: playgroundId })
    .set({ endpoint: entry.endpoint, certificate_authority: entry.certificateAuthority, ready_at: entry.at })
    .where('ready_at', 'is', null)
    .where('ended_at', 'is', null)
    .execute()
}

export interface PlaygroundEnd {
  readonly reason: EndReason
  readonly failureReason?: string
  readonly at: Date
}

/** Returns it as it is then; undefined when it does not exist, or has ended already. A failed one is returned to the
 *  allowance. */
export async function endPlayground(
  tx: Transaction<Tables>,
  id: PlaygroundId,
  { reason, failureReason, at }: PlaygroundEnd,
): Promise<Playground | undefined> {
  const row = await updateWhere(tx, 'playground', { account_id: id.accountId, id: id.playgroundId })
    .set({ ended_at: at, end_reason: reason, failure_reason: failureReason ?? null })
    .where('ended_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  if (row !== undefined && reason === 'failed') await releaseQuotas(tx, holdingOf(id))
  return row && camelRow(row)
}

/** Records that nothing of it is left but this row. */
export async function closePlayground(db: Queries, { accountId, playgroundId }: PlaygroundId, at: Date): Promise<void> {
  await updateWhere(db, 'playground', { account_id: accountId, id: playgroundId })
    .set({ deleted_at: at })
    .where('deleted_at', 'is', null)
    .execute()
}

/** For a playground that was never created: nothing of it is remembered. */
export async function forgetPlayground(tx: Transaction<Tables>, id: PlaygroundId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'playground', { account_id: id.accountId, id: id.playgroundId }).execute()
}
