/** SSH keys of an account: public shape and routes. Stored in PostgreSQL only; servers keep the text of the keys they
 *  were created with. */
import { z } from 'zod'
import { SSH_KEY_LENGTH_MAXIMUM } from '../../domain/ssh-key/rules.ts'
import { DateTime, PrintableName, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'

export const SshKey = z
  .strictObject({ id: Uuid, name: z.string(), public_key: z.string(), fingerprint: z.string(), created_at: DateTime })
  .meta({ id: 'SSHKey' })

const verbs = verbsOf({
  path: '/v1/ssh-keys',
  noun: 'ssh_key',
  view: SshKey,
})

export const listSshKeys = verbs.list('list_ssh_keys', { summary: 'List SSH keys', description: 'Newest first.' })

export const createSshKey = verbs.create('create_ssh_key', {
  summary: 'Add an SSH key',
  description: 'Accepts ed25519, ecdsa, rsa of at least 2048 bits and security-key (sk) public keys.',
  body: z.strictObject({ name: PrintableName, public_key: z.string().min(1).max(SSH_KEY_LENGTH_MAXIMUM) }),
  example: {
    name: 'laptop',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example.com',
  },
  refuses: [400, 409, 422],
})

export const getSshKey = verbs.read('get_ssh_key', { summary: 'Get an SSH key' })

export const updateSshKey = verbs.change('update_ssh_key', {
  summary: 'Rename an SSH key',
  description: 'Servers created with it keep it. Its text never changes.',
  body: z.strictObject({ name: PrintableName.optional() }).meta({ id: 'UpdateSSHKey' }),
  example: { name: 'desktop' },
})

export const deleteSshKey = verbs.remove('delete_ssh_key', {
  summary: 'Delete an SSH key',
  description: 'Servers created with it keep it.',
  refuses: [404],
})

export const SSH_KEY_ROUTES = [listSshKeys, createSshKey, getSshKey, updateSshKey, deleteSshKey] as const

export const managedSshKey = managed({
  noun: 'ssh_key',
  view: SshKey,
  routes: { list: listSshKeys, create: createSshKey, read: getSshKey, remove: deleteSshKey },
  names: ['name'],
  uniqueIn: 'account',
  changes: [{ by: updateSshKey, sets: ['name'] }],
  fields: { public_key: { same: 'trimmed' } },
  facts: ['id', 'fingerprint', 'created_at'],
  moments: [],
})
