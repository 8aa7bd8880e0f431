/** SSH keys of an account. */
import { badField, conflict, notFound } from '../../domain/problem.ts'
import { parsePublicKey } from '../../domain/ssh-key.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { releaseQuotas, takeQuotas } from '../../db/account/quotas.ts'
import {
  deleteSshKeyRow,
  findSshKey,
  findTakenBy,
  insertSshKey,
  listSshKeyRows,
  type SshKeyRow,
} from '../../db/ssh-key/index.ts'
import { etagOf } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { createSshKey, deleteSshKey, getSshKey, listSshKeys } from '../../resources/ssh-key/index.ts'
import { auditEntryOf } from '../change/audit.ts'
import { readPageByTime } from '../list/page.ts'
import type { Parts } from '../parts.ts'

/** A key never changes. */
const FIRST_GENERATION = 1
const holderOf = (id: string): string => `ssh_key/${id}`
const viewOf = (row: SshKeyRow) => ({
  id: row.id,
  name: row.name,
  public_key: row.public_key,
  fingerprint: row.fingerprint,
  created_at: row.created_at.toISOString(),
})

export function sshKeyEndpoints(parts: Pick<Parts, 'db' | 'cursors' | 'clock' | 'random'>): readonly Endpoint[] {
  const { db, cursors, random } = parts
  return [
    customerEndpoint(listSshKeys, async (call) => {
      const { items, nextCursor } = await readPageByTime(
        cursors,
        call,
        (after, count) => listSshKeyRows(db, call.caller.accountId, after, count),
        ({ created_at: createdAt, id }) => ({ createdAt, id }),
      )
      return { status: 200, body: { items: items.map(viewOf), next_cursor: nextCursor } }
    }),

    customerEndpoint(createSshKey, async (call) => {
      const { caller, body, now } = call
      const key = parsePublicKey(body.public_key)
      if (typeof key === 'string') throw badField('public_key', key)
      const row: SshKeyRow = {
        id: newUuid(random),
        name: body.name,
        public_key: key.text,
        fingerprint: key.fingerprint,
        created_at: now,
      }
      await db.transaction().execute(async (tx) => {
        // The quota's row lock makes the account's keys come one after another.
        await takeQuotas(tx, { accountId: caller.accountId, holder: holderOf(row.id), amounts: { ssh_keys: 1 } })
        const taken = await findTakenBy(tx, caller.accountId, row)
        if (taken?.name === row.name)
          throw conflict('name_taken', 'The account has a key of this name.', {
            resource: { type: 'ssh_key', id: taken.id },
          })
        if (taken !== undefined)
          throw conflict('in_use', `The account has this key under the name ${taken.name}.`, {
            resource: { type: 'ssh_key', id: taken.id },
          })
        await insertSshKey(tx, caller.accountId, row)
        await appendAudit(
          tx,
          auditEntryOf(call, { resourceId: row.id, detail: { name: row.name, fingerprint: row.fingerprint } }),
          parts,
        )
      })
      return { status: 201, body: { ssh_key: viewOf(row) } }
    }),

    customerEndpoint(getSshKey, async ({ caller, params }) => {
      const row = await findSshKey(db, caller.accountId, params.id)
      if (row === undefined) throw notFound('SSH key')
      return { status: 200, body: { ssh_key: viewOf(row) }, headers: { etag: etagOf(FIRST_GENERATION) } }
    }),

    customerEndpoint(deleteSshKey, async (call) => {
      const { caller, params } = call
      await db.transaction().execute(async (tx) => {
        const row = await deleteSshKeyRow(tx, caller.accountId, params.id)
        if (row === undefined) throw notFound('SSH key')
        await releaseQuotas(tx, { accountId: caller.accountId, holder: holderOf(row.id) })
        await appendAudit(tx, auditEntryOf(call, { resourceId: row.id, detail: { name: row.name } }), parts)
      })
      return { status: 204 }
    }),
  ]
}
