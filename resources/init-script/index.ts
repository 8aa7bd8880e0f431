/** Init scripts of an account: public shape and routes. Stored in PostgreSQL only; a server keeps the text that it was
 *  made with as its user data. */
import { z } from 'zod'
import { route } from '../define.ts'
import { ById, DateTime, pageOf, PageQuery, PrintableName, Uuid } from '../shapes.ts'

const AREA = 'Init scripts, server groups, SSH keys'
export const INIT_SCRIPT_BYTES_MAXIMUM = 32_768

export const InitScript = z
  .strictObject({ id: Uuid, name: z.string(), content: z.string(), created_at: DateTime, updated_at: DateTime })
  .meta({ id: 'InitScript' })
const InitScriptEnvelope = z.strictObject({ init_script: InitScript })

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

export const listInitScripts = route({
  id: 'list_init_scripts',
  method: 'GET',
  path: '/v1/init-scripts',
  area: AREA,
  summary: 'List init scripts',
  description: 'Newest first.',
  permission: 'read',
  query: PageQuery,
  answers: { 200: pageOf(InitScript) },
  refuses: [400],
})

export const createInitScript = route({
  id: 'create_init_script',
  method: 'POST',
  path: '/v1/init-scripts',
  area: AREA,
  summary: 'Add an init script',
  permission: 'operate',
  audit: 'init_script.create',
  body: InitScriptRequest,
  example: { name: 'first-boot', content: '#!/bin/sh\necho hello > /etc/motd\n' },
  answers: { 201: InitScriptEnvelope },
  refuses: [400, 409, 422],
})

export const getInitScript = route({
  id: 'get_init_script',
  method: 'GET',
  path: '/v1/init-scripts/{id}',
  area: AREA,
  summary: 'Read an init script',
  permission: 'read',
  params: ById,
  answers: { 200: InitScriptEnvelope },
  refuses: [404],
})

export const updateInitScript = route({
  id: 'update_init_script',
  method: 'PATCH',
  path: '/v1/init-scripts/{id}',
  area: AREA,
  summary: 'Change an init script',
  permission: 'operate',
  audit: 'init_script.update',
  description:
    'Servers that were made with it keep what they booted with. With If-Match the change is made only to that version.',
  params: ById,
  body: InitScriptRequest.partial(),
  answers: { 200: InitScriptEnvelope },
  refuses: [400, 404, 409],
})

export const deleteInitScript = route({
  id: 'delete_init_script',
  method: 'DELETE',
  path: '/v1/init-scripts/{id}',
  area: AREA,
  summary: 'Delete an init script',
  permission: 'operate',
  audit: 'init_script.delete',
  isDestructive: true,
  description: 'Servers that were made with it keep what they booted with.',
  params: ById,
  answers: { 204: null },
  refuses: [404],
})

export const INIT_SCRIPT_ROUTES = [
  listInitScripts,
  createInitScript,
  getInitScript,
  updateInitScript,
  deleteInitScript,
] as const
