/** SSH keys of an account. A key never changes. */
import { badField, conflict, nameTaken } from '../../../domain/problem.ts'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'
import {
  type SshKeyRow,
  deleteSshKeyRow,
  findSshKey,
  findTakenBy,
  insertSshKey,
  listSshKeyRows,
} from '../../../db/ssh-key/index.ts'
import type { Endpoint } from '../../../kit/http/endpoint.ts'
import { createSshKey, deleteSshKey, getSshKey, listSshKeys } from '../../../resources/ssh-key/index.ts'
import { type RowNoun, type RowParts, createRow, deleteRow, getRow, listRows, rowsOf } from '../../kit/plain/rows.ts'
import { noun } from '../../kit/noun.ts'

const SSH_KEY: RowNoun<SshKeyRow> = {
  name: 'ssh_key',
  title: 'SSH key',
  list: listSshKeyRows,
  find: findSshKey,
  insert: insertSshKey,
  remove: deleteSshKeyRow,
  async requireFree(queries, accountId, key) {
    const other = await findTakenBy(queries, accountId, key)
    if (other === undefined) return
    const resource = { type: 'ssh_key', id: other.id }
    throw other.name === key.name
      ? nameTaken('The account has a key of this name.', resource)
      : conflict('in_use', `The account has this key under the name ${other.name}.`, { resource })
  },
  toView: ({ created_at, ...key }) => ({ ...key, created_at: created_at.toISOString() }),
  createdDetail: ({ fingerprint }) => ({ fingerprint }),
}

const sshKeyEndpoints = (parts: RowParts): readonly Endpoint[] => [
  listRows(parts, SSH_KEY, listSshKeys),
  getRow(parts, SSH_KEY, getSshKey),
  createRow(parts, SSH_KEY, createSshKey, ({ body }, { id, created_at }) => {
    const key = parsePublicKey(body.public_key)
    if (typeof key === 'string') throw badField('public_key', key)
    return { id, name: body.name, public_key: key.text, fingerprint: key.fingerprint, created_at }
  }),
  deleteRow(parts, SSH_KEY, deleteSshKey),
]

export const sshKey = noun<RowParts>({
  name: 'ssh_key',
  endpoints: sshKeyEndpoints,
  feeds: ({ db }) => [rowsOf(db, SSH_KEY, listSshKeys)],
})
