/** Init scripts of an account. */
import { conflict, notFound } from '../../domain/problem.ts'
import { appendAudit } from '../../db/audit/index.ts'
import {
  deleteInitScriptRow,
  findInitScript,
  findInitScriptNamed,
  type InitScriptRow,
  insertInitScript,
  listInitScriptRows,
  lockInitScripts,
  updateInitScriptRow,
} from '../../db/init-script/index.ts'
import type { Queries } from '../../db/open.ts'
import { releaseQuotas, takeQuotas } from '../../db/account/quotas.ts'
import { etagOf, requireMatch } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import { newUuid } from '../../kit/sys/random.ts'
import {
  createInitScript,
  deleteInitScript,
  getInitScript,
  listInitScripts,
  updateInitScript,
} from '../../resources/init-script/index.ts'
import { auditEntryOf } from '../change/audit.ts'
import { readPageByTime } from '../list/page.ts'
import type { Parts } from '../parts.ts'

const FIRST_GENERATION = 1
const holderOf = (id: string): string => `init_script/${id}`
const viewOf = ({ id, name, content, created_at, updated_at }: InitScriptRow) => ({
  id,
  name,
  content,
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString(),
})

export function initScriptEndpoints(parts: Pick<Parts, 'db' | 'cursors' | 'clock' | 'random'>): readonly Endpoint[] {
  const { db, cursors, random } = parts
  return [
    customerEndpoint(listInitScripts, async (call) => {
      const { items, nextCursor } = await readPageByTime(
        cursors,
        call,
        (after, count) => listInitScriptRows(db, call.caller.accountId, after, count),
        ({ created_at: createdAt, id }) => ({ createdAt, id }),
      )
      return { status: 200, body: { items: items.map(viewOf), next_cursor: nextCursor } }
    }),

    customerEndpoint(createInitScript, async (call) => {
      const { caller, body, now } = call
      const row: InitScriptRow = {
        id: newUuid(random),
        ...body,
        generation: FIRST_GENERATION,
        created_at: now,
        updated_at: now,
      }
      await db.transaction().execute(async (tx) => {
        // The quota's row lock makes the account's scripts come one after another.
        await takeQuotas(tx, { accountId: caller.accountId, holder: holderOf(row.id), amounts: { init_scripts: 1 } })
        await requireFreeName(tx, caller.accountId, row)
        await insertInitScript(tx, caller.accountId, row)
        await appendAudit(tx, auditEntryOf(call, { resourceId: row.id, detail: { name: row.name } }), parts)
      })
      return { status: 201, body: { init_script: viewOf(row) }, headers: { etag: etagOf(row.generation) } }
    }),

    customerEndpoint(getInitScript, async ({ caller, params }) => {
      const row = await findInitScript(db, caller.accountId, params.id)
      if (row === undefined) throw notFound('init script')
      return { status: 200, body: { init_script: viewOf(row) }, headers: { etag: etagOf(row.generation) } }
    }),

    customerEndpoint(updateInitScript, async (call) => {
      const { caller, params, body, request, now } = call
      const row = await db.transaction().execute(async (tx) => {
        await lockInitScripts(tx, caller.accountId)
        const before = await findInitScript(tx, caller.accountId, params.id)
        if (before === undefined) throw notFound('init script')
        requireMatch(request, etagOf(before.generation))
        const after: InitScriptRow = {
          ...before,
          name: body.name ?? before.name,
          content: body.content ?? before.content,
          generation: before.generation + 1,
          updated_at: now,
        }
        await requireFreeName(tx, caller.accountId, after)
        await updateInitScriptRow(tx, caller.accountId, after)
        const changes = after.name === before.name ? [] : [{ field: 'name', before: before.name, after: after.name }]
        await appendAudit(
          tx,
          auditEntryOf(call, { resourceId: after.id, detail: { name: after.name }, changes }),
          parts,
        )
        return after
      })
      return { status: 200, body: { init_script: viewOf(row) }, headers: { etag: etagOf(row.generation) } }
    }),

    customerEndpoint(deleteInitScript, async (call) => {
      const { caller, params } = call
      await db.transaction().execute(async (tx) => {
        await lockInitScripts(tx, caller.accountId)
        const row = await deleteInitScriptRow(tx, caller.accountId, params.id)
        if (row === undefined) throw notFound('init script')
        await releaseQuotas(tx, { accountId: caller.accountId, holder: holderOf(row.id) })
        await appendAudit(tx, auditEntryOf(call, { resourceId: row.id, detail: { name: row.name } }), parts)
      })
      return { status: 204 }
    }),
  ]
}

async function requireFreeName(
  queries: Queries,
  accountId: string,
  script: Pick<InitScriptRow, 'id' | 'name'>,
): Promise<void> {
  const taken = await findInitScriptNamed(queries, accountId, script)
  if (taken !== undefined)
    throw conflict('name_taken', 'The account has an init script of this name.', {
      resource: { type: 'init_script', id: taken.id },
    })
}
