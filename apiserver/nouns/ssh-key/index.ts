/** SSH keys of an account. A key has another name at most: it never changes. */
import { badField, conflict, nameTaken } from '../../../domain/problem.ts'
import { parsePublicKey } from '../../../domain/ssh-key/rules.ts'
import {
  type SshKeyRow,
  deleteSshKeyRow,
  findSshKey,
  findTakenBy,
  insertSshKey,
  listSshKeyRows,
  updateSshKeyRow,
} from '../../../db/ssh-key/index.ts'
import type { Endpoint } from '../../../kit/http/endpoint.ts'
import { createSshKey, deleteSshKey, getSshKey, listSshKeys, updateSshKey } from '../../../resources/ssh-key/index.ts'
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

const SSH_KEY: RowNoun<SshKeyRow> = {
  name: 'ssh_key',
  title: 'SSH key',
  list: listSshKeyRows,
  find: findSshKey,
  insert: insertSshKey,
  update: updateSshKeyRow,
  remove: deleteSshKeyRow,
  async requireFree(queries, accountId, key) {
    const other = await findTakenBy(queries, accountId, key)
    if (other === undefined) return
    const resource = { type: 'ssh_key', id: other.id }
    throw other.name === key.name
      ? nameTaken('The account has a key of this name.', resource)
      : conflict('in_use', `The account has this key under the name ${other.name}.`, { resource })
  },
  toView: ({ id, name, public_key, fingerprint, created_at }) => ({
    id,
    name,
    public_key,
    fingerprint,
    created_at: created_at.toISOString(),
  }),
  createdDetail: ({ fingerprint }) => ({ fingerprint }),
}

const sshKeyEndpoints = (parts: RowParts): readonly Endpoint[] => [
  listRows(parts, SSH_KEY, listSshKeys),
  getRow(parts, SSH_KEY, getSshKey),
  createRow(parts, SSH_KEY, createSshKey, ({ body }, base) => {
    const key = parsePublicKey(body.public_key)
    if (typeof key === 'string') throw badField('public_key', key)
    return { ...base, name: body.name, public_key: key.text, fingerprint: key.fingerprint }
  }),
  updateRow(parts, SSH_KEY, updateSshKey, (before, { body }) => ({ ...before, name: body.name ?? before.name })),
  deleteRow(parts, SSH_KEY, deleteSshKey),
]

export const sshKey = noun<RowParts>({
  name: 'ssh_key',
  endpoints: sshKeyEndpoints,
  feeds: ({ db }) => [rowsOf(db, SSH_KEY, listSshKeys)],
})
