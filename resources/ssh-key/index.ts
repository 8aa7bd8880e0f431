/** SSH keys of an account: public shape and routes. Stored in PostgreSQL only; servers keep the text of the keys they
 *  were made with. */
import { z } from 'zod'
import { route } from '../define.ts'
import { DateTime, Id, PageQuery, pageOf, PrintableName, Uuid } from '../shapes.ts'

const AREA = 'Init scripts, server groups, SSH keys'
export const SSH_KEY_LENGTH_MAXIMUM = 16_384

export const SshKey = z
  .strictObject({ id: Uuid, name: z.string(), public_key: z.string(), fingerprint: z.string(), created_at: DateTime })
  .meta({ id: 'SSHKey' })
const SshKeyEnvelope = z.strictObject({ ssh_key: SshKey })

export const listSshKeys = route({
  id: 'list_ssh_keys',
  method: 'GET',
  path: '/v1/ssh-keys',
  area: AREA,
  summary: 'List SSH keys',
  description: 'Newest first.',
  permission: 'read',
  query: PageQuery,
  answers: { 200: pageOf(SshKey) },
  refuses: [400],
})

export const createSshKey = route({
  id: 'create_ssh_key',
  method: 'POST',
  path: '/v1/ssh-keys',
  area: AREA,
  summary: 'Add an SSH key',
  permission: 'operate',
  audit: 'ssh_key.create',
  description: 'Accepts ed25519, ecdsa, rsa of at least 2048 bits and security-key (sk) public keys.',
  body: z.strictObject({ name: PrintableName, public_key: z.string().min(1).max(SSH_KEY_LENGTH_MAXIMUM) }),
  example: {
    name: 'laptop',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example.com',
  },
  answers: { 201: SshKeyEnvelope },
  refuses: [400, 409, 422],
})

export const getSshKey = route({
  id: 'get_ssh_key',
  method: 'GET',
  path: '/v1/ssh-keys/{id}',
  area: AREA,
  summary: 'Read an SSH key',
  permission: 'read',
  params: z.strictObject({ id: Id }),
  answers: { 200: SshKeyEnvelope },
  refuses: [404],
})

export const deleteSshKey = route({
  id: 'delete_ssh_key',
  method: 'DELETE',
  path: '/v1/ssh-keys/{id}',
  area: AREA,
  summary: 'Delete an SSH key',
  permission: 'operate',
  audit: 'ssh_key.delete',
  isDestructive: true,
  description: 'Servers that were made with it keep it.',
  params: z.strictObject({ id: Id }),
  answers: { 204: null },
  refuses: [404],
})

export const SSH_KEY_ROUTES = [listSshKeys, createSshKey, getSshKey, deleteSshKey] as const
