/** Reading, listing and restarting servers, and the changes that are defined in `changes/server.ts`. Creation is in
 *  `create.ts`. */
import { serverChanges, stopOptions, stopStanza } from '../../../changes/server.ts'
import { type MachineChange, requireOwnMachine } from '../../../domain/managed-machine/rules.ts'
import { requireStoppable } from '../../../domain/server/rules.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { Answer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { OperationView } from '../../../resources/operation/index.ts'
import {
  getServer,
  getServerFirewall,
  getServerMetadataSetting,
  listServers,
  restartServer,
  type ServerView,
  setServerFirewall,
  setServerHaPolicy,
  setServerMetadataSetting,
  setServerMigrationPolicy,
  storedFirewall,
  toFirewall,
  toFirewallView,
} from '../../../resources/server/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject, getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { changeEndpoints, changerOf } from '../../kit/rest.ts'
import { interfacesOf } from './interfaces.ts'
import type { ServerObject, Servers } from './objects.ts'

/** What the changes of that name do to a managed machine. */
const OF_MACHINES: Readonly<Record<string, MachineChange>> = {
  start: 'power',
  stop: 'power',
  restart: 'power',
  delete: 'delete',
}
const requireOwn = ({ spec: { managedBy } }: ServerObject, change: string): void =>
  requireOwnMachine(managedBy, OF_MACHINES[change] ?? 'other')

export const serverEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  getObject(servers, getServer),
  listObjects(
    parts,
    servers,
    listServers,
    ({ hostname, label }) => ({ labels: labelsOfQuery(label), fields: { hostname } }),
    async (accountId, { include }, items) => {
      if (include === undefined || items.length === 0) return undefined
      const interfaces = await interfacesOf(parts, accountId, items)
      return items.map((server, index) => ({
        parts: { interfaces: interfaces[index], firewall: toFirewallView(server) },
      }))
    },
  ),
  ...changeEndpoints(parts, serverChanges, { ...servers, requireOwn }),
  customerEndpoint(restartServer, (call) =>
    operate(parts, servers, call, {
      kind: 'server.restart',
      requireOwn: (server) => requireOwn(server, 'restart'),
      validate: requireStoppable,
      spec: { desiredPower: 'running' },
      ...stopStanza(stopOptions(call.body)),
    }),
  ),
  ...settingEndpoints(parts, servers),
]

/** Settings whose routes answer with the setting instead of the server. */
function settingEndpoints(parts: Parts, servers: Servers): readonly Endpoint[] {
  const change = changerOf(parts, serverChanges, { ...servers, requireOwn })
  return [
    customerEndpoint(setServerHaPolicy, async (call) => {
      const { ha_policy } = call.body
      const { ha_status, ha_status_reason } = (await shownBy(change(call, () => ({ haPolicy: ha_policy })))).server
      return { status: 200, body: { ha_policy, ha_status, ha_status_reason } }
    }),
    customerEndpoint(setServerMigrationPolicy, async (call) => {
      const { migration_policy } = call.body
      await change(call, () => ({ migrationPolicy: migration_policy }))
      return { status: 200, body: { migration_policy } }
    }),
    customerEndpoint(getServerMetadataSetting, async (call) => {
      const server = await servers.read(call.caller.accountId, call.params.id)
      await parts.db
        .transaction()
        .execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId: call.params.id }), parts))
      return { status: 200, body: { enabled: server.spec.metadataEnabled }, headers: { etag: etagOfObject(server) } }
    }),
    customerEndpoint(setServerMetadataSetting, async (call) => {
      const { enabled } = call.body
      const { operation } = await shownBy(change(call, () => ({ metadataEnabled: enabled })))
      return { status: 202, body: { enabled, operation } }
    }),
    customerEndpoint(getServerFirewall, async ({ caller, params }) => {
      const server = await servers.read(caller.accountId, params.id)
      return { status: 200, body: { firewall: toFirewallView(server) }, headers: { etag: etagOfObject(server) } }
    }),
    customerEndpoint(setServerFirewall, async (call) => {
      const { caller, params, body } = call
      const { operation } = await shownBy(change(call, () => ({ firewall: storedFirewall(toFirewall(body)) })))
      const written = servers.find(caller.accountId, params.id) ?? (await servers.read(caller.accountId, params.id))
      return { status: 202, body: { firewall: toFirewallView(written), operation } }
    }),
  ]
}

/** What the answer to a change shows: the server, or the operation that was started. */
async function shownBy(
  answer: Promise<Answer>,
): Promise<{ readonly server: ServerView; readonly operation: OperationView }> {
  const result = await answer
  return ('body' in result ? result.body : {}) as Awaited<ReturnType<typeof shownBy>> // one of them, by its route
}
