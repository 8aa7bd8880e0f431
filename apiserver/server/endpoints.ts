/** Reading, listing, deleting and switching servers, and changing what can be changed at any time. Making one is
 *  `create-server.ts`. */
import type { AuditChange } from '../../domain/audit.ts'
import { requireDeletable, requireIdle, requireStartable, requireStoppable } from '../../domain/server-rules.ts'
import { appendAudit } from '../../db/audit/index.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { requireMatch } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { Route } from '../../kit/http/route.ts'
import { replacing } from '../../kit/kube/merge-patch.ts'
import { keyOf } from '../../kit/kube/object.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import { Server } from '../../resources/server/stored.ts'
import {
  deleteServer,
  getServer,
  getServerMetadataSetting,
  listServers,
  restartServer,
  setServerHaPolicy,
  setServerMetadataSetting,
  setServerMigrationPolicy,
  type StopOptions,
  startServer,
  stopServer,
  updateServer,
} from '../../resources/server/routes.ts'
import { accept, commitEarlier } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { begin, operate, readAgain } from './begin.ts'
import { createEncodedPages, type EncodedPages } from '../list/encoded-pages.ts'
import { positionOf } from '../list/newest-first.ts'
import { readPage } from '../list/page.ts'
import type { Parts } from '../parts.ts'
import { etagOfServer, type ServerObject, type Servers } from './servers.ts'

export function serverEndpoints(parts: Parts, servers: Servers): readonly Endpoint[] {
  const pages = createEncodedPages(PAGES_BYTES)
  return [
    customerEndpoint(getServer, async ({ caller, params }) => {
      const read = await servers.read(caller.accountId, params.id)
      const server = servers.cache.get(keyOf(read)) ?? read
      return {
        status: 200,
        json: Buffer.concat([SERVER_OPENS, servers.jsonOf(server), CLOSES]),
        headers: { etag: etagOfServer(server) },
      }
    }),
    customerEndpoint(listServers, async (call) => {
      await servers.catchUp(call.caller.accountId)
      return list(parts, servers, pages, call)
    }),
    customerEndpoint(updateServer, async (call) => update(parts, servers, call)),
    customerEndpoint(deleteServer, (call) =>
      operate(parts, servers, call, { kind: 'server.delete', validate: requireDeletable, spec: {} }),
    ),
    customerEndpoint(startServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.start',
        validate: requireStartable,
        spec: { desiredPower: 'running' },
      }),
    ),
    customerEndpoint(stopServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.stop',
        validate: requireStoppable,
        spec: { desiredPower: 'stopped' },
        graceSeconds: graceOf(call.body),
        arguments: stopArguments(call.body),
      }),
    ),
    customerEndpoint(restartServer, (call) =>
      operate(parts, servers, call, {
        kind: 'server.restart',
        validate: requireStoppable,
        spec: { desiredPower: 'running' },
        graceSeconds: graceOf(call.body),
        arguments: stopArguments(call.body),
      }),
    ),

    customerEndpoint(setServerHaPolicy, async (call) => {
      const written = await change(parts, servers, call, {
        changes: ({ spec }) => [{ field: 'ha_policy', before: spec.haPolicy, after: call.body.ha_policy }],
        patch: () => ({ haPolicy: call.body.ha_policy }),
      })
      const { ha_status, ha_status_reason } = servers.viewOf(written)
      return { status: 200, body: { ha_policy: call.body.ha_policy, ha_status, ha_status_reason } }
    }),
    customerEndpoint(setServerMigrationPolicy, async (call) => {
      const { migration_policy } = call.body
      await change(parts, servers, call, {
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
      return { status: 200, body: { enabled: server.spec.metadataEnabled }, headers: { etag: etagOfServer(server) } }
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

/** Answers are put together from pieces that are encoded already. */
const [SERVER_OPENS, CLOSES] = ['{"server":', '}'].map((text) => Buffer.from(text)) as [Buffer, Buffer]
const PAGES_BYTES = 16 * 1024 * 1024

const stopArguments = (options: StopOptions): Record<string, string> => ({
  stop_type: options.stop_type,
  timeout_seconds: String(options.timeout_seconds),
  timeout_action: options.timeout_action,
})

const graceOf = ({ stop_type, timeout_seconds }: StopOptions): number => (stop_type === 'soft' ? timeout_seconds : 0)

async function list(
  { cursors }: Parts,
  servers: Servers,
  pages: EncodedPages,
  call: Call<typeof listServers, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    query: { hostname, label = [] },
  } = call
  const labels = label.map((text) => ({
    key: text.slice(0, text.indexOf('=')),
    value: text.slice(text.indexOf('=') + 1),
  }))
  const { items, nextCursor } = await readPage(
    cursors,
    call,
    (after, count) => servers.page(accountId, { labels, hostname }, after, count),
    positionOf,
  )
  return {
    status: 200,
    json: pages.join(
      items.map((server) => servers.jsonOf(server)),
      nextCursor,
    ),
  }
}

async function update(parts: Parts, servers: Servers, call: Call<typeof updateServer, Customer>): Promise<Answer> {
  const { body } = call
  const written = await change(parts, servers, call, {
    changes: (server) => changesOf(server, body),
    patch: ({ spec }) => ({
      ...(body.title === undefined ? {} : { title: body.title }),
      ...(body.is_protected === undefined ? {} : { isProtected: body.is_protected }),
      ...(body.labels === undefined ? {} : { labels: replacing(spec.labels, body.labels) }),
    }),
  })
  return { status: 200, body: { server: servers.viewOf(written) }, headers: { etag: etagOfServer(written) } }
}

export interface Edit {
  /** What the audit entry names, when that is not the server. */
  readonly resourceId?: string
  readonly changes: (server: ServerObject) => readonly AuditChange[]
  /** Merge patch of the spec. */
  readonly patch: (server: ServerObject) => Readonly<Record<string, unknown>>
}

/** One conditional write that starts no operation. Answers the server as it is then. */
export async function change<R extends Route>(
  parts: Parts,
  servers: Servers,
  call: Call<R, Customer>,
  edit: Edit,
  serverId = idOf(call),
): Promise<ServerObject> {
  const { caller, request } = call
  const before = await servers.read(caller.accountId, serverId)
  requireMatch(request, etagOfServer(before))
  const id = newUuid(parts.random)
  const read = readAgain(servers, { caller, params: { id: serverId } }, before)
  const written = await accept(parts, {
    id,
    accountId: caller.accountId,
    resource: { type: 'server', id: serverId },
    audit: auditEntryOf(call, { resourceId: edit.resourceId ?? serverId, changes: edit.changes(before) }),
    write: async () => {
      const server = await read()
      requireMatch(request, etagOfServer(server))
      const earlier = server.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      return parts.store.patch(Server, keyOf(server), {
        metadata: { resourceVersion: server.metadata.resourceVersion, annotations: { [LAST_CHANGE_ANNOTATION]: id } },
        spec: edit.patch(server),
      })
    },
    read: () => parts.store.get(Server, { namespace: accountNamespace(caller.accountId), name: serverId }),
    wasApplied: (server) => server.metadata.annotations?.[LAST_CHANGE_ANNOTATION] === id,
  })
  servers.cache.apply(written)
  return written
}

/** Every route of an edit has it. */
const idOf = ({ params }: { readonly params: unknown }): string => (params as { readonly id: string }).id

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
