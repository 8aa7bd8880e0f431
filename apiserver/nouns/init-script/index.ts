/** Init scripts of an account. */
import { nameTaken } from '../../../domain/problem.ts'
import {
  type InitScriptRow,
  deleteInitScriptRow,
  findInitScript,
  findInitScriptNamed,
  insertInitScript,
  listInitScriptRows,
  updateInitScriptRow,
} from '../../../db/init-script/index.ts'
import type { Endpoint } from '../../../kit/http/endpoint.ts'
import {
  createInitScript,
  deleteInitScript,
  getInitScript,
  listInitScripts,
  updateInitScript,
} from '../../../resources/init-script/index.ts'
import {
  type RowNoun,
  type RowParts,
  createRow,
  deleteRow,
  getRow,
  listRows,
  rowsOf,
  updateRow,
} from '../../kit/plain/rows.ts'
import { noun } from '../../kit/noun.ts'

const INIT_SCRIPT: RowNoun<InitScriptRow> = {
  name: 'init_script',
  title: 'init script',
  list: listInitScriptRows,
  find: findInitScript,
  insert: insertInitScript,
  update: updateInitScriptRow,
  remove: deleteInitScriptRow,
  async requireFree(queries, accountId, script) {
    const other = await findInitScriptNamed(queries, accountId, script)
    if (other !== undefined)
      throw nameTaken('The account has an init script of this name.', { type: 'init_script', id: other.id })
  },
  toView: ({ id, name, content, created_at, updated_at }) => ({
    id,
    name,
    content,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  }),
}

const initScriptEndpoints = (parts: RowParts): readonly Endpoint[] => [
  listRows(parts, INIT_SCRIPT, listInitScripts),
  getRow(parts, INIT_SCRIPT, getInitScript),
  createRow(parts, INIT_SCRIPT, createInitScript, ({ body, now }, base) => ({ ...base, ...body, updated_at: now })),
  updateRow(parts, INIT_SCRIPT, updateInitScript, (before, { body, now }) => ({
    ...before,
    name: body.name ?? before.name,
    content: body.content ?? before.content,
    updated_at: now,
  })),
  deleteRow(parts, INIT_SCRIPT, deleteInitScript),
]

export const initScript = noun<RowParts>({
  name: 'init_script',
  endpoints: initScriptEndpoints,
  feeds: ({ db }) => [rowsOf(db, INIT_SCRIPT, listInitScripts)],
})
