/** Each portal names operations of its own listener only: the compiler knows those of both. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import customers from '../../portal/generated/operations.json' with { type: 'json' }
import operators from '../../portal/generated/operator-operations.json' with { type: 'json' }

const PORTAL = join(import.meta.dirname, '../../portal')
const OPERATORS = 'operator/'

/** Paths below `portal/` of all sources. */
async function sources(): Promise<readonly string[]> {
  const entries = await readdir(PORTAL, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name).slice(PORTAL.length + 1))
    .filter((path) => !/(^|\/)(node_modules|dist)/.test(path))
}

/** Operations of a catalogue that the source names as literals, or in attributes. */
const named = (text: string, catalogue: object): readonly string[] =>
  Object.keys(catalogue).filter((id) => text.includes(`'${id}'`) || text.includes(`"${id}"`))

test('no page of customers names an operation of operators', async () => {
  const files = (await sources()).filter((path) => !path.startsWith(OPERATORS))
  const found: string[] = []
  for (const file of files)
    for (const id of named(await readFile(join(PORTAL, file), 'utf8'), operators)) found.push(`${file}: ${id}`)
  expect(found).toEqual([])
})

test('no page of operators names an operation of customers', async () => {
  const files = (await sources()).filter((path) => path.startsWith(OPERATORS))
  const found: string[] = []
  let count = 0
  for (const file of files) {
    const text = await readFile(join(PORTAL, file), 'utf8')
    count += named(text, operators).length
    for (const id of named(text, customers)) found.push(`${file}: ${id}`)
  }
  expect(found).toEqual([])
  expect(count).toBeGreaterThan(0)
})

/** Operations of operators that no page names, each with its reason. */
const WITHOUT_PAGE_OF_OPERATORS: Readonly<Record<string, string>> = {
  end_playground_as_staff: 'no operation lists playgrounds for staff',
  move_storage: 'no operation lists storages for operators',
  migrate_server: 'no operation lists servers for operators',
  recover_server: 'no operation lists servers for operators',
  settle_server_migration: 'no operation lists servers for operators',
  force_release_server: 'no operation lists servers for operators',
  expand_control_plane: 'the service refuses it: those who administer Kubernetes and PostgreSQL scale them',
  shrink_control_plane: 'the service refuses it: those who administer Kubernetes and PostgreSQL scale them',
}

/** Operations of customers that no page names, each with its reason. What is missing says so. */
const WITHOUT_PAGE_OF_CUSTOMERS: Readonly<Record<string, string>> = {
  start_identity_provider_login: 'an address that the browser opens: the sign-in page has its links',
  start_identity_provider_signup: 'an address that the browser opens: the sign-up page has its links',
  finish_identity_provider_login: 'an identity provider sends the browser there',
  finish_identity_provider_login_at_provider: 'an identity provider sends the browser there',
  receive_payment_event: 'the payment processor calls it',
  send_mcp_message: 'programs that speak MCP call it',
  stream_changes: 'read by its path in api/changes.ts, which needs the stream and not an answer',
  read_changes: 'for programs without streams; the portal reads the stream',
  stream_server_console:
    'read by its path in nouns/server/console-session.ts, which needs the stream and not an answer',
  read_server_console: 'for programs without streams; the console tab reads the stream',
  revoke_own_token: 'needs a token, and the portal has a session',
  get_account: 'get_current_user has the account of the session',
  get_template: 'list_templates answers the same items',
  get_kubernetes_node_pool: 'get_kubernetes_cluster answers the pools of the cluster',
  list_regions: 'every zone names its region',
  get_server_metadata_setting: 'get_server answers it as metadata_enabled',
  list_prices: 'a dry run of the form has the price of what is filled in',
  get_kubernetes_cluster_token: 'kubectl calls it through the exec plug-in of the kubeconfig',
  get_dev_cluster_token: 'kubectl calls it through the exec plug-in of the kubeconfig',
}

test.each([
  ['customers', customers, WITHOUT_PAGE_OF_CUSTOMERS, (path: string) => !path.startsWith(OPERATORS)],
  ['operators', operators, WITHOUT_PAGE_OF_OPERATORS, (path: string) => path.startsWith(OPERATORS)],
])('every other operation of %s is reachable from a page', async (_who, catalogue, without, isOwn) => {
  // texts are no use of an operation
  const files = (await sources()).filter((path) => isOwn(path) && !/(^|\/)texts\//.test(path))
  const used = new Set<string>()
  for (const file of files) for (const id of named(await readFile(join(PORTAL, file), 'utf8'), catalogue)) used.add(id)
  const unused = Object.keys(catalogue).filter((id) => !used.has(id))
  expect(unused.toSorted()).toEqual(Object.keys(without).toSorted())
})
