/** Init scripts of an account: public shape and routes. Stored in PostgreSQL only; a server keeps the text it was
 *  created with as its user data. */
import { z } from 'zod'
import { DateTime, PrintableName, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'

export const INIT_SCRIPT_BYTES_MAXIMUM = 32_768

export const InitScript = z
  .strictObject({ id: Uuid, name: z.string(), content: z.string(), created_at: DateTime, updated_at: DateTime })
  .meta({ id: 'InitScript' })

const Content = z
  .string()
  .min(1)
  .regex(/^[^\u0000]*$/, 'must not have NUL characters')
  .refine(
    (text) => Buffer.byteLength(text) <= INIT_SCRIPT_BYTES_MAXIMUM,
    `must have at most ${INIT_SCRIPT_BYTES_MAXIMUM} bytes`,
  )
  .describe(
    'Script for cloud-init at first boot, or a document that starts with #cloud-config. At most ' +
      `${INIT_SCRIPT_BYTES_MAXIMUM} bytes.`,
  )
const InitScriptRequest = z.strictObject({ name: PrintableName.describe('Unique in the account.'), content: Content })

const verbs = verbsOf({
  path: '/v1/init-scripts',
  noun: 'init_script',
  view: InitScript,
})

export const listInitScripts = verbs.list('list_init_scripts', {
  summary: 'List init scripts',
  description: 'Newest first.',
})

export const createInitScript = verbs.create('create_init_script', {
  summary: 'Add an init script',
  body: InitScriptRequest,
  example: { name: 'first-boot', content: '#!/bin/sh\necho hello > /etc/motd\n' },
  refuses: [400, 409, 422],
})

export const getInitScript = verbs.read('get_init_script', { summary: 'Get an init script' })

export const updateInitScript = verbs.change('update_init_script', {
  summary: 'Update an init script',
  description: 'Servers created with it keep their user data. With If-Match only that version is changed.',
  body: InitScriptRequest.partial(),
})

export const deleteInitScript = verbs.remove('delete_init_script', {
  summary: 'Delete an init script',
  description: 'Servers created with it keep their user data.',
  refuses: [404],
})

export const INIT_SCRIPT_ROUTES = [
  listInitScripts,
  createInitScript,
  getInitScript,
  updateInitScript,
  deleteInitScript,
] as const

export const managedInitScript = managed({
  noun: 'init_script',
  view: InitScript,
  routes: { list: listInitScripts, create: createInitScript, read: getInitScript, remove: deleteInitScript },
  names: ['name'],
  uniqueIn: 'account',
  changes: [{ by: updateInitScript, sets: ['name', 'content'], moves: ['updated_at'] }],
  facts: ['id', 'created_at', 'updated_at'],
  moments: [],
})
