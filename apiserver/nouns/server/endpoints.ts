/** Reading, listing, deleting, starting and stopping servers, and changing what can be changed at any time. Creation is
 *  in `create.ts`. */
import { defined } from '../../../domain/defined.ts'
import { requireOwnMachine } from '../../../domain/managed-machine/rules.ts'
import { requireDeletable, requireIdle, requireStartable, requireStoppable } from '../../../domain/server/rules.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { requireNoBootHolds } from '../../../db/storage-hold/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import {
  deleteServer,
  getServer,
  getServerMetadataSetting,
  listServers,
  restartServer,
  setServerHaPolicy,
  setServerMetadataSetting,
  setServerMigrationPolicy,
  startServer,
  type StopOptions,
  stopServer,
  updateServer,
} from '../../../resources/server/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { begin, operate } from '../../kit/change/operate.ts'
import type { Parts } from '../../kit/parts.ts'
import { changeObject } from '../../kit/plain/change-object.ts'
import { etagOfObject, getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import type { ServerObject, Servers } from './objects.ts'

export const serverEndpoints = (parts: Parts, servers: Servers): readonly Endpoint[] => [
  ...plainEndpoints(parts, servers),
  ...powerEndpoints(parts, servers),
  ...settingEndpoints(parts, servers),
]

function plainEndpoints(parts: Parts, servers: Servers): readonly Endpoint[] {
  return [
    getObject(servers, getServer),
    listObjects(parts, servers, listServers, ({ hostname, label }) => ({
      labels: labelsOfQuery(label),
      fields: { hostname },
    })),
    customerEndpoint(updateServer, async (call) => update(parts, servers, call)),
    customerEndpoint(deleteServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.delete',
        requireOwn: ({ spec: { managedBy } }) => requireOwnMachine(managedBy, 'delete'),
        validate: requireDeletable,
        spec: {},
        claim: (tx) => requireNoBootHolds(tx, { accountId: call.caller.accountId, serverId: call.params.id }),
        ...(call.query.delete_storages === 'true' ? { arguments: { delete_storages: 'true' } } : {}),
      }),
    ),
  ]
}

function powerEndpoints(parts: Parts, servers: Servers): readonly Endpoint[] {
  const requireOwn = ({ spec: { managedBy } }: ServerObject) => requireOwnMachine(managedBy, 'power')
  return [
    customerEndpoint(startServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.start',
        requireOwn,
        validate: requireStartable,
        spec: { desiredPower: 'running' },
      }),
    ),
    customerEndpoint(stopServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.stop',
        requireOwn,
        validate: requireStoppable,
        spec: { desiredPower: 'stopped' },
        graceSeconds: graceOf(call.body),
        arguments: stopArguments(call.body),
      }),
    ),
    customerEndpoint(restartServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.restart',
        requireOwn,
        validate: requireStoppable,
        spec: { desiredPower: 'running' },
        graceSeconds: graceOf(call.body),
        arguments: stopArguments(call.body),
      }),
    ),
  ]
}

function settingEndpoints(parts: Parts, servers: Servers): readonly Endpoint[] {
  return [
    customerEndpoint(setServerHaPolicy, async (call) => {
      const written = await changeObject(parts, servers, call, {
        changes: ({ spec }) => [{ field: 'ha_policy', before: spec.haPolicy, after: call.body.ha_policy }],
        patch: () => ({ haPolicy: call.body.ha_policy }),
      })
      const { ha_status, ha_status_reason } = servers.viewOf(written)
      return { status: 200, body: { ha_policy: call.body.ha_policy, ha_status, ha_status_reason } }
    }),
    customerEndpoint(setServerMigrationPolicy, async (call) => {
      const { migration_policy } = call.body
      await changeObject(parts, servers, call, {
        changes: ({ spec }) => [{ field: 'migration_policy', before: spec.migrationPolicy, after: migration_policy }],
        patch: () => ({ migrationPolicy: migration_policy }),
      })
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
      return {
        status: 202,
        body: {
          enabled,
          operation: await begin(parts, servers, call, {
            kind: 'server.metadata',
            validate: requireIdle,
            spec: { metadataEnabled: enabled },
          }),
        },
      }
    }),
  ]
}

const stopArguments = (options: StopOptions): Record<string, string> => ({
  stop_type: options.stop_type,
  timeout_seconds: String(options.timeout_seconds),
  timeout_action: options.timeout_action,
})

const graceOf = ({ stop_type, timeout_seconds }: StopOptions): number => (stop_type === 'soft' ? timeout_seconds : 0)

async function update(parts: Parts, servers: Servers, call: Call<typeof updateServer, Customer>): Promise<Answer> {
  const { body } = call
  const written = await changeObject(parts, servers, call, {
    changes: (server) => changesOf(server, body),
    patch: ({ spec }) => ({
      ...defined({ title: body.title, isProtected: body.is_protected }),
      ...(body.labels === undefined ? {} : { labels: replacing(spec.labels, body.labels) }),
    }),
  })
  return { status: 200, body: { server: servers.viewOf(written) }, headers: { etag: etagOfObject(written) } }
}

function changesOf({ spec }: ServerObject, body: Call<typeof updateServer, Customer>['body']) {
  const fields = [
    ['title', spec.title, body.title],
    ['labels', spec.labels, body.labels],
    ['is_protected', spec.isProtected, body.is_protected],
  ] as const
  return fields.flatMap(([field, before, after]) =>
    after === undefined || JSON.stringify(before) === JSON.stringify(after) ? [] : [{ field, before, after }],
  )
}
