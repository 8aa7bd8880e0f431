/** Init scripts of an account: public shape and routes. Stored in PostgreSQL only; a server keeps the text that it was
 *  made with as its user data. */
import { z } from 'zod'
import { DateTime, PrintableName, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'

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
    'What cloud-init runs at first boot: a script, or a document that starts with #cloud-config. At most ' +
      `${INIT_SCRIPT_BYTES_MAXIMUM} bytes.`,
  )
const InitScriptRequest = z.strictObject({ name: PrintableName.describe('Unique in the account.'), content: Content })

const verbs = verbsOf({
  path: '/v1/init-scripts',
  area: 'Init scripts, server groups, SSH keys',
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

export const getInitScript = verbs.read('get_init_script', { summary: 'Read an init script' })

export const updateInitScript = verbs.change('update_init_script', {
  summary: 'Change an init script',
  description:
    'Servers that were made with it keep what they booted with. With If-Match the change is made only to that version.',
  body: InitScriptRequest.partial(),
})

export const deleteInitScript = verbs.remove('delete_init_script', {
  summary: 'Delete an init script',
  description: 'Servers that were made with it keep what they booted with.',
  refuses: [404],
})

export const INIT_SCRIPT_ROUTES = [
  listInitScripts,
  createInitScript,
  getInitScript,
  updateInitScript,
  deleteInitScript,
] as const
