/** Members of the staff, their sessions, and the log of their actions. */
import { sql, type Transaction } from 'kysely'
import type { AuditActorKind, UnsealedAuditEntry } from '../../domain/audit/entry.ts'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import type { StaffRole } from '../../domain/permissions.ts'
import { appendAudit, type AuditPage, listAudit, type Sealing, STAFF_CHAIN } from '../audit/index.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { hashSecret } from '../identity/index.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export const STAFF_SESSION_SECONDS = 12 * 3600
const STAFF_IDLE_SECONDS = 30 * 60
const LAST_SEEN_UPDATE_SECONDS = 60

export interface StaffRow {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: StaffRole
  readonly password_hash: string | null
  readonly password_generation: number
  readonly sealed_secret: string | null
  readonly disabled_at: Date | null
}

/** `email` in the stored form: in lower case. */
export const findStaffByEmail = async (queries: Queries, email: string): Promise<StaffRow | undefined> =>
  await selectWhere(queries, 'staff_user', { email }).selectAll().executeTakeFirst()
/** Undefined for an unknown id; disabled members are found too. */
export const findStaff = async (queries: Queries, id: string): Promise<StaffRow | undefined> =>
  await selectWhere(queries, 'staff_user', { id }).selectAll().executeTakeFirst()

export interface NewStaff {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: StaffRole
  readonly passwordHash: string
  readonly sealedSecret: string
  readonly now: Date
}

/** Returns false when a member of the staff has the address already. */
export async function createStaff(queries: Queries, member: NewStaff): Promise<boolean> {
  const added = await queries
    .insertInto('staff_user')
    .values({
      id: member.id,
      email: member.email,
      name: member.name,
      role: member.role,
      password_hash: member.passwordHash,
      sealed_secret: member.sealedSecret,
      enabled_at: member.now,
      last_step: null,
      created_at: member.now,
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst()
  return added.numInsertedOrUpdatedRows === 1n
}

/** Uses up a time step of the person's authenticator. Returns true for the first caller. */
export async function spendStaffStep(queries: Queries, id: string, step: number): Promise<boolean> {
  const updated = await updateWhere(queries, 'staff_user', { id })
    .set({ last_step: step })
    .where((where) => where.or([where('last_step', 'is', null), where('last_step', '<', step)]))
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** The secret itself is not stored. */
export async function createStaffSession(
  queries: Queries,
  session: {
    readonly id: string
    readonly secret: string
    readonly staffId: string
    readonly now: Date
    readonly expiresAt: Date
  },
): Promise<void> {
  await queries
    .insertInto('staff_session')
    .values({
      id: session.id,
      secret_hash: hashSecret(session.secret),
      staff_id: session.staffId,
      created_at: session.now,
      last_seen_at: session.now,
      expires_at: session.expiresAt,
    })
    .execute()
}

/** The live session with that secret, and its member of the staff. */
export async function findStaffSession(
  queries: Queries,
  secret: string,
  now: Date,
): Promise<{ readonly sessionId: string; readonly staff: StaffRow } | undefined> {
  const session = await selectWhere(queries, 'staff_session', { secret_hash: hashSecret(secret) })
    .selectAll()
    .where('expires_at', '>', now)
    .where('last_seen_at', '>', new Date(now.getTime() - STAFF_IDLE_SECONDS * 1000))
    .executeTakeFirst()
  const staff = session && (await findStaff(queries, session.staff_id))
  if (session === undefined || staff === undefined || staff.disabled_at !== null) return undefined
  if (now.getTime() - session.last_seen_at.getTime() >= LAST_SEEN_UPDATE_SECONDS * 1000)
    await updateWhere(queries, 'staff_session', { id: session.id }).set({ last_seen_at: now }).execute()
  return { sessionId: session.id, staff }
}

/** Does nothing when it has ended. */
export async function endStaffSession(queries: Queries, id: string): Promise<void> {
  await deleteWhere(queries, 'staff_session', { id }).execute()
}

export interface StaffAuditEntry {
  readonly id: string
  readonly sequence: number
  readonly at: string
  readonly actor_email: string
  readonly actor_kind: AuditActorKind
  readonly staff_id: string | null
  readonly account_id: string | null
  readonly action: string
  readonly resource_type: string
  readonly resource_id: string
  readonly detail: Readonly<Record<string, string>>
  readonly source_ip: string
  readonly user_agent: string
  readonly request_id: string
}

/** An action of staff or operators, before it is sealed. `account_id`: the affected account, if any. */
export type UnsealedStaffAuditEntry = Omit<UnsealedAuditEntry, 'account_id'> & { readonly account_id: string | null }

/** Seals the entry into the chain of staff and operators, see `appendAudit`; before the entries of accounts, whose ids
 *  sort after it. */
export async function appendStaffAudit(
  tx: Transaction<Tables>,
  { account_id, detail, ...entry }: UnsealedStaffAuditEntry,
  by: Sealing,
): Promise<void> {
  const touching = account_id === null ? detail : { ...detail, account_id }
  await appendAudit(tx, { ...entry, account_id: STAFF_CHAIN, detail: touching }, by)
}

/** Throws the database's error while the log cannot be reached. Takes no lock. */
export async function requireStaffLog(queries: Queries): Promise<void> {
  await selectWhere(queries, 'audit_head', { account_id: STAFF_CHAIN }).select('sequence').execute()
}

/** Newest first. */
export const listStaffAudit = async (queries: Queries, page: AuditPage): Promise<StaffAuditEntry[]> =>
  (await listAudit(queries, STAFF_CHAIN, page)).map(toStaffEntry)

function toStaffEntry({ detail: { account_id, ...detail }, ...entry }: AuditEntry): StaffAuditEntry {
  const { id, sequence, at, actor_email, actor_kind, staff_id, action, resource_type, resource_id } = entry
  const { source_ip, user_agent, request_id } = entry
  const touched = { account_id: account_id ?? null, action, resource_type, resource_id, detail }
  return { id, sequence, at, actor_email, actor_kind, staff_id, ...touched, source_ip, user_agent, request_id }
}

export interface AccountRow {
  readonly id: string
  readonly name: string
  readonly created_at: Date
  readonly owner_email: string | null
  readonly member_count: number
  readonly suspended_for_payment_at: Date | null
  readonly suspended_by_staff_at: Date | null
  readonly requires_second_factor: boolean
}

export interface AccountPage {
  readonly id?: string | undefined
  readonly email?: string | undefined
  readonly name?: string | undefined
  /** A part of the id, the name, or the address of the owner. */
  readonly q?: string | undefined
  readonly after?: ListPlace | undefined
  readonly limit: number
}

/** Newest first; by id, by the address of any member, or by a part of the name. */
export async function listAccounts(
  queries: Queries,
  { id, email, name, q, after, limit }: AccountPage,
): Promise<AccountRow[]> {
  let query = queries.selectFrom('account').select([
    'id',
    'name',
    'created_at',
    'suspended_for_payment_at',
    'suspended_by_staff_at',
    'requires_second_factor',
    sql<string | null>`(
        select email from membership join app_user on app_user.id = user_id
        where account_id = account.id and role = 'owner' limit 1
      )`.as('owner_email'),
    sql<number>`(select count(*) from membership where account_id = account.id)`.as('member_count'),
  ])
  if (id !== undefined) query = query.where(sql<boolean>`account.id::text = ${id}`)
  if (email !== undefined)
    query = query.where(
      sql<boolean>`exists (
        select from membership join app_user on app_user.id = user_id
        where account_id = account.id and email = ${email.trim().toLowerCase()}
      )`,
    )
  if (name !== undefined) query = query.where(sql<boolean>`position(lower(${name}) in lower(account.name)) > 0`)
  if (q !== undefined)
    query = query.where(
      sql<boolean>`(
        position(lower(${q}) in lower(account.name)) > 0
        or position(lower(${q}) in account.id::text) > 0
        or exists (
          select from membership join app_user on app_user.id = user_id
          where account_id = account.id and role = 'owner' and position(lower(${q}) in email) > 0
        )
      )`,
    )
  return (await newestFirst(query, after, limit).execute()).map((row) => ({
    ...row,
    member_count: Number(row.member_count),
  }))
}

/** Suspends or unsuspends. Returns false when nothing changed. */
export async function setSuspension(
  tx: Transaction<Tables>,
  accountId: string,
  suspendedAt: Date | null,
): Promise<boolean> {
  const updated = await updateWhere(tx, 'account', { id: accountId })
    .set({ suspended_by_staff_at: suspendedAt })
    .where('suspended_by_staff_at', suspendedAt === null ? 'is not' : 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** Addresses of the members with the role who may sign in. */
export async function listStaffMails(queries: Queries, role: StaffRole): Promise<readonly string[]> {
  const rows = await selectWhere(queries, 'staff_user', { role })
    .select('email')
    .where('disabled_at', 'is', null)
    .orderBy('email')
    .execute()
  return rows.map(({ email }) => email)
}
