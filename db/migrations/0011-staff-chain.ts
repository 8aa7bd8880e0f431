/** What staff and operators did enters a separate hash chain, with everything that was written before. The rules of
 *  chains are the domain's: they never change, or no chain would verify. */
import { type Kysely, sql } from 'kysely'
import { GENESIS_HASH, seal } from '../../domain/audit/chain.ts'

const STAFF_CHAIN = '00000000-0000-0000-0000-000000000000'

interface OldEntry {
  readonly id: string
  readonly at: Date
  readonly body: {
    readonly actor_email: string
    readonly actor_kind: 'staff' | 'operator' | 'system'
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
}

export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<OldEntry>`select id, at, body from staff_audit_entry order by at, id`.execute(db)
  let head = { sequence: 0, entryHash: GENESIS_HASH }
  const written = new Set<string>()
  for (const { id, at, body } of rows) {
    const { account_id, detail, ...old } = body
    // A request stands once in a chain for each action; the old log took it once for each resource as well.
    const request_id = written.has(`${old.request_id} ${old.action}`) ? '' : old.request_id
    written.add(`${old.request_id} ${old.action}`)
    const unsealed = {
      ...old,
      account_id: STAFF_CHAIN,
      user_id: null,
      token_id: null,
      token_name: null,
      ...({ request_id, outcome: 'success', changes: [] } as const),
      detail: account_id === null ? detail : { ...detail, account_id },
    }
    const { entry, body: text } = seal(head, unsealed, { id, at })
    head = { sequence: entry.sequence, entryHash: entry.entry_hash }
    await sql`insert into audit_entry
        (account_id, sequence, id, at, action, request_id, body, previous_hash, entry_hash)
      values (${STAFF_CHAIN}, ${entry.sequence}, ${id}, ${at}, ${old.action}, ${request_id}, ${text},
        ${entry.previous_hash}, ${entry.entry_hash})`.execute(db)
  }
  if (rows.length > 0)
    await sql`insert into audit_head
      (account_id, sequence, entry_hash, pruned_through_hash, verified_through_hash)
      values (${STAFF_CHAIN}, ${head.sequence}, ${head.entryHash}, ${GENESIS_HASH}, ${GENESIS_HASH})`.execute(db)
  await sql`drop table staff_audit_entry`.execute(db)
}
